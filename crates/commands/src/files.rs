//! Reads files that the caller names and converts them to template values.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use pinion_templates::Value;

use crate::tables;
use crate::world::{World, relative_to};

/// The format of a file, derived from its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Table(char),
    Text,
}

impl Format {
    pub fn of(name: &str) -> Self {
        match extension(name).as_str() {
            ".json" => Self::Json,
            ".yaml" | ".yml" => Self::Yaml,
            ".csv" => Self::Table(','),
            ".tsv" => Self::Table('\t'),
            _ => Self::Text,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Table(_) => "CSV",
            Self::Text => "TEXT",
        }
    }
}

/// Returns the extension in lower case, with its dot.
fn extension(name: &str) -> String {
    Path::new(name).extension().map_or_else(String::new, |ext| {
        format!(".{}", ext.to_string_lossy().to_lowercase())
    })
}

/// Parses a JSON, YAML or CSV text; `None` for other formats.
pub(crate) fn parsed(text: &str, format: Format) -> Result<Option<Value>, String> {
    match format {
        Format::Json => match serde_json::from_str(text) {
            Ok(json) => Ok(Some(Value::from_json(&json))),
            Err(error) => Err(format!(
                "not JSON from line {}, column {} on",
                error.line(),
                error.column()
            )),
        },
        Format::Yaml => match crate::yaml::from_str::<serde_json::Value>(text) {
            Ok(json) => Ok(Some(Value::from_json(&json))),
            Err(error) => {
                let problem = pinion_yaml::problem(&error);
                let message = problem.message.as_str();
                let reason = message.strip_prefix("this is not valid YAML: ");
                Err(format!(
                    "not YAML from line {}, column {} on: {}",
                    problem.line,
                    problem.column,
                    reason.unwrap_or(message)
                ))
            }
        },
        Format::Table(separator) => {
            let mut records = tables::records(text, separator).into_iter();
            let header = records.next().unwrap_or_default();
            Ok(Some(Value::list(
                records
                    .map(|record| {
                        Value::object(header.iter().zip(record).map(|(k, v)| (k, Value::text(v))))
                    })
                    .collect(),
            )))
        }
        Format::Text => Ok(None),
    }
}

/// Reads a file that must contain data. Standard input and files without a known extension may be JSON or YAML.
pub(crate) fn data(world: &mut World, name: &str) -> Result<Value, String> {
    let text = world.text(name)?;
    let format = Format::of(name);
    let read = match format {
        Format::Text => parsed(&text, Format::Json).or_else(|_| parsed(&text, Format::Yaml)),
        known => parsed(&text, known),
    };
    match read {
        Ok(value) => Ok(value.unwrap_or_default()),
        Err(reason) => Err(format!("{} is {reason}", shown(name))),
    }
}

/// Returns a file's name for messages.
pub(crate) fn shown(name: &str) -> &str {
    if name == "-" { "standard input" } else { name }
}

/// Reads a file with its metadata.
pub(crate) fn record(world: &mut World, name: &str) -> Result<Value, String> {
    let path = world.path(name);
    let metadata = match name {
        "-" => None,
        _ => {
            Some(std::fs::metadata(&path).map_err(|error| format!("cannot open {name}: {error}"))?)
        }
    };
    let directory = metadata.as_ref().is_some_and(std::fs::Metadata::is_dir);
    let text: Arc<str> = if directory {
        "".into()
    } else {
        world.text(name)?
    };
    let format = Format::of(name);
    let (content, problem) = match parsed(&text, format) {
        Ok(value) => (value.unwrap_or_default(), Value::Nil),
        Err(reason) => (Value::Nil, Value::text(reason)),
    };
    let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
    let base = path.file_name().map_or_else(
        || name.to_owned(),
        |base| base.to_string_lossy().into_owned(),
    );
    let modified = metadata
        .as_ref()
        .and_then(|metadata| metadata.modified().ok())
        .and_then(|time| Timestamp::try_from(time).ok())
        .map_or_else(
            || world.now.clone(),
            |stamp| stamp.to_zoned(world.now.time_zone().clone()),
        );
    let size = metadata
        .as_ref()
        .map_or(text.len() as u64, std::fs::Metadata::len);
    Ok(Value::object([
        ("Content", Value::String(Arc::clone(&text))),
        ("StringContent", Value::String(Arc::clone(&text))),
        ("RawContent", Value::String(text)),
        ("IsList", matches!(content, Value::List(_)).into()),
        ("IsObject", matches!(content, Value::Map(_)).into()),
        ("ParsedContent", content),
        ("ParseError", problem),
        ("BaseName", base.into()),
        ("Extension", extension(name).into()),
        ("FileType", format.name().into()),
        ("Path", name.into()),
        (
            "RelativePath",
            if name == "-" {
                name.into()
            } else {
                relative_to(&absolute, &world.directory).into()
            },
        ),
        (
            "AbsolutePath",
            if name == "-" {
                name.into()
            } else {
                absolute.display().to_string().into()
            },
        ),
        ("Size", i64::try_from(size).unwrap_or(i64::MAX).into()),
        ("LastModifiedTime", Value::time(modified)),
        (
            "Permissions",
            permissions(metadata.as_ref(), directory).into(),
        ),
        ("IsDirectory", directory.into()),
    ]))
}

/// Returns permissions in the form of `ls`.
#[cfg(unix)]
fn permissions(metadata: Option<&std::fs::Metadata>, directory: bool) -> String {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.map_or(0o600, |metadata| metadata.permissions().mode());
    let mut shown = String::from(if directory { "d" } else { "-" });
    for bit in (0..9).rev() {
        let letter = ['x', 'w', 'r'][bit % 3];
        shown.push(if mode >> bit & 1 == 1 { letter } else { '-' });
    }
    shown
}

/// Returns permissions, as far as the system has them.
#[cfg(not(unix))]
fn permissions(metadata: Option<&std::fs::Metadata>, directory: bool) -> String {
    let read_only = metadata.is_some_and(|metadata| metadata.permissions().readonly());
    format!(
        "{}{}",
        if directory { "d" } else { "-" },
        if read_only { "r--r--r--" } else { "rw-rw-rw-" }
    )
}
