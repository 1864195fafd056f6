//! Explanations of YAML errors for the author of a document.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

/// The limits of a document, for messages that name them.
pub(crate) struct Limits {
    pub(crate) nodes: usize,
    pub(crate) levels: usize,
    pub(crate) text_bytes: usize,
}

/// Parts of the parser's messages, and an explanation of each.
const SYNTAX: &[(&str, &str)] = &[
    (
        "mapping values are not allowed",
        "there is a second \": \" on this line; put text that contains a colon in quotes",
    ),
    (
        "block sequence entries are not allowed",
        "a list cannot begin here; begin it on a line of its own",
    ),
    (
        "must be followed by a valid YAML whitespace",
        "a space is missing after a \"-\"",
    ),
    (
        "expected <document start>",
        "something follows after the end of the value",
    ),
    (
        "expected ',' or ']'",
        "a comma or the end of the list is missing",
    ),
    (
        "expected ',' or '}'",
        "a comma or the end of the mapping is missing",
    ),
    (
        "quoted scalar",
        "a text in quotes has no closing quote, or its next line is not indented",
    ),
    ("unclosed bracket", "a \"[\" or \"{\" is not closed"),
    ("tab", "a tab is used for indentation; use spaces"),
    ("end of stream", "it ends in the middle of a value"),
    (
        "unexpected character",
        "this character must be in quotes here",
    ),
    (
        "expected a key",
        "the name of a member is expected here; check the indentation",
    ),
    (
        "expected <block end>",
        "the indentation does not fit the lines above",
    ),
];

/// Describes `error` without its position. Parts of the document are not shown, because they could
/// be keys. Without `limits`, messages about size name no numbers.
pub(crate) fn explain(error: &Error, limits: Option<&Limits>) -> String {
    match error.without_snippet() {
        Error::AliasError { error, .. } => explain(error, limits),
        Error::Budget { breach, .. } => over_budget(breach, limits),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => too_many_values(limits),
        Error::AliasReplayStackDepthExceeded { .. } => too_deep(limits),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("\"{key}\" appears twice; remove one of them")
        }
        Error::DuplicateMappingKey { key: None, .. } => "a member appears twice".to_owned(),
        Error::UnknownAnchor { .. } => "an alias names an anchor that does not exist".to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an anchor contains an alias of itself".to_owned()
        }
        Error::MultipleDocuments { .. } => "there is more than one document; write one".to_owned(),
        Error::Eof { .. } => "this is not valid YAML: it ends in the middle of a value".to_owned(),
        Error::InvalidUtf8Input => "it is not UTF-8 text".to_owned(),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            "\"<<\" takes a mapping or a list of mappings".to_owned()
        }
        Error::Unexpected { expected, .. } => wanted(expected),
        Error::InvalidScalar { ty, .. } => wanted(ty),
        Error::InvalidBooleanStrict { .. } => wanted("boolean"),
        Error::NullIntoString { .. } => "text is expected here, but there is no value".to_owned(),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            wanted(expected)
        }
        Error::SerdeInvalidLength { .. } => "this list has the wrong length".to_owned(),
        Error::SerdeMissingField { field, .. } => format!("\"{field}\" is missing"),
        Error::SerdeUnknownField {
            field, expected, ..
        } => format!(
            "unknown member \"{field}\"; use one of {}",
            expected.join(", ")
        ),
        Error::SerdeUnknownVariant { expected, .. } => {
            format!("this value is unknown; use one of {}", expected.join(", "))
        }
        other => syntax(&other.to_string(), limits),
    }
}

/// Names the kind of value that fits. `expected` is the parser's or serde's word for it.
fn wanted(expected: &str) -> String {
    let kind = match expected {
        "string scalar" | "scalar" | "a string" | "a borrowed string" => {
            return "text is expected here, not a list or a mapping".to_owned();
        }
        "sequence start" | "a sequence" => "a list",
        "mapping start" | "a map" | "map" => "a mapping",
        "boolean" | "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "floating point" | "f32" | "f64" => "a number",
        _ if expected.starts_with("struct ") => "a mapping",
        _ => "another kind of value",
    };
    format!("{kind} is expected here")
}

fn syntax(words: &str, limits: Option<&Limits>) -> String {
    if words.contains("recursion limit") {
        return too_deep(limits);
    }
    if words.contains("did not match any variant") {
        return "this value does not have any of the expected forms".to_owned();
    }
    let known = SYNTAX.iter().find(|(part, _)| words.contains(part));
    let plain = known.map_or("check the quotes and the indentation", |(_, plain)| plain);
    format!("this is not valid YAML: {plain}")
}

fn over_budget(breach: &BudgetBreach, limits: Option<&Limits>) -> String {
    match breach {
        BudgetBreach::Depth { .. } => too_deep(limits),
        BudgetBreach::ScalarBytes { .. } => match limits {
            Some(limits) => format!("it holds more than {} MB of text", limits.text_bytes >> 20),
            None => "it holds too much text".to_owned(),
        },
        BudgetBreach::Documents { .. } => "there is more than one document; write one".to_owned(),
        _ => too_many_values(limits),
    }
}

fn too_deep(limits: Option<&Limits>) -> String {
    match limits {
        Some(limits) => format!(
            "it has more than {} levels of lists and mappings",
            limits.levels
        ),
        None => "it has too many levels of lists and mappings".to_owned(),
    }
}

fn too_many_values(limits: Option<&Limits>) -> String {
    match limits {
        Some(limits) => format!(
            "it holds more than {} values, those of aliases included",
            limits.nodes
        ),
        None => "it holds too many values, those of aliases included".to_owned(),
    }
}
