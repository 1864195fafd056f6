//! Clips: small programs that exchange lines of JSON with a hub on their stdin and stdout.
//!
//! This crate runs clips ([`Clip`]), encodes and decodes both of their dialects ([`codec`]), reads their manifests
//! ([`manifest`]) and directories ([`package`]), stores their files ([`data`]) and logs ([`logs`]), serves their web
//! pages ([`web`]), and installs them ([`install`]). The owner of the clips decides which clips a clip may call, who may
//! call it, and under which address it is reachable: requests of a clip for other clips and for data go through
//! [`CrossCalls`].
//!
//! ```no_run
//! # async fn example(cross_calls: std::sync::Arc<dyn pinion_clip::CrossCalls>) -> Result<(), pinion_clip::ClipError> {
//! use pinion_clip::{Clip, ClipConfig, Invocation, logs::ClipLog, package::Package};
//!
//! let package = Package::read("clips/todo".as_ref())?;
//! let config = ClipConfig::new("todo", package, "data/todo");
//! let clip = Clip::new(config, ClipLog::at("logs/todo.log").into(), cross_calls);
//! let input = r#"{"title":"Buy milk"}"#;
//! let output = clip.invoke(Invocation::new("add", input))?.output().await?;
//! # Ok(())
//! # }
//! ```

pub mod alias;
pub mod bindings;
mod call;
mod clip;
pub mod codec;
mod cross_calls;
pub mod data;
pub mod files;
pub mod install;
mod limits;
pub mod logs;
pub mod manifest;
mod output;
pub mod package;
mod process;
pub mod registry;
mod secret;
mod shared;
pub mod source;
pub mod starter;
pub mod version;
pub mod watch;
pub mod web;

pub use call::{CallError, ChunkStream, Invocation};
pub use clip::{
    Clip, ClipConfig, ClipState, DEFAULT_HUB, Issued, Snapshot, Status, Token, Tokens,
    is_being_replaced,
};
pub use codec::CrossCall;
pub use cross_calls::{CrossCalls, Listing, NoCrossCalls};
pub use limits::Limits;
pub use output::{Aggregate, MAX_OUTPUT};
pub use pinion_status::{Code, Failure as ClipError};
pub use process::{Programs, is_secret};
pub use secret::CallSecret;
