//! Built-in tools: read, bash, edit, write, grep, find, ls, and the trait all tools share.
//!
//! This is the only crate with a shell. It knows nothing of sessions, models or protocols.

#![warn(missing_docs)]

mod arguments;
mod bash;
mod blocking;
mod coerce;
mod decode;
mod diff;
mod edit;
mod encoding;
mod fault;
mod find;
mod fuzzy;
mod grep;
mod ignored;
mod image;
mod listing;
mod ls;
mod output;
mod path;
mod read;
mod replacement;
mod sanitise;
mod search;
mod settings;
mod shell;
mod slice;
mod store;
mod tool;
mod truncate;
mod typebox;
mod validate;
mod walk;
mod write;

use std::sync::Arc;

pub use bash::{BashOutcome, user_bash};
pub use blocking::{NoResult, run_blocking};
pub use edit::edit_bytes;
pub use fault::in_node_words;
pub use image::{NoImage, prepare_image};
pub use path::{resolve as resolve_path, resolve_existing as resolve_existing_path};
pub use read::{ReadImages, read_bytes};
pub use settings::ToolSettings;
pub use shell::{Follower, ShellOptions, ShellOutcome, run_shell};
pub use store::{FileLock, lock_file};
pub use tool::{Execution, Tool, ToolContext, ToolError, ToolOutput, UpdateSink};
pub use truncate::{MAX_BYTES, MAX_LINES, TruncatedBy, Truncation};
pub use typebox::{NullText, validate_typebox};
pub use validate::validate;
pub use walk::builder as walk_builder;

/// The names of all built-in tools, those that are on by default first.
pub fn all_names() -> &'static [&'static str] {
    &["read", "bash", "edit", "write", "grep", "find", "ls"]
}

/// The built-in tools of these names, in this order. Unknown names are left out.
pub fn builtin(names: &[impl AsRef<str>], settings: ToolSettings) -> Vec<Arc<dyn Tool>> {
    names
        .iter()
        .filter_map(|name| one(name.as_ref(), &settings))
        .collect()
}

fn one(name: &str, settings: &ToolSettings) -> Option<Arc<dyn Tool>> {
    Some(match name {
        "read" => Arc::new(read::Read::new(settings)),
        "bash" => Arc::new(bash::Bash::new(settings.clone())),
        "edit" => Arc::new(edit::EditFile::new()),
        "write" => Arc::new(write::Write::new()),
        "grep" => Arc::new(grep::Grep::new()),
        "find" => Arc::new(find::Find::new()),
        "ls" => Arc::new(ls::Ls::new()),
        _ => return None,
    })
}
