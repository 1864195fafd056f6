//! A session as it is at one moment, for threads that may block.

use std::ops::Deref;
use std::sync::Arc;

use crate::stats::RunningTotals;
use crate::store::SessionLocation;
use crate::{Stats, Store};

/// A read-only copy of a session that shares its entries. Later changes of the session do not change it.
///
/// Making one takes less than a microsecond for any size. The first change of the session while a snapshot exists copies the
/// tree, without the messages.
#[derive(Debug)]
pub struct Snapshot(Store);

impl Deref for Snapshot {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.0
    }
}

impl Snapshot {
    /// Adds up all messages like [`Store::totals`]. Blocks if messages are only in the file.
    pub fn totals(&mut self) -> Stats {
        self.0.totals()
    }

    /// Returns what was counted if this is a snapshot of `store`.
    pub(crate) fn into_running_totals(self, store: &Store) -> Option<RunningTotals> {
        (self.header.id == store.header.id && self.file() == store.file())
            .then_some(self.0.running_totals)
    }
}

impl Store {
    /// Returns the session as it is.
    pub fn snapshot(&self) -> Snapshot {
        let location = match &self.location {
            SessionLocation::Memory => SessionLocation::Memory,
            SessionLocation::File(file) if file.is_begun() => {
                SessionLocation::ReadOnly(file.path().to_owned())
            }
            SessionLocation::File(file) => SessionLocation::Later(file.path().to_owned()),
            SessionLocation::Later(path) => SessionLocation::Later(path.clone()),
            SessionLocation::ReadOnly(path) => SessionLocation::ReadOnly(path.clone()),
        };
        Snapshot(Self {
            header: self.header.clone(),
            cwd: self.cwd.clone(),
            tree: Arc::clone(&self.tree),
            leaf: self.leaf.clone(),
            location,
            directory: self.directory.clone(),
            notices: Vec::new(),
            verification: None,
            running_totals: self.running_totals.clone(),
            saves: Default::default(),
            is_new: false,
        })
    }

    /// Reports whether messages must be read from the file when they are needed, which blocks.
    pub fn is_partly_in_file(&self) -> bool {
        self.tree.has_stored_lines()
    }
}
