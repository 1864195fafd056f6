//! Where configuration is looked for, and which of it a project could have put there.

use std::path::{Path, PathBuf};

use crate::tree::Tree;

/// What the program knows of the machine, the user and the project.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The user's home directory.
    pub home: &'a Path,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// Looks up an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the user trusts the project in a directory.
    pub trusts: &'a dyn Fn(&Path) -> bool,
    /// Where the machine's own configuration lies: `/etc`.
    pub system: &'a Path,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("home", &self.home)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl Surroundings<'_> {
    /// A variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|value| !value.is_empty())
    }

    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    pub(crate) fn user_config(&self) -> PathBuf {
        self.variable("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            // The XDG specification asks for relative ones to be ignored.
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| self.home.join(".config"))
    }

    /// The path that `text` means: `~` is the home directory, the rest is relative to `base`.
    pub(crate) fn path(&self, text: &str, base: &Path) -> PathBuf {
        match text.strip_prefix('~') {
            Some("") => self.home.to_owned(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            _ => base.join(text),
        }
    }
}

/// One of the places a document may be at.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Whose it is.
    pub kind: PlaceKind,
}

/// Whose a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceKind {
    /// The machine's or the user's.
    Own,
    /// The project's, which must be trusted: the directory it is in.
    Project(PathBuf),
    /// `--config-file`: must exist.
    Explicit,
}

/// The places in the order in which they are read; later ones win.
pub fn places(surroundings: &Surroundings<'_>, explicit: Option<&Path>) -> Vec<Place> {
    let own = |path: PathBuf| Place {
        path,
        kind: PlaceKind::Own,
    };
    let mut places = vec![
        own(surroundings.system.join("pinocchio/config.yaml")),
        own(surroundings.home.join(".pinocchio/config.yaml")),
        own(surroundings.user_config().join("pinocchio/config.yaml")),
    ];
    let root = git_root(surroundings.cwd);
    for directory in root.as_deref().into_iter().chain([surroundings.cwd]) {
        for name in [".pinocchio.yml", ".pinocchio.override.yml"] {
            places.push(Place {
                path: directory.join(name),
                kind: PlaceKind::Project(directory.to_owned()),
            });
        }
    }
    if let Some(path) = explicit {
        let path = surroundings.cwd.join(path);
        // What the user names is the user's word, also where it lies in a project.
        places.retain(|place| place.path != path);
        places.push(Place {
            path,
            kind: PlaceKind::Explicit,
        });
    }
    let mut seen: Vec<PathBuf> = Vec::new();
    places.retain(|place| {
        let new = !seen.contains(&place.path);
        seen.push(place.path.clone());
        new
    });
    places
}

/// The nearest directory upward that holds a repository; git itself is not asked.
pub fn git_root(cwd: &Path) -> Option<PathBuf> {
    let root = cwd
        .ancestors()
        .find(|directory| std::fs::symlink_metadata(directory.join(".git")).is_ok());
    root.map(Path::to_owned)
}

/// `text` with `$NAME` and `${NAME}` replaced; a variable that is not set is empty.
pub(crate) fn expand(text: &str, surroundings: &Surroundings<'_>) -> String {
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
            name => expanded.push_str(&surroundings.variable(name).unwrap_or_default()),
        }
        rest = next;
    }
    expanded.push_str(rest);
    expanded
}

/// The name of one layer of settings and what it sets; later layers win.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Who says so.
    pub name: String,
    /// What it says.
    pub settings: Tree,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded() {
        let environment = |name: &str| (name == "A").then(|| "x".to_owned());
        let surroundings = Surroundings {
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
            assert_eq!(expand(text, &surroundings), expanded, "{text}");
        }
        assert_eq!(surroundings.path("~/a", Path::new("/b")), Path::new("/h/a"));
        assert_eq!(surroundings.path("a", Path::new("/b")), Path::new("/b/a"));
        assert_eq!(surroundings.path("/a", Path::new("/b")), Path::new("/a"));
    }
}
