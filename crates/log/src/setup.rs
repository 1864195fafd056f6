//! The start of the log from flags and environment variables. Flags override the environment.

use std::io;

use crate::{Filter, FilterError, Format, UnknownFormat, is_started, open_file, start};

/// The variables that apply where no flag is given, also under the names of other programs.
const FILTER_VARIABLE: &str = "PINION_LOG";
const FORMAT_VARIABLE: &str = "PINION_LOG_FORMAT";
const FILE_VARIABLE: &str = "PINION_LOG_FILE";

/// The values of the flags `--log`, `--log-format` and `--log-file`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LogFlags {
    pub filter: Option<String>,
    pub format: Option<String>,
    pub file: Option<String>,
}

/// The reason why the log does not start.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("--log and its flags stand before the command and after it.")]
    Twice,
    #[error("{error} in {origin}.")]
    Filter {
        error: FilterError,
        origin: &'static str,
    },
    #[error("{error} in {origin}.")]
    Format {
        error: UnknownFormat,
        origin: &'static str,
    },
    #[error("{origin} {file}: {error}")]
    File {
        error: io::Error,
        origin: &'static str,
        file: String,
    },
}

impl SetupError {
    /// Returns a sentence about what to do next; `None` for a file, because the command line is not wrong.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Twice => Some("Give them once.".to_owned()),
            Self::Filter { error, .. } => Some(error.hint()),
            Self::Format { error, .. } => Some(error.hint()),
            Self::File { .. } => None,
        }
    }
}

/// A value, and the flag or the variable that it comes from.
struct Given {
    value: String,
    origin: &'static str,
}

impl LogFlags {
    /// Reports whether no flag is given.
    pub fn is_empty(&self) -> bool {
        self.filter.is_none() && self.format.is_none() && self.file.is_none()
    }

    /// Starts the log if a flag or the environment requests it. Returns `false` if neither does, or if it was started
    /// before.
    pub fn start(self) -> Result<bool, SetupError> {
        if is_started() {
            return if self.is_empty() {
                Ok(false)
            } else {
                Err(SetupError::Twice)
            };
        }
        let filter = given(self.filter, "--log", FILTER_VARIABLE);
        let file = given(self.file, "--log-file", FILE_VARIABLE);
        let format = given(self.format, "--log-format", FORMAT_VARIABLE);
        // A variable for the file or the format alone does not turn the log on.
        let is_flag =
            |given: &Option<Given>| given.as_ref().is_some_and(|it| it.origin.starts_with('-'));
        if filter.is_none() && !is_flag(&file) && !is_flag(&format) {
            return Ok(false);
        }
        let filter = match filter {
            None => Filter::info(),
            Some(Given { value, origin }) => value
                .parse()
                .map_err(|error| SetupError::Filter { error, origin })?,
        };
        let format = match format {
            None => Format::default(),
            Some(Given { value, origin }) => value
                .parse()
                .map_err(|error| SetupError::Format { error, origin })?,
        };
        let file = match file {
            None => None,
            Some(Given {
                value: file,
                origin,
            }) => match open_file(file.as_ref()) {
                Ok(opened) => Some(opened),
                Err(error) => {
                    return Err(SetupError::File {
                        error,
                        origin,
                        file,
                    });
                }
            },
        };
        Ok(start(&filter, format, file))
    }
}

fn given(flag: Option<String>, name: &'static str, variable: &'static str) -> Option<Given> {
    if let Some(value) = flag {
        return Some(Given {
            value,
            origin: name,
        });
    }
    let value = std::env::var(variable).ok()?;
    (!value.is_empty()).then_some(Given {
        value,
        origin: variable,
    })
}
