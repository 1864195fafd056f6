//! Patterns of paths, and whether a file or directory fits them.
//!
//! What counts is where a path leads, links and `..` resolved: a call is only permitted by the place it
//! really reaches, and forbidden by that place as well as by the name it is called by. A path that leads to a descriptor of
//! a process is refused whatever the rules say.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::command::Fit;

/// What a tool that takes a path would touch.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The working directory, links resolved.
    root: PathBuf,
    /// As spelled, made absolute: one path, or several spellings that the tool would try.
    pub spelled: Vec<PathBuf>,
    /// Where those lead; `None` if that cannot be told.
    pub real: Option<Vec<PathBuf>>,
    /// How much of it is touched.
    pub reach: Reach,
    /// Set for a path that no tool opens: why.
    pub refused: Option<String>,
}

/// How much of a path is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The file or directory itself.
    Itself,
    /// Everything below it.
    Tree,
}

impl Target {
    /// What `path` means to a tool; `whole_tree` if the tool also goes through directories.
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
            reach: match whole_tree && !is_file {
                true => Reach::Tree,
                false => Reach::Itself,
            },
            spelled,
            real,
            refused,
        }
    }

    /// A path about which the file system gave no answer: nothing permits it.
    pub fn unknown(path: &str, cwd: &Path, whole_tree: bool) -> Self {
        Self {
            root: cwd.to_owned(),
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

    /// Whether it certainly lies in the working directory.
    pub fn is_inside(&self) -> bool {
        self.real
            .as_ref()
            .is_some_and(|paths| paths.iter().all(|path| path.starts_with(&self.root)))
    }

    fn everywhere(&self) -> impl Iterator<Item = &PathBuf> {
        self.spelled.iter().chain(self.real.iter().flatten())
    }
}

/// Why no tool opens `path`: it leads to a descriptor of a process, such as the program's own input, or to a file of the
/// running process. Rules that name it by its place say nothing about where its content goes.
fn refusal(path: &Path) -> Option<String> {
    let error = pinion_files::refuse(path).err()?;
    let refused = error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    refused.then(|| error.to_string())
}

/// Where `path` leads: links and `..` resolved as the system does, for as much of it as exists.
fn real(path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        match at.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Some(real);
            }
            // A link to nowhere would be written through.
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
    /// The directory that everything it fits lies in, as far as the pattern says.
    lead: PathBuf,
    globs: GlobSet,
    /// Without regard to case.
    lenient: GlobSet,
    /// It fits everything below what it fits.
    fits_trees: bool,
}

/// What a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The name alone.
    Name,
    /// The path from the working directory.
    WorkingDirectory,
    /// The whole path.
    Root,
}

impl PathPattern {
    /// Reads a pattern; the error says what is wrong with it.
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
            return Err("a path pattern cannot contain `..`; write where it leads".into());
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
            lead: match lead.is_empty() && start == Start::Root {
                true => PathBuf::from("/"),
                false => PathBuf::from(lead),
            },
            globs: globs(&spellings, false)?,
            lenient: globs(&spellings, true)?,
            fits_trees,
        })
    }

    /// Whether all that `target` touches fits, for certain. Names count inside the working directory.
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

    /// Whether something that `target` touches fits, or lies in a directory that does. Names count anywhere.
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
        match target.reach == Reach::Tree && real.iter().any(meets) {
            true => Fit::Maybe,
            false => Fit::No,
        }
    }

    /// Whether `path` or a directory on the way to it fits.
    fn covers(&self, path: &Path, target: &Target) -> bool {
        let inside = path.strip_prefix(&target.root).ok();
        let from_root = || path.ancestors().any(|path| self.lenient.is_match(path));
        match (self.start, inside) {
            (Start::Root, _) => from_root(),
            (Start::WorkingDirectory, None) => false,
            (Start::WorkingDirectory, Some(inside)) => {
                inside.ancestors().any(|path| self.lenient.is_match(path))
            }
            // The way to the working directory itself is not the model's choice.
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
