//! What lies in a directory, in order of the names: without dot entries and `node_modules`, with links
//! followed, and with respect for ignore files.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// Whether `.gitignore`, `.ignore` and `.fdignore` below the directory have a say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreFiles {
    Honoured,
    Disregarded,
}

/// What an entry is, after following links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
}

/// Everything below a directory; `depth` 1 means only what is directly in it.
pub(crate) fn walk(
    directory: &Path,
    depth: Option<usize>,
    ignore_files: IgnoreFiles,
) -> impl Iterator<Item = (PathBuf, EntryKind)> {
    let honour = ignore_files == IgnoreFiles::Honoured;
    let mut builder = WalkBuilder::new(directory);
    builder
        .standard_filters(false)
        .hidden(true)
        .ignore(honour)
        .git_ignore(honour)
        .require_git(false)
        .follow_links(true)
        .max_depth(depth)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != "node_modules");
    if honour {
        builder.add_custom_ignore_filename(".fdignore");
    }
    let entries = builder.build().filter_map(Result::ok);
    entries
        .filter(|entry| entry.depth() > 0)
        .filter_map(|entry| {
            let kind = entry.file_type()?;
            let kind = match (kind.is_file(), kind.is_dir()) {
                (true, _) => EntryKind::File,
                (_, true) => EntryKind::Directory,
                _ => return None,
            };
            Some((entry.into_path(), kind))
        })
}
