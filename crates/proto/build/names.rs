//! Rust names and doc comments of declared items.

use std::fmt::Write as _;

use protox::prost_reflect::{FileDescriptor, MessageDescriptor};

use crate::PACKAGES;

/// Appends a line built like `format!`.
macro_rules! line {
    ($out:expr, $($part:tt)*) => {{
        let _ = writeln!($out, $($part)*);
    }};
}
pub(crate) use line;

/// Returns the module of a package.
pub fn module(package: &str) -> &'static str {
    let known = PACKAGES.iter().find(|it| it.name == package);
    known
        .unwrap_or_else(|| panic!("{package} is not among the packages"))
        .module
}

/// Returns the comment in the declaration, or `otherwise`.
pub fn document(
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

/// Returns other names of a field that lenient JSON readers accept: people who write requests by
/// hand use the names they see elsewhere.
pub fn also(message: &MessageDescriptor, field: &str) -> &'static [&'static str] {
    let is_request = message.name().ends_with("Request") || message.name() == "InvokeStreamMessage";
    let names: &[&str] = match (message.name(), field) {
        _ if message.package_name() != "pinix.v2" => &[],
        (_, "clip_name") if is_request => &["alias", "clip"],
        ("AddClipRequest", "requested_alias") => &["alias"],
        _ => &[],
    };
    for name in names {
        assert!(
            message.get_field_by_name(name).is_none()
                && message.get_field_by_json_name(name).is_none(),
            "{}: `{name}` is a field of its own",
            message.full_name()
        );
    }
    names
}

/// Returns a Rust identifier; reserved words are marked as raw.
pub fn ident(name: &str) -> String {
    match name {
        "final" | "type" | "match" | "ref" | "loop" | "move" | "use" => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

/// `ui_event` as `UiEvent`.
pub fn pascal(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    name.split('_').filter_map(word).collect()
}

/// `RpcLine` as `rpc_line`.
pub fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
