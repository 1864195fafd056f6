//! Prints the declarations as plain JSON, from which tests generate messages. It is not part of the
//! program.

use std::fmt::Write as _;

use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind};

use crate::Package;

/// `{"messages": {name: [field…]}, "enums": {name: [value…]}}`.
pub fn generate<'a>(
    pool: &DescriptorPool,
    packages: impl Iterator<Item = &'a Package> + Clone,
) -> String {
    let files = || {
        packages
            .clone()
            .filter_map(|it| pool.get_file_by_name(it.file))
    };
    let messages = files()
        .flat_map(|file| file.messages().collect::<Vec<_>>())
        .map(|message| {
            let fields: Vec<String> = message.fields().map(|it| field(&it)).collect();
            format!("{:?}:[{}]", message.full_name(), fields.join(","))
        });
    let messages: Vec<String> = messages.collect();
    let enums = files()
        .flat_map(|file| file.enums().collect::<Vec<_>>())
        .map(|it| {
            let values: Vec<String> = it
                .values()
                .map(|value| format!("{:?}", value.name()))
                .collect();
            format!("{:?}:[{}]", it.full_name(), values.join(","))
        });
    let enums: Vec<String> = enums.collect();
    format!(
        "{{\"messages\":{{{}}},\"enums\":{{{}}}}}",
        messages.join(","),
        enums.join(",")
    )
}

fn field(field: &FieldDescriptor) -> String {
    let kind = match field.kind() {
        Kind::Message(it) if it.is_map_entry() => match it.map_entry_value_field().kind() {
            Kind::Message(value) => format!("map {}", value.full_name()),
            _ => "map".to_owned(),
        },
        Kind::Message(it) => it.full_name().to_owned(),
        Kind::Enum(it) => it.full_name().to_owned(),
        kind => format!("{kind:?}").to_lowercase(),
    };
    let oneof = field.containing_oneof().filter(|it| !it.is_synthetic());
    let mut out = format!(
        "{{\"json\":{:?},\"proto\":{:?},\"kind\":{kind:?}",
        field.json_name(),
        field.name()
    );
    let _ = write!(
        out,
        ",\"number\":{},\"list\":{},\"presence\":{}",
        field.number(),
        field.is_list(),
        field.supports_presence()
    );
    let _ = write!(
        out,
        ",\"oneof\":{:?}}}",
        oneof.map_or(String::new(), |it| it.name().to_owned())
    );
    out
}
