//! Finds the extensions in a directory.
//!
//! A directory whose `package.json` lists some under `pi.extensions` has exactly those. Otherwise
//! one with an `index.ts` or `index.js` is one extension. Otherwise every script directly in the
//! directory is one, and the first two rules apply to its sub-directories.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ResourceKind;
use crate::packages::Manifest;
use crate::path_list::PathList;
use crate::walk::{EntryKind, IgnoreFiles, walk};

/// The extensions of a directory, in order of their names.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    own_entries(directory).unwrap_or_else(|| scan(directory))
}

/// The module of a directory: its `index.ts`, else its `index.js`.
pub(crate) fn module(directory: &Path) -> Option<PathBuf> {
    let names = ["index.ts", "index.js"].into_iter();
    names
        .map(|name| directory.join(name))
        .find(|file| file.is_file())
}

/// Every script below a directory, for patterns to select from.
pub(crate) fn scripts_below(directory: &Path) -> Vec<PathBuf> {
    walk(directory, None, IgnoreFiles::Honoured)
        .filter(|(path, kind)| *kind == EntryKind::File && is_script(path))
        .map(|(path, _)| path)
        .collect()
}

fn own_entries(directory: &Path) -> Option<Vec<PathBuf>> {
    let listed = listed(directory);
    if !listed.is_empty() {
        return Some(listed);
    }
    module(directory).map(|file| vec![file])
}

fn scan(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (path, kind) in walk(directory, Some(1), IgnoreFiles::Honoured) {
        match kind {
            EntryKind::File if is_script(&path) => found.push(path),
            EntryKind::File => {}
            EntryKind::Directory => found.extend(own_entries(&path).unwrap_or_default()),
        }
    }
    found
}

/// The existing extensions that the manifest of a directory lists.
fn listed(directory: &Path) -> Vec<PathBuf> {
    let mut unread = Vec::new();
    let manifest = Manifest::read(directory, &mut unread);
    let entries = manifest.entries(ResourceKind::Extensions);
    if entries.is_empty() {
        return Vec::new();
    }
    let file = directory.join("package.json");
    let list = PathList::of_manifest(&entries, directory, directory, &file, &mut unread);
    let mut files = Vec::new();
    for path in &list.plain {
        match fs::metadata(path) {
            // Manifests further down are ignored, so that none can lead into a cycle.
            Ok(metadata) if metadata.is_dir() => match module(path) {
                Some(file) => files.push(file),
                None => files.extend(scripts_in(path)),
            },
            Ok(_) => files.push(path.clone()),
            Err(_) => {}
        }
    }
    files.retain(|file| list.includes_listed(file));
    for root in list.search_roots() {
        let below = scripts_below(root).into_iter();
        files.extend(below.filter(|file| list.includes(file)));
    }
    files
}

fn scripts_in(directory: &Path) -> impl Iterator<Item = PathBuf> {
    walk(directory, Some(1), IgnoreFiles::Honoured)
        .filter(|(path, kind)| *kind == EntryKind::File && is_script(path))
        .map(|(path, _)| path)
}

/// Accepts `*.ts` and `*.js`, but not declarations, which contain no code.
fn is_script(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| {
        (name.ends_with(".ts") || name.ends_with(".js")) && !name.ends_with(".d.ts")
    })
}
