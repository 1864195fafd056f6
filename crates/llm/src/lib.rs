//! Models: the registry, the providers, and one stream of events per request.
//!
//! The four wire protocols, the offline model and cassettes all answer with the same
//! [`StreamEvent`]s. This crate knows nothing of sessions, tools that run, or agents.

mod classify;
mod partial_json;
mod request;
mod surrogates;
mod tool_ids;
mod transform;

pub use classify::{is_overflow, is_retryable};
pub use partial_json::{parse_arguments, parse_lenient, repair};
pub use request::{
    CacheRetention, EventStream, HttpRetry, Provider, Request, RequestOptions, StreamEvent,
    Timeouts,
};
pub use surrogates::without_lone_surrogates;
pub use transform::transform;
