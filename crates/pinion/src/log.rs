//! The flags of the diagnostic log, and the start of traces.

use pinion_cli::Line;
pub(crate) use pinion_log::LogFlags;
use pinion_telemetry::Settings;

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
        start_log(flags)?;
    }
    Ok(rest)
}

/// Starts the log if flags or the environment request it, and traces.
pub(crate) fn start(flags: LogFlags) -> Result<(), Failure> {
    start_log(flags)?;
    start_traces();
    Ok(())
}

fn start_log(flags: LogFlags) -> Result<(), Failure> {
    let started = flags.start().map_err(|error| match error.hint() {
        Some(hint) => Failure::usage(error).hint(hint),
        None => Failure::failed(error),
    })?;
    if started {
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "pinion started");
    }
    Ok(())
}

/// Starts traces if the environment names a receiver. Settings that are wrong are reported in the log and by `doctor`
/// only: the variables are those of many programs, and clients of pi expect nothing else on stderr.
fn start_traces() {
    match Settings::read(|name| std::env::var(name).ok()) {
        Ok(Some(settings)) => {
            pinion_process::set_variable_source(|| {
                Some((
                    pinion_telemetry::TRACEPARENT,
                    pinion_telemetry::traceparent()?,
                ))
            });
            pinion_telemetry::start_traces(settings);
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(reason = %error, "traces are off"),
    }
}
