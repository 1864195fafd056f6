//! Writes the Rust types. What a field does is in the crate (`write.rs`, `read.rs`, `codec.rs`); here is only which
//! type and which function it gets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use protox::prost_reflect::{
    Cardinality, DescriptorPool, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind,
    MessageDescriptor, OneofDescriptor,
};

use crate::{PACKAGES, Package};

/// Appends a line built like `format!`.
macro_rules! line {
    ($out:expr, $($part:tt)*) => {{
        let _ = writeln!($out, $($part)*);
    }};
}

/// The whole module: one inner module per package, and `Payload` over all messages.
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
        }
        for it in file.messages() {
            message(&mut out, &file, &it);
            all.push(it);
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
    line!(
        out,
        "#[derive(Debug, Clone, Default, PartialEq)]\npub struct {name} {{"
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
    codec(out, message);
    for it in &oneofs {
        line!(
            out,
            "/// What [`{name}`] holds one of.\npub mod {} {{",
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
            "Name {{ json: {:?}, proto: {:?}, oneof: {group} }},",
            field.json_name(),
            field.name()
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
                let how = match shape(&field) {
                    Shape::Map => "map",
                    Shape::List => "list",
                    Shape::Optional => "optional",
                    Shape::Plain => "plain",
                };
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

fn enumeration(out: &mut String, file: &FileDescriptor, it: &EnumDescriptor) {
    let name = it.name();
    let prefix = format!("{}_", snake(name).to_uppercase());
    let variant =
        |value: &str| pascal(&value.strip_prefix(&prefix).unwrap_or(value).to_lowercase());
    let values: Vec<_> = it
        .values()
        .map(|v| {
            (
                variant(v.name()),
                v.name().to_owned(),
                v.number(),
                v.path().to_vec(),
            )
        })
        .collect();
    document(out, file, it.path(), || format!("`{}`.", it.full_name()));
    line!(
        out,
        "#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]\npub enum {name} {{"
    );
    for (variant, full, number, path) in &values {
        document(out, file, path, || format!("`{full}`."));
        line!(
            out,
            "{}{variant},",
            if *number == 0 { "#[default]\n" } else { "" }
        );
    }
    line!(
        out,
        "/// A number that the declaration does not name.\nUnrecognized(i32),\n}}"
    );
    line!(
        out,
        "impl Enum for {name} {{\nfn name(self) -> Option<&'static str> {{ match self {{"
    );
    for (variant, full, ..) in &values {
        line!(out, "Self::{variant} => Some({full:?}),");
    }
    line!(
        out,
        "Self::Unrecognized(_) => None, }} }}\nfn from_name(name: &str) -> Option<Self> {{ match name {{"
    );
    for (variant, full, ..) in &values {
        line!(out, "{full:?} => Some(Self::{variant}),");
    }
    line!(
        out,
        "_ => None, }} }}\nfn number(self) -> i32 {{ match self {{"
    );
    for (variant, _, number, _) in &values {
        line!(out, "Self::{variant} => {number},");
    }
    line!(
        out,
        "Self::Unrecognized(number) => number, }} }}\nfn from_number(number: i32) -> Self {{ match number {{"
    );
    for (variant, _, number, _) in &values {
        line!(out, "{number} => Self::{variant},");
    }
    line!(out, "_ => Self::Unrecognized(number), }} }} }}");
    line!(
        out,
        "impl Codec for {name} {{ fn is_default(&self) -> bool {{ *self == Self::default() }}"
    );
    line!(
        out,
        "fn write(&self, out: &mut Vec<u8>) {{ write::enumeration(out, *self) }}"
    );
    line!(
        out,
        "fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {{ reader.enumeration() }} }}"
    );
}

/// The enum over all messages. A name that two packages have gets its package's module in front.
fn payload(out: &mut String, all: &[MessageDescriptor]) {
    let mut uses = BTreeMap::new();
    for it in all {
        *uses.entry(it.name().to_owned()).or_insert(0) += 1;
    }
    let variants: Vec<(String, String, &str)> = all
        .iter()
        .map(|it| {
            let module = module(it.package_name());
            let variant = match uses[it.name()] {
                1 => it.name().to_owned(),
                _ => format!("{}{}", pascal(module), it.name()),
            };
            (variant, format!("{module}::{}", it.name()), it.full_name())
        })
        .collect();
    line!(
        out,
        "/// A message that travels with the name of its type: any that this crate knows."
    );
    line!(
        out,
        "#[derive(Debug, Clone, PartialEq)]\npub enum Payload {{"
    );
    for (variant, ty, full) in &variants {
        line!(out, "/// `{full}`.\n{variant}({ty}),");
    }
    line!(
        out,
        "/// A type this crate does not know, or none.\nUnknown(Unknown),\n}}"
    );
    line!(
        out,
        "impl Payload {{\npub(crate) fn fields(&self) -> Option<&dyn Fields> {{ match self {{"
    );
    for (variant, ..) in &variants {
        line!(out, "Self::{variant}(it) => Some(it),");
    }
    line!(out, "Self::Unknown(_) => None, }} }}");
    line!(
        out,
        "pub(crate) fn fields_mut(&mut self) -> Option<&mut dyn Fields> {{ match self {{"
    );
    for (variant, ..) in &variants {
        line!(out, "Self::{variant}(it) => Some(it),");
    }
    line!(out, "Self::Unknown(_) => None, }} }}");
    line!(
        out,
        "pub(crate) fn named(name: &str) -> Option<Self> {{ Some(match name {{"
    );
    for (variant, ty, full) in &variants {
        line!(out, "{full:?} => Self::{variant}({ty}::default()),");
    }
    line!(out, "_ => return None, }}) }}\n}}");
    for (variant, ty, _) in &variants {
        line!(
            out,
            "impl From<{ty}> for Payload {{ fn from(it: {ty}) -> Self {{ Self::{variant}(it) }} }}"
        );
    }
}

/// How often a field may be there.
enum Shape {
    Map,
    List,
    Optional,
    Plain,
}

fn shape(field: &FieldDescriptor) -> Shape {
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
        matches!((key, value), (Kind::String, Kind::String)),
        "{}: only maps of text to text are needed so far",
        field.full_name()
    );
    "std::collections::BTreeMap<crate::Text, crate::Text>".to_owned()
}

fn value_type(kind: &Kind) -> String {
    match kind {
        Kind::String => "crate::Text".to_owned(),
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

fn module(package: &str) -> &'static str {
    let known = PACKAGES.iter().find(|it| it.name == package);
    known
        .unwrap_or_else(|| panic!("{package} is not among the packages"))
        .module
}

/// The oneof a field belongs to; `optional` alone makes none.
fn oneof(field: &FieldDescriptor) -> Option<OneofDescriptor> {
    field.containing_oneof().filter(|it| !it.is_synthetic())
}

fn oneof_type(it: &OneofDescriptor) -> String {
    format!(
        "{}::{}",
        snake(it.parent_message().name()),
        pascal(it.name())
    )
}

fn about(field: &FieldDescriptor) -> String {
    format!("`{}`, number {}.", field.json_name(), field.number())
}

/// The comment in the declaration, or `otherwise`.
fn document(
    out: &mut String,
    file: &FileDescriptor,
    path: &[i32],
    otherwise: impl FnOnce() -> String,
) {
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let location = info.and_then(|it| it.location.iter().find(|location| location.path == path));
    let comment = location.and_then(|it| it.leading_comments.as_deref());
    let text = comment.map_or_else(otherwise, |it| it.trim().to_owned());
    for part in text.lines() {
        line!(out, "/// {}", part.trim());
    }
}

/// A Rust identifier; words Rust keeps for itself are marked.
fn ident(name: &str) -> String {
    match name {
        "final" | "type" | "match" | "ref" | "loop" | "move" | "use" => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

/// `ui_event` as `UiEvent`.
fn pascal(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    name.split('_').filter_map(word).collect()
}

/// `RpcLine` as `rpc_line`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
