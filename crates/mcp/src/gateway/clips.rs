//! What the gateway needs to know of a hub, wherever that is.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use pinion_clip::manifest::Manifest;
use pinion_status::Failure;
use tokio::sync::watch;

/// The outputs of a call as they come, each a JSON text; a failure is the last item. Dropping it cancels the call.
pub type Outputs = Pin<Box<dyn Stream<Item = Result<Bytes, Failure>> + Send>>;

/// What is told of a clip without asking it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClipSummary {
    /// Its alias.
    pub name: String,
    /// Who provides it.
    pub provider: String,
    /// Its category.
    pub domain: String,
    /// The names of its commands.
    pub commands: Vec<String>,
    /// Whether a secret is needed to call it.
    pub token_protected: bool,
}

/// The clips of a hub.
pub trait Clips: fmt::Debug + Send + Sync + 'static {
    /// All clips the gateway may see.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ClipSummary>, Failure>>;

    /// What a clip says about itself.
    fn manifest<'a>(&'a self, clip: &'a str) -> BoxFuture<'a, Result<Manifest, Failure>>;

    /// Calls a command with a JSON text. Returns at once.
    fn invoke(&self, clip: &str, command: &str, input: Bytes) -> Outputs;

    /// Told when clips come, go or change, if that can be known.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}
