//! Schemas of others in one pool: of a device that was asked, of a recording.
//!
//! Whatever they hold, this ends, and takes no more memory than some times their size.

use std::collections::{HashMap, HashSet};

use prost_reflect::DescriptorPool;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};

use sinew_services::reflection;

use super::names;

/// More files than anything has that is served.
const MOST_FILES: usize = 4_096;

/// All schemas of a device in one pool, with the service that it was asked by; or why that cannot be.
pub fn joined(schemas: &[Vec<u8>]) -> Result<DescriptorPool, String> {
    let mut all = Files::default();
    for schema in schemas {
        all.add(decode(schema)?)?;
    }
    // A device need not tell of it: it is the same everywhere.
    if !all.have_service("sinew", "Reflection") {
        all.add(decode(reflection::SCHEMA.set)?)?;
    }
    all.into_pool()
}

/// One schema.
pub fn of(schema: &[u8]) -> Result<DescriptorPool, String> {
    let mut all = Files::default();
    all.add(decode(schema)?)?;
    all.into_pool()
}

fn decode(schema: &[u8]) -> Result<FileDescriptorSet, String> {
    FileDescriptorSet::decode(schema).map_err(|error| error.to_string())
}

/// Files of several schemas, each under a name of its own.
#[derive(Default)]
struct Files {
    files: Vec<FileDescriptorProto>,
    by_name: HashMap<String, usize>,
}

impl Files {
    /// Adds the files of a schema. Several runs of a generator may have the same file, which is added once, or
    /// different ones of the same name, of which the later gets another.
    fn add(&mut self, set: FileDescriptorSet) -> Result<(), String> {
        let mut names = HashMap::new();
        let mut own = HashSet::new();
        for mut file in set.file {
            names::check(&file)?;
            if !own.insert(file.name().to_owned()) {
                return Err(format!("it has two files {:?}", file.name()));
            }
            let mut name = file.name().to_owned();
            while let Some(known) = self.by_name.get(&name).and_then(|&at| self.files.get(at)) {
                if is_same(known, &file) {
                    break;
                }
                name.push('~');
            }
            if name != file.name() {
                names.insert(file.name().to_owned(), name.clone());
            }
            if self.by_name.contains_key(&name) {
                continue;
            }
            if self.files.len() >= MOST_FILES {
                return Err("it has more files than any schema has".into());
            }
            for import in &mut file.dependency {
                if let Some(name) = names.get(import) {
                    import.clone_from(name);
                }
            }
            self.by_name.insert(name.clone(), self.files.len());
            file.name = Some(name);
            self.files.push(file);
        }
        Ok(())
    }

    fn have_service(&self, package: &str, name: &str) -> bool {
        self.files.iter().any(|file| {
            let mut services = file.service.iter();
            file.package() == package && services.any(|it| it.name() == name)
        })
    }

    fn into_pool(self) -> Result<DescriptorPool, String> {
        let set = FileDescriptorSet { file: self.files };
        DescriptorPool::from_file_descriptor_set(set).map_err(|error| error.to_string())
    }
}

/// The same but for their names and comments.
fn is_same(known: &FileDescriptorProto, file: &FileDescriptorProto) -> bool {
    let bare = |file: &FileDescriptorProto| FileDescriptorProto {
        name: None,
        source_code_info: None,
        ..file.clone()
    };
    bare(known) == bare(file)
}

#[cfg(test)]
mod tests {
    use prost_reflect::prost_types::{
        DescriptorProto, MethodDescriptorProto, ServiceDescriptorProto,
    };

    use super::*;

    /// A file with a service of one method.
    fn file(name: &str, package: &str, service: &str) -> FileDescriptorProto {
        let message = DescriptorProto {
            name: Some("Nothing".into()),
            ..DescriptorProto::default()
        };
        let method = MethodDescriptorProto {
            name: Some("Go".into()),
            input_type: Some(format!(".{package}.Nothing")),
            output_type: Some(format!(".{package}.Nothing")),
            ..MethodDescriptorProto::default()
        };
        FileDescriptorProto {
            name: Some(name.into()),
            package: Some(package.into()),
            syntax: Some("proto3".into()),
            message_type: vec![message],
            service: vec![ServiceDescriptorProto {
                name: Some(service.into()),
                method: vec![method],
                ..ServiceDescriptorProto::default()
            }],
            ..FileDescriptorProto::default()
        }
    }

    fn bytes(file: Vec<FileDescriptorProto>) -> Vec<u8> {
        FileDescriptorSet { file }.encode_to_vec()
    }

    #[test]
    fn files_of_one_name_in_two_schemas_are_both_there() {
        let lamp = bytes(vec![file("service.proto", "lamp", "Lamp")]);
        let motor = bytes(vec![file("service.proto", "motor", "Motor")]);
        let like_ours = bytes(vec![file("reflection.proto", "mirror", "Mirror")]);
        let pool = joined(&[lamp.clone(), motor, lamp, like_ours]).unwrap();
        for service in [
            "lamp.Lamp",
            "motor.Motor",
            "mirror.Mirror",
            "sinew.Reflection",
        ] {
            assert!(pool.get_service_by_name(service).is_some(), "{service}");
        }
    }

    #[test]
    fn import_of_a_file_that_was_renamed_leads_to_it() {
        let lamp = bytes(vec![file("types.proto", "lamp", "Lamp")]);
        let mut user = file("user.proto", "user", "User");
        user.dependency = vec!["types.proto".into()];
        user.service[0].method[0].input_type = Some(".motor.Nothing".into());
        let motor = bytes(vec![file("types.proto", "motor", "Motor"), user]);
        let pool = joined(&[lamp, motor]).unwrap();
        let user = pool.get_service_by_name("user.User").unwrap();
        let go = user.methods().next().unwrap();
        assert_eq!(go.input().full_name(), "motor.Nothing");
    }

    #[test]
    fn what_no_schema_has_is_refused_with_its_reason() {
        let broken = |change: fn(&mut FileDescriptorProto)| {
            let mut file = file("a.proto", "a", "A");
            change(&mut file);
            joined(&[bytes(vec![file])]).unwrap_err()
        };
        let why = broken(|file| file.syntax = Some("editions".into()));
        assert!(why.contains("editions"), "{why}");
        let why = broken(|file| file.package = Some(vec!["a"; 10_000].join(".")));
        assert!(why.contains("longer"), "{why}");
        for change in [
            (|file| file.dependency = vec!["\u{1b}[2J".into()]) as fn(&mut FileDescriptorProto),
            |file| file.service[0].method[0].input_type = Some(".a.\u{1b}c".into()),
        ] {
            assert!(!broken(change).contains('\u{1b}'));
        }
        let many = (0..=MOST_FILES).map(|at| FileDescriptorProto {
            name: Some(format!("{at}.proto")),
            ..FileDescriptorProto::default()
        });
        let why = joined(&[bytes(many.collect())]).unwrap_err();
        assert!(why.contains("more files"), "{why}");
    }
}
