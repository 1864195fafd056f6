//! MCP servers as clips. A server is started or connected when its tools are first needed, and each of its tools is a
//! command.

mod clips;
mod connection;
mod content;
mod file;
mod launch;
mod process;
mod remote;
mod status;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use pinion_clip::logs::{ClipLog, Level, Origin};
use pinion_clip::manifest::Manifest;
use pinion_clip::{CallError, ClipState, Snapshot, Status};
use pinion_status::{Code, Failure};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use clips::Mounts;
use connection::{Connection, RequestError};
pub use file::read_mounts;
use status::MountStatus;

/// The outputs of a call, each a JSON text; a failure is the last item. Dropping the stream cancels the call.
pub type Answers = Pin<Box<dyn Stream<Item = Result<Bytes, CallError>> + Send>>;

/// The program or URL of an MCP server.
#[derive(Clone)]
pub enum Target {
    /// A program that speaks MCP on its standard input and output.
    Command {
        /// The program and its arguments.
        words: Vec<OsString>,
        /// The program's working directory.
        directory: PathBuf,
        /// Variables added to the environment that the program inherits.
        variables: Vec<(OsString, OsString)>,
        /// Inherited variables that are passed on although they look like secrets.
        pass: Vec<String>,
    },
    /// A server on the network.
    Http {
        /// The URL, with `http` or `https`.
        url: String,
        /// Headers of every request, such as `Authorization`.
        headers: Vec<(String, String)>,
    },
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values may be secrets.
        match self {
            Self::Command { words, .. } => formatter.debug_tuple("Command").field(words).finish(),
            Self::Http { url, .. } => formatter.debug_tuple("Http").field(url).finish(),
        }
    }
}

/// Time limits of a mounted server.
#[derive(Debug, Clone)]
pub struct MountLimits {
    /// From the start of a server to its first answer, including anything the server downloads first.
    pub start: Duration,
    /// One call, unless the caller sets a shorter limit.
    pub call: Duration,
    /// Crashes at most this far apart delay the next start.
    pub crash_window: Duration,
    /// The first delay of a start. It doubles with each crash.
    pub backoff: Duration,
    /// The longest delay of a start.
    pub longest_backoff: Duration,
    /// Time for a program to exit after its input was closed, and again after it received SIGTERM.
    pub ending: Duration,
}

impl Default for MountLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            call: Duration::from_secs(600),
            crash_window: Duration::from_secs(60),
            backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(30),
            ending: Duration::from_secs(2),
        }
    }
}

/// The settings of a mounted server.
#[derive(Debug, Clone)]
pub struct MountConfig {
    /// The alias of the clip.
    pub alias: String,
    pub target: Target,
    /// The manifest of the server's last run.
    pub manifest: Option<Manifest>,
    pub limits: MountLimits,
}

impl MountConfig {
    /// Creates the default settings for a server.
    pub fn new(alias: impl Into<String>, target: Target) -> Self {
        Self {
            alias: alias.into(),
            target,
            manifest: None,
            limits: MountLimits::default(),
        }
    }
}

/// A mounted MCP server. Its program ends when this is dropped.
#[derive(Debug)]
pub struct Mount {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: MountConfig,
    mount_status: Arc<MountStatus>,
    slot: Arc<Mutex<Slot>>,
    /// Cancelled when the mount is closed; then a start fails.
    closed: CancellationToken,
}

/// The connection, of which there is at most one.
#[derive(Debug, Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    crashes: u32,
    last_crash: Option<Instant>,
}

impl Slot {
    fn crashed(&mut self, at: Instant, limits: &MountLimits) {
        let near = self
            .last_crash
            .is_some_and(|last| at < last + limits.crash_window);
        self.crashes = if near { self.crashes + 1 } else { 1 };
        self.last_crash = Some(at);
    }

    fn next_start(&self, limits: &MountLimits) -> Option<Instant> {
        let doubled = 1u32
            .checked_shl(self.crashes.checked_sub(1)?)
            .unwrap_or(u32::MAX);
        let delay = limits.backoff.saturating_mul(doubled);
        Some(self.last_crash? + delay.min(limits.longest_backoff))
    }
}

impl Mount {
    /// Creates a mount. The server is started when it is needed. Its output outside the protocol goes to `log`.
    pub fn new(config: MountConfig, log: Arc<ClipLog>) -> Self {
        let mount_status = MountStatus::new(&config.alias, config.manifest.clone(), log);
        Self {
            inner: Arc::new(Inner {
                config,
                mount_status: mount_status.into(),
                slot: Arc::default(),
                closed: CancellationToken::new(),
            }),
        }
    }

    /// Returns the known manifest and the status.
    pub fn snapshot(&self) -> Snapshot {
        self.inner.mount_status.snapshot.borrow().clone()
    }

