//! An installed clip: its configuration, its status, and calls to it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::call::{ChunkStream, ClipCall, Invocation};
use crate::codec::{self, DetectedDialect};
use crate::cross_calls::CrossCalls;
use crate::limits::Limits;
use crate::logs::ClipLog;
use crate::manifest::Manifest;
use crate::output::EMPTY_OBJECT;
use crate::package::Package;
use crate::process::{self, Programs};
use crate::secret::{self, CallSecret};
use crate::shared::{SharedClip, Shutdown, Start};
use crate::web::WebFiles;
use crate::{ClipError, Code};

/// The address of the hub that a clip receives unless its configuration names another.
pub const DEFAULT_HUB: &str = "http://127.0.0.1:9000";

/// The configuration of a clip.
#[derive(Debug, Clone)]
pub struct ClipConfig {
    pub alias: String,
    /// The clip's directory and the contents of its `clip.json` and `package.json`.
    pub package: Package,
    /// The package it was installed from; empty if unknown.
    pub package_name: String,
    /// The version that was installed; empty if unknown.
    pub version: String,
    /// The manifest that the clip registered when it last ran.
    pub manifest: Option<Manifest>,
    /// The dialect that an earlier process of this version spoke, if known.
    pub detected_dialect: Option<DetectedDialect>,
    /// The directory of the clip's data. It is created if it is missing.
    pub data_directory: PathBuf,
    /// The address of the hub that the clip belongs to.
    pub hub_url: String,
    /// The issuer of the tokens with which the clip's processes authenticate to that hub.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// The secret that callers must present, if there is one.
    pub secret: Option<CallSecret>,
    /// The paths of the programs that run clips.
    pub programs: Programs,
    /// Names of environment variables that the clip inherits although they look like secrets.
    pub pass: Vec<String>,
    /// Variables that are set in addition to the inherited environment.
    pub variables: Vec<(OsString, OsString)>,
    pub limits: Limits,
}

