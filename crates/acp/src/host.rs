//! The program's part of sessions: opening, listing and deleting them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use pinion_agent::{Companions, Config, Listener};
use pinion_approval::{Approvals, Ask};
use pinion_session::{SessionInfo, Store};

use crate::error::AcpError;

/// The conversation of a session that is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    New,
    /// The session with this id.
    Existing(String),
    /// A copy of the session with this id.
    CopyOf(String),
}

/// A session to open.
#[derive(Debug, Clone)]
pub struct Opening {
    pub origin: Origin,
    /// An existing directory.
    pub cwd: PathBuf,
    /// Existing directories besides `cwd`.
    pub roots: Vec<PathBuf>,
    pub servers: Vec<ClientServer>,
    /// Added to the system prompt.
    pub system_prompt: Option<String>,
    /// The client shows the output of commands in terminals.
    pub shows_terminals: bool,
}

/// An MCP server of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientServer {
    pub name: String,
    pub target: ServerTarget,
}

/// The program or the address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTarget {
    Command {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
    },
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
    /// It cannot be used, for this reason.
    Unusable(String),
}

/// The client's side of a session that is built.
pub struct Links {
    pub listener: Arc<dyn Listener>,
    pub asker: Arc<dyn Ask>,
    /// Shows a record of an extension.
    pub records: Arc<dyn Fn(String) + Send + Sync>,
    /// Reports whether the client has room for more records.
    pub has_room: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// A session that is ready to be started.
pub struct BuiltSession {
    pub config: Config,
    pub companions: Arc<dyn Companions>,
    pub approvals: Arc<Approvals>,
}

/// Opens, lists and deletes sessions. All functions may block.
pub trait SessionHost: Send + Sync + 'static {
    /// The program's own part of a prepared session.
    type Prepared: Send;

    /// Opens the file of a session.
    fn prepare(&self, opening: Opening) -> Result<Self::Prepared, AcpError>;

    /// Returns the conversation of a prepared session.
    fn store<'a>(&self, prepared: &'a Self::Prepared) -> &'a Store;

    /// Builds the session.
    fn build<'a>(
        &'a self,
        prepared: Self::Prepared,
        links: Links,
    ) -> LocalBoxFuture<'a, Result<BuiltSession, AcpError>>;

    /// Ends what the session `id` has left behind.
    fn clean_up(&self, id: &str);

    /// Lists the sessions of all directories, or of one.
    fn list(&self, cwd: Option<&Path>) -> Vec<SessionInfo>;

    /// Deletes a session that is not open here; does nothing if there is none.
    fn delete(&self, id: &str) -> Result<(), AcpError>;

    /// Checks that some model can be used, after reading the keys again.
    fn check_keys(&self) -> Result<(), AcpError>;
}

impl std::fmt::Debug for BuiltSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BuiltSession")
    }
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Links")
    }
}