    /// Returns a receiver of every change of the snapshot.
    pub fn watch(&self) -> watch::Receiver<Snapshot> {
        self.inner.mount_status.snapshot.subscribe()
    }

    pub fn logs(&self) -> Arc<ClipLog> {
        self.inner.mount_status.log.clone()
    }

    /// Starts the server if necessary and waits until it has listed its tools.
    pub async fn inspect(&self) -> Result<Snapshot, Failure> {
        self.inner.connected().await?;
        Ok(self.snapshot())
    }

    /// Calls a tool with a JSON text, which must be an object. Must be called within a tokio runtime; returns at once.
    pub fn invoke(&self, command: &str, input: Bytes, deadline: Option<Instant>) -> Answers {
        let inner = self.inner.clone();
        let command = command.to_owned();
        let called = async move { inner.call(&command, &input, deadline).await };
        let answers = stream::once(called).flat_map(|called| match called {
            Ok(outputs) => stream::iter(outputs.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(error) => stream::iter(vec![Err(error)]),
        });
        Box::pin(answers)
    }

    /// Calls a tool and returns the server's answer as it is. Progress that the server reports extends the deadline.
    ///
    /// `arguments` must be an object.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: &Value,
        limit: Duration,
    ) -> Result<Value, CallError> {
        let unanswered = |failure| CallError::Unanswered(failure);
        let input = serde_json::value::to_raw_value(arguments)
            .map_err(|error| unanswered(Failure::invalid(error.to_string())))?;
        let input = self::arguments(input.get().as_bytes()).map_err(unanswered)?;
        let mut progress = self.inner.mount_status.progress.subscribe();
        let token = self.inner.mount_status.progress_token();
        let answer = self.inner.answer(tool, &input, Some(token));
        tokio::pin!(answer);
        let mut deadline = Instant::now() + limit;
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => {
                    return content::value(&answer?).map_err(CallError::Answered);
                }
                () = tokio::time::sleep_until(deadline) => {
                    return Err(unanswered(self.inner.too_late(tool)));
                }
                Ok(()) = progress.changed() => {
                    if *progress.borrow_and_update() == token {
                        deadline = Instant::now() + limit;
                    }
                }
            }
        }
    }

    /// Stops the server, also while it starts. Later calls fail.
    pub async fn close(&self) {
        self.inner.closed.cancel();
        self.stop().await;
    }

    /// Stops the server. The next call starts it again.
    pub async fn stop(&self) {
        let connection = self.inner.slot.lock().await.connection.take();
        if let Some(connection) = connection {
            connection.stop().await;
        }
        self.inner
            .mount_status
            .set_status(ClipState::Sleeping, String::new());
    }
}

impl Inner {
    /// Returns the connection, opening it if there is none.
    async fn connected(self: &Arc<Self>) -> Result<Arc<Connection>, Failure> {
        let slot = self.slot.clone().lock_owned().await;
        if let Some(connection) = &slot.connection
            && connection.lost_at().is_none()
        {
            return Ok(connection.clone());
        }
        // A caller may stop waiting; the server is started all the same.
        let start = tokio::spawn(self.clone().start(slot));
        start.await.unwrap_or_else(|error| {
            let message = format!("pinion failed while it started the server: {error}");
            Err(Failure::new(Code::Internal, message))
        })
    }

    async fn start(
        self: Arc<Self>,
        mut slot: OwnedMutexGuard<Slot>,
    ) -> Result<Arc<Connection>, Failure> {
        let limits = &self.config.limits;
        if let Some(lost) = slot.connection.take()
            && let Some(at) = lost.lost_at()
            && !lost.may_return()
        {
            slot.crashed(at, limits);
        }
        let next_start = slot.next_start(limits);
        let connect = async {
            if let Some(start) = next_start {
                tokio::time::sleep_until(start).await;
            }
            let connection = Connection::open(&self.config, self.mount_status.clone());
            let connected = tokio::time::timeout(limits.start, connection).await;
            connected.unwrap_or_else(|_| {
                let message = format!("it did not answer within {} s", limits.start.as_secs());
                Err(Failure::new(Code::DeadlineExceeded, message))
            })
        };
        let connected = tokio::select! {
            connected = connect => connected,
            () = self.closed.cancelled() => {
                Err(Failure::new(Code::Canceled, "it was stopped while it started"))
            }
        };
        match connected {
            Ok(connection) => {
                let connection = Arc::new(connection);
                connection.clone().follow();
                slot.connection = Some(connection.clone());
                self.mount_status
                    .set_status(ClipState::Running, String::new());
                // The program may have exited in the meantime and then has set its status already.
                if let Some(reason) = connection.reason() {
                    self.mount_status.set_status(ClipState::Error, reason);
                }
                Ok(connection)
            }
            Err(failure) => {
                slot.crashed(Instant::now(), limits);
                let code = match failure.code {
                    Code::Unauthenticated => failure.code,
                    _ => Code::Unavailable,
                };
                let message = format!("MCP server \"{}\": {}", self.config.alias, failure.message);
                self.mount_status
                    .log
                    .push(Level::Error, Origin::System, &message);
                self.mount_status
                    .set_status(ClipState::Error, message.clone());
                Err(Failure::new(code, message))
            }
        }
    }

