//! Shell commands whose output a script reads piece by piece.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_tools::{Follower, ShellOptions, ShellOutcome, ToolError, ToolSettings, run_shell};
use rquickjs::{Ctx, IntoJs, Result, TypedArray, Value};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ToolOverrides;
use super::calls::runtime;
use crate::script::Host;

/// Bytes of output that may wait for the script. A command that has written as much waits until the script reads.
const WAITING_LIMIT: usize = 1 << 20;
/// Bytes that may wait in total. A command that is being killed does not wait: the rest of its pipe, at most 1 MiB,
/// still fits. Anything that its processes write beyond that is dropped.
const KILLED_LIMIT: usize = 2 * WAITING_LIMIT;
/// The most bytes that a script receives at once.
const PIECE_LIMIT: usize = 64 << 10;

#[derive(Deserialize)]
struct CommandInput {
    command: String,
    cwd: PathBuf,
    timeout: Option<f64>,
    #[serde(default)]
    settings: ToolOverrides,
}

type Outcome = std::result::Result<ShellOutcome, ToolError>;

enum Piece {
    Bytes(Vec<u8>),
    End(Outcome),
}

/// A command in progress.
pub(super) struct Command {
    output: Arc<Output>,
    cancel: CancellationToken,
    _stops: DropGuard,
}

/// The output of a command that the script has not read yet.
#[derive(Debug, Default)]
struct Output {
    waiting: Mutex<Waiting>,
    written: Notify,
    read: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: VecDeque<u8>,
    end: Option<Outcome>,
    /// No more output is added.
    closed: bool,
}

impl Output {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, chunk: &[u8]) {
        let mut waiting = self.waiting();
        let room = KILLED_LIMIT.saturating_sub(waiting.bytes.len());
        waiting.bytes.extend(&chunk[..chunk.len().min(room)]);
        drop(waiting);
        self.written.notify_waiters();
    }

    /// Returns the next bytes or the end of the command; `None` after that.
    async fn next(&self) -> Option<Piece> {
        loop {
            let mut written = std::pin::pin!(self.written.notified());
            written.as_mut().enable();
            {
                let mut waiting = self.waiting();
                if !waiting.bytes.is_empty() {
                    let count = waiting.bytes.len().min(PIECE_LIMIT);
                    let piece = waiting.bytes.drain(..count).collect();
                    drop(waiting);
                    self.read.notify_waiters();
                    return Some(Piece::Bytes(piece));
                }
                if waiting.closed {
                    return waiting.end.take().map(Piece::End);
                }
            }
            written.await;
        }
    }
}

impl Follower for Output {
    fn printed(&self, _: &str) {}

    fn has_room(&self) -> bool {
        self.waiting().bytes.len() < WAITING_LIMIT
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let mut read = std::pin::pin!(self.read.notified());
                read.as_mut().enable();
                if self.has_room() {
                    return;
                }
                read.await;
            }
        })
    }
}

/// Closes an output, also when the task that fills it is dropped.
struct Closing(Arc<Output>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.waiting().closed = true;
        self.0.written.notify_waiters();
    }
}

pub(super) fn start(host: &Host, text: &str) -> std::result::Result<Command, String> {
    let input: CommandInput = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let services = host.services();
    let settings = input.settings.apply_to(services.tool_settings());
    let timeout = input.timeout.filter(|&seconds| seconds > 0.0);
    let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let cancel = host.closed().child_token();
    let output = Arc::new(Output::default());
    let run = run(
        input.command,
        input.cwd,
        settings,
        timeout,
        cancel.clone(),
        Arc::clone(&output),
    );
    runtime(&**services)?.spawn(run);
    Ok(Command {
        output,
        _stops: cancel.clone().drop_guard(),
        cancel,
    })
}

