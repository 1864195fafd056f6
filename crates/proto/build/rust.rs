//! Generates the Rust types. The crate implements each kind of field (`write.rs`, `read.rs`,
//! `codec.rs`); this module selects its type and function.

use std::fmt::Write as _;

use protox::prost_reflect::{
    Cardinality, DescriptorPool, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor,
    OneofDescriptor,
};

use crate::enums::{self, enumeration, payload};
use crate::names::{also, document, ident, line, module, pascal, snake};
use crate::{Forms, Package, binary};

/// Generates the whole module: one inner module per package, and `Payload` for all messages that
/// may be sent as `Any`.
pub fn generate(pool: &DescriptorPool, packages: &[Package]) -> String {
    let mut out = String::new();
    let mut all = Vec::new();
    for package in packages {
        let file = pool
            .get_file_by_name(package.file)
            .expect("a compiled file");
        assert_eq!(file.package_name(), package.name);
        line!(
            out,
            "#[doc = {:?}]\npub mod {} {{",
            package.about,
            package.module
        );
        line!(out, "use crate::generated::*;");
        for it in file.enums() {
            enumeration(&mut out, &file, &it);
            if package.forms == Forms::JsonAndBinary {
                enums::binary(&mut out, &it);
            }
        }
        for it in file.messages() {
            message(&mut out, &file, &it);
            match package.forms {
                Forms::Json => all.push(it),
                Forms::JsonAndBinary => binary::parts(&mut out, &it),
            }
        }
        line!(out, "}}");
    }
    payload(&mut out, &all);
    out
}

fn message(out: &mut String, file: &FileDescriptor, message: &MessageDescriptor) {
    let name = message.name();
    assert!(
        message.child_messages().all(|it| it.is_map_entry()),
        "{name}: nested messages are not needed so far"
    );
    assert!(
        message.child_enums().len() == 0,
        "{name}: nested enums are not needed so far"
    );
    assert!(
        message.fields().len() <= 64,
        "{name}: the reader counts 64 fields"
    );
    let oneofs: Vec<OneofDescriptor> = message.oneofs().filter(|it| !it.is_synthetic()).collect();
    document(out, file, message.path(), || {
        format!("`{}`.", message.full_name())
    });
    let has_secrets = message.fields().any(|it| is_secret(&it));
    line!(
        out,
        "#[derive({}Clone, Default, PartialEq)]\npub struct {name} {{",
        if has_secrets { "" } else { "Debug, " }
    );
    for field in message.fields().filter(|it| oneof(it).is_none()) {
        document(out, file, field.path(), || about(&field));
        line!(out, "pub {}: {},", ident(field.name()), field_type(&field));
    }
    for it in &oneofs {
        line!(
            out,
            "/// At most one of them.\npub {}: Option<{}>,",
            ident(it.name()),
            oneof_type(it)
        );
    }
    line!(out, "}}");
    if has_secrets {
        masked_debug(out, message, &oneofs);
    }
    codec(out, message);
    for it in &oneofs {
        line!(
            out,
            "/// The oneofs of [`{name}`].\npub mod {} {{",
            snake(name)
        );
        line!(
            out,
            "/// At most one of them.\n#[derive(Debug, Clone, PartialEq)]\npub enum {} {{",
            pascal(it.name())
        );
        for field in it.fields() {
            document(out, file, field.path(), || about(&field));
            line!(
                out,
                "{}({}),",
                pascal(field.name()),
                value_type(&field.kind())
            );
        }
        line!(out, "}}\n}}");
    }
}

/// Reports whether the value of a field is a secret.
fn is_secret(field: &FieldDescriptor) -> bool {
    field.name().ends_with("_token")
}

/// Generates `Debug` of a message with secrets; it shows whether they are set and hides their
/// values.
fn masked_debug(out: &mut String, message: &MessageDescriptor, oneofs: &[OneofDescriptor]) {
    let name = message.name();
    line!(
        out,
        "impl std::fmt::Debug for {name} {{ fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{ \
         f.debug_struct({name:?})"
    );
    for field in message.fields().filter(|it| oneof(it).is_none()) {
        let member = ident(field.name());
        let value = if is_secret(&field) {
            format!("&crate::text::Masked(&self.{member})")
        } else {
            format!("&self.{member}")
        };
        line!(out, ".field({:?}, {value})", field.name());
    }
    for it in oneofs {
        line!(out, ".field({:?}, &self.{})", it.name(), ident(it.name()));
    }
    line!(out, ".finish() }} }}");
}

