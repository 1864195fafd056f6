//! The git directory of a start directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::places::PROTECTED_OF_GIT;

/// The longest text of a file that names a git directory.
const MAX_POINTER: u64 = 4096;
/// The longest configuration that is searched for a directory of hooks.
const MAX_CONFIG: u64 = 1024 * 1024;

/// The directories of a repository, and the places in them that must not change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Directories that commits write to.
    pub writable: Vec<PathBuf>,
    pub protected: Vec<PathBuf>,
}

impl Repository {
    /// Finds the repository of a directory, in it or above it.
    pub fn of(start: &Path) -> Self {
        let mut found = Self::default();
        let Some(top) = start
            .ancestors()
            .find(|directory| directory.join(".git").symlink_metadata().is_ok())
        else {
            return found;
        };
        let entry = top.join(".git");
        let Ok(kind) = entry.symlink_metadata() else {
            return found;
        };
        if kind.is_dir() {
            found.add(&entry);
        } else {
            // A link or a file that leads elsewhere.
            found.protected.push(entry.clone());
            if let Some(directory) = linked(&entry) {
                found.add(&directory);
            }
        }
        if let Some(common) = found.common() {
            found.add(&common);
        }
        found.add_hooks_path(top);
        found
    }

    fn add(&mut self, directory: &Path) {
        if self.writable.iter().any(|known| known == directory) {
            return;
        }
        let places = PROTECTED_OF_GIT.iter();
        self.protected
            .extend(places.map(|name| directory.join(name)));
        self.add_modules(&directory.join("modules"), 0);
        self.writable.push(directory.to_owned());
    }

    /// Protects the git directories of submodules, which may have submodules themselves.
    fn add_modules(&mut self, directory: &Path, depth: usize) {
        const MAX_DEPTH: usize = 8;
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        for entry in entries.flatten().filter(|_| depth < MAX_DEPTH) {
            let path = entry.path();
            if path.join("HEAD").is_file() {
                let places = PROTECTED_OF_GIT.iter();
                self.protected.extend(places.map(|name| path.join(name)));
                self.add_modules(&path.join("modules"), depth + 1);
            } else if path.is_dir() {
                // The name of a submodule may contain slashes.
                self.add_modules(&path, depth + 1);
            }
        }
    }

    /// Returns the directory that a worktree shares with others.
    fn common(&self) -> Option<PathBuf> {
        let directory = self.writable.first()?;
        let text = read(&directory.join("commondir"), MAX_POINTER)?;
        let common = directory.join(text.trim_end()).canonicalize().ok()?;
        is_worktree_of(directory, &common).then_some(common)
    }

    /// Protects a directory of hooks that the configuration names.
    fn add_hooks_path(&mut self, top: &Path) {
        let configurations: Vec<PathBuf> = self
            .writable
            .iter()
            .flat_map(|directory| [directory.join("config"), directory.join("config.worktree")])
            .collect();
        for configuration in configurations {
            let text = read(&configuration, MAX_CONFIG).unwrap_or_default();
            for line in text.lines() {
                let Some((name, value)) = line.split_once('=') else {
                    continue;
                };
                let value = value.trim().trim_matches('"');
                if name.trim().eq_ignore_ascii_case("hookspath") && !value.is_empty() {
                    self.protected.push(top.join(value));
                }
            }
        }
    }
}

/// Returns the git directory of a worktree or submodule, if it knows of the file that leads to it. A file that was written
/// by others cannot make another place writable.
fn linked(entry: &Path) -> Option<PathBuf> {
    let text = read(entry, MAX_POINTER)?;
    let target = text.strip_prefix("gitdir:")?.trim();
    let directory = entry.parent()?.join(target).canonicalize().ok()?;
    let back = read(&directory.join("gitdir"), MAX_POINTER);
    let is_worktree = back.is_some_and(|back| {
        let back = directory.join(back.trim_end()).canonicalize().ok();
        back.is_some() && back == entry.canonicalize().ok()
    });
    if is_worktree {
        return Some(directory);
    }
    // A submodule: its git directory is in that of a repository above, and not reached by the file alone.
    let above = entry.parent()?.ancestors().skip(1);
    let modules = above
        .map(|directory| directory.join(".git/modules"))
        .filter_map(|modules| modules.canonicalize().ok());
    let mut modules = modules;
    let is_submodule =
        modules.any(|modules| directory != modules && directory.starts_with(modules));
    is_submodule.then_some(directory)
}

fn is_worktree_of(directory: &Path, common: &Path) -> bool {
    common.join("HEAD").is_file() && directory.starts_with(common.join("worktrees"))
}

fn read(path: &Path, most: u64) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > most {
        return None;
    }
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_leads_elsewhere_makes_nothing_writable() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let victim = top.join("victim");
        let work = top.join("work");
        fs::create_dir_all(victim.join("objects")).unwrap();
        fs::create_dir(&work).unwrap();
        fs::write(victim.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(work.join(".git"), format!("gitdir: {}\n", victim.display())).unwrap();
        let found = Repository::of(&work);
        assert!(found.writable.is_empty());
        assert_eq!(found.protected, [work.join(".git")]);
    }

    #[test]
    fn a_worktree_writes_its_own_and_the_common_directory() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let common = top.join("main/.git");
        let own = common.join("worktrees/w");
        let work = top.join("w/sub");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(common.join("modules/a/b")).unwrap();
        fs::write(common.join("modules/a/b/HEAD"), "").unwrap();
        fs::write(common.join("HEAD"), "").unwrap();
        fs::write(common.join("config"), "[core]\n\thooksPath = tools/hooks\n").unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        let entry = top.join("w/.git");
        fs::write(own.join("gitdir"), format!("{}\n", entry.display())).unwrap();
        fs::write(&entry, format!("gitdir: {}\n", own.display())).unwrap();
        let found = Repository::of(&work);
        assert_eq!(found.writable, [own.clone(), common.clone()]);
        for place in [
            common.join("hooks"),
            common.join("config"),
            common.join("modules/a/b/hooks"),
            own.join("commondir"),
            top.join("w/tools/hooks"),
            entry,
        ] {
            assert!(found.protected.contains(&place), "{}", place.display());
        }
    }
}
