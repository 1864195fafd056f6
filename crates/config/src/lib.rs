//! A user's files: directories, settings, trust, and the texts offered to a model.
//!
//! Nothing here opens a socket, starts a process or depends on the agent. Reading never fails a
//! start: broken parts are left out and reported as a [`Notice`]; only writing returns errors.

mod arguments;
mod boundary;
mod context_files;
mod dirs;
mod discovery;
mod error;
mod extensions;
mod file_arguments;
mod frontmatter;
mod installed_pi;
mod json_file;
mod migrations;
mod notice;
mod packages;
mod path_list;
mod paths;
mod resources;
mod settings;
mod skills;
mod source_info;
mod system_prompt;
mod templates;
mod text_file;
mod trust;
mod walk;

pub use context_files::{ContextFile, load_context_files};
pub use dirs::Dirs;
pub use discovery::{Contribution, Contributions, Discovery, Location, ResourceFlags};
pub use error::ConfigError;
pub use extensions::{ExtensionEntry, ExtensionFlags, FoundExtensions, find_extensions};
pub use file_arguments::{FileArguments, FileImage, PreparedImage};
pub use frontmatter::parse_frontmatter;
pub use installed_pi::InstalledPi;
pub use json_file::{read as read_json_file, update as update_json_file};
pub use migrations::migrate;
pub use notice::Notice;
pub use packages::{
    GitSource, Package, PackageContents, PackageSource, SourceKind, list_packages, record_package,
    remove_package,
};
pub use resources::{CommandInfo, Expanded, LazyResources, Resources};
pub use settings::{
    BranchSummary, Compaction, Images, ProviderRetry, ResourceKind, Retry, Settings,
    SettingsChanges, SettingsFile, SettingsWriter,
};
pub use skills::{ExpansionError, Skill, SkillVisibility};
pub use source_info::{Scope, SourceInfo};
pub use system_prompt::{
    PromptParts, PromptTexts, compose_system_prompt, system_prompt_sections, today,
};
pub use templates::PromptTemplate;
pub use trust::{ProjectTrust, Trust, TrustFlag};
