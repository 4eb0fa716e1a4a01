//! Descriptors as .proto text: one element with its comments, and all that it needs, so that the text
//! can be compiled again.

use std::collections::BTreeSet;
use std::fmt::Write;

use prost_reflect::{
    Cardinality, DescriptorPool, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind,
    MessageDescriptor, MethodDescriptor, OneofDescriptor, ServiceDescriptor, Syntax,
};

use crate::output::plain;

/// What can be described.
pub enum Element {
    Service(ServiceDescriptor),
    Message(MessageDescriptor),
    Enum(EnumDescriptor),
}

impl Element {
    /// Everything in the pool that is not inside of something else.
    pub fn all(pool: &DescriptorPool) -> Vec<Element> {
        let mut all: Vec<_> = pool.services().map(Element::Service).collect();
        for file in pool.files() {
            all.extend(file.messages().map(Element::Message));
            all.extend(file.enums().map(Element::Enum));
        }
        all
    }

    pub fn full_name(&self) -> &str {
        match self {
            Element::Service(it) => it.full_name(),
            Element::Message(it) => it.full_name(),
            Element::Enum(it) => it.full_name(),
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Element::Service(_) => "service",
            Element::Message(_) => "message",
            Element::Enum(_) => "enum",
        }
    }

    fn file(&self) -> FileDescriptor {
        match self {
            Element::Service(it) => it.parent_file(),
            Element::Message(it) => it.parent_file(),
            Element::Enum(it) => it.parent_file(),
        }
    }

    /// What it needs besides itself.
    fn needs(&self) -> Vec<Element> {
        match self {
            Element::Service(service) => {
                let messages = service.methods().flat_map(|it| [it.input(), it.output()]);
                messages.map(top).collect()
            }
            Element::Message(message) => needs_of(message),
            Element::Enum(_) => Vec::new(),
        }
    }
}

/// The message at the top of the file that this one is in.
fn top(message: MessageDescriptor) -> Element {
    match message.parent_message() {
        Some(parent) => top(parent),
        None => Element::Message(message),
    }
}

fn needs_of(message: &MessageDescriptor) -> Vec<Element> {
    let fields = message.fields().filter_map(|field| match field.kind() {
        Kind::Message(message) if message.is_map_entry() => None,
        Kind::Message(message) => Some(top(message)),
        Kind::Enum(item) => Some(match item.parent_message() {
            Some(parent) => top(parent),
            None => Element::Enum(item),
        }),
        _ => None,
    });
    let inner = message.child_messages().flat_map(|it| needs_of(&it));
    fields.chain(inner).collect()
}

/// The element and what it needs. What is of another package stands behind, under the name of that.
pub fn text(element: Element) -> String {
    let file = element.file();
    let mut text = match file.syntax() {
        Syntax::Proto2 => "syntax = \"proto2\";\n".to_owned(),
        _ => "syntax = \"proto3\";\n".to_owned(),
    };
    let mut known = BTreeSet::from([element.full_name().to_owned()]);
    let mut waiting = vec![element];
    let mut at = 0;
    while let Some(element) = waiting.get(at) {
        at += 1;
        for needed in element.needs() {
            if known.insert(needed.full_name().to_owned()) {
                waiting.push(needed);
            }
        }
    }
    let home = file.package_name().to_owned();
    waiting.sort_by_key(|it| it.file().package_name() != home);
    let mut package = String::new();
    for element in waiting {
        let file = element.file();
        if file.package_name() != package {
            package = file.package_name().to_owned();
            let _ = writeln!(text, "package {package};");
        }
        text.push('\n');
        let mut writer = Writer {
            text: &mut text,
            package: &package,
            depth: 0,
            scopes: Vec::new(),
        };
        match element {
            Element::Service(it) => writer.service(&it),
            Element::Message(it) => writer.message(&it),
            Element::Enum(it) => writer.enumeration(&it),
        }
    }
    text
}

/// What a method takes and what it gives, by the names of messages that are to be shown.
pub fn signature(
    method: &MethodDescriptor,
    name: impl Fn(MessageDescriptor) -> String,
) -> (String, String) {
    let side = |streams: bool, message: MessageDescriptor| match streams {
        true => format!("stream {}", name(message)),
        false => name(message),
    };
    (
        side(method.is_client_streaming(), method.input()),
        side(method.is_server_streaming(), method.output()),
    )
}

