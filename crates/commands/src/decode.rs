//! Decodes YAML into a command or an alias.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

use crate::alias::Alias;
use crate::command::{Command, Origin, TemplateText, Warning};
use crate::error::CommandError;
use crate::field::{Field, FieldType};
use crate::yaml_position::StringStart;
use pinion_text::nearest;

/// The keys of a command file.
const KEYS: &[&str] = &[
    "name",
    "short",
    "long",
    "flags",
    "arguments",
    "system-prompt",
    "prompt",
    "messages",
    "factories",
    "type",
    "tags",
    "metadata",
    "layers",
    "aliasFor",
];

/// The keys of a field.
const FIELD_KEYS: &[&str] = &[
    "name",
    "shortFlag",
    "type",
    "help",
    "default",
    "choices",
    "required",
];

/// Keys of fields that occur in real files and have no effect.
const IGNORED_FIELD_KEYS: &[&str] = &["short", "description"];

#[derive(Deserialize)]
struct Document {
    name: Option<String>,
    short: Option<String>,
    long: Option<String>,
    flags: Option<Vec<FieldDocument>>,
    arguments: Option<Vec<FieldDocument>>,
    #[serde(rename = "system-prompt")]
    system_prompt: Option<Spanned<String>>,
    prompt: Option<Spanned<String>>,
    messages: Option<Vec<Spanned<String>>>,
    factories: Option<serde_json::Value>,
    #[serde(rename = "type")]
    kind: Option<String>,
    tags: Option<Vec<String>>,
    metadata: Option<serde_json::Value>,
    layers: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct FieldDocument {
    name: Option<String>,
    #[serde(rename = "shortFlag")]
    short: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    help: Option<String>,
    default: Option<serde_json::Value>,
    choices: Option<Vec<Scalar>>,
    required: Option<Scalar>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// A string, or a number or boolean that is read as one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl From<Scalar> for String {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Text(text) => text,
            Scalar::Int(number) => number.to_string(),
            Scalar::Float(number) => number.to_string(),
            Scalar::Bool(flag) => flag.to_string(),
        }
    }
}

