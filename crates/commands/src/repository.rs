//! A tree of commands, read from directories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::alias::Alias;
use crate::built_in::BuiltIn;
use crate::command::{Command, Origin, read_file};
use crate::command_line::CommandLine;
use crate::decode;
use crate::error::CommandError;
use crate::pages::HelpPage;

/// The deepest nesting of directories. [`MAX_FILES`] limits their number.
const MAX_DEPTH: usize = 16;
const MAX_FILES: usize = 10_000;

/// Commands and aliases by their words.
#[derive(Debug, Clone, Default)]
pub struct Repository {
    entries: BTreeMap<Vec<String>, Entry>,
    failures: Vec<SkippedFile>,
    pages: Vec<HelpPage>,
}

/// A command or an alias in a repository.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A command.
    Command(Box<Command>),
    /// Another name for a command.
    Alias(Alias),
}

/// The kind of an entry in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A command.
    Command,
    /// Another name for a command.
    Alias,
}

/// A file that was skipped, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    /// The file or directory.
    pub path: PathBuf,
    pub reason: CommandError,
}

/// One line of `commands list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The words that start it.
    pub path: Vec<String>,
    /// One line of help.
    pub short: String,
    /// The file.
    pub source: Option<PathBuf>,
    pub kind: EntryKind,
}

/// A command found by its words, and the rest of the line.
#[derive(Debug, Clone)]
pub struct Found<'r> {
    pub command: &'r Command,
    /// The words of the command itself, not of an alias.
    pub path: Vec<String>,
    /// The rest of the line, with the values of an alias.
    pub line: CommandLine,
}

impl Repository {
    /// Loads all directories as one tree; later entries replace earlier ones. Directories that do not exist are
    /// ignored; invalid files are skipped and listed in [`Repository::failures`].
    pub fn load<P: AsRef<Path>>(directories: &[P], built_ins: &[BuiltIn]) -> Self {
        let mut repository = Self::default();
        for directory in directories {
            let root = directory.as_ref();
            if !root.is_dir() {
                continue;
            }
            repository.pages(&root.join("doc"));
            let mut walk = RepositoryWalk {
                repository: &mut repository,
                built_ins,
                root,
                seen: BTreeSet::new(),
                files: 0,
            };
            walk.directory(root, &mut Vec::new());
        }
        repository
    }

    /// Returns the skipped files, with reasons.
    pub fn failures(&self) -> &[SkippedFile] {
        &self.failures
    }

    /// Returns the help pages of the repositories, in order.
    pub fn help_pages(&self) -> &[HelpPage] {
        &self.pages
    }

    /// Returns the help page with this slug.
    pub fn help_page(&self, slug: &str) -> Option<&HelpPage> {
        self.pages.iter().find(|page| page.slug == slug)
    }

    /// Returns the help pages that belong to a command, by any of its words or all of them.
    pub fn related_pages(&self, path: &[String]) -> Vec<&HelpPage> {
        let whole = path.join(" ");
        let belongs = |name: &String| *name == whole || path.last() == Some(name);
        self.pages
            .iter()
            .filter(|page| page.commands.iter().any(belongs))
            .collect()
    }

    /// Returns the valid words after `help`: slugs of pages, and commands.
    pub fn topics(&self) -> impl Iterator<Item = String> {
        let slugs = self.pages.iter().map(|page| page.slug.clone());
        slugs.chain(self.entries.keys().map(|path| path.join(" ")))
    }

    /// Returns all commands and aliases, sorted by their words.
    pub fn list(&self) -> Vec<Listing> {
        self.entries
            .iter()
            .map(|(path, entry)| match entry {
                Entry::Command(command) => Listing {
                    path: path.clone(),
                    short: command.short.clone(),
                    source: command.origin.path.clone(),
                    kind: EntryKind::Command,
                },
                Entry::Alias(alias) => Listing {
                    path: path.clone(),
                    short: if alias.short.is_empty() {
                        format!("alias of {}", alias.target.join(" "))
                    } else {
                        alias.short.clone()
                    },
                    source: alias.path.clone(),
                    kind: EntryKind::Alias,
                },
            })
            .collect()
    }

