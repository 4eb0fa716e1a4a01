//! What code is made for: all of the named files, and of imported ones the types that are in use.

use std::collections::BTreeSet;

use prost_reflect::prost_types::FileDescriptorSet;
use prost_reflect::{
    DescriptorPool, EnumDescriptor, FileDescriptor, Kind, MessageDescriptor, ServiceDescriptor,
};

/// The types and services for which code is made.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Messages at the top of a file, by full name, with all that is nested in them.
    tops: BTreeSet<String>,
    pub messages: Vec<MessageDescriptor>,
    pub enums: Vec<EnumDescriptor>,
    pub services: Vec<ServiceDescriptor>,
}

impl Selection {
    /// Selects from the files that `is_named` says were named.
    pub fn new(pool: &DescriptorPool, is_named: impl Fn(&FileDescriptor) -> bool) -> Self {
        let mut selection = Selection::default();
        for file in pool.files().filter(is_named) {
            file.messages()
                .for_each(|message| selection.message(message));
            file.enums().for_each(|item| selection.enumeration(item));
            for service in file.services() {
                for method in service.methods() {
                    selection.message(method.input());
                    selection.message(method.output());
                }
                selection.services.push(service);
            }
        }
        selection
    }

    fn message(&mut self, message: MessageDescriptor) {
        match message.parent_message() {
            Some(parent) => self.message(parent),
            None if self.tops.insert(message.full_name().to_owned()) => self.nested(message),
            None => {}
        }
    }

    fn nested(&mut self, message: MessageDescriptor) {
        message
            .child_messages()
            .for_each(|child| self.nested(child));
        self.enums.extend(message.child_enums());
        for field in message.fields() {
            match field.kind() {
                Kind::Message(inner) => self.message(inner),
                Kind::Enum(inner) => self.enumeration(inner),
                _ => {}
            }
        }
        if !message.is_map_entry() {
            self.messages.push(message);
        }
    }

    fn enumeration(&mut self, item: EnumDescriptor) {
        match item.parent_message() {
            Some(parent) => self.message(parent),
            None if self.tops.insert(item.full_name().to_owned()) => self.enums.push(item),
            None => {}
        }
    }

    /// The descriptors of what was selected and nothing else.
    pub fn prune(&self, mut set: FileDescriptorSet) -> FileDescriptorSet {
        for file in &mut set.file {
            let package = file.package.clone().unwrap_or_default();
            let full = |name: &str| match package.as_str() {
                "" => name.to_owned(),
                package => format!("{package}.{name}"),
            };
            let keep = |name: &Option<String>| {
                name.as_deref()
                    .is_some_and(|name| self.tops.contains(&full(name)))
            };
            // Comments are found by index, so elements that go take theirs with them.
            let kept = |names: Vec<&Option<String>>| -> Vec<i32> {
                (0..)
                    .zip(names)
                    .filter(|(_, n)| keep(n))
                    .map(|(i, _)| i)
                    .collect()
            };
            let messages = kept(file.message_type.iter().map(|m| &m.name).collect());
            let enums = kept(file.enum_type.iter().map(|e| &e.name).collect());
            file.message_type.retain(|message| keep(&message.name));
            file.enum_type.retain(|item| keep(&item.name));
            let has_services = self
                .services
                .iter()
                .any(|service| Some(service.parent_file().name()) == file.name.as_deref());
            if !has_services {
                file.service.clear();
            }
            file.extension.clear();
            if let Some(info) = &mut file.source_code_info {
                info.location.retain_mut(|location| {
                    let indices = match location.path.first() {
                        Some(4) => &messages,
                        Some(5) => &enums,
                        _ => return true,
                    };
                    let Some(index) = location.path.get_mut(1) else {
                        return true;
                    };
                    let position = indices.iter().position(|old| old == index);
                    let Some(new) = position.and_then(|new| i32::try_from(new).ok()) else {
                        return false;
                    };
                    *index = new;
                    true
                });
            }
        }
        set.file.retain(|file| {
            !(file.message_type.is_empty() && file.enum_type.is_empty() && file.service.is_empty())
        });
        let names: Vec<_> = set
            .file
            .iter()
            .filter_map(|file| file.name.clone())
            .collect();
        for file in &mut set.file {
            let public = std::mem::take(&mut file.public_dependency);
            let old = std::mem::take(&mut file.dependency);
            for (index, name) in (0..).zip(old) {
                if names.contains(&name) {
                    if public.contains(&index) {
                        let new = i32::try_from(file.dependency.len()).unwrap_or_default();
                        file.public_dependency.push(new);
                    }
                    file.dependency.push(name);
                }
            }
            file.weak_dependency.clear();
        }
        set
    }
}
