//! The diagnostic log: its flags and its environment variables.

use pinion_cli::Line;
use pinion_log::{Filter, Format};

use crate::failure::Failure;
use crate::program::Program;

/// The variables that apply where no flag is given, also under the names of other programs.
const FILTER_VARIABLE: &str = "PINION_LOG";
const FORMAT_VARIABLE: &str = "PINION_LOG_FORMAT";
const FILE_VARIABLE: &str = "PINION_LOG_FILE";

/// The flags `--log`, `--log-format` and `--log-file`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct LogFlags {
    pub filter: Option<String>,
    pub format: Option<String>,
    pub file: Option<String>,
}

/// A value, and the flag or the variable that it comes from.
struct Given {
    value: String,
    origin: &'static str,
}

impl LogFlags {
    /// Returns the flags of a parsed command line.
    pub fn of(line: &Line) -> Self {
        let value = |flag: &str| line.value(flag).map(str::to_owned);
        Self {
            filter: value("--log"),
            format: value("--log-format"),
            file: value("--log-file"),
        }
    }

    fn is_empty(&self) -> bool {
        self.filter.is_none() && self.format.is_none() && self.file.is_none()
    }
}

/// Starts the log with the flags before the first word of a command line, and returns the rest of it.
pub(crate) fn take_flags(program: Program, arguments: Vec<String>) -> Result<Vec<String>, Failure> {
    let (line, rest) = Line::read_common(program.table(), arguments)?;
    let flags = LogFlags::of(&line);
    if !flags.is_empty() {
        start(flags)?;
    }
    Ok(rest)
}

/// Starts the log if flags or the environment request it. Flags override the environment.
pub(crate) fn start(flags: LogFlags) -> Result<(), Failure> {
    if pinion_log::is_started() {
        return if flags.is_empty() {
            Ok(())
        } else {
            Err(Failure::usage(
                "Error: --log and its flags stand before the command and after it. Give them once.",
            ))
        };
    }
    let filter = given(flags.filter, "--log", FILTER_VARIABLE);
    let file = given(flags.file, "--log-file", FILE_VARIABLE);
    let format = given(flags.format, "--log-format", FORMAT_VARIABLE);
    // A variable for the file or the format alone does not turn the log on.
    let is_flag =
        |given: &Option<Given>| given.as_ref().is_some_and(|it| it.origin.starts_with('-'));
    if filter.is_none() && !is_flag(&file) && !is_flag(&format) {
        return Ok(());
    }
    let filter = match filter {
        None => Filter::info(),
        Some(Given { value, origin }) => {
            value.parse().map_err(|error: pinion_log::FilterError| {
                Failure::usage(format!("Error: {error} in {origin}. {}", error.hint()))
            })?
        }
    };
    let format = match format {
        None => Format::default(),
        Some(Given { value, origin }) => {
            value.parse().map_err(|error: pinion_log::UnknownFormat| {
                Failure::usage(format!("Error: {error} in {origin}. {}", error.hint()))
            })?
        }
    };
    let file =
        match file {
            None => None,
            Some(Given { value, origin }) => {
                let opened = pinion_log::open_file(value.as_ref());
                Some(opened.map_err(|error| {
                    Failure::failed(format!("Error: {origin} {value}: {error}"))
                })?)
            }
        };
    pinion_log::start(&filter, format, file);
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "pinion started");
    Ok(())
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
