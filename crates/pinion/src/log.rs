//! The flags of the diagnostic log.

use pinion_cli::Line;
pub(crate) use pinion_log::LogFlags;

use crate::failure::Failure;
use crate::program::Program;

/// Returns the flags of a parsed command line.
pub(crate) fn flags_of(line: &Line) -> LogFlags {
    let value = |flag: &str| line.value(flag).map(str::to_owned);
    LogFlags {
        filter: value("--log"),
        format: value("--log-format"),
        file: value("--log-file"),
    }
}

/// Starts the log with the flags before the first word of a command line, and returns the rest of it.
pub(crate) fn take_flags(program: Program, arguments: Vec<String>) -> Result<Vec<String>, Failure> {
    let (line, rest) = Line::read_common(program.table(), arguments)?;
    let flags = flags_of(&line);
    if !flags.is_empty() {
        start(flags)?;
    }
    Ok(rest)
}

/// Starts the log if flags or the environment request it.
pub(crate) fn start(flags: LogFlags) -> Result<(), Failure> {
    let started = flags.start().map_err(|error| match error.hint() {
        Some(hint) => Failure::usage(error).hint(hint),
        None => Failure::failed(error),
    })?;
    if started {
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "pinion started");
    }
    Ok(())
}
