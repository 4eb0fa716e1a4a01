//! The capacity of every field that needs one.

use std::collections::HashMap;

use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, FileDescriptor, Kind};

use crate::options::{Options, Setting};
use crate::report::Mistake;
use crate::sources::Sources;

/// Bounds of one element, by its path as micropb-gen names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bound {
    pub path: String,
    pub size: Option<u32>,
    pub count: Option<u32>,
}

/// Everything that says something about bounds.
pub(crate) struct Rules<'a> {
    pool: &'a DescriptorPool,
    sources: &'a Sources,
    /// Of one .proto each, by import name.
    own: HashMap<String, Options>,
    /// Of all.
    common: Vec<Options>,
}

impl<'a> Rules<'a> {
    pub fn new(
        pool: &'a DescriptorPool,
        sources: &'a Sources,
        own: HashMap<String, Options>,
        common: Vec<Options>,
    ) -> Self {
        Rules {
            pool,
            sources,
            own,
            common,
        }
    }

    /// A value for an element: from the .proto itself, from the file beside it, from common files.
    fn get(&self, file: &FileDescriptor, element: &str, wanted: Setting) -> Option<u32> {
        // All are asked, so that each knows which of its rules are in use.
        let own = self
            .own
            .get(file.name())
            .and_then(|o| o.get(element, wanted));
        let mut common = None;
        for options in &self.common {
            common = options.get(element, wanted).or(common);
        }
        own.or(common)
    }

    fn see(&self, file: &FileDescriptor, element: &str) {
        let own = self.own.get(file.name());
        own.into_iter()
            .chain(&self.common)
            .for_each(|o| o.see(element));
    }

    /// The capacity of a method's messages where they are plain bytes.
    pub fn raw(&self, method: &prost_reflect::MethodDescriptor) -> Option<u32> {
        let file = method.parent_service().parent_file();
        self.see(&file, method.full_name());
        let beside = self.get(&file, method.full_name(), Setting::Raw);
        self.written(method.options(), "sinew.raw").or(beside)
    }

    /// The value of an option written in the .proto.
    fn written(&self, options: DynamicMessage, name: &str) -> Option<u32> {
        let extension = self.pool.get_extension_by_name(name)?;
        match options.has_extension(&extension) {
            true => options.get_extension(&extension).as_u32(),
            false => None,
        }
    }

    /// The bounds of a field. What is missing goes to `mistakes`.
    pub fn field(&self, field: &FieldDescriptor, mistakes: &mut Vec<Mistake>) -> Vec<Bound> {
        let file = field.parent_file();
        let full_name = field.full_name();
        self.see(&file, full_name);
        let mut bounds = vec![Bound {
            path: format!(".{full_name}"),
            size: None,
            count: None,
        }];
        if field.is_list() || field.is_map() {
            let what = if field.is_map() { "a map" } else { "repeated" };
            let count = self.count(field, full_name, what, mistakes);
            // The table of a map is a power of two.
            bounds[0].count = match field.is_map() {
                true => count.map(|n| n.checked_next_power_of_two().unwrap_or(n).max(2)),
                false => count,
            };
        }
        match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                for part in [entry.map_entry_key_field(), entry.map_entry_value_field()] {
                    let element = format!("{full_name}.{}", part.name());
                    self.see(&file, &element);
                    if let Some(what) = sized(&part) {
                        bounds.push(Bound {
                            size: self.size(field, &element, what, mistakes),
                            path: format!(".{element}"),
                            count: None,
                        });
                    }
                }
            }
            _ => {
                if let Some(what) = sized(field) {
                    bounds[0].size = self.size(field, full_name, what, mistakes);
                }
            }
        }
        bounds.retain(|bound| bound.size.is_some() || bound.count.is_some());
        bounds
    }

    fn size(
        &self,
        field: &FieldDescriptor,
        element: &str,
        what: &str,
        mistakes: &mut Vec<Mistake>,
    ) -> Option<u32> {
        let file = field.parent_file();
        let own = self.get(&file, element, Setting::Size);
        // Of the map, where the element is a part of one.
        let outer = self.get(&file, field.full_name(), Setting::Size);
        let default = self.get(&file, element, Setting::DefaultSize);
        let written = self.written(field.options(), "sinew.max_size");
        let found = written.or(own).or(outer).or(default);
        if found.is_none() {
            mistakes.push(self.missing(field, element, what, "max_size", "bytes"));
        }
        found
    }

    fn count(
        &self,
        field: &FieldDescriptor,
        element: &str,
        what: &str,
        mistakes: &mut Vec<Mistake>,
    ) -> Option<u32> {
        let file = field.parent_file();
        let own = self.get(&file, element, Setting::Count);
        let default = self.get(&file, element, Setting::DefaultCount);
        let written = self.written(field.options(), "sinew.max_count");
        let found = written.or(own).or(default);
        if found.is_none() {
            mistakes.push(self.missing(field, element, what, "max_count", "elements"));
        }
        found
    }

    fn missing(
        &self,
        field: &FieldDescriptor,
        element: &str,
        what: &str,
        setting: &str,
        unit: &str,
    ) -> Mistake {
        let file = field.parent_file();
        let line = format!("`{element} {setting}:N` (N in {unit}) or `* default_{setting}:N`");
        let beside = self.sources.get(file.name()).map(|source| {
            let options = source.path.with_extension("options");
            options.display().to_string()
        });
        let remedy = match beside {
            Some(options) if self.own.contains_key(file.name()) => {
                format!("write {line} into {options}")
            }
            Some(options) => format!("create {options} with the line {line}"),
            None => format!("write {line} into a file that is given with --options"),
        };
        let message = format!("`{element}` is {what} and has no {setting}");
        self.sources
            .at_element(&file, field.path(), message)
            .remedy(remedy)
    }

    /// Rules that apply to nothing.
    pub fn unused(&self) -> impl Iterator<Item = Mistake> {
        self.own
            .values()
            .chain(&self.common)
            .flat_map(Options::unused)
    }
}

fn sized(field: &FieldDescriptor) -> Option<&'static str> {
    match field.kind() {
        Kind::String => Some("a string"),
        Kind::Bytes => Some("bytes"),
        _ => None,
    }
}
