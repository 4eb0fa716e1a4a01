//! What a device may call things: names as a .proto file has them. Anything else could steer a terminal or a
//! shell in which it is shown.

use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};

/// The most letters of a package or a name: the memory that they take grows by the square.
const LONGEST: usize = 255;

/// Whether every name in the file is one, or which is not, and whether its syntax is known.
pub fn check(file: &FileDescriptorProto) -> Result<(), String> {
    if !matches!(file.syntax(), "" | "proto2" | "proto3") {
        return Err(format!(
            "{:?} is written in the syntax {:?}, and only proto2 and proto3 are known",
            file.name(),
            file.syntax()
        ));
    }
    name_with_dots(file.package())?;
    shown(file.name())?;
    file.dependency.iter().try_for_each(|it| shown(it))?;
    file.extension.iter().try_for_each(field)?;
    file.message_type.iter().try_for_each(message)?;
    file.enum_type.iter().try_for_each(enumeration)?;
    for service in &file.service {
        name(service.name())?;
        for method in &service.method {
            name(method.name())?;
            type_name(method.input_type())?;
            type_name(method.output_type())?;
        }
    }
    Ok(())
}

fn message(message: &DescriptorProto) -> Result<(), String> {
    name(message.name())?;
    message.field.iter().try_for_each(field)?;
    message.extension.iter().try_for_each(field)?;
    for oneof in &message.oneof_decl {
        name(oneof.name())?;
    }
    message.enum_type.iter().try_for_each(enumeration)?;
    message.nested_type.iter().try_for_each(self::message)
}

fn field(field: &FieldDescriptorProto) -> Result<(), String> {
    name(field.name())?;
    type_name(field.type_name())?;
    type_name(field.extendee())?;
    shown(field.json_name())?;
    shown(field.default_value())
}

fn enumeration(item: &EnumDescriptorProto) -> Result<(), String> {
    name(item.name())?;
    item.value.iter().try_for_each(|value| name(value.name()))
}

/// The name of a type, perhaps from the root; empty where there is none.
fn type_name(text: &str) -> Result<(), String> {
    match text.strip_prefix('.').unwrap_or(text) {
        "" => Ok(()),
        name => name.split('.').try_for_each(self::name),
    }
}

fn name_with_dots(text: &str) -> Result<(), String> {
    match text {
        long if long.len() > LONGEST => Err(format!("a package is longer than {LONGEST} letters")),
        "" => Ok(()),
        package => package.split('.').try_for_each(name),
    }
}

fn name(text: &str) -> Result<(), String> {
    let is_letter = |char: char| char.is_ascii_alphabetic() || char == '_';
    let is_part = |char: char| is_letter(char) || char.is_ascii_digit();
    match text.starts_with(is_letter) && text.chars().all(is_part) {
        true if text.len() > LONGEST => Err(format!("a name is longer than {LONGEST} letters")),
        true => Ok(()),
        false => Err(format!("{text:?} is no name")),
    }
}

/// A text of another kind, which is shown as it is.
fn shown(text: &str) -> Result<(), String> {
    match text.chars().any(char::is_control) {
        true => Err(format!("{text:?} is no name")),
        false => Ok(()),
    }
}
