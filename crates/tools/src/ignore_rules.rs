//! Rules of `.ignore`, `.gitignore` and `.git/info/exclude` files for a walk.
//!
//! A repository decides where these names lead: to a FIFO, `/dev/zero`, or this program's own
//! input. So they are read like every other file from outside, and one that is not a regular file
//! has no rules.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use ignore::overrides::Override;
use ignore::{DirEntry, Match};

use crate::walk;

/// The largest file of rules that is read, in bytes.
const MAX_RULES_BYTES: u64 = 1 << 20;

/// The rules at the current position of a walk.
pub(crate) struct IgnoreRules {
    wanted: Override,
    global: Gitignore,
    /// From the outermost directory to the one whose entries are visited.
    levels: Mutex<Vec<DirectoryRules>>,
}

/// The rules of one directory.
struct DirectoryRules {
    directory: PathBuf,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
}

impl IgnoreRules {
    /// For a walk of `root`, a path without links. In a repository the directories above it count
    /// too.
    pub fn new(root: &Path, wanted: Override) -> Self {
        // A .gitignore far above must not hide a directory that is not in a repository.
        let in_repository = root.ancestors().any(|above| above.join(".git").exists());
        let above = root.ancestors().skip(1).filter(|_| in_repository);
        let mut levels: Vec<DirectoryRules> = above.map(DirectoryRules::of).collect();
        levels.reverse();
        let global = gitconfig_excludes_path();
        Self {
            wanted,
            global: global.map_or_else(Gitignore::empty, |file| rules(root, &file)),
            levels: Mutex::new(levels),
        }
    }

    /// Reports whether `entry` is ignored. Entries come in the order of a walk, directories before
    /// their contents.
    pub fn ignore(&self, entry: &DirEntry) -> bool {
        let (path, is_dir) = (entry.path(), walk::is_dir(entry));
        if self.wanted.matched(path, is_dir).is_whitelist() {
            return false;
        }
        let Some(parent) = path.parent() else {
            return false;
        };
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        while levels
            .last()
            .is_some_and(|level| !parent.starts_with(&level.directory))
        {
            levels.pop();
        }
        if levels.last().is_none_or(|level| level.directory != parent) {
            levels.push(DirectoryRules::of(parent));
        }
        let nearest = |rules: fn(&DirectoryRules) -> &Gitignore| {
            let mut found = levels.iter().rev();
            let found = found.find_map(|level| match rules(level).matched(path, is_dir) {
                Match::None => None,
                found => Some(found),
            });
            found.unwrap_or(Match::None)
        };
        nearest(|level| &level.ignore)
            .or(nearest(|level| &level.gitignore))
            .or(nearest(|level| &level.exclude))
            .or(self.global.matched(path, is_dir))
            .is_ignore()
    }
}

impl DirectoryRules {
    fn of(directory: &Path) -> Self {
        let read = |name: &str| rules(directory, &directory.join(name));
        Self {
            ignore: read(".ignore"),
            gitignore: read(".gitignore"),
            exclude: git_directory(directory).map_or_else(Gitignore::empty, |git| {
                rules(directory, &git.join("info/exclude"))
            }),
            directory: directory.to_owned(),
        }
    }
}

/// The rules in `file`, which apply to the contents of `directory`.
fn rules(directory: &Path, file: &Path) -> Gitignore {
    let Some(text) = text(file) else {
        return Gitignore::empty();
    };
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is not a valid pattern has no effect, as with Git.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The directory in which the repository of `directory` stores its settings; in a worktree, `.git`
/// is a file that names it.
fn git_directory(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    let metadata = git.metadata().ok()?;
    if metadata.is_dir() {
        return Some(git);
    }
    let named = directory.join(text(&git)?.strip_prefix("gitdir: ")?.trim_end());
    match text(&named.join("commondir")) {
        Some(common) => Some(named.join(common.trim_end())),
        None => Some(named),
    }
}

/// The text of a regular file. Most of these files do not exist, which one system call finds out.
fn text(file: &Path) -> Option<String> {
    file.symlink_metadata().ok()?;
    let bytes = pinion_files::read(file, MAX_RULES_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
