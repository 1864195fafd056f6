//! What a user keeps on disk: directories, settings, trust, and the texts offered to a model.
//!
//! Nothing here opens a socket, starts a process or knows the agent. Reading never fails a start:
//! what is broken is left out and reported as a [`Notice`]; only writing returns errors.

mod dirs;
mod error;
mod json_file;
mod notice;
mod paths;
mod settings;
mod text_file;
mod trust;

pub use dirs::Dirs;
pub use error::ConfigError;
pub use notice::Notice;
pub use settings::{
    BranchSummary, Compaction, Images, ProviderRetry, ResourceKind, Retry, Settings, SettingsFile,
    ThinkingBudgets,
};
pub use trust::{ProjectTrust, Trust, TrustFlag, filter_untrusted};
