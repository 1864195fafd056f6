//! Lists files: below a directory, or in one.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::Walk;
use ignore::overrides::Override;

use crate::editor::resolve;

/// Paths read per walk.
pub(super) const MAX_PATHS: usize = 100_000;

/// Time of one walk.
pub(super) const MAX_WALK_TIME: Duration = Duration::from_secs(2);

/// Depth that is walked first, so that one large directory below it cannot use up the limits.
const FIRST_DEPTH: usize = 3;

/// Iterates over everything below a directory that is not ignored, as relative paths; directories
/// end with `/`. Stops after [`MAX_PATHS`] paths and after [`MAX_WALK_TIME`].
pub(super) struct Walker {
    walks: VecDeque<(Walk, usize)>,
    root: PathBuf,
    left: usize,
    until: Instant,
}

impl Walker {
    pub(super) fn new(root: &Path) -> Self {
        Self::bounded(root, MAX_PATHS, MAX_WALK_TIME)
    }

    fn bounded(root: &Path, paths: usize, time: Duration) -> Self {
        let walk = |depth| {
            pinion_tools::walk_builder(root, Override::empty())
                .max_depth(depth)
                .build()
        };
        Self {
            walks: [(walk(Some(FIRST_DEPTH)), 1), (walk(None), FIRST_DEPTH + 1)].into(),
            root: root.to_owned(),
            left: paths,
            until: Instant::now() + time,
        }
    }
}

impl Iterator for Walker {
    /// `None` for skipped paths, so that the caller can check for cancellation.
    type Item = Option<String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 || Instant::now() > self.until {
            return None;
        }
        let (walk, from_depth) = self.walks.front_mut()?;
        let Some(entry) = walk.next() else {
            self.walks.pop_front();
            return Some(None);
        };
        let Some(entry) = entry.ok().filter(|entry| entry.depth() >= *from_depth) else {
            return Some(None);
        };
        let path = entry
            .path()
            .strip_prefix(&self.root)
            .ok()
            .and_then(Path::to_str);
        let Some(path) = path.filter(|path| is_writable(path)) else {
            return Some(None);
        };
        self.left -= 1;
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        Some(Some(if is_directory {
            format!("{path}/")
        } else {
            path.to_owned()
        }))
    }
}

/// Reports whether a path does not need a search: it starts at the root, the home, here or above.
pub(super) fn is_rooted(path: &str) -> bool {
    matches!(path, "~" | "." | "..")
        || ["/", "~/", "./", "../"]
            .iter()
            .any(|start| path.starts_with(start))
}

/// Splits a path into its directory, as written, and the start of a name in it.
pub(super) fn split(path: &str) -> (String, &str) {
    if matches!(path, "~" | "." | "..") {
        return (format!("{path}/"), "");
    }
    match path.rfind('/') {
        Some(slash) => (path[..=slash].to_owned(), &path[slash + 1..]),
        None => (String::new(), path),
    }
}

/// Lists a directory in order; hidden files only if `name` is hidden. Omits names that cannot be
/// typed.
pub(super) fn list_directory(directory: &str, name: &str, cwd: &Path) -> Vec<String> {
    let path = if directory.is_empty() {
        cwd.to_owned()
    } else {
        resolve(directory, cwd)
    };
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    let until = Instant::now() + MAX_WALK_TIME;
    let mut names: Vec<String> = entries
        .take(MAX_PATHS)
        .take_while(|_| Instant::now() < until)
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let found = entry.file_name().into_string().ok()?;
            if (found.starts_with('.') && !name.starts_with('.')) || !is_writable(&found) {
                return None;
            }
            let is_directory = match entry.file_type().ok()? {
                kind if kind.is_symlink() => entry.path().is_dir(),
                kind => kind.is_dir(),
            };
            Some(if is_directory { found + "/" } else { found })
        })
        .collect();
    names.sort_unstable();
    names
}

/// Reports whether a name can be part of a text.
fn is_writable(name: &str) -> bool {
    !name.chars().any(char::is_control) && !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignore_file_that_is_not_a_regular_file_has_no_rules() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().to_owned();
        std::fs::write(root.join("file"), "").expect("a file");
        let fifo = root.join(".gitignore");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || send.send(Walker::new(&root).flatten().collect::<Vec<_>>()));
        let mut found = receive
            .recv_timeout(Duration::from_secs(5))
            .expect("an end");
        found.sort();
        assert_eq!(found, [".gitignore", "file"]);
    }

    #[test]
    fn what_is_ignored_is_not_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        for path in ["a/b/c/d", ".git/objects", "target", ".config"] {
            std::fs::create_dir_all(root.join(path)).expect("a directory");
        }
        for path in [
            "a/b/c/d/deep.rs",
            "target/out",
            "top.rs",
            "x.log",
            ".config/k",
            ".git/HEAD",
            "bad\nname",
        ] {
            std::fs::write(root.join(path), "").expect("a file");
        }
        std::fs::write(root.join(".gitignore"), "target/\n*.log\n").expect("a file");
        let mut found: Vec<String> = Walker::new(root).flatten().collect();
        let order: Vec<usize> = found
            .iter()
            .map(|path| path.trim_end_matches('/').matches('/').count())
            .collect();
        assert!(
            order.iter().rposition(|depth| *depth < 3) < order.iter().position(|depth| *depth >= 3)
        );
        found.sort_unstable();
        assert_eq!(
            found,
            [
                ".config/",
                ".config/k",
                ".gitignore",
                "a/",
                "a/b/",
                "a/b/c/",
                "a/b/c/d/",
                "a/b/c/d/deep.rs",
                "top.rs"
            ]
        );
    }

    #[test]
    fn looking_has_an_end() {
        let directory = tempfile::tempdir().expect("a directory");
        for number in 0..50 {
            std::fs::write(directory.path().join(number.to_string()), "").expect("a file");
        }
        let found = |paths, time| {
            Walker::bounded(directory.path(), paths, time)
                .flatten()
                .count()
        };
        assert_eq!(found(MAX_PATHS, Duration::from_secs(60)), 50);
        assert_eq!(found(7, Duration::from_secs(60)), 7);
        assert_eq!(found(MAX_PATHS, Duration::ZERO), 0);
    }

    #[test]
    fn a_directory_is_listed_as_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        std::fs::create_dir(root.join("sub")).expect("a directory");
        for path in ["b", ".hidden", "sub/x y"] {
            std::fs::write(root.join(path), "").expect("a file");
        }
        assert_eq!(list_directory("", "", root), ["b", "sub/"]);
        assert_eq!(list_directory("./", ".h", root), [".hidden", "b", "sub/"]);
        assert_eq!(list_directory("sub/", "", root), ["x y"]);
        assert_eq!(list_directory("missing/", "", root), Vec::<String>::new());
        assert_eq!(split("../a/b"), ("../a/".to_owned(), "b"));
        assert_eq!(split("~"), ("~/".to_owned(), ""));
        assert_eq!(split("b"), (String::new(), "b"));
    }
}
