//! The published status and manifest of a mounted server.

use std::sync::Arc;

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
        }
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
