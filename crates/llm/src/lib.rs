//! Models: the registry, the providers, and one stream of events per request.
//!
//! The four wire protocols, the offline model and cassettes all answer with the same
//! [`StreamEvent`]s. This crate knows nothing of sessions, tools that run, or agents.

mod request;

pub use request::{
    CacheRetention, EventStream, HttpRetry, Provider, Request, RequestOptions, StreamEvent,
    Timeouts,
};
