//! Services and methods out of .proto files, without generated code.

use std::path::{Path, PathBuf};

use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};
use sinew::rpc::{MethodId, MethodKind, id};

use crate::failure::Failure;

/// A method as `call` needs it.
#[derive(Clone, Debug)]
pub struct Method {
    /// `package.Service/Method`.
    pub name: String,
    pub id: MethodId,
    pub request: MessageDescriptor,
    pub response: MessageDescriptor,
}

/// The services that `serve` offers.
pub const DEMO: [&str; 2] = ["demo.Cache", "demo.Kinds"];

impl Method {
    /// Whether `sinew serve` has it.
    pub fn is_demo(&self) -> bool {
        DEMO.iter().any(|service| self.id.service == id(service))
    }

    fn new(method: &MethodDescriptor) -> Method {
        let service = method.parent_service().full_name();
        let kind = match (method.is_client_streaming(), method.is_server_streaming()) {
            (false, false) => MethodKind::Unary,
            (false, true) => MethodKind::ServerStream,
            (true, false) => MethodKind::ClientStream,
            (true, true) => MethodKind::Bidi,
        };
        Method {
            name: format!("{service}/{}", method.name()),
            id: MethodId {
                service: id(service),
                method: id(method.name()),
                kind,
            },
            request: method.input(),
            response: method.output(),
        }
    }
}

/// Where services are known from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nobody was asked.
    Demo,
    /// `--proto`.
    Files,
    /// The server said it.
    Server,
}

impl Place {
    fn says(self) -> &'static str {
        match self {
            Place::Demo => "in the demo services",
            Place::Files => "in the .proto files",
            Place::Server => "at the server",
        }
    }
}

/// Reads the .proto files. Without any: the demo services that `serve` offers.
pub fn load(files: &[PathBuf], includes: &[PathBuf]) -> Result<DescriptorPool, Failure> {
    if files.is_empty() {
        let mut compiler = protox::Compiler::with_file_resolver(Demo);
        compiler.open_file("demo.proto")?;
        return Ok(compiler.descriptor_pool());
    }
    if let Some(missing) = files.iter().find(|file| !file.is_file()) {
        return Err(Failure::usage(
            format!("there is no file {}", missing.display()),
            "check the path; a file of an include folder is given with its whole path, too",
        ));
    }
    let parent = |file: &PathBuf| match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut search = includes.to_vec();
    search.extend(files.iter().map(parent));
    let mut compiler = protox::Compiler::new(search)?;
    compiler.open_files(files)?;
    Ok(compiler.descriptor_pool())
}

struct Demo;

impl protox::file::FileResolver for Demo {
    fn open_file(&self, name: &str) -> Result<protox::file::File, protox::Error> {
        protox::file::File::from_source(name, include_str!("../../../proto/demo/demo.proto"))
    }
}

/// Every method of every service.
pub fn methods(pool: &DescriptorPool) -> Vec<Method> {
    let services = pool.services();
    let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
    methods.map(|method| Method::new(&method)).collect()
}

/// The method of this name: `package.Service/Method`, with a dot instead of the slash, or without
/// the package where only one service has the name. `place` is where the pool is from.
pub fn find(pool: &DescriptorPool, name: &str, place: Place) -> Result<Method, Failure> {
    let methods = methods(pool);
    let wanted = name.trim_start_matches('/').replace('/', ".");
    let spelled = |method: &Method| method.name.replace('/', ".");
    if let Some(method) = methods.iter().find(|method| spelled(method) == wanted) {
        return Ok(method.clone());
    }
    let suffix = format!(".{wanted}");
    let short: Vec<&Method> = methods
        .iter()
        .filter(|method| wanted.contains('.') && spelled(method).ends_with(&suffix))
        .collect();
    if let [method] = short.as_slice() {
        return Ok((*method).clone());
    }
    Err(unknown(name, &wanted, &methods, &short, place))
}

fn unknown(
    name: &str,
    wanted: &str,
    methods: &[Method],
    short: &[&Method],
    place: Place,
) -> Failure {
    let list = |methods: &mut dyn Iterator<Item = &Method>| {
        methods
            .map(|m| m.name.as_str())
            .collect::<Vec<_>>()
            .join("\n  ")
    };
    if !short.is_empty() {
        return Failure::usage(
            format!("{name} is a method of several services"),
            format!("write one of\n  {}", list(&mut short.iter().copied())),
        );
    }
    if methods.is_empty() {
        return match place {
            Place::Server => Failure::usage(
                "the server says that it has no services",
                "build its image with their schemas, or give --proto FILE",
            ),
            _ => Failure::usage(
                "the .proto files have no service",
                "give --proto the file that contains the service",
            ),
        };
    }
    let bare = methods
        .iter()
        .find(|m| m.name.ends_with(&format!("/{wanted}")));
    let near = match bare {
        Some(method) => Some(method.name.as_str()),
        None => nearest(wanted, methods.iter().map(|m| m.name.as_str())),
    };
    let hint = near.map_or(String::new(), |near| format!("did you mean {near}?\n"));
    Failure::usage(
        format!("there is no method {name} {}", place.says()),
        format!("{hint}the methods are\n  {}", list(&mut methods.iter())),
    )
}

/// What the user may have meant: a name, or one without the package that stands before it.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let parts = wanted.split('.').count();
    let similarity = |name: &str| {
        let name = name.replace('/', ".").to_lowercase();
        let mut ends = name.rmatch_indices('.').map(|(at, dot)| at + dot.len());
        let end = ends.nth(parts - 1).and_then(|at| name.get(at..));
        let end = end.map_or(0.0, |end| strsim::jaro_winkler(&wanted, end));
        strsim::jaro_winkler(&wanted, &name).max(end)
    };
    names
        .map(|name| (similarity(name), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
