//! Walks a directory as a developer sees it: hidden files yes, ignored files no, in a stable order.

use std::io;
use std::path::{Path, PathBuf};

use ignore::overrides::Override;
use ignore::{DirEntry, WalkBuilder};

use crate::ignored::IgnoreRules;
use crate::{ToolError, fault};

/// Walks below `root`, a path without links, sorted by name. `.gitignore` and `.ignore` files count even where there is no
/// repository; what Git stores in `.git` is not part of the tree. Files that `wanted` names are never ignored.
///
/// Ignore files are read like every other file from outside: one that is not a regular file has no rules.
pub fn builder(root: &Path, wanted: Override) -> WalkBuilder {
    let rules = IgnoreRules::new(root, wanted.clone());
    let mut builder = WalkBuilder::new(root);
    builder
        // The walker opens files of rules whatever they are, so `rules` reads them instead.
        .standard_filters(false)
        .overrides(wanted)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            entry.depth() == 0 || entry.file_name() != ".git" && !rules.ignore(entry)
        });
    builder
}

/// The error for a place to search that does not exist or is refused.
pub(crate) fn not_found(error: &io::Error, path: &Path) -> ToolError {
    if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return fault::at(error, "open", path);
    }
    ToolError(format!("Path not found: {}", path.display()))
}

/// Whether an entry is a regular file. Links are not followed.
pub(crate) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// Whether an entry is a directory.
pub(crate) fn is_dir(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

/// The regular files below `root` that `builder` lets through.
pub(crate) fn files(builder: &WalkBuilder) -> impl Iterator<Item = PathBuf> + use<> {
    // What cannot be read is left out, as it would be on the command line.
    builder
        .build()
        .flatten()
        .filter(is_file)
        .map(DirEntry::into_path)
}
