//! Generates the binary form of messages. The crate implements each kind of field (`wire.rs`,
//! `part.rs`, `input.rs`); this module selects its function, key and order.

use std::fmt::Write as _;

use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::names::{ident, line, pascal};
use crate::rust::{Shape, oneof, oneof_type, shape};
use crate::{Forms, PACKAGES};

/// Generates `Parts` and `Binary` of a message.
pub fn parts(out: &mut String, message: &MessageDescriptor) {
    let name = message.name();
    let mut fields: Vec<FieldDescriptor> = message.fields().collect();
    fields.sort_by_key(FieldDescriptor::number);
    line!(out, "impl Binary for {name} {{}}\nimpl Parts for {name} {{");
    if fields.is_empty() {
        line!(
            out,
            "fn measure(&self) -> usize {{ 0 }}\nfn put_parts(&self, _: &mut Output) {{}}"
        );
    } else {
        line!(out, "fn measure(&self) -> usize {{ let mut length = 0;");
        each(out, &fields, |how, key, value| {
            format!("length += measure::{how}({key}, {value})")
        });
        line!(out, "length }}\nfn put_parts(&self, out: &mut Output) {{");
        each(out, &fields, |how, key, value| {
            format!("put::{how}(out, {key}, {value})")
        });
        line!(out, "}}");
    }
    line!(
        out,
        "fn take_part(&mut self, key: u32, input: &mut Input) -> Result<(), DecodeError> {{ match key {{"
    );
    for field in &fields {
        let (key, how, member) = (key(field), shape(field).name(), ident(field.name()));
        match oneof(field) {
            None => line!(out, "{key} => take::{how}(&mut self.{member}, input),"),
            Some(group) => {
                let member = ident(group.name());
                let variant = format!("{}::{}", oneof_type(&group), pascal(field.name()));
                line!(
                    out,
                    "{key} => {{ if !matches!(self.{member}, Some({variant}(_))) {{ self.{member} = Some({variant}(Default::default())); }}"
                );
                line!(
                    out,
                    "match &mut self.{member} {{ Some({variant}(it)) => take::plain(it, input), _ => Ok(()) }} }}"
                );
            }
        }
    }
    line!(out, "_ => input.skip(key),\n}}\n}}\n}}");
}

/// Generates a statement for each field, in the order of the numbers; `statement` receives the
/// shape, the key and the value.
fn each(
    out: &mut String,
    fields: &[FieldDescriptor],
    statement: impl Fn(&str, u32, &str) -> String,
) {
    let mut written: Vec<String> = Vec::new();
    let mut before = None;
    for field in fields {
        let group = oneof(field);
        let name = group.as_ref().map(|it| it.name().to_owned());
        if let Some(name) = &name
            && written.contains(name)
        {
            assert_eq!(
                before.as_ref(),
                Some(name),
                "{}: a field stands between those of a oneof",
                field.full_name()
            );
        } else if let Some(group) = group {
            line!(out, "match &self.{} {{ None => {{}}", ident(group.name()));
            for field in group.fields() {
                let variant = format!("{}::{}", oneof_type(&group), pascal(field.name()));
                line!(
                    out,
                    "Some({variant}(it)) => {},",
                    statement("present", key(&field), "it")
                );
            }
            line!(out, "}}");
            written.extend(name.clone());
        } else {
            let value = format!("&self.{}", ident(field.name()));
            line!(
                out,
                "{};",
                statement(shape(field).name(), key(field), &value)
            );
        }
        before = name;
    }
}

/// Returns the key of a field, which precedes its value: its number and wire type.
fn key(field: &FieldDescriptor) -> u32 {
    let form = match field.kind() {
        Kind::String | Kind::Bytes | Kind::Message(_) => 2,
        Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Enum(_) => {
            assert!(
                !matches!(shape(field), Shape::List),
                "{}: lists of numbers are not needed so far",
                field.full_name()
            );
            0
        }
        other => panic!("fields of the type {other:?} are not needed so far in binary form"),
    };
    field.number() << 3 | form
}

/// Generates a list of all messages with a binary form, for tests: one call of `row` for each.
pub fn rows(pool: &DescriptorPool) -> String {
    let packages = PACKAGES
        .iter()
        .filter(|it| it.forms == Forms::JsonAndBinary);
    let rows = packages.flat_map(|package| {
        let file = pool
            .get_file_by_name(package.file)
            .expect("a compiled file");
        let row = |it: MessageDescriptor| {
            format!(
                "row::<pinion_proto::{}::{}>(),\n",
                package.module,
                it.name()
            )
        };
        file.messages().map(row).collect::<Vec<_>>()
    });
    format!("vec![{}]", rows.collect::<String>())
}
