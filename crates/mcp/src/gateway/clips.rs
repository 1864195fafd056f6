//! The interface of the gateway to a hub, in this process or on the network.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use pinion_clip::manifest::Manifest;
use pinion_status::Failure;
use tokio::sync::watch;

/// The outputs of a call as they arrive, each a JSON text; a failure is the last item. Dropping the stream cancels the
/// call.
pub type Outputs = Pin<Box<dyn Stream<Item = Result<Bytes, Failure>> + Send>>;

/// The facts about a clip that the hub has without asking the clip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClipSummary {
    /// The clip's alias.
    pub name: String,
    /// The name of the provider that offers it.
    pub provider: String,
    /// The clip's category.
    pub domain: String,
    pub commands: Vec<String>,
    /// Calling the clip requires a secret.
    pub token_protected: bool,
}

/// The clips of a hub.
pub trait Clips: fmt::Debug + Send + Sync + 'static {
    /// Lists all clips that the gateway may see.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ClipSummary>, Failure>>;

    /// Returns the manifest of a clip.
    fn manifest<'a>(&'a self, clip: &'a str) -> BoxFuture<'a, Result<Manifest, Failure>>;

    /// Calls a command with a JSON text. Returns at once.
    fn invoke(&self, clip: &str, command: &str, input: Bytes) -> Outputs;

    /// Returns a counter that changes when clips are added, removed or changed; `None` if the hub cannot report that.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}
