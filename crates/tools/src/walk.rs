//! Walking a directory as a developer sees it: hidden files yes, ignored files no, in a stable order.

use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

/// Walks below `root`, sorted by name. `.gitignore` and `.ignore` files count even where there is no
/// repository; what Git keeps in `.git` is not part of the tree.
pub(crate) fn builder(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .require_git(false)
        // A stray .gitignore far above must not hide a directory that is in no repository.
        .parents(in_repository(root))
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    builder
}

fn in_repository(root: &Path) -> bool {
    root.ancestors().any(|dir| dir.join(".git").exists())
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
pub(crate) fn files(builder: &WalkBuilder) -> impl Iterator<Item = PathBuf> {
    // What cannot be read is left out, as it would be on the command line.
    builder
        .build()
        .flatten()
        .filter(is_file)
        .map(DirEntry::into_path)
}
