//! A workaround for modules that import a module with a top-level `await`.
//!
//! The engine runs such a module when the last of its imports is done, but does not record that it no longer waits: a
//! later import of it never completes. This happens only if the module itself has no `await`. The loader therefore adds
//! one, which never runs, to every module that imports one with an `await`, directly or indirectly.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rquickjs::Ctx;

use super::embedded;
use super::load::{Loading, path_of};
use super::resolve::{ImportKind, Request};

/// Makes the engine treat a module as one that waits. It starts a new line, because the last one may be a comment.
pub(super) const AWAIT: &str = "\nif (false) await null;\n";

/// Results of [`Loading::awaits`], by file.
#[derive(Default)]
pub(super) struct AwaitCache(RefCell<HashMap<PathBuf, bool>>);

impl AwaitCache {
    /// Clears the results, because files may have changed.
    pub(super) fn forget(&self) {
        self.0.borrow_mut().clear();
    }
}

impl Loading {
    /// Reports whether the file at `path`, or a file it imports directly or indirectly, has a top-level `await`.
    pub(super) fn awaits(&self, ctx: &Ctx<'_>, path: &Path) -> bool {
        if let Some(known) = self.waits.0.borrow().get(path) {
            return *known;
        }
        let mut seen = HashSet::new();
        let found = self.search(ctx, path, &mut seen);
        let mut known = self.waits.0.borrow_mut();
        if !found {
            // The search was complete, so none of the visited files has one.
            known.extend(seen.into_iter().map(|path| (path, false)));
        }
        known.insert(path.to_owned(), found);
        found
    }

    fn search(&self, ctx: &Ctx<'_>, path: &Path, seen: &mut HashSet<PathBuf>) -> bool {
        let mut pending: Vec<PathBuf> = vec![path.to_owned()];
        while let Some(path) = pending.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            match self.waits.0.borrow().get(&path) {
                Some(true) => return true,
                Some(false) => continue,
                None => {}
            }
            // A file that cannot be read or found is reported when it is loaded.
            let facts = self.facts(ctx, &path, |facts| (facts.awaits, facts.requests.clone()));
            let Some((awaits, requests)) = facts else {
                continue;
            };
            if awaits {
                return true;
            }
            for name in &requests {
                let request = Request {
                    name,
                    from: &path,
                    wanted: ImportKind::Import,
                };
                match self.name_of(ctx, request) {
                    Ok(found) if embedded::find(&found).is_none() => pending.push(path_of(&found)),
                    Ok(_) => {}
                    Err(_) => drop(ctx.catch()),
                }
            }
        }
        false
    }
}
