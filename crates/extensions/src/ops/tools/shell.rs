//! Commands whose output a script takes piece by piece.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pinion_tools::{ShellOptions, ShellOutcome, ToolError, run_shell};
use rquickjs::{Ctx, IntoJs, Result, TypedArray, Value};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Wishes;
use super::calls::runtime;
use crate::script::Shared;

/// Output that may wait for the script; a command that writes still more is stopped.
const MOST_WAITING: usize = 64 << 20;

#[derive(Deserialize)]
struct Asked {
    command: String,
    cwd: PathBuf,
    timeout: Option<f64>,
    #[serde(default)]
    settings: Wishes,
}

enum Piece {
    Bytes(Vec<u8>),
    End(std::result::Result<ShellOutcome, ToolError>),
}

/// A command that is under way.
pub(super) struct Command {
    pieces: tokio::sync::Mutex<mpsc::UnboundedReceiver<Piece>>,
    waiting: Arc<AtomicUsize>,
    cancel: CancellationToken,
    _stops: DropGuard,
}

/// Starts a command.
pub(super) fn start(host: &Shared, text: &str) -> std::result::Result<Command, String> {
    let asked: Asked = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let services = host.services();
    let settings = asked.settings.over(services.tool_settings());
    let timeout = asked.timeout.filter(|&seconds| seconds > 0.0);
    let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let cancel = host.closed().child_token();
    // Bounded by `waiting`: a piece is never held back, but too many of them end the command.
    let (sender, pieces) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let (stop, flood, counted) = (
        cancel.clone(),
        CancellationToken::new(),
        Arc::clone(&waiting),
    );
    runtime(&**services)?.spawn(async move {
        let end = flood.clone();
        let linked = stop.child_token();
        let limit = linked.clone();
        let pour = sender.clone();
        let options = ShellOptions {
            cwd: &asked.cwd,
            settings: &settings,
            timeout,
            follower: None,
        };
        let outcome = run_shell(&asked.command, options, &linked, move |chunk| {
            if counted.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len() > MOST_WAITING {
                end.cancel();
                limit.cancel();
            } else {
                let _ = pour.send(Piece::Bytes(chunk.to_vec()));
            }
        })
        .await;
        let outcome = match outcome {
            Ok(ShellOutcome::Aborted) if flood.is_cancelled() => Err(ToolError(
                "The command wrote more than anybody read.".to_owned(),
            )),
            outcome => outcome,
        };
        let _ = sender.send(Piece::End(outcome));
    });
    Ok(Command {
        pieces: tokio::sync::Mutex::new(pieces),
        waiting,
        _stops: cancel.clone().drop_guard(),
        cancel,
    })
}

impl Command {
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The next bytes it wrote, or how it ended as JSON text.
    pub(super) async fn output<'js>(&self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let piece = self.pieces.lock().await.recv().await;
        let ended = match piece {
            Some(Piece::Bytes(bytes)) => {
                self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
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