fn codec(out: &mut String, message: &MessageDescriptor) {
    let name = message.name();
    line!(
        out,
        "impl Message for {name} {{ const FULL_NAME: &'static str = {:?}; }}",
        message.full_name()
    );
    line!(
        out,
        "impl Fields for {name} {{\nfn full_name(&self) -> &'static str {{ Self::FULL_NAME }}"
    );
    line!(
        out,
        "fn names(&self) -> &'static [Name] {{ const NAMES: &[Name] = &["
    );
    for field in message.fields() {
        let group = oneof(&field).map_or(0, |it| it.path().last().copied().unwrap_or(0) + 1);
        line!(
            out,
            "Name {{ json: {:?}, proto: {:?}, also: &{:?}, number: {}, oneof: {group} }},",
            field.json_name(),
            field.name(),
            also(message, field.name()),
            field.number()
        );
    }
    line!(out, "]; NAMES }}");

    line!(out, "fn write_fields(&self, out: &mut Vec<u8>) {{");
    let mut written = Vec::new();
    for field in message.fields() {
        let key = format!("{:?}", format!("\"{}\":", field.json_name()));
        let member = ident(field.name());
        match oneof(&field) {
            Some(group) if written.contains(&group.name().to_owned()) => {}
            Some(group) => {
                line!(out, "match &self.{} {{ None => {{}}", ident(group.name()));
                for field in group.fields() {
                    let (ty, variant) = (oneof_type(&group), pascal(field.name()));
                    line!(
                        out,
                        "Some({ty}::{variant}(it)) => write::present(out, \"\\\"{}\\\":\", it),",
                        field.json_name()
                    );
                }
                line!(out, "}}");
                written.push(group.name().to_owned());
            }
            None => {
                let how = shape(&field).name();
                line!(out, "write::{how}(out, {key}, &self.{member});");
            }
        }
    }
    if message.fields().len() == 0 {
        line!(out, "let _ = out;");
    }
    line!(out, "}}");

    line!(
        out,
        "fn read_field(&mut self, index: usize, reader: &mut Reader<'_>) -> Result<(), DecodeError> {{ match index {{"
    );
    for (index, field) in message.fields().enumerate() {
        let member = ident(field.name());
        match (oneof(&field), shape(&field)) {
            (Some(group), _) => line!(
                out,
                "{index} => self.{} = Some({}::{}(Codec::read(reader)?)),",
                ident(group.name()),
                oneof_type(&group),
                pascal(field.name())
            ),
            (None, Shape::Map) => line!(out, "{index} => self.{member} = reader.map()?,"),
            (None, Shape::List) => line!(out, "{index} => self.{member} = reader.list()?,"),
            (None, Shape::Optional) => line!(
                out,
                "{index} => self.{member} = Some(Codec::read(reader)?),"
            ),
            (None, Shape::Plain) => line!(out, "{index} => self.{member} = Codec::read(reader)?,"),
        }
    }
    line!(out, "_ => reader.skip()?,\n}}\nOk(())\n}}\n}}");
}

/// The cardinality of a field.
pub enum Shape {
    Map,
    List,
    Optional,
    Plain,
}

impl Shape {
    /// Returns the name of the crate's functions for such fields.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::List => "list",
            Self::Optional => "optional",
            Self::Plain => "plain",
        }
    }
}

pub fn shape(field: &FieldDescriptor) -> Shape {
    if field.is_map() {
        Shape::Map
    } else if field.cardinality() == Cardinality::Repeated {
        Shape::List
    } else if field.supports_presence() {
        Shape::Optional
    } else {
        Shape::Plain
    }
}

fn field_type(field: &FieldDescriptor) -> String {
    let value = || value_type(&field.kind());
    match shape(field) {
        Shape::Map => map_type(field),
        Shape::List => format!("Vec<{}>", value()),
        Shape::Optional => format!("Option<{}>", value()),
        Shape::Plain => value(),
    }
}

fn map_type(field: &FieldDescriptor) -> String {
    let Kind::Message(entry) = field.kind() else {
        panic!("{}: a map without entries", field.full_name());
    };
    let (key, value) = (
        entry.map_entry_key_field().kind(),
        entry.map_entry_value_field().kind(),
    );
    assert!(
        matches!(
            (key, &value),
            (Kind::String, Kind::String | Kind::Message(_))
        ),
        "{}: only maps of text to texts and messages are needed so far",
        field.full_name()
    );
    format!(
        "std::collections::BTreeMap<crate::Text, {}>",
        value_type(&value)
    )
}

fn value_type(kind: &Kind) -> String {
    match kind {
        Kind::String => "crate::Text".to_owned(),
        Kind::Bytes => "bytes::Bytes".to_owned(),
        Kind::Bool => "bool".to_owned(),
        Kind::Uint32 => "u32".to_owned(),
        Kind::Int32 => "i32".to_owned(),
        Kind::Uint64 => "u64".to_owned(),
        Kind::Int64 => "i64".to_owned(),
        Kind::Enum(it) => format!("crate::{}::{}", module(it.package_name()), it.name()),
        Kind::Message(it) => match it.full_name() {
            "google.protobuf.Any" => "crate::Any".to_owned(),
            "google.protobuf.Struct" => "crate::Struct".to_owned(),
            _ => format!("crate::{}::{}", module(it.package_name()), it.name()),
        },
        other => panic!("fields of the type {other:?} are not needed so far"),
    }
}

/// Returns the oneof of a field; `optional` alone does not create one.
pub fn oneof(field: &FieldDescriptor) -> Option<OneofDescriptor> {
    field.containing_oneof().filter(|it| !it.is_synthetic())
}

pub fn oneof_type(it: &OneofDescriptor) -> String {
    format!(
        "{}::{}",
        snake(it.parent_message().name()),
        pascal(it.name())
    )
}

fn about(field: &FieldDescriptor) -> String {
    format!("`{}`, number {}.", field.json_name(), field.number())
}
