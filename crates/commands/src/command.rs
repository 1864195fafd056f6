//! One command file.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use crate::built_in::BuiltIn;
use crate::decode;
use crate::error::CommandError;
use crate::field::Field;
use crate::place::Start;

/// The largest command file.
const LARGEST: u64 = 4 << 20;

/// Where a command comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file, as it is named in messages.
    pub name: String,
    /// The file on disk, if it is one.
    pub path: Option<PathBuf>,
    /// What it says.
    pub text: String,
}

/// A template of a command and where it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateText {
    pub text: String,
    pub start: Start,
}

/// Something in a command file that has no effect and was probably meant to have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file and the line.
    pub place: String,
    /// What is strange, and what may have been meant.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.place, self.message)
    }
}

/// A command: a prompt, and what it asks of its caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The verb.
    pub name: String,
    /// One line of help.
    pub short: String,
    /// More help.
    pub long: String,
    /// Its options.
    pub flags: Vec<Field>,
    /// Its positional arguments, in order.
    pub arguments: Vec<Field>,
    /// The lowest layer of inference settings, as the file has it.
    pub factories: Option<serde_json::Value>,
    /// What kind of command it says it is.
    pub kind: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Whatever else the file says about itself.
    pub metadata: Option<serde_json::Value>,
    /// What in the file has no effect.
    pub warnings: Vec<Warning>,
    /// The file.
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

    /// Reads a command from the text of its file.
    pub fn read(origin: Origin, built_ins: &[BuiltIn]) -> Result<Self, CommandError> {
        if let Some(alias) = decode::alias(&origin)
            && !decode::command(origin.clone()).is_ok_and(|command| command.has_templates())
        {
            return Err(CommandError::Malformed {
                place: origin.name,
                reason: format!(
                    "it is an alias of `{}`; an alias works in a repository, beside what it stands for",
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
        crate::describe::check(&command, built_ins)?;
        Ok(command)
    }

    /// Flags, then arguments.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.flags.iter().chain(&self.arguments)
    }

    /// Whether it would say anything to a model.
    pub fn has_templates(&self) -> bool {
        self.system_prompt.is_some() || self.prompt.is_some() || !self.messages.is_empty()
    }
}

/// Reads a command file by a path the user gave.
fn read(directory: &Path, path: &Path) -> Result<(String, String), CommandError> {
    if path.is_relative() && leaves(path) {
        return Err(CommandError::Outside {
            path: path.to_owned(),
        });
    }
    let text = pinion_files::read_named(&directory.join(path), LARGEST);
    let text = as_text(text).map_err(|reason| CommandError::Unreadable {
        path: path.to_owned(),
        reason,
    })?;
    Ok((path.display().to_string(), text))
}

/// The text of a file in a repository.
pub(crate) fn read_file(path: &Path) -> Result<String, String> {
    as_text(pinion_files::read(path, LARGEST))
}

fn as_text(bytes: io::Result<Vec<u8>>) -> Result<String, String> {
    let bytes = bytes.map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::IsADirectory => "it is a directory, expected a YAML file".to_owned(),
        ErrorKind::FileTooLarge => format!("it is larger than {} MiB", LARGEST >> 20),
        ErrorKind::InvalidInput => format!("it {error}"),
        _ => error.to_string(),
    })?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// Whether a relative path leads out of where it starts.
fn leaves(path: &Path) -> bool {
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
