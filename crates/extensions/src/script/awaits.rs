//! Modules above a module with a top-level `await`.
//!
//! The engine runs such a module when the last of its imports is done, and then forgets to note that it is no longer
//! waiting: whoever imports it later waits for ever. It does so only where the module itself has no `await`. So the
//! loader gives every module above one with an `await` one of its own, which never runs.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rquickjs::Ctx;

use super::embedded;
use super::load::{Loading, path_of};
use super::resolve::{Request, Wanted};

/// Makes the engine treat a module as one that waits. On a line of its own: the last one may be a comment.
pub(super) const AWAIT: &str = "\nif (false) await null;\n";

/// Whether files wait, as far as they were looked at.
#[derive(Default)]
pub(super) struct Waits(RefCell<HashMap<PathBuf, bool>>);

impl Waits {
    /// Files may have changed.
    pub(super) fn forget(&self) {
        self.0.borrow_mut().clear();
    }
}

impl Loading {
    /// Whether the file at `path`, or a file it imports directly or indirectly, has a top-level `await`.
    pub(super) fn awaits(&self, ctx: &Ctx<'_>, path: &Path) -> bool {
        if let Some(known) = self.waits.0.borrow().get(path) {
            return *known;
        }
        let mut seen = HashSet::new();
        let found = self.search(ctx, path, &mut seen);
        let mut known = self.waits.0.borrow_mut();
        if !found {
            // Then none of the files on the way does.
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
            // What cannot be read or found is reported when it is loaded.
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
                    wanted: Wanted::Import,
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
