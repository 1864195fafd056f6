//! Prints the public parts of a declaration as plain lines, which a test compares with the
//! published ones. The lines are not part of the program.

use protox::prost_reflect::{FieldDescriptor, FileDescriptor, Kind, MethodDescriptor};

use crate::rust::oneof;

/// Prints one line for each field, each message without fields, each value of an enum and each
/// method.
pub fn generate(file: &FileDescriptor) -> String {
    let mut lines = Vec::new();
    for message in file.messages() {
        if message.fields().len() == 0 {
            lines.push(format!("message {}", message.name()));
        }
        lines.extend(message.fields().map(|it| field(&it)));
    }
    for it in file.enums() {
        let value = |name: &str, number| format!("value {}.{name} {number}", it.name());
        lines.extend(it.values().map(|it| value(it.name(), it.number())));
    }
    for service in file.services() {
        lines.extend(service.methods().map(|it| method(&it)));
    }
    lines.join("\n")
}

fn field(field: &FieldDescriptor) -> String {
    let group = oneof(field).map_or(String::new(), |it| format!("oneof {} ", it.name()));
    let repeated = if field.is_list() { "repeated " } else { "" };
    format!(
        "field {}.{} {} {group}{repeated}{}",
        field.parent_message().name(),
        field.name(),
        field.number(),
        kind(&field.kind())
    )
}

fn kind(it: &Kind) -> String {
    match it {
        Kind::Message(entry) if entry.is_map_entry() => {
            let value = match entry.map_entry_value_field().kind() {
                Kind::Message(it) => it.name().to_owned(),
                value => kind(&value),
            };
            format!("map {} {value}", kind(&entry.map_entry_key_field().kind()))
        }
        Kind::Message(it) => format!("message {}", it.name()),
        Kind::Enum(it) => format!("enum {}", it.name()),
        it => format!("{it:?}").to_lowercase(),
    }
}

fn method(it: &MethodDescriptor) -> String {
    let side = |streams, name: &str| format!("{}{name}", if streams { "stream " } else { "" });
    format!(
        "rpc {} {} -> {}",
        it.name(),
        side(it.is_client_streaming(), it.input().name()),
        side(it.is_server_streaming(), it.output().name())
    )
}