#[derive(Deserialize)]
struct AliasDocument {
    name: Option<String>,
    #[serde(rename = "aliasFor")]
    target: Option<OneOrMany>,
    short: Option<String>,
    long: Option<String>,
    flags: Option<BTreeMap<String, Scalar>>,
    arguments: Option<Vec<Scalar>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Explains an error of the YAML of a command file.
pub(crate) fn malformed(origin: &Origin, error: &serde_saphyr::Error) -> CommandError {
    let problem = pinion_yaml::problem(error);
    let place = match problem.line {
        0 => origin.name.clone(),
        line => format!("{}:{line}:{}", origin.name, problem.column),
    };
    CommandError::Malformed {
        place,
        reason: problem.message,
    }
}

pub(crate) fn command(origin: Origin) -> Result<Command, CommandError> {
    let document: Document = match crate::yaml::command(&origin.text) {
        Ok(document) => document,
        Err(error) => return Err(malformed(&origin, &error)),
    };
    if document.layers.is_some_and(|layers| !layers.is_empty()) {
        let (line, column) = key_place(&origin.text, "layers");
        return Err(CommandError::Malformed {
            place: format!("{}:{line}:{column}", origin.name),
            reason: "`layers` cannot be used; remove it".to_owned(),
        });
    }
    let messages: Vec<TemplateText> = document
        .messages
        .unwrap_or_default()
        .into_iter()
        .map(template)
        .collect();
    let prompt = document.prompt.map(template);
    if prompt
        .as_ref()
        .is_some_and(|prompt| !prompt.text.is_empty())
        && !messages.is_empty()
    {
        let (line, column) = key_place(&origin.text, "messages");
        return Err(CommandError::PromptAndMessages {
            place: format!("{}:{line}:{column}", origin.name),
        });
    }
    let mut warnings = unknown_keys(&origin);
    let flags = fields(&origin, document.flags, &mut warnings)?;
    let arguments = fields(&origin, document.arguments, &mut warnings)?;
    Ok(Command {
        name: document.name.unwrap_or_default(),
        short: document.short.unwrap_or_default(),
        long: document.long.unwrap_or_default(),
        flags,
        arguments,
        factories: document.factories,
        kind: document.kind.unwrap_or_else(|| "pinocchio".to_owned()),
        tags: document.tags.unwrap_or_default(),
        metadata: document.metadata,
        warnings,
        system_prompt: document.system_prompt.map(template),
        prompt,
        messages,
        origin,
    })
}

fn template(text: Spanned<String>) -> TemplateText {
    let number = |value: u64| usize::try_from(value).unwrap_or(1);
    TemplateText {
        start: StringStart {
            line: number(text.defined.line()),
            column: number(text.defined.column()),
        },
        text: text.value,
    }
}

fn fields(
    origin: &Origin,
    documents: Option<Vec<FieldDocument>>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Field>, CommandError> {
    let mut fields = Vec::new();
    for document in documents.unwrap_or_default() {
        let name = document.name.unwrap_or_default();
        let bad = |reason: String| CommandError::BadField {
            place: origin.name.clone(),
            field: name.clone(),
            reason,
        };
        if name.is_empty() {
            return Err(bad("has no `name`".to_owned()));
        }
        let kind_name = document.kind.unwrap_or_else(|| "string".to_owned());
        let Some(kind) = FieldType::named(&kind_name) else {
            return Err(bad(unknown_type(&kind_name)));
        };
        for key in document.others.keys() {
            if !IGNORED_FIELD_KEYS.contains(&key.as_str()) {
                warnings.push(Warning {
                    place: origin.name.clone(),
                    message: unknown(&format!("key `{key}` of field `{name}`"), key, FIELD_KEYS),
                });
            }
        }
        let short = match document.short.as_deref().map(str::chars) {
            None => None,
            Some(mut letters) => match (letters.next(), letters.next()) {
                (None, _) => None,
                (Some(letter), None) if letter.is_ascii_alphanumeric() => Some(letter),
                _ => return Err(bad("has a `shortFlag` that is not one letter".to_owned())),
            },
        };
        let required = match document.required {
            None => false,
            Some(scalar) => crate::convert::boolean(&String::from(scalar))
                .map_err(|reason| bad(format!("has a `required` that is invalid: {reason}")))?,
        };
        fields.push(Field {
            name: name.clone(),
            short,
            kind,
            help: document.help.unwrap_or_default().trim().to_owned(),
            default: document.default.filter(|value| !value.is_null()),
            choices: document
                .choices
                .unwrap_or_default()
                .into_iter()
                .map(String::from)
                .collect(),
            required,
        });
    }
    Ok(fields)
}

fn unknown_type(name: &str) -> String {
    match nearest(name, FieldType::names()) {
        Some(near) => format!("has the unknown type `{name}`; did you mean `{near}`?"),
        None => format!(
            "has the unknown type `{name}`; expected one of {}",
            FieldType::names().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Warns of unknown top-level keys, with suggestions.
fn unknown_keys(origin: &Origin) -> Vec<Warning> {
    let keys: BTreeMap<String, IgnoredAny> = crate::yaml::command(&origin.text).unwrap_or_default();
    keys.into_keys()
        .filter(|key| !KEYS.contains(&key.as_str()))
        .map(|key| {
            let (line, column) = key_place(&origin.text, &key);
            Warning {
                place: format!("{}:{line}:{column}", origin.name),
                message: unknown(&format!("key `{key}`"), &key, KEYS),
            }
        })
        .collect()
}

fn unknown(what: &str, key: &str, known: &[&'static str]) -> String {
    let meant = nearest(&key.replace('_', "-"), known.iter().copied());
    match meant {
        Some(near) => format!("{what} has no effect; did you mean `{near}`?"),
        None => format!("{what} has no effect"),
    }
}

/// Returns the line and column of a top-level key.
fn key_place(text: &str, key: &str) -> (usize, usize) {
    text.lines()
        .position(|line| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
        .map_or((1, 1), |line| (line + 1, 1))
}

/// Reads an alias; `None` if the file is not one.
pub(crate) fn alias(origin: &Origin) -> Option<Alias> {
    let document: AliasDocument = crate::yaml::command(&origin.text).ok()?;
    let parts = match document.target? {
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    };
    let target: Vec<String> = parts
        .iter()
        .flat_map(|part| part.split(|c: char| c == '/' || c == '\\' || c.is_whitespace()))
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    let name = document.name.filter(|name| !name.is_empty())?;
    if target.is_empty() {
        return None;
    }
    Some(Alias {
        name,
        target,
        short: document.short.unwrap_or_default(),
        long: document.long.unwrap_or_default(),
        flags: document
            .flags
            .unwrap_or_default()
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect(),
        arguments: document
            .arguments
            .unwrap_or_default()
            .into_iter()
            .map(String::from)
            .collect(),
        path: origin.path.clone(),
    })
}
