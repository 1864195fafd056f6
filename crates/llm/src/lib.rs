//! Models: the registry, the providers, and one stream of events per request.
//!
//! The wire protocols, the offline model and cassettes all answer with the same
//! [`StreamEvent`]s. This crate does not depend on sessions, running tools or agents.

mod accounts;
mod answer;
mod anthropic;
mod bedrock;
mod cassette;
mod catalog;
mod classify;
mod compat;
mod completions;
mod connections;
mod credential_report;
mod credentials;
mod deadlines;
mod decoder;
mod event_stream;
mod exchange;
mod google;
mod http_request;
mod identity;
mod listing;
mod mistral;
mod models_file;
mod notice;
mod offline;
mod partial_json;
mod providers;
mod registry;
mod relaxed_json;
mod request;
mod resolve;
mod responses;
mod sampling;
mod surrogates;
mod thinking;
mod tool_ids;
mod transform;
mod transport;
mod unreachable;
mod wire;
mod wire_json;

pub use accounts::{Account, AccountKind, AccountSignIn, SignInWay};
pub use cassette::{CassetteProvider, Recorder};
pub use classify::{is_overflow, is_retryable};
pub use credential_report::{CredentialReport, CredentialState};
pub use credentials::{CredentialError, Environment, finish_renewals, key_variables};
pub use decoder::ResponseDecoder;
pub use http_request::HttpRequest;
pub use identity::CloudIdentity;
pub use listing::{matches_search, model_table};
pub use notice::Notice;
pub use offline::OfflineProvider;
pub use partial_json::{parse_arguments, parse_lenient, repair};
pub use providers::Providers;
pub use registry::{Authorization, Registry, RegistryOptions};
pub use request::{
    CacheRetention, EventStream, HttpRetry, Provider, Request, RequestOptions, StreamEvent, Tap,
    TapHeaders, Timeouts,
};
pub use resolve::{
    InitialModel, InitialOptions, ResolveError, Resolved, ScopedModel, custom_model, default_model,
    initial_model, resolve_model, scope,
};
pub use sampling::{Sampling, StructuredOutput};
pub use surrogates::without_lone_surrogates;
pub use transform::transform;
pub use unreachable::Unreachable;
pub use wire::{HttpProvider, build_request, is_supported_api};
