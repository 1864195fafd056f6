//! Names that are imported although the file exports no such thing.
//!
//! Most are types: `export { Options } from "./types"` does not say so, and types are gone when the script
//! runs. A missing name would be an error of the whole import. So whoever asks for one gets a module that
//! passes on what there is, with `undefined` for the rest.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rquickjs::Ctx;

use super::awaits::AWAIT;
use super::embedded;
use super::facade::exported;
use super::load::{Loading, Prepared, path_of};
use super::resolve::{Request, Wanted};
use super::transform::{EVERYTHING, Facts, Kind};

const PREFIX: &str = "pinion:with-gaps/";

/// What tells one state of a file from another.
type Stamp = (SystemTime, u64);

/// What is known of files before they are loaded.
#[derive(Default)]
pub(crate) struct Gaps {
    facts: RefCell<HashMap<PathBuf, (Stamp, Facts)>>,
    /// Files that were read for this and not loaded yet.
    ready: RefCell<HashMap<PathBuf, (Stamp, Prepared)>>,
    stand_ins: RefCell<HashMap<String, String>>,
}

/// Whether a file exports a name.
#[derive(PartialEq, Eq)]
enum Gives {
    Yes,
    No,
    /// It is known only when it has run.
    Unknown,
}

impl Gaps {
    /// The source of the stand-in called `name`.
    pub(crate) fn source(&self, name: &str) -> Option<String> {
        self.stand_ins.borrow().get(name).cloned()
    }

    /// What was made ready of the file at `path`, if it is still the same.
    pub(crate) fn take_ready(&self, path: &Path) -> Option<Prepared> {
        let (then, prepared) = self.ready.borrow_mut().remove(path)?;
        (stamp(path)? == then).then_some(prepared)
    }
}

impl Loading {
    /// The module that gives `wanted` of the file `target`: itself or a stand-in.
    pub(crate) fn without_gaps(&self, ctx: &Ctx<'_>, target: String, wanted: &[String]) -> String {
        let path = path_of(&target);
        let mut names: Vec<&str> = wanted.iter().map(String::as_str).collect();
        names.retain(|name| *name != EVERYTHING);
        names.sort_unstable();
        names.dedup();
        names.retain(|name| self.gives(ctx, &path, name, &mut HashSet::new()) != Gives::Yes);
        if names.is_empty() {
            return target;
        }
        let Some(kind) = self.facts(ctx, &path, |facts| facts.kind) else {
            return target;
        };
        if kind != Kind::Module {
            // What it exports is the default, whatever that is.
            names.retain(|name| *name != "default");
            if names.is_empty() {
                return target;
            }
        }
        let name = format!("{PREFIX}{target}?{}", names.join(","));
        let gives_default = kind != Kind::Module
            || self.gives(ctx, &path, "default", &mut HashSet::new()) == Gives::Yes;
        let mut source = stand_in(&target, kind, gives_default, &names);
        if self.awaits(ctx, &path) {
            source.push_str(AWAIT);
        }
        // The file may have changed since the last time.
        self.gaps
            .stand_ins
            .borrow_mut()
            .insert(name.clone(), source);
        name
    }

    fn gives(&self, ctx: &Ctx<'_>, path: &Path, name: &str, seen: &mut HashSet<PathBuf>) -> Gives {
        if !seen.insert(path.to_owned()) {
            return Gives::No;
        }
        let own = self.facts(ctx, path, |facts| {
            let listed = facts.exports.iter().any(|known| known == name);
            (facts.kind, listed, facts.stars.clone())
        });
        let stars = match own {
            // What cannot be read says so itself when it is loaded.
            None | Some((Kind::Module, true, _)) => return Gives::Yes,
            Some((Kind::CommonJs | Kind::Json, ..)) => return Gives::Unknown,
            Some((Kind::Module, false, stars)) => stars,
        };
        if name == "default" {
            return Gives::No;
        }
        for star in &stars {
            let request = Request {
                name: star,
                from: path,
                wanted: Wanted::Import,
            };
            let Ok(found) = self.name_of(ctx, request) else {
                // The one who imports it is told.
                ctx.catch();
                return Gives::Yes;
            };
            let given = match embedded::find(&found) {
                Some(module) if module.exports(name) => Gives::Yes,
                Some(_) => Gives::No,
                None => self.gives(ctx, &path_of(&found), name, seen),
            };
            match given {
                Gives::No => {}
                // What is passed on of such a file is what it turns out to have.
                Gives::Yes | Gives::Unknown => return Gives::Yes,
            }
        }
        Gives::No
    }

    /// What is known of the file at `path`; `None` when it cannot be read.
    pub(super) fn facts<T>(
        &self,
        ctx: &Ctx<'_>,
        path: &Path,
        look: impl FnOnce(&Facts) -> T,
    ) -> Option<T> {
        let now = stamp(path)?;
        if let Some((then, facts)) = self.gaps.facts.borrow().get(path)
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
        self.gaps.facts.borrow_mut().insert(path.to_owned(), facts);
        let mut ready = self.gaps.ready.borrow_mut();
        ready.insert(path.to_owned(), (now, prepared));
        Some(answer)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn stand_in(target: &str, kind: Kind, gives_default: bool, missing: &[&str]) -> String {
    let mut text = format!("export * from {target:?};\n");
    if gives_default {
        text.push_str(&format!("export {{ default }} from {target:?};\n"));
    }
    if kind != Kind::Module {
        text.push_str(&format!("import * as all from {target:?};\n"));
    }
    for (at, name) in missing.iter().enumerate() {
        let value = match kind {
            Kind::Module => "undefined".to_owned(),
            // It has run by now, and may have it after all.
            Kind::CommonJs | Kind::Json => format!("all[{name:?}]"),
        };
        text.push_str(&format!(
            "const gap{at} = {value};\nexport {{ gap{at} as {} }};\n",
            exported(name)
        ));
    }
    text
}