    async fn call(
        self: &Arc<Self>,
        command: &str,
        input: &Bytes,
        deadline: Option<Instant>,
    ) -> Result<Vec<Bytes>, CallError> {
        let latest = Instant::now() + self.config.limits.call;
        let deadline = deadline.map_or(latest, |deadline| deadline.min(latest));
        let called = tokio::time::timeout_at(deadline, async {
            let input = arguments(input).map_err(CallError::Unanswered)?;
            let answer = self.answer(command, &input, None).await?;
            content::outputs(&answer).map_err(CallError::Answered)
        });
        let called = called.await;
        called.unwrap_or_else(|_| Err(CallError::Unanswered(self.too_late(command))))
    }

    fn too_late(&self, command: &str) -> Failure {
        let message = format!(
            "MCP server \"{}\" did not answer {command} in time",
            self.config.alias
        );
        Failure::new(Code::DeadlineExceeded, message)
    }

    /// Calls a tool, starting the server if it does not run. `progress` is the token with which the server may report
    /// progress.
    async fn answer(
        self: &Arc<Self>,
        command: &str,
        input: &RawValue,
        progress: Option<u64>,
    ) -> Result<Box<RawValue>, CallError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let connection = self.connected().await.map_err(CallError::Unanswered)?;
            let manifest = self.mount_status.snapshot.borrow().manifest.clone();
            let tool = self.tool(&manifest, command)?;
            match connection.call(tool, input, progress).await {
                Ok(result) => return Ok(result),
                Err(RequestError::Answered(fault)) => {
                    return Err(CallError::Answered(content::failure(&fault)));
                }
                // The server has dropped the session and did not run the call.
                Err(RequestError::SessionExpired) if tries < 2 => {}
                Err(RequestError::SessionExpired) => {
                    let message = format!(
                        "MCP server \"{}\" drops its sessions at once",
                        self.config.alias
                    );
                    return Err(CallError::Unanswered(Failure::new(
                        Code::Unavailable,
                        message,
                    )));
                }
                Err(RequestError::Lost(failure)) => return Err(CallError::Unanswered(failure)),
            }
        }
    }

    fn tool<'a>(&self, manifest: &'a Manifest, command: &str) -> Result<&'a str, CallError> {
        match manifest.command(command) {
            Some(found) => Ok(&found.name),
            None => {
                let message = format!(
                    "clip \"{}\" does not support command \"{command}\"",
                    self.config.alias
                );
                Err(CallError::Unanswered(Failure::new(Code::NotFound, message)))
            }
        }
    }
}

/// Checks the arguments of a call.
fn arguments(input: &[u8]) -> Result<Box<RawValue>, Failure> {
    let text = if input.trim_ascii().is_empty() {
        b"{}"
    } else {
        input
    };
    let given: Option<Box<RawValue>> = serde_json::from_slice(text).ok();
    match given {
        Some(given) if given.get() == "null" => arguments(b""),
        Some(given) if given.get().starts_with('{') => Ok(given),
        _ => Err(Failure::invalid(
            "the input is not an object; tools of MCP servers require one",
        )),
    }
}

pub(crate) fn status(state: ClipState, message: String) -> Status {
    Status { state, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_are_passed_on() {
        for nothing in ["", " ", "null", "{}"] {
            assert_eq!(arguments(nothing.as_bytes()).unwrap().get(), "{}");
        }
        assert_eq!(arguments(b" {\"a\":1} ").unwrap().get(), "{\"a\":1}");
        for wrong in ["5", "[1]", "\"x\"", "{", "{}{}"] {
            let failure = arguments(wrong.as_bytes()).unwrap_err();
            assert_eq!(failure.code, Code::InvalidArgument, "{wrong}");
        }
    }

    #[test]
    fn crashes_delay_the_next_start() {
        let limits = MountLimits::default();
        let mut slot = Slot::default();
        assert_eq!(slot.next_start(&limits), None);
        let mut delays = Vec::new();
        let now = Instant::now();
        for _ in 0..40 {
            slot.crashed(now, &limits);
            delays.push((slot.next_start(&limits).unwrap() - now).as_secs());
        }
        assert_eq!(delays[..7], [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(delays[39], 30);
        let later = now + limits.crash_window;
        slot.crashed(later, &limits);
        assert_eq!(slot.next_start(&limits), Some(later + limits.backoff));
    }
}
