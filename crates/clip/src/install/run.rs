//! Runs the programs that installing needs, with a time limit, and reports their output if they fail.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use pinion_process::{Confinement, Environment, Exit, Launch, Reason, Tail, output_pipe};

use crate::{ClipError, Code};

/// The time limit of one program, such as `npm install` or `git clone`.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// Bytes of a program's output that are shown when it fails.
const SHOWN_BYTES: usize = 2000;
/// Bytes at the end of a program's stdout that are returned.
const KEPT_BYTES: usize = 1024 * 1024;

/// Runs `command_line` in `directory` and returns its stdout. `doing` describes the purpose in errors.
pub(super) async fn run(
    command_line: Vec<OsString>,
    directory: &Path,
    variables: Vec<(OsString, OsString)>,
    doing: &str,
) -> Result<Vec<u8>, ClipError> {
    let io_error = |error: io::Error| ClipError::io(doing, &error);
    let (output, their_output) = output_pipe().map_err(io_error)?;
    let (errors, their_errors) = output_pipe().map_err(io_error)?;
    let mut running = pinion_process::launch(Launch {
        words: command_line,
        directory: directory.to_owned(),
        variables,
        base: Environment::Inherited,
        confinement: Confinement::Unconfined(Reason::Installed),
        stdin: None,
        stdout: Some(their_output),
        stderr: Some(their_errors),
    })
    .await
    .map_err(io_error)?;
    let ended = async {
        let (stdout_end, stderr_end) = tokio::join!(
            Tail::read(output, KEPT_BYTES),
            Tail::read(errors, SHOWN_BYTES)
        );
        (running.wait().await, stdout_end, stderr_end)
    };
    let Ok((exit, stdout_end, stderr_end)) = tokio::time::timeout(RUN_TIMEOUT, ended).await else {
        let message = format!("{doing} took more than 5 minutes");
        return Err(ClipError::new(Code::DeadlineExceeded, message));
    };
    if exit == Exit::Code(0) {
        return Ok(stdout_end.bytes().to_vec());
    }
    let (stdout_end, stderr_end) = (stdout_end.bytes(), stderr_end.bytes());
    let output_end = if stderr_end.trim_ascii().is_empty() {
        &stdout_end[stdout_end.len().saturating_sub(SHOWN_BYTES)..]
    } else {
        stderr_end
    };
    let output_end = String::from_utf8_lossy(output_end);
    Err(ClipError::new(
        Code::FailedPrecondition,
        format!("{doing} failed: {}", output_end.trim()),
    ))
}
