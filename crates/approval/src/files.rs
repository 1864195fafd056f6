//! Patterns of paths, and the check whether a file or directory fits them.
//!
//! Paths are compared after links and `..` are resolved. A rule permits a call only by its resolved path, and forbids it by
//! the resolved path or by the path as written. A path to a descriptor of a process is refused regardless of the rules.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::command::Fit;

/// The files that a tool with a path argument would access.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The working directory, links resolved.
    root: PathBuf,
    /// Further directories that belong to the session, links resolved.
    further_roots: Vec<PathBuf>,
    /// The path as written, made absolute; several paths if the tool would try several spellings.
    pub spelled: Vec<PathBuf>,
    /// The same paths with links resolved; `None` if that is not possible.
    pub real: Option<Vec<PathBuf>>,
    pub reach: Reach,
    /// The reason why no tool opens this path, if so.
    pub refused: Option<String>,
}

/// The extent of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The file or directory itself.
    Itself,
    /// Everything below it.
    Tree,
}

impl Target {
    /// Resolves the path of a call; `whole_tree` if the tool searches directories recursively.
    pub fn find(path: &str, cwd: &Path, whole_tree: bool) -> Self {
        let mut spelled = vec![pinion_tools::resolve_path(path, cwd)];
        let other = pinion_tools::resolve_existing_path(path, cwd);
        if other != spelled[0] {
            spelled.push(other);
        }
        let refused = spelled.iter().find_map(|path| refusal(path));
        let root = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let real: Option<Vec<PathBuf>> = spelled.iter().map(|path| real(path)).collect();
        for path in &mut spelled {
            if let Ok(inside) = path.strip_prefix(cwd) {
                *path = root.join(inside);
            }
        }
        let is_file = real
            .as_deref()
            .is_some_and(|paths| paths.iter().all(|path| path.is_file()));
        Self {
            root,
            further_roots: Vec::new(),
            reach: if whole_tree && !is_file {
                Reach::Tree
            } else {
                Reach::Itself
            },
            spelled,
            real,
            refused,
        }
    }

    /// Creates a target for a path that could not be resolved; no rule for paths permits it.
    pub fn unknown(path: &str, cwd: &Path, whole_tree: bool) -> Self {
        Self {
            root: cwd.to_owned(),
            further_roots: Vec::new(),
            spelled: vec![pinion_tools::resolve_path(path, cwd)],
            real: None,
            reach: if whole_tree {
                Reach::Tree
            } else {
                Reach::Itself
            },
            refused: None,
        }
    }

    /// Adds directories that belong to the session; one that cannot be resolved is left out.
    pub fn within(mut self, roots: &[PathBuf]) -> Self {
        let resolved = roots.iter().filter_map(|root| root.canonicalize().ok());
        self.further_roots.extend(resolved);
        self
    }

    /// Reports whether all of it is certainly in the working directory or in another directory of the session.
    pub fn is_inside(&self) -> bool {
        let roots = || std::iter::once(&self.root).chain(&self.further_roots);
        let is_inside = |path: &PathBuf| roots().any(|root| path.starts_with(root));
        self.real
            .as_ref()
            .is_some_and(|paths| paths.iter().all(is_inside))
    }

    fn everywhere(&self) -> impl Iterator<Item = &PathBuf> {
        self.spelled.iter().chain(self.real.iter().flatten())
    }
}

/// Returns the reason why no tool opens `path`: it leads to a descriptor of a process, such as the program's own input, or
/// to a file of the running process. A rule for such a path cannot describe which data it reaches.
fn refusal(path: &Path) -> Option<String> {
    let error = pinion_files::reject_process_files(path).err()?;
    let refused = error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    refused.then(|| error.to_string())
}

/// Resolves links and `..` as the system does, in the part of `path` that exists.
fn real(path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        match at.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Some(real);
            }
            // A write to a dangling link would create its target, so such a path stays unresolved.
            Err(error) if error.kind() == ErrorKind::NotFound && at.symlink_metadata().is_err() => {
                missing.push(at.file_name()?);
                at = at.parent()?;
            }
            Err(_) => return None,
        }
    }
}

/// A pattern of paths.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    start: Start,
    /// The directory that contains everything the pattern fits: its components before the first wildcard.
    lead: PathBuf,
    globs: GlobSet,
    /// Ignores case.
    lenient: GlobSet,
    /// The pattern fits whole directory trees.
    fits_trees: bool,
}

