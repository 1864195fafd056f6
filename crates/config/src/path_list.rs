//! A list of paths in the settings or a manifest: plain paths, globs, and the three kinds of
//! overrides.
//!
//! `dir` or `file.md` adds, `sub/*.md` selects, `!glob` removes, `+path` restores a removed file,
//! and `-path` removes one regardless of the other entries. In the settings globs beside plain
//! paths select among those; in a manifest they add to them. Overrides also apply to files that
//! were found without a list in the same scope. This module does not search for files.

use std::path::{Component, Path, PathBuf};

use globset::{ErrorKind, Glob, GlobBuilder, GlobMatcher};

use crate::{Notice, paths};

#[derive(Debug, Default)]
pub(crate) struct PathList {
    /// Paths without wildcards.
    pub(crate) plain: Vec<PathBuf>,
    selected: Vec<Pattern>,
    excluded: Vec<Pattern>,
    forced_in: Vec<PathBuf>,
    forced_out: Vec<PathBuf>,
    globs: GlobEffect,
}

/// The effect of globs beside plain paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum GlobEffect {
    /// They select among the files of the paths.
    #[default]
    Select,
    /// They add files.
    Add,
}

#[derive(Debug)]
struct Pattern {
    matcher: GlobMatcher,
    /// A pattern without `/` matches names, the others match whole paths.
    by_name: bool,
    /// The directory in front of the first wildcard, for patterns about whole paths.
    root: PathBuf,
}

impl PathList {
    /// Parses a list whose relative entries are relative to `base`.
    pub(crate) fn parse(
        entries: &[&str],
        base: &Path,
        home: &Path,
        file: &Path,
        notices: &mut Vec<Notice>,
    ) -> Self {
        let mut list = Self::default();
        let mut pattern = |text: &str| match Pattern::new(text, base, home) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let reason = explain(error.kind());
                let message = format!("{text:?} is not a valid pattern: {reason}; it is ignored");
                notices.push(Notice::about(file, "bad_pattern", message));
                None
            }
        };
        for &entry in entries {
            if let Some(text) = entry.strip_prefix('!') {
                list.excluded.extend(pattern(text));
            } else if let Some(text) = entry.strip_prefix('+') {
                list.forced_in.push(paths::resolve(text, base, home));
            } else if let Some(text) = entry.strip_prefix('-') {
                list.forced_out.push(paths::resolve(text, base, home));
            } else if is_glob(entry) {
                list.selected.extend(pattern(entry));
            } else if !entry.is_empty() {
                list.plain.push(paths::resolve(entry, base, home));
            }
        }
        list
    }

    /// Parses the list of a manifest in `root`.
    pub(crate) fn of_manifest(
        entries: &[&str],
        root: &Path,
        home: &Path,
        file: &Path,
        notices: &mut Vec<Notice>,
    ) -> Self {
        // A pattern without `/` matches the files beside the manifest.
        let rooted = |entry: &&str| {
            if is_glob(entry) && !entry.contains('/') {
                format!("./{entry}")
            } else {
                (*entry).to_owned()
            }
        };
        let entries: Vec<String> = entries.iter().map(rooted).collect();
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        let mut list = Self::parse(&entries, root, home, file, notices);
        list.globs = GlobEffect::Add;
        // The user of a package cannot correct its list, so missing files are not reported.
        list.plain.retain(|path| path.exists());
        list
    }

    /// Reports whether the list includes a file of a plain path.
    pub(crate) fn includes_listed(&self, file: &Path) -> bool {
        match self.globs {
            GlobEffect::Select => self.includes(file),
            GlobEffect::Add => self.permits_found(file),
        }
    }

    /// Reports whether the list permits a file that was found without a list.
    pub(crate) fn permits_found(&self, file: &Path) -> bool {
        let names = FileNames::of(file);
        if self.forced_out.iter().any(|path| names.is(path)) {
            return false;
        }
        self.forced_in.iter().any(|path| names.is(path))
            || !self.excluded.iter().any(|pattern| pattern.matches(&names))
    }

    /// Reports whether the list includes a file below a listed path.
    pub(crate) fn includes(&self, file: &Path) -> bool {
        let names = FileNames::of(file);
        let forced = self.forced_in.iter().any(|path| names.is(path));
        let selected =
            self.selected.is_empty() || self.selected.iter().any(|pattern| pattern.matches(&names));
        (selected || forced) && self.permits_found(file)
    }

    /// Reports whether the list includes a file of the package in `root`, for a list that restricts
    /// the package.
    pub(crate) fn includes_of_package(&self, file: &Path, root: &Path) -> bool {
        let named = |path: &PathBuf| {
            let by_name = path.parent() == Some(root) && path.file_name() == file.file_name();
            by_name || file.starts_with(path)
        };
        let names = FileNames::of(file);
        let selected = !self.adds_files()
            || self.plain.iter().any(named)
            || self.selected.iter().any(|pattern| pattern.matches(&names))
            || self.forced_in.iter().any(|path| names.is(path));
        selected && self.permits_found(file)
    }

    /// Reports whether the list can name a file that would not be found without it.
    pub(crate) fn adds_files(&self) -> bool {
        !self.plain.is_empty() || !self.selected.is_empty()
    }

    /// Directories to search for files that match globs.
    pub(crate) fn search_roots(&self) -> Vec<&Path> {
        if self.globs == GlobEffect::Select && !self.plain.is_empty() {
            return Vec::new();
        }
        let whole = self.selected.iter().filter(|pattern| !pattern.by_name);
        whole.map(|pattern| pattern.root.as_path()).collect()
    }
}

/// Reports whether an entry that is not an override has wildcards.
fn is_glob(entry: &str) -> bool {
    !entry.starts_with(['!', '+', '-']) && entry.contains(['*', '?'])
}

