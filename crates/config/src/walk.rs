//! Lists a directory in order of the names: without dot entries and `node_modules`, with links
//! followed, and with ignore files respected.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use pinion_files::FileKind;

/// The names of ignore files.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];
/// The largest ignore file that is read, in bytes.
const MAX_IGNORE_FILE: u64 = 1 << 20;

/// The use of `.gitignore`, `.ignore` and `.fdignore` below the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreFiles {
    Honoured,
    Disregarded,
}

/// The type of an entry, after following links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
}

/// Everything below a directory; `depth` 1 means only its direct entries.
///
/// A repository chooses the target of its ignore files: a FIFO, an endless device or pinion's own input. The walk leaves out a
/// directory with such a file, and applies no ignore files if `directory` itself has one.
pub(crate) fn walk(
    directory: &Path,
    depth: Option<usize>,
    ignore_files: IgnoreFiles,
) -> impl Iterator<Item = (PathBuf, EntryKind)> {
    let honour = ignore_files == IgnoreFiles::Honoured && has_safe_ignore_files(directory);
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
        .filter_entry(move |entry| {
            let is_safe = || {
                let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
                !honour || !is_directory || has_safe_ignore_files(entry.path())
            };
            entry.depth() == 0 || entry.file_name() != "node_modules" && is_safe()
        });
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

/// Reports whether every ignore file of a directory is a small regular file or missing. The walker opens them unseen.
fn has_safe_ignore_files(directory: &Path) -> bool {
    IGNORE_FILES.iter().all(|name| {
        let file = directory.join(name);
        // Most of these files do not exist; one system call finds that out.
        if file.symlink_metadata().is_err() {
            return true;
        }
        match pinion_files::locate(&file) {
            Ok(target) => {
                let metadata = target.metadata;
                FileKind::of(&metadata) == FileKind::Regular && metadata.len() <= MAX_IGNORE_FILE
            }
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let (root, found) = (directory.to_owned(), directory.to_owned());
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let paths = walk(&root, None, IgnoreFiles::Honoured).map(|(path, _)| path);
            send.send(paths.collect::<Vec<PathBuf>>())
        });
        let paths = receive.recv_timeout(Duration::from_secs(5)).unwrap();
        let name = |path: &PathBuf| path.strip_prefix(&found).unwrap().display().to_string();
        paths.iter().map(name).collect()
    }

    #[test]
    fn an_ignore_file_that_is_not_a_regular_file_is_never_opened() {
        for name in [".gitignore", ".ignore", ".fdignore"] {
            let directory = tempfile::tempdir().unwrap();
            let at = |name: &str| directory.path().join(name);
            for name in ["a", "b"] {
                fs::create_dir(at(name)).unwrap();
                fs::write(at(name).join("file"), "").unwrap();
            }
            nix::unistd::mkfifo(&at("a").join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
            assert_eq!(names(directory.path()), ["b", "b/file"], "{name}");
            symlink("nowhere", at("b").join(name)).unwrap();
            assert_eq!(names(directory.path()), ["b", "b/file"], "{name}");
            // The rules of the root are the only ones that cannot be left out with their directory.
            symlink("a", at(name)).unwrap();
            assert_eq!(names(directory.path()), ["a", "a/file", "b", "b/file"]);
        }
    }
}
