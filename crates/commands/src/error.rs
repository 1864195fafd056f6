//! Errors in command files, command lines and templates.

use std::path::PathBuf;

use pinion_templates::TemplateError;
use thiserror::Error;

/// An error in a command file or its command line. The message contains the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    /// A relative path leads out of the working directory.
    #[error(
        "{} leads out of the working directory; give an absolute path, or change to its directory",
        path.display()
    )]
    Outside {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The file is not YAML, or not a command.
    #[error("{place}: {reason}")]
    Malformed {
        /// File, line and column.
        place: String,
        /// The problem, and the expected form.
        reason: String,
    },
    /// The file has both messages and a prompt.
    #[error("{place}: Prompt and messages are mutually exclusive")]
    PromptAndMessages {
        /// File, line and column.
        place: String,
    },
    /// A flag or argument of the file is invalid.
    #[error("{place}: field `{field}` {reason}")]
    BadField {
        place: String,
        field: String,
        /// The problem.
        reason: String,
    },
    /// A field has the name of a built-in option.
    #[error(
        "{place}: field `{field}` clashes with the built-in option {option}; give the field another name"
    )]
    Clash {
        place: String,
        field: String,
        /// The option, with its dashes.
        option: String,
    },
    /// The option is unknown.
    #[error("unknown option {option}{}; --help lists all options", did_you_mean(suggestion.as_deref()))]
    UnknownOption {
        /// The option, with its dashes.
        option: String,
        /// The most similar option.
        suggestion: Option<String>,
    },
    /// An option at the end of the line lacks its value.
    #[error("{option} needs a value: {expected}")]
    MissingValue {
        /// The option, with its dashes.
        option: String,
        /// The kind of value.
        expected: String,
    },
    /// A value is not of the field's type.
    #[error("{name}: {reason}")]
    BadValue {
        /// The option with its dashes, the argument, or the environment variable.
        name: String,
        /// The problem, and the expected form.
        reason: String,
    },
    /// Required fields are missing.
    #[error("missing {}; --help shows what the command needs", names.join(", "))]
    Required {
        /// The options with their dashes, the arguments in angle brackets.
        names: Vec<String>,
    },
    /// There are more arguments than the command has.
    #[error("unexpected argument {argument:?}: the command takes {takes}")]
    TooMany {
        /// The first superfluous argument.
        argument: String,
        /// The arguments that the command has.
        takes: String,
    },
    /// A template cannot be rendered.
    #[error("failed to render templates: {0}")]
    Render(#[from] TemplateError),
    /// An alias has a target that does not exist.
    #[error("alias {alias} refers to `{target}`, which does not exist")]
    DeadAlias {
        /// The words of the alias.
        alias: String,
        /// The missing target.
        target: String,
    },
}

impl CommandError {
    /// Returns a stable name of the error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "command_unreadable",
            Self::Outside { .. } => "command_outside_directory",
            Self::Malformed { .. } => "command_malformed",
            Self::PromptAndMessages { .. } => "command_prompt_and_messages",
            Self::BadField { .. } => "command_bad_field",
            Self::Clash { .. } => "command_option_clash",
            Self::UnknownOption { .. } => "unknown_option",
            Self::MissingValue { .. } => "missing_value",
            Self::BadValue { .. } => "bad_value",
            Self::Required { .. } => "required_missing",
            Self::TooMany { .. } => "too_many_arguments",
            Self::Render(error) => error.code(),
            Self::DeadAlias { .. } => "alias_without_command",
        }
    }
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |near| format!("; did you mean {near}?"))
}
