//! Requests of a clip that concern other clips or stored data.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::Serialize;

use crate::codec::CrossCall;
use crate::data::{DataAnswer, DataRequest};
use crate::manifest::{Command, Manifest};
use crate::{ClipError, Code};

/// Answers the requests of clips for other clips and for data. The owner of the clips implements it and decides what
/// each clip may reach.
///
/// `from` is the alias of the requesting clip. A future is dropped when its answer is no longer needed.
pub trait CrossCalls: std::fmt::Debug + Send + Sync + 'static {
    /// Calls another clip and waits for its whole answer, which is JSON text; see [`crate::Aggregate`].
    fn invoke<'a>(
        &'a self,
        from: &'a str,
        call: CrossCall,
    ) -> BoxFuture<'a, Result<Bytes, ClipError>>;

    /// Lists the clips that `from` may see.
    fn list_clips<'a>(&'a self, from: &'a str) -> BoxFuture<'a, Result<Vec<Listing>, ClipError>>;

    /// Performs an operation on a clip's data: on that of `from` if the request names no clip.
    fn data<'a>(
        &'a self,
        from: &'a str,
        request: DataRequest,
    ) -> BoxFuture<'a, Result<DataAnswer, ClipError>>;
}

/// A clip as other clips see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The alias.
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub package: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// A category, in free words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Hints on how to use the clip, for agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Serialized even if it is empty.
    pub commands: Vec<Command>,
}

impl From<&Manifest> for Listing {
    fn from(manifest: &Manifest) -> Self {
        Self {
            name: manifest.name.clone(),
            package: manifest.package.clone(),
            version: manifest.version.clone(),
            domain: manifest.domain.clone(),
            description: manifest.description.clone(),
            patterns: manifest.patterns.clone(),
            commands: manifest.commands.clone(),
        }
    }
}

/// Refuses every request. Used while a clip is run once for its installation.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCrossCalls;

impl CrossCalls for NoCrossCalls {
    fn invoke<'a>(
        &'a self,
        _: &'a str,
        call: CrossCall,
    ) -> BoxFuture<'a, Result<Bytes, ClipError>> {
        Box::pin(async move { Err(ClipError::no_clip(&call.clip)) })
    }

    fn list_clips<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Listing>, ClipError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn data<'a>(
        &'a self,
        _: &'a str,
        _: DataRequest,
    ) -> BoxFuture<'a, Result<DataAnswer, ClipError>> {
        let error = ClipError::new(
            Code::Unavailable,
            "data cannot be used while a clip is being installed",
        );
        Box::pin(async { Err(error) })
    }
}
