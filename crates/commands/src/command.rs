//! Reads one command file.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use crate::built_in::BuiltIn;
use crate::decode;
use crate::error::CommandError;
use crate::field::Field;
use crate::yaml_position::StringStart;

/// The largest command file, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The source of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The name of the file in messages.
    pub name: String,
    /// The file on disk; `None` for a text without a file.
    pub path: Option<PathBuf>,
    pub text: String,
}

/// A template of a command and its position in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateText {
    pub text: String,
    pub start: StringStart,
}

/// Something in a command file that has no effect, although it was probably meant to have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file and the line.
    pub place: String,
    /// The problem, and the probable intention.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.place, self.message)
    }
}

/// A command: a prompt with fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The last word of its name.
    pub name: String,
    /// One line of help.
    pub short: String,
    /// The long help text.
    pub long: String,
    /// The options.
    pub flags: Vec<Field>,
    /// The positional arguments, in order.
    pub arguments: Vec<Field>,
    /// The lowest layer of inference settings, as in the file.
    pub factories: Option<serde_json::Value>,
    /// The value of `type` in the file.
    pub kind: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Other data of the file.
    pub metadata: Option<serde_json::Value>,
    pub warnings: Vec<Warning>,
    pub origin: Origin,
    pub(crate) system_prompt: Option<TemplateText>,
    pub(crate) prompt: Option<TemplateText>,
    pub(crate) messages: Vec<TemplateText>,
}

impl Command {
    /// Loads the file of `run-command`. A relative path must stay inside `directory`.
    pub fn load(
        directory: &Path,
        path: &Path,
        built_ins: &[BuiltIn],
    ) -> Result<Self, CommandError> {
        let (shown, text) = read(directory, path)?;
        let origin = Origin {
            name: shown,
            path: Some(directory.join(path)),
            text,
        };
        Self::read(origin, built_ins)
    }

    /// Parses the text of a command file.
    pub fn read(origin: Origin, built_ins: &[BuiltIn]) -> Result<Self, CommandError> {
        if let Some(alias) = decode::alias(&origin)
            && !decode::command(origin.clone()).is_ok_and(|command| command.has_templates())
        {
            return Err(CommandError::Malformed {
                place: origin.name,
                reason: format!(
                    "it is an alias of `{}`; put it in a repository, next to that command",
                    alias.target.join(" ")
                ),
            });
        }
        let mut command = decode::command(origin)?;
        if command.name.is_empty() {
            let stem = Path::new(&command.origin.name).file_stem();
            command.name =
                stem.map_or_else(|| "command".to_owned(), |s| s.to_string_lossy().into());
        }
        crate::check_fields::check(&command, built_ins)?;
        Ok(command)
    }

    /// Returns the flags, then the arguments.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.flags.iter().chain(&self.arguments)
    }

    /// Reports whether the command has a prompt, messages or a system prompt.
    pub fn has_templates(&self) -> bool {
        self.system_prompt.is_some() || self.prompt.is_some() || !self.messages.is_empty()
    }
}

/// Reads a command file from a path that the user gave.
fn read(directory: &Path, path: &Path) -> Result<(String, String), CommandError> {
    if path.is_relative() && leaves_directory(path) {
        return Err(CommandError::Outside {
            path: path.to_owned(),
        });
    }
    let text = pinion_files::read_named(&directory.join(path), MAX_FILE_BYTES);
    let text = as_text(text).map_err(|reason| CommandError::Unreadable {
        path: path.to_owned(),
        reason,
    })?;
    Ok((path.display().to_string(), text))
}

/// Reads a file of a repository.
pub(crate) fn read_file(path: &Path) -> Result<String, String> {
    as_text(pinion_files::read(path, MAX_FILE_BYTES))
}

fn as_text(bytes: io::Result<Vec<u8>>) -> Result<String, String> {
    let bytes = bytes.map_err(|error| match error.kind() {
        ErrorKind::NotFound => "the file does not exist".to_owned(),
        ErrorKind::IsADirectory => "it is a directory, expected a YAML file".to_owned(),
        ErrorKind::FileTooLarge => format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20),
        ErrorKind::InvalidInput => format!("it {error}"),
        _ => error.to_string(),
    })?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// Reports whether a relative path leaves its starting directory.
fn leaves_directory(path: &Path) -> bool {
    let mut depth = 0_i64;
    for component in path.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return true;
        }
    }
    false
}