impl ClipConfig {
    /// Returns the configuration of a clip in `package`, with defaults for everything else.
    pub fn new(
        alias: impl Into<String>,
        package: Package,
        data_directory: impl Into<PathBuf>,
    ) -> Self {
        Self {
            alias: alias.into(),
            package,
            package_name: String::new(),
            version: String::new(),
            manifest: None,
            detected_dialect: None,
            data_directory: data_directory.into(),
            hub_url: DEFAULT_HUB.into(),
            tokens: None,
            secret: None,
            programs: Programs::default(),
            pass: Vec::new(),
            variables: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// The end of the message of calls that a clip did not start because another version replaces it.
const REPLACED: &str = "is being replaced by another version; try again";

/// Reports whether a call failed only because another version replaces its clip. Such a call was never started and can
/// be repeated.
pub fn is_being_replaced(failure: &ClipError) -> bool {
    failure.code == Code::Unavailable && failure.message.ends_with(REPLACED)
}

/// A token whose `Debug` output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// Returns the token in clear.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Issues a separate token to each process of a clip.
pub trait Tokens: fmt::Debug + Send + Sync {
    /// Issues a token for a process that is about to start.
    fn issue(&self) -> Result<Issued, ClipError>;
}

/// An issued token and the lease that makes it valid.
pub struct Issued {
    pub token: Token,
    /// Dropped when the process has ended, which ends the validity of the token.
    pub lease: Box<dyn Send + Sync>,
}

/// Issues the same token to every process.
impl Tokens for Token {
    fn issue(&self) -> Result<Issued, ClipError> {
        Ok(Issued {
            token: self.clone(),
            lease: Box::new(()),
        })
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Issued")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// The state of a clip's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClipState {
    /// There is no process; the next call starts one.
    Sleeping,
    /// There is a process that takes calls.
    Running,
    /// The last process crashed or could not be started; the next call starts another.
    Error,
}

/// The state of a clip, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub state: ClipState,
    /// The reason; empty unless something is wrong.
    pub message: String,
}

impl Status {
    pub(crate) fn sleeping() -> Self {
        Self {
            state: ClipState::Sleeping,
            message: String::new(),
        }
    }

    pub(crate) fn running() -> Self {
        Self {
            state: ClipState::Running,
            message: String::new(),
        }
    }

    pub(crate) fn error(message: String) -> Self {
        Self {
            state: ClipState::Error,
            message,
        }
    }
}

/// The status and the manifest of a clip at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub status: Status,
    pub manifest: Arc<Manifest>,
}

impl Snapshot {
    /// Returns the snapshot of a clip that always runs, such as one built into the hub.
    pub fn running(manifest: Arc<Manifest>) -> Self {
        Self {
            status: Status {
                state: ClipState::Running,
                message: String::new(),
            },
            manifest,
        }
    }
}

/// An installed clip. The first call starts its process; dropping the clip ends it.
#[derive(Debug)]
pub struct Clip {
    shared: Arc<SharedClip>,
    web: Arc<WebFiles>,
}

impl Clip {
    /// Creates a clip that reaches other clips and data through `cross_calls`. Starts nothing.
    pub fn new(config: ClipConfig, log: Arc<ClipLog>, cross_calls: Arc<dyn CrossCalls>) -> Self {
        let web = WebFiles::new(config.alias.clone(), &config.package);
        Self {
            web: Arc::new(web),
            shared: SharedClip::new(config, log, cross_calls),
        }
    }

    pub fn alias(&self) -> &str {
        self.shared.alias()
    }

    /// Returns the contents of the clip's directory.
    pub fn package(&self) -> &Package {
        &self.shared.config.package
    }

    /// Returns the newest manifest: the registered one, else that of the package files.
    pub fn manifest(&self) -> Arc<Manifest> {
        self.shared.snapshot.borrow().manifest.clone()
    }

    /// Returns the manifest and the status at one moment.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot.borrow().clone()
    }

    pub fn status(&self) -> Status {
        self.shared.snapshot.borrow().status.clone()
    }

    /// Returns a receiver of every change of status or manifest.
    pub fn watch(&self) -> watch::Receiver<Snapshot> {
        self.shared.snapshot.subscribe()
    }

    /// Returns the dialect of the clip once it is known. Store it with the installation record, so that later processes
    /// start faster.
    pub fn detected_dialect(&self) -> Option<DetectedDialect> {
        self.shared.state().detected_dialect
    }

    /// Reports whether callers must present a secret.
    pub fn is_token_protected(&self) -> bool {
        self.shared.config.secret.is_some()
    }

    /// Checks the secret that a caller presented. [`Clip::invoke`] does not check it.
    pub fn check_secret(&self, given: Option<&str>) -> Result<(), ClipError> {
        secret::check(self.shared.config.secret.as_ref(), given)
    }

    pub fn web(&self) -> &Arc<WebFiles> {
        &self.web
    }

    pub fn logs(&self) -> Arc<ClipLog> {
        self.shared.log.clone()
    }

    /// Calls a command and returns at once. Must be called within a tokio runtime.
    ///
    /// Input that is not JSON is rejected here. Only the clip can decide whether the command exists;
    /// [`Manifest::accepts`] checks the manifest.
    pub fn invoke(&self, invocation: Invocation) -> Result<ChunkStream, ClipError> {
        let id = self.shared.next_id();
        let input = match invocation.input.trim_ascii() {
            b"" => &EMPTY_OBJECT[..],
            input => input,
        };
        let input = codec::json(input)
            .ok_or_else(|| ClipError::invalid("the input of the call is not JSON text"))?;
        let traceparent = pinion_telemetry::traceparent();
        let line = codec::invoke(&id, &invocation.command, input, traceparent.as_deref());
        if line.len() > self.shared.limits.line_out {
            let message = format!(
                "the input is {} bytes long; a line for a clip may have {}",
                line.len(),
                self.shared.limits.line_out
            );
            return Err(ClipError::new(Code::ResourceExhausted, message));
        }
        let limits = self.shared.limits.clone();
        let unread = self.shared.unread.clone();
        let call = ClipCall::new(id, line, invocation.deadline, limits, unread);
        let call = Arc::new(call);
        let start = self.shared.submit(call.clone())?;
        self.begin(start);
        Ok(ChunkStream::new(call, &self.shared, invocation.cancel))
    }

    /// Starts the process, if none runs, and waits until it has registered or is ready for calls.
    pub async fn inspect(&self) -> Result<Arc<Manifest>, ClipError> {
        let (ready, start) = self.shared.probe()?;
        self.begin(start);
        match ready.await {
            Ok(ready) => ready.map(|()| self.manifest()),
            Err(_) => Err(ClipError::no_clip(self.alias())),
        }
    }

    fn begin(&self, start: Start) {
        if start == Start::Needed {
            tokio::spawn(process::supervise(self.shared.clone()));
        }
    }

    /// Ends the process and waits until it has exited: closes its stdin, then sends SIGTERM, then kills it. A later
    /// call starts another process.
    pub async fn stop(&self) {
        let over = self.shared.over.notified();
        tokio::pin!(over);
        over.as_mut().enable();
        if self.shared.stop(Shutdown::Graceful) {
            over.await;
        }
    }

    /// Ends the process as soon as it has no work, so that the next call starts one that reads its files and
    /// environment again.
    pub fn renew(&self) {
        self.shared.renew();
    }

    /// Stops the process and accepts no more calls. Waiting calls fail as if the clip did not exist.
    pub async fn retire(&self) {
        self.leave(ClipError::no_clip(self.alias())).await;
    }

    /// Does the same as [`Clip::retire`] for a clip that another version replaces: waiting calls fail with an error for
    /// which [`is_being_replaced`] is true.
    pub async fn retire_for_replacement(&self) {
        let message = format!("clip \"{}\" {REPLACED}", self.alias());
        self.leave(ClipError::new(Code::Unavailable, message)).await;
    }

    async fn leave(&self, why: ClipError) {
        self.shared.retire(Shutdown::Graceful, why);
        self.stopped().await;
        self.shared.log.close();
    }

    async fn stopped(&self) {
        loop {
            let over = self.shared.over.notified();
            tokio::pin!(over);
            over.as_mut().enable();
            if !self.shared.is_alive() {
                return;
            }
            over.await;
        }
    }

    /// Reports whether a process accepts calls.
    pub fn is_running(&self) -> bool {
        self.shared.snapshot.borrow().is_running()
    }
}

impl Drop for Clip {
    fn drop(&mut self) {
        let why = ClipError::no_clip(self.alias());
        self.shared.retire(Shutdown::Immediate, why);
    }
}
