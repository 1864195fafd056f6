//! Configuration documents, profile registries and inference settings of the Pinocchio front, and
//! the model they choose.
//!
//! The crate reads files and databases, and looks up variables through the caller. It writes nothing, opens no socket,
//! and depends on neither the engine nor a protocol. The caller decides whether a project is trusted.
//!
//! ```text
//! documents ─► Config ─► Library ─► Selected ─┐
//! factories, environment, options ────────────┴─► Resolved ─► engine() ─► Chosen
//! ```

mod api_type;
mod check;
mod config;
mod document;
mod engine;
mod error;
mod keys;
mod library;
mod locations;
mod oauth;
mod outbound;
mod profile;
mod registry;
mod report;
mod resolve;
mod settings;
mod slug;
mod source;
mod sqlite;
mod tree;
mod tuning;
mod unnamed;

pub use config::{Config, DocumentState, repositories};
pub use engine::{Access, Chosen, engine, named_engine};
pub use error::{Notice, ProfileError};
pub use keys::{KEYS, Key, SettingKind, options};
pub use library::{Library, ProfileId, Selected};
pub use locations::{
    DocumentLocation, DocumentOwner, HostContext, Layer, document_locations, git_root,
};
pub use pinion_yaml::Problem;
pub use profile::{Profile, StackEntry};
pub use registry::Registry;
pub use report::{debug_report, profile_rows, profile_table, settings_report};
pub use resolve::{Factories, ProfileRequest, Resolved, resolve};
pub use settings::{
    ApiSettings, ChatSettings, ClaudeSettings, ClientSettings, GeminiSettings, InferenceOverrides,
    InferenceSettings, InfoCost, ModelInfo, OpenAiSettings, to_yaml,
};
pub use slug::Slug;
pub use source::Source;
pub use tree::Tree;
pub use tuning::Tuning;
pub use unnamed::Unnamed;