struct Writer<'t> {
    text: &'t mut String,
    package: &'t str,
    depth: usize,
    /// The services and messages that the place is in, from the outermost.
    scopes: Vec<Scope>,
}

/// What has a name inside of a service or a message.
struct Scope {
    full_name: String,
    names: BTreeSet<String>,
}

impl Scope {
    /// Whether a name that begins with this one means something else here than it does outside.
    fn hides(&self, first: &str, full: &str) -> bool {
        let here = full
            .strip_prefix(&self.full_name)
            .and_then(|it| it.strip_prefix('.'));
        self.names.contains(first) && here.and_then(|it| it.split('.').next()) != Some(first)
    }
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        let indent = "  ".repeat(self.depth);
        let _ = writeln!(self.text, "{indent}{line}");
    }

    fn block(&mut self, head: &str, inside: impl FnOnce(&mut Self)) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.line("}");
    }

    /// The comments at this place of the file: those before it and those behind it.
    fn comments(&mut self, file: &FileDescriptor, path: &[i32]) {
        let file = file.file_descriptor_proto();
        let places = file.source_code_info.iter().flat_map(|info| &info.location);
        let found: Vec<String> = places
            .filter(|it| it.path == path)
            .flat_map(|it| [&it.leading_comments, &it.trailing_comments])
            .flatten()
            .cloned()
            .collect();
        for line in found.iter().flat_map(|comment| comment.lines()) {
            let parts: Vec<String> = line.split('\t').map(plain).collect();
            self.line(format!("//{}", parts.join("\t")).trim_end());
        }
    }

    /// As it is written inside of this package, and of the services and messages around it.
    fn name(&self, full: &str) -> String {
        let inside = full.strip_prefix(self.package);
        let inside = inside.and_then(|rest| rest.strip_prefix('.'));
        let short = match self.package {
            "" => full,
            _ => inside.unwrap_or(full),
        };
        let first = short.split('.').next().unwrap_or(short);
        match self.scopes.iter().any(|scope| scope.hides(first, full)) {
            true => format!(".{full}"),
            false => short.to_owned(),
        }
    }

    fn service(&mut self, service: &ServiceDescriptor) {
        let file = service.parent_file();
        self.comments(&file, service.path());
        self.scopes.push(Scope {
            full_name: service.full_name().to_owned(),
            names: service.methods().map(|it| it.name().to_owned()).collect(),
        });
        self.block(&format!("service {}", service.name()), |writer| {
            for method in service.methods() {
                writer.comments(&file, method.path());
                let (takes, gives) = signature(&method, |it| writer.name(it.full_name()));
                writer.line(&format!(
                    "rpc {}({takes}) returns ({gives});",
                    method.name()
                ));
            }
        });
        self.scopes.pop();
    }

    fn message(&mut self, message: &MessageDescriptor) {
        let file = message.parent_file();
        self.comments(&file, message.path());
        if message.fields().len() == 0 && message.child_messages().len() == 0 {
            return self.line(&format!("message {} {{}}", message.name()));
        }
        let fields = message.fields().map(|it| it.name().to_owned());
        let messages = message.child_messages().map(|it| it.name().to_owned());
        let enums = message.child_enums().map(|it| it.name().to_owned());
        self.scopes.push(Scope {
            full_name: message.full_name().to_owned(),
            names: fields.chain(messages).chain(enums).collect(),
        });
        self.block(&format!("message {}", message.name()), |writer| {
            for inner in message.child_enums() {
                writer.enumeration(&inner);
            }
            for inner in message.child_messages().filter(|it| !it.is_map_entry()) {
                writer.message(&inner);
            }
            let mut choices = BTreeSet::new();
            for field in message.fields() {
                match field.containing_oneof().filter(|it| !it.is_synthetic()) {
                    None => writer.field(&field),
                    Some(choice) if choices.insert(choice.name().to_owned()) => {
                        writer.choice(&choice);
                    }
                    Some(_) => {}
                }
            }
        });
        self.scopes.pop();
    }

    fn choice(&mut self, choice: &OneofDescriptor) {
        self.comments(&choice.parent_message().parent_file(), choice.path());
        self.block(&format!("oneof {}", choice.name()), |writer| {
            for field in choice.fields() {
                writer.field(&field);
            }
        });
    }

    fn field(&mut self, field: &FieldDescriptor) {
        self.comments(&field.parent_message().parent_file(), field.path());
        let proto2 = field.parent_file().syntax() == Syntax::Proto2;
        let in_choice = field
            .containing_oneof()
            .is_some_and(|it| !it.is_synthetic());
        let label = match field.cardinality() {
            _ if field.is_map() => "",
            Cardinality::Repeated => "repeated ",
            Cardinality::Required => "required ",
            Cardinality::Optional if in_choice => "",
            Cardinality::Optional if proto2 || field.containing_oneof().is_some() => "optional ",
            Cardinality::Optional => "",
        };
        let kind = match field.kind() {
            Kind::Message(entry) if entry.is_map_entry() => {
                let key = self.kind(&entry.map_entry_key_field().kind());
                let value = self.kind(&entry.map_entry_value_field().kind());
                format!("map<{key}, {value}>")
            }
            kind => self.kind(&kind),
        };
        self.line(&format!(
            "{label}{kind} {} = {};",
            field.name(),
            field.number()
        ));
    }

    fn kind(&self, kind: &Kind) -> String {
        match kind {
            Kind::Message(message) => self.name(message.full_name()),
            Kind::Enum(item) => self.name(item.full_name()),
            // Its name in .proto.
            scalar => format!("{scalar:?}"),
        }
    }

    fn enumeration(&mut self, item: &EnumDescriptor) {
        let file = item.parent_file();
        self.comments(&file, item.path());
        self.block(&format!("enum {}", item.name()), |writer| {
            let mut numbers = BTreeSet::new();
            if !item.values().all(|value| numbers.insert(value.number())) {
                writer.line("option allow_alias = true;");
            }
            for value in item.values() {
                writer.comments(&file, value.path());
                writer.line(&format!("{} = {};", value.name(), value.number()));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const SOURCE: &str = "syntax = \"proto3\";
package home;

// A lamp.
service Lamp {
  // Brighter or darker.
  rpc Set(SetRequest) returns (State);
  rpc Watch(stream State) returns (stream State);
}

message SetRequest {
  enum Speed {
    SLOW = 0;
    // As fast as it can.
    FAST = 1;
  }
  SetRequest.Speed speed = 1;
  // In percent.
  uint32 percent = 2;
  optional string reason = 3;
  oneof by {
    int64 person = 4;
    bytes automat = 5;
  }
}

message State {
  repeated State before = 1;
  map<string, double> rooms = 2;
}
";

    fn pool(source: &str) -> DescriptorPool {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("sinew-proto-{}-{}", name.0, name.1));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("home.proto");
        std::fs::write(&path, source).unwrap();
        let mut compiler = protox::Compiler::new([&folder]).unwrap();
        compiler.include_source_info(true);
        compiler.open_file(&path).unwrap();
        let pool = compiler.descriptor_pool();
        std::fs::remove_dir_all(&folder).unwrap();
        pool
    }

    #[test]
    fn described_service_is_its_own_source() {
        let service = Element::Service(pool(SOURCE).services().next().unwrap());
        assert_eq!(text(service), SOURCE);
    }

    #[test]
    fn names_that_mean_something_else_inside_are_written_whole() {
        let source = "syntax = \"proto3\";
package home;

service Lamp {
  rpc State(Set) returns (.home.State);
}

message Set {
  message State {
    uint32 inner = 1;
  }
  .home.State whole = 1;
  State own = 2;
}

message State {
  Set.State part = 1;
}
";
        let service = Element::Service(pool(source).services().next().unwrap());
        let described = text(service);
        let described = pool(&described);
        let set = described.get_message_by_name("home.Set").unwrap();
        let kind = |name: &str| match set.get_field_by_name(name).unwrap().kind() {
            Kind::Message(message) => message.full_name().to_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(kind("whole"), "home.State");
        assert_eq!(kind("own"), "home.Set.State");
        let lamp = described.get_service_by_name("home.Lamp").unwrap();
        let state = lamp.methods().next().unwrap();
        assert_eq!(state.output().full_name(), "home.State");
        assert!(text(Element::Service(lamp)).contains("returns (.home.State);"));
    }
}
