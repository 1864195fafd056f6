//! Why a command was not loaded, understood or rendered.

use std::path::PathBuf;

use pinion_templates::TemplateError;
use thiserror::Error;

/// A failure with a command file or its command line. The message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A relative path that leads out of the working directory.
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
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// The file says both how a conversation starts and what the prompt is.
    #[error("{place}: Prompt and messages are mutually exclusive")]
    PromptAndMessages {
        /// File, line and column.
        place: String,
    },
    /// A flag or argument of the file cannot be one.
    #[error("{place}: field `{field}` {reason}")]
    BadField {
        /// The file.
        place: String,
        /// The field's name.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A name that belongs to the program.
    #[error(
        "{place}: field `{field}` clashes with the built-in option {option}; give the field another name"
    )]
    Clash {
        /// The file.
        place: String,
        /// The field's name.
        field: String,
        /// The option, with its dashes.
        option: String,
    },
    /// An option nobody knows.
    #[error("unknown option {option}{}; --help lists all options", did_you_mean(suggestion.as_deref()))]
    UnknownOption {
        /// The option, with its dashes.
        option: String,
        /// The option that is spelled most like it.
        suggestion: Option<String>,
    },
    /// An option at the end that needs a value.
    #[error("{option} needs a value: {expected}")]
    MissingValue {
        /// The option, with its dashes.
        option: String,
        /// What kind of value.
        expected: String,
    },
    /// A value that is not of the field's type.
    #[error("{name}: {reason}")]
    BadValue {
        /// The option with its dashes, the argument, or the variable of the environment.
        name: String,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// Fields that must be given and were not.
    #[error("missing {}; --help shows what the command needs", names.join(", "))]
    Required {
        /// The options with their dashes, the arguments in angle brackets.
        names: Vec<String>,
    },
    /// More arguments than the command has.
    #[error("unexpected argument {argument:?}: the command takes {takes}")]
    TooMany {
        /// The first argument that has no place.
        argument: String,
        /// What it takes.
        takes: String,
    },
    /// A template that cannot be rendered.
    #[error("failed to render templates: {0}")]
    Render(#[from] TemplateError),
    /// An alias of something that does not exist.
    #[error("alias {alias} stands for `{target}`, which does not exist")]
    DeadAlias {
        /// The alias, as a path of words.
        alias: String,
        /// What it stands for.
        target: String,
    },
}

impl CommandError {
    /// A stable name of the failure, for programs.
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