    /// Returns the entry with exactly these words.
    pub fn entry(&self, path: &[String]) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Returns the command at the beginning of the line. Its name is as many words as possible.
    pub fn find(&self, words: &[String]) -> Result<Option<Found<'_>>, CommandError> {
        let most = words
            .iter()
            .take_while(|word| !word.starts_with('-'))
            .count();
        for count in (1..=most).rev() {
            let path = words[..count].to_vec();
            if let Some(entry) = self.entries.get(&path) {
                let line = CommandLine::new(words[count..].iter().cloned());
                return self.resolve(path, entry, line).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the words that continue `path` to a command, for suggestions and listings of a group.
    pub fn below(&self, path: &[String]) -> Vec<&str> {
        let mut words: Vec<&str> = self
            .entries
            .keys()
            .filter(|key| key.len() > path.len() && key.starts_with(path))
            .map(|key| key[path.len()].as_str())
            .collect();
        words.dedup();
        words
    }

    fn resolve<'r>(
        &'r self,
        path: Vec<String>,
        entry: &'r Entry,
        line: CommandLine,
    ) -> Result<Found<'r>, CommandError> {
        let (mut path, mut entry, mut line) = (path, entry, line);
        // An alias of an alias is resolved, but not endlessly.
        for _ in 0..8 {
            let alias = match entry {
                Entry::Command(command) => {
                    return Ok(Found {
                        command,
                        path,
                        line,
                    });
                }
                Entry::Alias(alias) => alias,
            };
            line = line.through(alias);
            let target = match alias.target.as_slice() {
                [beside] => {
                    let mut target = path[..path.len().saturating_sub(1)].to_vec();
                    target.push(beside.clone());
                    target
                }
                from_root => from_root.to_vec(),
            };
            let Some(found) = self.entries.get(&target) else {
                return Err(dead(&path, alias));
            };
            (path, entry) = (target, found);
        }
        Err(CommandError::DeadAlias {
            alias: path.join(" "),
            target: "an alias that refers to itself".to_owned(),
        })
    }

    fn pages(&mut self, directory: &Path) {
        let Ok(entries) = std::fs::read_dir(directory) else {
            return;
        };
        let mut pages: Vec<PathBuf> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
            .collect();
        pages.sort();
        for path in pages {
            match HelpPage::load(&path) {
                Ok(page) => {
                    self.pages.retain(|known| known.slug != page.slug);
                    self.pages.push(page);
                }
                Err(reason) => self.failures.push(SkippedFile { path, reason }),
            }
        }
        self.pages
            .sort_by(|a, b| (a.order, &a.slug).cmp(&(b.order, &b.slug)));
    }
}

fn dead(path: &[String], alias: &Alias) -> CommandError {
    CommandError::DeadAlias {
        alias: path.join(" "),
        target: alias.target.join(" "),
    }
}

struct RepositoryWalk<'w> {
    repository: &'w mut Repository,
    built_ins: &'w [BuiltIn],
    root: &'w Path,
    seen: BTreeSet<PathBuf>,
    files: usize,
}

impl RepositoryWalk<'_> {
    fn directory(&mut self, directory: &Path, words: &mut Vec<String>) {
        // A link to a parent directory is visited once.
        let real = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        if words.len() > MAX_DEPTH || !self.seen.insert(real) {
            return;
        }
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.fail(directory, error.to_string());
                return;
            }
        };
        let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
        paths.sort();
        for path in paths {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if name.starts_with('.') {
                continue;
            }
            if path.is_dir() {
                if words.is_empty() && name == "doc" {
                    continue;
                }
                words.push(name.to_owned());
                self.directory(&path, words);
                words.pop();
            } else if matches!(
                path.extension().and_then(|e| e.to_str()),
                Some("yaml" | "yml")
            ) {
                self.files += 1;
                if self.files > MAX_FILES {
                    self.fail(
                        self.root,
                        format!("more than {MAX_FILES} files; the rest was skipped"),
                    );
                    return;
                }
                self.file(&path, words);
            }
        }
    }

    fn file(&mut self, path: &Path, words: &[String]) {
        let text = match read_file(path) {
            Ok(text) => text,
            Err(reason) => return self.fail(path, reason),
        };
        let origin = Origin {
            name: path.display().to_string(),
            path: Some(path.to_owned()),
            text,
        };
        let alias = decode::alias(&origin);
        let entry = match decode::command(origin) {
            // A file that names a command and has no prompt is an alias of it.
            Ok(command) if alias.is_none() || command.has_templates() => {
                self.command(path, command)
            }
            _ if alias.is_some() => alias.map(Entry::Alias),
            Ok(_) => None,
            Err(reason) => {
                self.repository.failures.push(SkippedFile {
                    path: path.to_owned(),
                    reason,
                });
                None
            }
        };
        if let Some(entry) = entry {
            let mut key = words.to_vec();
            key.push(match &entry {
                Entry::Command(command) => command.name.clone(),
                Entry::Alias(alias) => alias.name.clone(),
            });
            self.repository.entries.insert(key, entry);
        }
    }

    fn command(&mut self, path: &Path, command: Command) -> Option<Entry> {
        if command.name.is_empty() {
            self.fail(path, "it has no `name`".to_owned());
            return None;
        }
        match crate::check_fields::check(&command, self.built_ins) {
            Ok(()) => Some(Entry::Command(Box::new(command))),
            Err(reason) => {
                self.repository.failures.push(SkippedFile {
                    path: path.to_owned(),
                    reason,
                });
                None
            }
        }
    }

    fn fail(&mut self, path: &Path, reason: String) {
        self.repository.failures.push(SkippedFile {
            path: path.to_owned(),
            reason: CommandError::Unreadable {
                path: path.to_owned(),
                reason,
            },
        });
    }
}