/// The names of a file: itself and, for a file that stands for its directory, the directory.
struct FileNames<'a> {
    file: &'a Path,
    directory: Option<&'a Path>,
}

impl<'a> FileNames<'a> {
    fn of(file: &'a Path) -> Self {
        let stands_for_directory = file
            .file_name()
            .is_some_and(|name| name == "SKILL.md" || name == "index.ts" || name == "index.js");
        Self {
            file,
            directory: if stands_for_directory {
                file.parent()
            } else {
                None
            },
        }
    }

    fn all(&self) -> impl Iterator<Item = &'a Path> {
        std::iter::once(self.file).chain(self.directory)
    }

    fn is(&self, path: &Path) -> bool {
        self.all().any(|name| name == path)
    }
}

impl Pattern {
    fn new(text: &str, base: &Path, home: &Path) -> Result<Self, globset::Error> {
        if !text.contains('/') {
            return Ok(Self {
                matcher: build(text)?,
                by_name: true,
                root: PathBuf::new(),
            });
        }
        let absolute = paths::resolve(text, base, home);
        let literal = |component: &Component<'_>| {
            !component.as_os_str().to_string_lossy().contains(['*', '?'])
        };
        let root: PathBuf = absolute.components().take_while(literal).collect();
        let rest = absolute.strip_prefix(&root).unwrap_or(&absolute);
        let fixed = globset::escape(&root.to_string_lossy());
        let glob = format!("{}/{}", fixed.trim_end_matches('/'), rest.display());
        Ok(Self {
            matcher: build(&glob)?,
            by_name: false,
            root,
        })
    }

    fn matches(&self, names: &FileNames<'_>) -> bool {
        names
            .all()
            .any(|path| match (self.by_name, path.file_name()) {
                (true, Some(name)) => self.matcher.is_match(name),
                (true, None) => false,
                (false, _) => self.matcher.is_match(path),
            })
    }
}

fn explain(error: &ErrorKind) -> &'static str {
    match error {
        ErrorKind::UnclosedClass => "a \"[\" is not closed",
        ErrorKind::InvalidRange(..) => "a range in \"[…]\" ends before it begins",
        ErrorKind::UnopenedAlternates => "a \"}\" has no \"{\" before it",
        ErrorKind::UnclosedAlternates => "a \"{\" is not closed",
        ErrorKind::DanglingEscape => "it ends with a single \"\\\"",
        _ => "it is too large",
    }
}

fn build(glob: &str) -> Result<GlobMatcher, globset::Error> {
    let glob: Glob = GlobBuilder::new(glob).literal_separator(true).build()?;
    Ok(glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> PathList {
        let mut notices = Vec::new();
        let file = Path::new("settings.json");
        let list = PathList::parse(
            entries,
            "/b [x]".as_ref(),
            "/home/u".as_ref(),
            file,
            &mut notices,
        );
        assert_eq!(notices, []);
        list
    }

    #[test]
    fn overrides_decide_about_found_files() {
        let file = Path::new("/b [x]/prompts/a.md");
        for (entries, stays) in [
            (vec![], true),
            (vec!["!a.md"], false),
            (vec!["!*.md"], false),
            (vec!["!prompts/*.md"], false),
            (vec!["!./prompts/**"], false),
            (vec!["!*"], false),
            (vec!["!other.md", "!prompts/x*"], true),
            (vec!["!*.md", "+prompts/a.md"], true),
            (vec!["!*.md", "+a.md"], false),
            (vec!["-prompts/a.md"], false),
            (vec!["+prompts/a.md", "-prompts/a.md"], false),
            (vec!["-/b [x]/prompts/a.md"], false),
        ] {
            assert_eq!(list(&entries).permits_found(file), stays, "{entries:?}");
        }
    }

    #[test]
    fn a_skill_may_be_named_by_its_directory() {
        let file = Path::new("/b [x]/skills/tidy/SKILL.md");
        assert!(!list(&["!tidy"]).permits_found(file));
        assert!(!list(&["-skills/tidy"]).permits_found(file));
        assert!(list(&["!tidy", "+skills/tidy"]).permits_found(file));
        assert!(!list(&["!skills/*"]).permits_found(file));
    }

    #[test]
    fn wildcards_select_among_listed_files() {
        let mixed = list(&["~/p", "*.review.md", "!old*"]);
        assert_eq!(mixed.plain, [Path::new("/home/u/p")]);
        assert!(mixed.includes("/home/u/p/a.review.md".as_ref()));
        assert!(!mixed.includes("/home/u/p/a.md".as_ref()));
        assert!(!mixed.includes("/home/u/p/old.review.md".as_ref()));
        assert!(mixed.search_roots().is_empty());
        let alone = list(&["more/*/x-*.md"]);
        assert_eq!(alone.search_roots(), [Path::new("/b [x]/more")]);
        assert!(alone.includes("/b [x]/more/q/x-1.md".as_ref()));
        assert!(!alone.includes("/b [x]/more/q/r/x-1.md".as_ref()));
        assert!(list(&["**/x.md"]).includes("/b [x]/q/r/x.md".as_ref()));
    }

    #[test]
    fn a_bad_pattern_is_reported_and_ignored() {
        let mut notices = Vec::new();
        let list = PathList::parse(
            &["!a[*", "ok"],
            "/b".as_ref(),
            "/h".as_ref(),
            "s".as_ref(),
            &mut notices,
        );
        assert_eq!(notices[0].code, "bad_pattern");
        assert_eq!(
            notices[0].message,
            "\"a[*\" is not a valid pattern: a \"[\" is not closed; it is ignored"
        );
        assert!(list.permits_found("/b/a.md".as_ref()));
        assert_eq!(list.plain.len(), 1);
    }
}