/// Runs a command until it has ended and all of its output is in `output`.
async fn run(
    command: String,
    cwd: PathBuf,
    settings: ToolSettings,
    timeout: Option<Duration>,
    cancel: CancellationToken,
    output: Arc<Output>,
) {
    let closing = Closing(output);
    let output = &*closing.0;
    let options = ShellOptions {
        cwd: &cwd,
        settings: &settings,
        timeout,
        follower: Some(output),
    };
    let outcome = run_shell(&command, options, &cancel, |chunk| output.add(chunk)).await;
    output.waiting().end = Some(outcome);
}

impl Command {
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns the next bytes of output, or the command's outcome as JSON text.
    pub(super) async fn output<'js>(&self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let ended = match self.output.next().await {
            Some(Piece::Bytes(bytes)) => {
                return Ok(TypedArray::<u8>::new(ctx.clone(), bytes)?.into_value());
            }
            Some(Piece::End(Ok(ShellOutcome::Exited(code)))) => json!({ "exitCode": code }),
            Some(Piece::End(Ok(ShellOutcome::Signalled))) => json!({ "exitCode": null }),
            Some(Piece::End(Ok(ShellOutcome::TimedOut))) => json!({ "ended": "timeout" }),
            Some(Piece::End(Ok(ShellOutcome::Aborted))) => json!({ "ended": "aborted" }),
            Some(Piece::End(Err(error))) => json!({ "error": error.0 }),
            None => json!({ "error": "The command is over" }),
        };
        ended.to_string().into_js(ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a command whose output is not read.
    fn unread(command: &str) -> (Arc<Output>, CancellationToken) {
        let (output, cancel) = (Arc::new(Output::default()), CancellationToken::new());
        let run = run(
            command.to_owned(),
            std::env::temp_dir(),
            ToolSettings::default(),
            None,
            cancel.clone(),
            Arc::clone(&output),
        );
        tokio::spawn(run);
        (output, cancel)
    }

    /// AwaitCache until no more output arrives and returns the number of waiting bytes.
    async fn at_rest(output: &Output) -> usize {
        let mut last = 0;
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = output.waiting().bytes.len();
            if now == last && now > 0 {
                return now;
            }
            last = now;
        }
        panic!("the command never waits: {last} bytes");
    }

    /// Reads everything and returns the number of bytes and the outcome.
    async fn read(output: &Output) -> (usize, ShellOutcome) {
        let mut bytes = 0;
        loop {
            let next = tokio::time::timeout(Duration::from_secs(60), output.next());
            match next.await.unwrap().unwrap() {
                Piece::Bytes(piece) => {
                    assert!(piece.len() <= PIECE_LIMIT);
                    bytes += piece.len();
                }
                Piece::End(end) => {
                    assert!(output.next().await.is_none(), "a command ends once");
                    return (bytes, end.unwrap());
                }
            }
        }
    }

    #[tokio::test]
    async fn a_command_waits_for_a_script_that_does_not_read_and_loses_nothing() {
        const SIZE: usize = 100_000_000;
        let (output, _cancel) = unread(&format!("head -c {SIZE} /dev/zero; exit 3"));
        let waiting = at_rest(&output).await;
        assert!(waiting < 2 << 20, "{waiting} bytes wait");
        assert_eq!(read(&output).await, (SIZE, ShellOutcome::Exited(3)));
    }

    #[tokio::test]
    async fn a_command_that_waits_for_its_reader_can_be_aborted() {
        let (output, cancel) = unread("yes");
        let waiting = at_rest(&output).await;
        cancel.cancel();
        let aborted = async {
            while !output.waiting().closed {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let aborted = tokio::time::timeout(Duration::from_secs(30), aborted);
        aborted.await.expect("it ends although nobody reads");
        let (bytes, end) = read(&output).await;
        assert_eq!(end, ShellOutcome::Aborted);
        assert!((waiting..4 << 20).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn output_beyond_all_limits_is_dropped() {
        let output = Output::default();
        for _ in 0..100 {
            output.add(&[b'x'; PIECE_LIMIT]);
        }
        assert_eq!(output.waiting().bytes.len(), KILLED_LIMIT);
    }
}
