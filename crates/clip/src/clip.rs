//! An installed clip: what it is, how it stands, and how it is called.

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

/// The hub a clip is told about unless said otherwise.
pub const DEFAULT_HUB: &str = "http://127.0.0.1:9000";

/// Everything that must be known to run a clip.
#[derive(Debug, Clone)]
pub struct ClipConfig {
    /// The alias it goes by.
    pub alias: String,
    /// Its directory and what the files in it say.
    pub package: Package,
    /// The package it was installed from; empty if unknown.
    pub package_name: String,
    /// The version that was installed; empty if unknown.
    pub version: String,
    /// What it said about itself when it last ran.
    pub manifest: Option<Manifest>,
    /// How it speaks, if that is known from earlier.
    pub detected_dialect: Option<DetectedDialect>,
    /// Where it keeps its data. Made if it is missing.
    pub data_directory: PathBuf,
    /// The address of the hub it belongs to.
    pub hub_url: String,
    /// Who gives its processes the tokens with which they may talk to that hub.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// The secret its callers must know, if there is one.
    pub secret: Option<CallSecret>,
    /// Where the programs that run clips are.
    pub programs: Programs,
    /// Variables of our environment that it gets although they look like secrets.
    pub pass: Vec<String>,
    /// Variables it gets beside ours.
    pub variables: Vec<(OsString, OsString)>,
    /// Its limits.
    pub limits: Limits,
}

impl ClipConfig {
    /// A clip in `package`, with everything else as usual.
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

/// How calls end that a clip did not begin with before it made way for another version.
const REPLACED: &str = "is being replaced by another version; try again";

/// Whether a call failed for the only reason that its clip made way: then it was not begun with.
pub fn is_being_replaced(failure: &ClipError) -> bool {
    failure.code == Code::Unavailable && failure.message.ends_with(REPLACED)
}

/// A token that does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Wraps a token.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// The token itself, for whoever shows it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Gives each process of a clip a token of its own.
pub trait Tokens: fmt::Debug + Send + Sync {
    /// A token for a process that is about to start.
    fn issue(&self) -> Result<Issued, ClipError>;
}

/// A token, and what keeps it good.
pub struct Issued {
    /// The token.
    pub token: Token,
    /// Dropped when the process is gone.
    pub lease: Box<dyn Send + Sync>,
}

/// The same token for every process.
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

/// How a clip stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClipState {
    /// There is no process; the next call starts one.
    Sleeping,
    /// There is a process that takes calls.
    Running,
    /// The last process ended badly; the next call starts another.
    Error,
}

/// How a clip stands, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// How.
    pub state: ClipState,
    /// Why; empty unless something is wrong.
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

/// What others see of a clip at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// How it stands.
    pub status: Status,
    /// What it is and can do.
    pub manifest: Arc<Manifest>,
}

impl Snapshot {
    /// Something that is there as long as the program is.
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

/// An installed clip. Its process is started by the first call and ends when the clip is dropped.
#[derive(Debug)]
pub struct Clip {
    shared: Arc<SharedClip>,
    web: Arc<WebFiles>,
}

impl Clip {
    /// A clip that asks `cross_calls` for everything beyond itself. Starts nothing.
    pub fn new(config: ClipConfig, log: Arc<ClipLog>, cross_calls: Arc<dyn CrossCalls>) -> Self {
        let web = WebFiles::new(config.alias.clone(), &config.package);
        Self {
            web: Arc::new(web),
            shared: SharedClip::new(config, log, cross_calls),
        }
    }

    /// The alias it goes by.
    pub fn alias(&self) -> &str {
        self.shared.alias()
    }

    /// What its directory says about it.
    pub fn package(&self) -> &Package {
        &self.shared.config.package
    }

    /// What it is and can do, as far as that is known.
    pub fn manifest(&self) -> Arc<Manifest> {
        self.shared.snapshot.borrow().manifest.clone()
    }

    /// What it is and how it stands, at one moment.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot.borrow().clone()
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        self.shared.snapshot.borrow().status.clone()
    }

    /// Tells of every change of status or manifest.
    pub fn watch(&self) -> watch::Receiver<Snapshot> {
        self.shared.snapshot.subscribe()
    }

    /// How it speaks, once that is known; worth keeping with the record of the installation.
    pub fn detected_dialect(&self) -> Option<DetectedDialect> {
        self.shared.state().detected_dialect
    }

    /// Whether its callers must know a secret.
    pub fn is_token_protected(&self) -> bool {
        self.shared.config.secret.is_some()
    }

    /// Whether a caller that gave this may call it. Nothing else here asks.
    pub fn check_secret(&self, given: Option<&str>) -> Result<(), ClipError> {
        secret::check(self.shared.config.secret.as_ref(), given)
    }

    /// Its web pages.
    pub fn web(&self) -> &Arc<WebFiles> {
        &self.web
    }

    /// Its log.
    pub fn logs(&self) -> Arc<ClipLog> {
        self.shared.log.clone()
    }

    /// Calls a command. Must be called within a tokio runtime; returns at once.
    ///
    /// Input that is not JSON is refused here. Whether the command exists is for the clip to say, or for the caller to ask [`Manifest::accepts`].
    pub fn invoke(&self, invocation: Invocation) -> Result<ChunkStream, ClipError> {
        let id = self.shared.next_id();
        let input = match invocation.input.trim_ascii() {
            b"" => &EMPTY_OBJECT[..],
            input => input,
        };
        let input = codec::json(input)
            .ok_or_else(|| ClipError::invalid("the input of the call is not JSON text"))?;
        let line = codec::invoke(&id, &invocation.command, input);
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

    /// Starts the process, if there is none, and waits until it has said what it is.
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

    /// Ends the process and waits until it is gone: its input is closed, then it is asked to end, then killed. A later call
    /// starts another.
    pub async fn stop(&self) {
        let over = self.shared.over.notified();
        tokio::pin!(over);
        over.as_mut().enable();
        if self.shared.stop(Shutdown::Graceful) {
            over.await;
        }
    }

    /// Ends the process as soon as it has nothing to do, so that the next call starts one that reads its surroundings anew.
    pub fn renew(&self) {
        self.shared.renew();
    }

    /// Stops the process and takes no more calls. What waits fails as if the clip were not there.
    pub async fn retire(&self) {
        self.leave(ClipError::no_clip(self.alias())).await;
    }

    /// The same for a clip that will be there again in a moment: what waits is told so.
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

    /// Whether there is a process that takes calls.
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
