//! Models: the registry, the providers, and one stream of events per request.
//!
//! The four wire protocols, the offline model and cassettes all answer with the same
//! [`StreamEvent`]s. This crate knows nothing of sessions, tools that run, or agents.

mod catalog;
mod classify;
mod credentials;
mod models_file;
mod notice;
mod offline;
mod partial_json;
mod registry;
mod relaxed_json;
mod request;
mod resolve;
mod surrogates;
mod tool_ids;
mod transform;

pub use classify::{is_overflow, is_retryable};
pub use credentials::{CredentialError, Environment};
pub use notice::Notice;
pub use offline::OfflineProvider;
pub use partial_json::{parse_arguments, parse_lenient, repair};
pub use registry::{Authorization, Registry, RegistryOptions};
pub use request::{
    CacheRetention, EventStream, HttpRetry, Provider, Request, RequestOptions, StreamEvent,
    Timeouts,
};
pub use resolve::{
    InitialModel, InitialOptions, ResolveError, Resolved, ScopedModel, default_model,
    initial_model, resolve_model, scope,
};
pub use surrogates::without_lone_surrogates;
pub use transform::transform;
