//! Walks a directory as a developer sees it: with hidden files, without ignored files, in a stable
//! order.

use std::io;
use std::path::{Path, PathBuf};

use ignore::overrides::Override;
use ignore::{DirEntry, WalkBuilder};

use crate::ignore_rules::IgnoreRules;
use crate::{ToolError, node_error};

/// Walks below `root`, a path without links, sorted by name. `.gitignore` and `.ignore` files count even outside a
/// repository; the contents of `.git` are not part of the tree. Files that `wanted` names are never ignored.
///
/// Ignore files are read like every other file from outside: one that is not a regular file has no rules.
pub fn builder(root: &Path, wanted: Override) -> WalkBuilder {
    let rules = IgnoreRules::new(root, wanted.clone());
    let mut builder = WalkBuilder::new(root);
    builder
        // The walker opens files of rules of any type, so `rules` reads them instead.
        .standard_filters(false)
        .overrides(wanted)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            entry.depth() == 0 || entry.file_name() != ".git" && !rules.ignore(entry)
        });
    builder
}

/// The error for a search path that does not exist or is refused.
pub(crate) fn not_found(error: &io::Error, path: &Path) -> ToolError {
    if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return node_error::at(error, "open", path);
    }
    ToolError(format!("Path not found: {}", path.display()))
}

/// Reports whether an entry is a regular file. Links are not followed.
pub(crate) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

pub(crate) fn is_dir(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

/// The regular files below `root` that `builder` permits.
pub(crate) fn files(builder: &WalkBuilder) -> impl Iterator<Item = PathBuf> + use<> {
    // Unreadable directories are left out, as on the command line.
    builder
        .build()
        .flatten()
        .filter(is_file)
        .map(DirEntry::into_path)
}
