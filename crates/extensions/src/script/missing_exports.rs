//! ModuleResolver that are imported although the file does not export them.
//!
//! Most are types: `export { Options } from "./types"` does not mark them as such, and types do not exist when the
//! script runs. A missing name would make the whole import fail. An import of such a name therefore gets a module that
//! re-exports the existing names and exports `undefined` for the rest.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rquickjs::Ctx;

use super::embedded;
use super::facade::exported;
use super::load::{Loading, Prepared, path_of};
use super::resolve::{ImportKind, Request};
use super::top_level_await::AWAIT;
use super::transform::{EVERYTHING, Facts, SourceKind};

const PREFIX: &str = "pinion:with-missing-exports/";

/// The modification time and size of a file, which identify one version of it.
type Stamp = (SystemTime, u64);

/// Facts about files that are not loaded yet.
#[derive(Default)]
pub(crate) struct MissingExports {
    facts: RefCell<HashMap<PathBuf, (Stamp, Facts)>>,
    /// Files that were prepared to find their exports and are not loaded yet.
    ready: RefCell<HashMap<PathBuf, (Stamp, Prepared)>>,
    stand_ins: RefCell<HashMap<String, String>>,
}

/// The answer to the question whether a file exports a name.
#[derive(PartialEq, Eq)]
enum Exports {
    Yes,
    No,
    /// The exports are known only after the file has run.
    Unknown,
}

impl MissingExports {
    /// Returns the source of the replacement called `name`.
    pub(crate) fn source(&self, name: &str) -> Option<String> {
        self.stand_ins.borrow().get(name).cloned()
    }

    /// Returns the prepared file at `path` if it has not changed since.
    pub(crate) fn take_ready(&self, path: &Path) -> Option<Prepared> {
        let (then, prepared) = self.ready.borrow_mut().remove(path)?;
        (stamp(path)? == then).then_some(prepared)
    }
}

impl Loading {
    /// Returns the name of a module that exports `wanted` of the file `target`: itself or a replacement.
    pub(crate) fn with_missing_exports(
        &self,
        ctx: &Ctx<'_>,
        target: String,
        wanted: &[String],
    ) -> String {
        let path = path_of(&target);
        let mut names: Vec<&str> = wanted.iter().map(String::as_str).collect();
        names.retain(|name| *name != EVERYTHING);
        names.sort_unstable();
        names.dedup();
        names.retain(|name| {
            self.exports_name(ctx, &path, name, &mut HashSet::new()) != Exports::Yes
        });
        if names.is_empty() {
            return target;
        }
        let Some(kind) = self.facts(ctx, &path, |facts| facts.kind) else {
            return target;
        };
        if kind != SourceKind::Module {
            // Such a file always has a default export: its `module.exports` or its data.
            names.retain(|name| *name != "default");
            if names.is_empty() {
                return target;
            }
        }
        let name = format!("{PREFIX}{target}?{}", names.join(","));
        let gives_default = kind != SourceKind::Module
            || self.exports_name(ctx, &path, "default", &mut HashSet::new()) == Exports::Yes;
        let mut source = stand_in(&target, kind, gives_default, &names);
        if self.awaits(ctx, &path) {
            source.push_str(AWAIT);
        }
        // The file may have changed since the last import.
        self.missing_exports
            .stand_ins
            .borrow_mut()
            .insert(name.clone(), source);
        name
    }

    fn exports_name(
        &self,
        ctx: &Ctx<'_>,
        path: &Path,
        name: &str,
        seen: &mut HashSet<PathBuf>,
    ) -> Exports {
        if !seen.insert(path.to_owned()) {
            return Exports::No;
        }
        let own = self.facts(ctx, path, |facts| {
            let listed = facts.exports.iter().any(|known| known == name);
            (facts.kind, listed, facts.stars.clone())
        });
        let stars = match own {
            // A file that cannot be read is reported when it is loaded.
            None | Some((SourceKind::Module, true, _)) => return Exports::Yes,
            Some((SourceKind::CommonJs | SourceKind::Json, ..)) => return Exports::Unknown,
            Some((SourceKind::Module, false, stars)) => stars,
        };
        if name == "default" {
            return Exports::No;
        }
        for star in &stars {
            let request = Request {
                name: star,
                from: path,
                wanted: ImportKind::Import,
            };
            let Ok(found) = self.name_of(ctx, request) else {
                // The error is reported for the file that contains this import.
                ctx.catch();
                return Exports::Yes;
            };
            let given = match embedded::find(&found) {
                Some(module) if module.exports(name) => Exports::Yes,
                Some(_) => Exports::No,
                None => self.exports_name(ctx, &path_of(&found), name, seen),
            };
            match given {
                Exports::No => {}
                // A re-export from such a file takes the value that exists after it has run.
                Exports::Yes | Exports::Unknown => return Exports::Yes,
            }
        }
        Exports::No
    }

    /// Passes the facts about the file at `path` on; `None` if it cannot be read.
    pub(super) fn facts<T>(
        &self,
        ctx: &Ctx<'_>,
        path: &Path,
        look: impl FnOnce(&Facts) -> T,
    ) -> Option<T> {
        let now = stamp(path)?;
        if let Some((then, facts)) = self.missing_exports.facts.borrow().get(path)
            && *then == now
        {
            return Some(look(facts));
        }
        let Ok(prepared) = self.prepare(ctx, path) else {
            ctx.catch();
            return None;
        };
        let answer = look(&prepared.facts);
        let facts = (now, prepared.facts.clone());
        self.missing_exports
            .facts
            .borrow_mut()
            .insert(path.to_owned(), facts);
        let mut ready = self.missing_exports.ready.borrow_mut();
        ready.insert(path.to_owned(), (now, prepared));
        Some(answer)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn stand_in(target: &str, kind: SourceKind, gives_default: bool, missing: &[&str]) -> String {
    let mut text = format!("export * from {target:?};\n");
    if gives_default {
        text.push_str(&format!("export {{ default }} from {target:?};\n"));
    }
    if kind != SourceKind::Module {
        text.push_str(&format!("import * as all from {target:?};\n"));
    }
    for (at, name) in missing.iter().enumerate() {
        let value = match kind {
            SourceKind::Module => "undefined".to_owned(),
            // The file has run by now and may have the name after all.
            SourceKind::CommonJs | SourceKind::Json => format!("all[{name:?}]"),
        };
        text.push_str(&format!(
            "const gap{at} = {value};\nexport {{ gap{at} as {} }};\n",
            exported(name)
        ));
    }
    text
}
