//! What a .proto may say and Rust or the wire cannot take: ids, names, endless types.

use std::collections::HashMap;

use convert_case::{Case, Casing};
use prost_reflect::{
    DescriptorPool, EnumDescriptor, FileDescriptor, Kind, MessageDescriptor, ServiceDescriptor,
};

use crate::names::{camel, ident, snake};
use crate::report::Mistake;
use crate::service::{function_name, trait_name};
use crate::sources::Sources;

/// Types of Rust that have no keyword, so that a message could hide them.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16",
    "u32", "u64", "u128", "usize",
];

/// Names of one scope of Rust, with who took each first.
#[derive(Default)]
struct Scope(HashMap<String, String>);

impl Scope {
    /// Who has the name already.
    fn take(&mut self, name: String, owner: &str) -> Option<String> {
        match self.0.get(&name) {
            Some(first) if first != owner => Some(first.clone()),
            _ => {
                self.0.insert(name, owner.to_owned());
                None
            }
        }
    }
}

/// Every mistake of the services and types for which code is made.
pub(crate) struct Checker<'a> {
    pub sources: &'a Sources,
    pub mistakes: &'a mut Vec<Mistake>,
}

impl Checker<'_> {
    fn report(&mut self, file: &FileDescriptor, path: &[i32], message: String, remedy: &str) {
        let mistake = self.sources.at_element(file, path, message);
        self.mistakes.push(mistake.remedy(remedy));
    }

    /// Names of services beside those of types and packages, and ids over all services.
    pub fn services(&mut self, services: &[ServiceDescriptor], pool: &DescriptorPool) {
        let mut scope = Scope::default();
        for file in pool.files() {
            // Module `a` holds a module `b` for package `a.b`.
            let package = file.package_name().to_owned();
            let mut path = String::new();
            for part in package.split('.').filter(|part| !part.is_empty()) {
                path = if path.is_empty() {
                    part.into()
                } else {
                    format!("{path}.{part}")
                };
                let _ = scope.take(path.clone(), &format!("package {path}"));
            }
        }
        let types = pool.all_messages().map(|m| m.full_name().to_owned());
        for name in types.chain(pool.all_enums().map(|e| e.full_name().to_owned())) {
            let _ = scope.take(name.clone(), &name);
        }
        for message in pool.all_messages() {
            self.inner_names(&message, &mut scope);
        }
        let mut ids = Scope::default();
        for service in services {
            let (file, name) = (service.parent_file(), service.full_name());
            if !is_name(&trait_name(service.name())) {
                self.nameless(&file, service.path(), name);
                continue;
            }
            let module = ident(&snake(service.name()));
            let module = match service.package_name() {
                "" => module.to_string(),
                package => format!("{package}.{module}"),
            };
            if let Some(first) = scope.take(module.clone(), name) {
                let message =
                    format!("module `{module}` of service `{name}` is taken by `{first}`");
                self.report(&file, service.path(), message, "rename one of them");
            }
            let id = sinew::rpc::id(name);
            self.id(&file, service.path(), name, id, &mut ids);
            self.methods(service);
        }
    }

    /// The module of what is inside of a message, and the types of its oneofs.
    fn inner_names(&mut self, message: &MessageDescriptor, scope: &mut Scope) {
        let (file, name) = (message.parent_file(), message.full_name());
        let mut has_module = message.child_enums().next().is_some()
            || message.child_messages().any(|child| !child.is_map_entry());
        for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
            has_module = true;
            let rust = oneof.name().to_case(Case::Pascal);
            if let Some(first) = scope.take(format!("{name}.{rust}"), oneof.full_name()) {
                let text = format!(
                    "`{rust}`, the type of `{}`, is taken by `{first}`",
                    oneof.name()
                );
                self.report(&file, oneof.path(), text, "rename one of them");
            }
        }
        let module = format!("{name}_");
        if has_module && let Some(first) = scope.take(module.clone(), &format!("{name}.*")) {
            let text =
                format!("module `{module}` of what is inside of `{name}` is taken by `{first}`");
            self.report(&file, message.path(), text, "rename one of them");
        }
    }

    fn nameless(&mut self, file: &FileDescriptor, path: &[i32], name: &str) {
        let message = format!("`{name}` has no name in Rust");
        self.report(
            file,
            path,
            message,
            "take a name that starts with a letter and is not `self`",
        );
    }

    /// Names of types that the code of messages uses as what they are.
    fn primitive(&mut self, file: &FileDescriptor, path: &[i32], name: &str) {
        if PRIMITIVES.contains(&name) {
            let message = format!("`{name}` is a type of Rust");
            self.report(file, path, message, "let it start with a capital letter");
        }
    }

    fn id(&mut self, file: &FileDescriptor, path: &[i32], name: &str, id: u32, ids: &mut Scope) {
        if id == 0 {
            let message = format!("the id of `{name}` is 0, which means none on the wire");
            self.report(
                file,
                path,
                message,
                "rename it: the id is a hash of the name",
            );
        } else if let Some(first) = ids.take(format!("{id:08x}"), name) {
            let message = format!("`{name}` and `{first}` have the same id 0x{id:08x}");
            self.report(
                file,
                path,
                message,
                "rename one: the id is a hash of the name",
            );
        }
    }

    fn methods(&mut self, service: &ServiceDescriptor) {
        let file = service.parent_file();
        let (mut ids, mut functions, mut markers) = Default::default();
        for method in service.methods() {
            let name = method.name();
            self.id(&file, method.path(), name, sinew::rpc::id(name), &mut ids);
            let taken = |scope: &mut Scope, rust: String| {
                let first = scope.take(rust.clone(), name)?;
                Some((rust, first))
            };
            if !is_name(&camel(name)) {
                self.nameless(&file, method.path(), name);
                continue;
            }
            let function = ident(&function_name(name)).to_string();
            let clash = taken(&mut functions, function);
            if let Some((rust, first)) =
                clash.or_else(|| taken(&mut markers, ident(&camel(name)).to_string()))
            {
                let message = format!("`{name}` and `{first}` are both `{rust}` in Rust");
                self.report(&file, method.path(), message, "rename one of them");
            }
        }
    }

    /// Names inside of a message, groups, and messages without end.
    pub fn message(&mut self, message: &MessageDescriptor) {
        let file = message.parent_file();
        self.primitive(&file, message.path(), message.name());
        for oneof in message.oneofs() {
            let mut variants = Scope::default();
            for field in oneof.fields() {
                let rust = field.name().to_case(Case::Pascal);
                if rust == "Self" || !is_name(&rust) {
                    self.nameless(&file, field.path(), field.name());
                } else if let Some(first) = variants.take(rust.clone(), field.name()) {
                    let message =
                        format!("`{}` and `{first}` are both `{rust}` in Rust", field.name());
                    self.report(&file, field.path(), message, "rename one of them");
                }
            }
        }
        for field in message.fields() {
            if field.is_group() {
                let message = format!("`{}` is a group", field.full_name());
                self.report(
                    &file,
                    field.path(),
                    message,
                    "use a field of a message type",
                );
            } else if let Kind::Message(inner) = field.kind()
                && reaches(&inner, message, &mut Vec::new())
            {
                let message = format!(
                    "`{}` contains itself through `{}`",
                    message.full_name(),
                    field.name()
                );
                let remedy = "a message of fixed size cannot: refer by an index or a name";
                self.report(&file, field.path(), message, remedy);
            }
        }
    }

    /// Names of the values of an enum.
    pub fn enumeration(&mut self, enumeration: &EnumDescriptor) {
        let mut values = Scope::default();
        let prefix = enumeration.name();
        self.primitive(&enumeration.parent_file(), enumeration.path(), prefix);
        for value in enumeration.values() {
            let rust = value.name().to_case(Case::Pascal);
            let rust = rust.strip_prefix(prefix).unwrap_or(&rust).to_owned();
            let file = enumeration.parent_file();
            if rust.is_empty() {
                let message = format!("`{}` has no name beside that of its enum", value.name());
                self.report(&file, value.path(), message, "add a word to it");
            } else if let Some(first) = values.take(rust.clone(), value.name()) {
                let message = format!("`{}` and `{first}` are both `{rust}` in Rust", value.name());
                self.report(&file, value.path(), message, "rename one of them");
            }
        }
    }
}

/// Whether it can be a name in camel case.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic())
}

/// Whether `from` is or contains `to`.
fn reaches(from: &MessageDescriptor, to: &MessageDescriptor, seen: &mut Vec<String>) -> bool {
    if from == to {
        return true;
    }
    if seen.iter().any(|name| name == from.full_name()) {
        return false;
    }
    seen.push(from.full_name().to_owned());
    from.fields().any(|field| match field.kind() {
        Kind::Message(inner) => reaches(&inner, to, seen),
        _ => false,
    })
}
