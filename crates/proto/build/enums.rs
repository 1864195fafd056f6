//! Generates the Rust enums: the declared ones, and the enum of all messages.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use protox::prost_reflect::{EnumDescriptor, FileDescriptor, MessageDescriptor};

use crate::names::{document, line, module, pascal, snake};

/// Generates a declared enum, with one variant for undeclared numbers.
pub fn enumeration(out: &mut String, file: &FileDescriptor, it: &EnumDescriptor) {
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

/// Generates the binary form of an enum: its number.
pub fn binary(out: &mut String, it: &EnumDescriptor) {
    line!(
        out,
        "impl WireValue for {} {{ fn is_zero(&self) -> bool {{ self.number() == 0 }}",
        it.name()
    );
    line!(
        out,
        "fn len(&self) -> usize {{ self.number().len() }}\nfn put(&self, out: &mut Output) {{ self.number().put(out) }}"
    );
    line!(
        out,
        "fn take(&mut self, input: &mut Input) -> Result<(), DecodeError> {{ let mut number = 0_i32; \
         number.take(input)?; *self = Self::from_number(number); Ok(()) }} }}"
    );
}

/// Generates the enum of all messages that may be sent with the name of their type. A name that
/// exists in two packages is prefixed with its package's module.
pub fn payload(out: &mut String, all: &[MessageDescriptor]) {
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
        "/// A message that is sent with the name of its type: any that this crate declares."
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
        "/// A type that this crate does not declare, or none.\nUnknown(Unknown),\n}}"
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