/// The part of a path that a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The file name alone.
    Name,
    /// The path from the working directory.
    WorkingDirectory,
    /// The whole path.
    Root,
}

impl PathPattern {
    /// Parses a pattern; the error is a message about the mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pattern = text.trim_start_matches("./").to_owned();
        if let Some(rest) = pattern.strip_prefix("~/") {
            let home = std::env::home_dir().ok_or("there is no home directory")?;
            let home = home.to_str().ok_or("the home directory is not UTF-8")?;
            pattern = format!("{}/{rest}", home.trim_end_matches('/'));
        }
        if pattern.ends_with('/') {
            pattern.push_str("**");
        }
        if pattern.split('/').any(|part| part == "..") {
            return Err(
                "a path pattern cannot contain `..`; write the resolved path instead".into(),
            );
        }
        let start = match pattern.as_str() {
            path if path.starts_with('/') => Start::Root,
            name if !name.contains('/') && name != "**" && name != "." => Start::Name,
            _ => Start::WorkingDirectory,
        };
        let inner = match pattern.as_str() {
            "" | "." => Some(""),
            "**" => Some(""),
            "/**" => Some("/"),
            pattern => pattern.strip_suffix("/**"),
        };
        let fits_trees = inner.is_some() && pattern != ".";
        let mut spellings = vec![pattern.clone()];
        spellings.extend(inner.map(str::to_owned));
        let lead = pattern
            .split('/')
            .take_while(|part| !part.contains(['*', '?', '[', '{', '\\']))
            .collect::<Vec<_>>()
            .join("/");
        Ok(Self {
            start,
            lead: if lead.is_empty() && start == Start::Root {
                PathBuf::from("/")
            } else {
                PathBuf::from(lead)
            },
            globs: globs(&spellings, false)?,
            lenient: globs(&spellings, true)?,
            fits_trees,
        })
    }

    /// Reports whether everything that `target` reaches certainly fits. Patterns without `/` permit only inside the working
    /// directory.
    pub fn permits(&self, target: &Target) -> bool {
        if target.reach == Reach::Tree && !self.fits_trees {
            return false;
        }
        let Some(real) = &target.real else {
            return false;
        };
        real.iter().all(|path| match self.start {
            Start::Root => self.globs.is_match(path),
            Start::WorkingDirectory => path
                .strip_prefix(&target.root)
                .is_ok_and(|path| self.globs.is_match(path)),
            Start::Name => {
                path.starts_with(&target.root)
                    && path
                        .file_name()
                        .is_some_and(|name| self.globs.is_match(name))
            }
        })
    }

    /// Checks whether anything that `target` reaches fits, or is in a directory that fits. Patterns without `/` forbid
    /// everywhere.
    pub fn forbids(&self, target: &Target) -> Fit {
        if target.everywhere().any(|path| self.covers(path, target)) {
            return Fit::Yes;
        }
        let Some(real) = &target.real else {
            return Fit::Maybe;
        };
        let lead = match self.start {
            Start::Name => Path::new("/").to_owned(),
            Start::WorkingDirectory | Start::Root => target.root.join(&self.lead),
        };
        let meets = |path: &PathBuf| path.starts_with(&lead) || lead.starts_with(path);
        if target.reach == Reach::Tree && real.iter().any(meets) {
            Fit::Maybe
        } else {
            Fit::No
        }
    }

    /// Reports whether `path` or one of its parent directories fits.
    fn covers(&self, path: &Path, target: &Target) -> bool {
        let inside = path.strip_prefix(&target.root).ok();
        let from_root = || path.ancestors().any(|path| self.lenient.is_match(path));
        match (self.start, inside) {
            (Start::Root, _) => from_root(),
            (Start::WorkingDirectory, None) => false,
            (Start::WorkingDirectory, Some(inside)) => {
                inside.ancestors().any(|path| self.lenient.is_match(path))
            }
            // The parents of the working directory do not count: the model did not choose them.
            (Start::Name, inside) => inside
                .unwrap_or(path)
                .components()
                .any(|part| matches!(part, Component::Normal(name) if self.lenient.is_match(name))),
        }
    }
}

fn globs(patterns: &[String], ignore_case: bool) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .case_insensitive(ignore_case)
            .build()
            .map_err(|error| format!("the path pattern is not valid: {}", error.kind()))?;
        set.add(glob);
    }
    set.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
