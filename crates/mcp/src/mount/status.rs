//! The published status and manifest of a mounted server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinion_clip::logs::ClipLog;
use pinion_clip::manifest::Manifest;
use pinion_clip::{ClipState, Snapshot};
use tokio::sync::watch;

use super::status;

#[derive(Debug)]
pub(super) struct MountStatus {
    pub(super) alias: String,
    pub(super) log: Arc<ClipLog>,
    pub(super) snapshot: watch::Sender<Snapshot>,
    /// The token of the call for which the server has last reported progress; 0 before.
    pub(super) progress: watch::Sender<u64>,
    last_token: AtomicU64,
}

impl MountStatus {
    pub(super) fn new(alias: &str, known: Option<Manifest>, log: Arc<ClipLog>) -> Self {
        let mut manifest = known.unwrap_or_else(|| Manifest {
            package: alias.to_owned(),
            domain: "mcp".to_owned(),
            ..Manifest::default()
        });
        alias.clone_into(&mut manifest.name);
        let snapshot = Snapshot {
            status: status(ClipState::Sleeping, String::new()),
            manifest: manifest.into(),
        };
        Self {
            alias: alias.to_owned(),
            log,
            snapshot: watch::Sender::new(snapshot),
            progress: watch::Sender::new(0),
            last_token: AtomicU64::new(0),
        }
    }

    /// Returns a token for the progress of one call.
    pub(super) fn progress_token(&self) -> u64 {
        self.last_token.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn set_status(&self, state: ClipState, message: String) {
        self.snapshot
            .send_modify(|snapshot| snapshot.status = status(state, message));
    }

    pub(super) fn set_manifest(&self, manifest: Manifest) {
        self.snapshot.send_if_modified(|snapshot| {
            let is_new = *snapshot.manifest != manifest;
            if is_new {
                snapshot.manifest = manifest.into();
            }
            is_new
        });
    }
}
