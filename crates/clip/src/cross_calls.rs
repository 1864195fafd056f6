//! What clips ask for beyond themselves, and where it goes.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::Serialize;

use crate::codec::CrossCall;
use crate::data::{DataAnswer, DataRequest};
use crate::manifest::{Command, Manifest};
use crate::{ClipError, Code};

/// The world as a clip sees it: other clips and data. Whoever owns the clips decides what is behind it.
///
/// `from` is the alias of the asking clip. A future is dropped when its answer is no longer wanted.
pub trait CrossCalls: std::fmt::Debug + Send + Sync + 'static {
    /// Calls another clip and waits for its whole answer, which is JSON text; see [`crate::Aggregate`].
    fn invoke<'a>(
        &'a self,
        from: &'a str,
        call: CrossCall,
    ) -> BoxFuture<'a, Result<Bytes, ClipError>>;

    /// The clips that `from` can see, by name.
    fn list_clips<'a>(&'a self, from: &'a str) -> BoxFuture<'a, Result<Vec<Listing>, ClipError>>;

    /// Does something with a clip's data; without a `clip` in it, with that of `from`.
    fn data<'a>(
        &'a self,
        from: &'a str,
        request: DataRequest,
    ) -> BoxFuture<'a, Result<DataAnswer, ClipError>>;
}

/// A clip as other clips see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// Its alias.
    pub name: String,
    /// Its package.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// Its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Its category.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Hints how to use it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// What it can do; never left out.
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

/// No world at all: every request is refused. For looking at a clip while it is installed.
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
