//! Configuration documents, profile registries and inference settings of the Pinocchio front, and
//! the model they choose.
//!
//! Reads files and databases, and looks up variables through the caller; writes nothing, opens no socket,
//! knows neither the engine nor a protocol. Whether a project is trusted is the caller's to know.
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
mod oauth;
mod outbound;
mod places;
mod profile;
mod registry;
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
pub use keys::{KEYS, Key, Kind, options};
pub use library::{Library, ProfileId, Selected};
pub use pinion_yaml::Problem;
pub use places::{Layer, Place, PlaceKind, Surroundings, git_root, places};
pub use profile::{Profile, StackEntry};
pub use registry::Registry;
pub use resolve::{Asked, Factories, Resolved, resolve};
pub use settings::{
    ApiSettings, ChatSettings, ClaudeSettings, ClientSettings, GeminiSettings, InferenceOverrides,
    InferenceSettings, InfoCost, ModelInfo, OpenAiSettings, to_yaml,
};
pub use slug::Slug;
pub use source::Source;
pub use tree::Tree;
pub use tuning::Tuning;
pub use unnamed::Unnamed;
