//! Locations of configuration documents, and their owners.

use std::path::{Path, PathBuf};

use crate::tree::Tree;

/// Facts about the machine, the user and the project.
#[derive(Clone, Copy)]
pub struct HostContext<'a> {
    pub home: &'a Path,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// Looks up an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Reports whether the user trusts the project in a directory.
    pub trusts: &'a dyn Fn(&Path) -> bool,
    /// The directory of the machine's configuration: `/etc`.
    pub system: &'a Path,
}

impl std::fmt::Debug for HostContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostContext")
            .field("home", &self.home)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl HostContext<'_> {
    /// Returns a variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|value| !value.is_empty())
    }

    /// Returns `$XDG_CONFIG_HOME`, else `~/.config`.
    pub(crate) fn user_config(&self) -> PathBuf {
        self.variable("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            // The XDG specification requires relative paths to be ignored.
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| self.home.join(".config"))
    }

    /// Resolves a path: `~` is the home directory, other relative paths start at `base`.
    pub(crate) fn path(&self, text: &str, base: &Path) -> PathBuf {
        match text.strip_prefix('~') {
            Some("") => self.home.to_owned(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            _ => base.join(text),
        }
    }
}

/// A possible location of a document.
#[derive(Debug, Clone)]
pub struct DocumentLocation {
    pub path: PathBuf,
    pub kind: DocumentOwner,
}

/// The owner of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentOwner {
    /// The machine or the user.
    Own,
    /// A project, which must be trusted, and its directory.
    Project(PathBuf),
    /// `--config-file`; the file must exist.
    Explicit,
}

/// Returns the locations in the order of reading; later documents override earlier ones.
pub fn document_locations(
    host: &HostContext<'_>,
    explicit: Option<&Path>,
) -> Vec<DocumentLocation> {
    let own = |path: PathBuf| DocumentLocation {
        path,
        kind: DocumentOwner::Own,
    };
    let mut locations = vec![
        own(host.system.join("pinocchio/config.yaml")),
        own(host.home.join(".pinocchio/config.yaml")),
        own(host.user_config().join("pinocchio/config.yaml")),
    ];
    let root = git_root(host.cwd);
    for directory in root.as_deref().into_iter().chain([host.cwd]) {
        for name in [".pinocchio.yml", ".pinocchio.override.yml"] {
            locations.push(DocumentLocation {
                path: directory.join(name),
                kind: DocumentOwner::Project(directory.to_owned()),
            });
        }
    }
    if let Some(path) = explicit {
        let path = host.cwd.join(path);
        // A file that the user names counts as the user's, even inside a project.
        locations.retain(|location| location.path != path);
        locations.push(DocumentLocation {
            path,
            kind: DocumentOwner::Explicit,
        });
    }
    let mut seen: Vec<PathBuf> = Vec::new();
    locations.retain(|location| {
        let new = !seen.contains(&location.path);
        seen.push(location.path.clone());
        new
    });
    locations
}

/// Returns the nearest parent directory with a repository, without running git.
pub fn git_root(cwd: &Path) -> Option<PathBuf> {
    let root = cwd
        .ancestors()
        .find(|directory| std::fs::symlink_metadata(directory.join(".git")).is_ok());
    root.map(Path::to_owned)
}

/// Replaces `$NAME` and `${NAME}` in `text`; an unset variable is empty.
pub(crate) fn expand(text: &str, host: &HostContext<'_>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let braced = after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        let (name, next) = braced.unwrap_or_else(|| {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = after.find(|c| !word(c)).unwrap_or(after.len());
            after.split_at(end)
        });
        match name {
            "" => expanded.push('$'),
            name => expanded.push_str(&host.variable(name).unwrap_or_default()),
        }
        rest = next;
    }
    expanded.push_str(rest);
    expanded
}

/// One layer of settings; later layers override earlier ones.
#[derive(Debug, Clone)]
pub struct Layer {
    /// The source of the layer.
    pub name: String,
    pub settings: Tree,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded() {
        let environment = |name: &str| (name == "A").then(|| "x".to_owned());
        let host = HostContext {
            home: Path::new("/h"),
            cwd: Path::new("/w"),
            environment: &environment,
            trusts: &|_| false,
            system: Path::new("/etc"),
        };
        for (text, expanded) in [
            ("$A/b", "x/b"),
            ("${A}b", "xb"),
            ("$AB", ""),
            ("a$", "a$"),
            ("${A", "${A"),
            ("/$A$A/", "/xx/"),
        ] {
            assert_eq!(expand(text, &host), expanded, "{text}");
        }
        assert_eq!(host.path("~/a", Path::new("/b")), Path::new("/h/a"));
        assert_eq!(host.path("a", Path::new("/b")), Path::new("/b/a"));
        assert_eq!(host.path("/a", Path::new("/b")), Path::new("/a"));
    }
}
