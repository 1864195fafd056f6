//! Built-in tools: read, bash, edit, write, grep, find, ls, and the trait all tools share.
//!
//! This is the only crate with a shell. It does not depend on sessions, models or protocols.

#![warn(missing_docs)]

mod arguments;
mod bash;
mod blocking;
mod coerce;
mod decode;
mod diff;
mod edit;
mod encoding;
mod exposure;
mod file_changes;
mod find;
mod fuzzy;
mod grep;
mod ignore_rules;
mod image;
mod line_range;
mod listing;
mod log_file;
mod ls;
mod nested;
mod node_error;
mod output;
mod output_file;
mod path;
mod read;
mod replacement;
mod sanitise;
mod search;
mod settings;
mod shell;
mod text_change;
mod tool;
mod truncate;
mod typebox;
mod validate;
mod walk;
mod write;

use std::sync::Arc;

pub use bash::{BashOutcome, user_bash};
pub use blocking::{BlockingError, run_blocking};
pub use edit::edit_bytes;
pub use exposure::{Declarations, Exposure, Loadout, Namespace};
pub use file_changes::{FileLock, lock_file};
pub use image::{UnusableImage, prepare_encoded_image, prepare_image};
pub use nested::{NESTED_QUEUE_LIMIT, NestedCaller, NestedOutcome, NestedRequest};
pub use node_error::node_error_text;
pub use output_file::write_output_file;
pub use path::{resolve as resolve_path, resolve_existing as resolve_existing_path};
pub use read::{ReadImages, read_bytes};
pub use settings::{ResultForm, ToolSettings};
pub use shell::{Follower, ShellOptions, ShellOutcome, run_shell};
pub use text_change::{ChangedTexts, Hunk, TextChange};
pub use tool::{Execution, Tool, ToolContext, ToolError, ToolOutput, UpdateSink};
pub use truncate::{MAX_BYTES, MAX_LINES, TruncatedBy, Truncation};
pub use typebox::{NullText, validate_typebox};
pub use validate::{ErrorWords, accept_any_object, validate, validate_with};
pub use walk::builder as walk_builder;

/// The names of all built-in tools, those that are on by default first.
pub fn all_names() -> &'static [&'static str] {
    &["read", "bash", "edit", "write", "grep", "find", "ls"]
}

/// The built-in tools of these names, in this order. Unknown names are left out.
pub fn builtin(names: &[impl AsRef<str>], settings: ToolSettings) -> Vec<Arc<dyn Tool>> {
    names
        .iter()
        .filter_map(|name| create(name.as_ref(), &settings))
        .collect()
}

fn create(name: &str, settings: &ToolSettings) -> Option<Arc<dyn Tool>> {
    Some(match name {
        "read" => Arc::new(read::Read::new(settings)),
        "bash" => Arc::new(bash::Bash::new(settings.clone())),
        "edit" => Arc::new(edit::EditFile::new(settings.form)),
        "write" => Arc::new(write::Write::new(settings.form)),
        "grep" => Arc::new(grep::Grep::new(settings.form)),
        "find" => Arc::new(find::Find::new(settings.form)),
        "ls" => Arc::new(ls::Ls::new(settings.form)),
        _ => return None,
    })
}
