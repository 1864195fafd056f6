//! Explanations of YAML errors for the author of a document.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use crate::{MAX_LEVELS, MAX_NODES, MAX_TEXT_BYTES};

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
    ("tab", "a tab is used for indentation; use spaces"),
    ("string scalar", "the name of a member must be text"),
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
/// be keys.
pub(crate) fn explain(error: &Error) -> String {
    match error.without_snippet() {
        Error::AliasError { error, .. } => explain(error),
        Error::Budget { breach, .. } => over_budget(breach),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => too_many_values(),
        Error::AliasReplayStackDepthExceeded { .. } => too_deep(),
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
        other => syntax(&other.to_string()),
    }
}

fn syntax(words: &str) -> String {
    if words.contains("recursion limit") {
        return too_deep();
    }
    let known = SYNTAX.iter().find(|(part, _)| words.contains(part));
    let plain = match known {
        Some((_, plain)) => plain,
        None => {
            let line = words.lines().find(|line| !line.trim().is_empty());
            let line = line.unwrap_or("it cannot be read").trim();
            line.split(" at line ").next().unwrap_or(line)
        }
    };
    format!("this is not valid YAML: {plain}")
}

fn over_budget(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { .. } => too_deep(),
        BudgetBreach::ScalarBytes { .. } => {
            format!("it holds more than {} MB of text", MAX_TEXT_BYTES >> 20)
        }
        BudgetBreach::Documents { .. } => "there is more than one document; write one".to_owned(),
        _ => too_many_values(),
    }
}

fn too_deep() -> String {
    format!("it has more than {MAX_LEVELS} levels of lists and mappings")
}

fn too_many_values() -> String {
    format!("it holds more than {MAX_NODES} values, those of aliases included")
}
