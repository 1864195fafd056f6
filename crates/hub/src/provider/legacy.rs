//! What one who connects again finds of its earlier session: aliases that are no obstacle, and logs that go on.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinion_access::Caller;
use pinion_clip::logs::ClipLog;
use tokio::time::Instant;

use super::session::{Offered, Session};
use super::sessions::may_replace;
use crate::table::{Owner, RETURNING};

/// How many logs of lost providers are kept, in all.
const MOST: usize = 256;

/// What is left of an earlier session.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    /// Whose aliases may be taken, if it is still there.
    pub(super) owner: Option<Owner>,
    /// Logs, by the aliases the provider wants for its clips.
    pub(super) logs: BTreeMap<String, Arc<ClipLog>>,
}

impl Legacy {
    /// What a session leaves that is still there.
    pub(super) fn of(session: &Session) -> Self {
        let state = session.state();
        let clips = state.clips.iter();
        Self {
            owner: Some(session.owner.clone()),
            // Also those that nobody has read yet: somebody may while they are handed over.
            logs: clips
                .map(|(name, offered)| (name.clone(), offered.clip.own_log().clone()))
                .collect(),
        }
    }
}

/// The logs of providers that were lost and may come back, by their names.
#[derive(Debug, Default)]
pub(super) struct Lost(BTreeMap<Arc<str>, Left>);

#[derive(Debug)]
struct Left {
    /// Who may have them.
    caller: Caller,
    logs: BTreeMap<String, Arc<ClipLog>>,
    until: Instant,
}

impl Lost {
    /// A provider was lost.
    pub(super) fn remember(&mut self, session: &Session, clips: &BTreeMap<String, Offered>) {
        self.tidy();
        let kept: usize = self.0.values().map(|left| left.logs.len()).sum();
        let logs: BTreeMap<_, _> = clips
            .iter()
            .filter_map(|(name, offered)| Some((name.clone(), offered.clip.log_so_far()?)))
            .take(MOST.saturating_sub(kept))
            .collect();
        if !logs.is_empty() {
            let left = Left {
                caller: session.caller.clone(),
                logs,
                until: Instant::now() + RETURNING,
            };
            self.0.insert(session.name(), left);
        }
    }

    /// What `caller` finds who comes by this name.
    pub(super) fn find(&mut self, name: &str, caller: &Caller) -> Legacy {
        self.tidy();
        let left = self.0.get(name);
        let left = left.filter(|left| may_replace(&left.caller, caller));
        Legacy {
            owner: None,
            logs: left.map(|left| left.logs.clone()).unwrap_or_default(),
        }
    }

    fn tidy(&mut self) {
        let now = Instant::now();
        self.0.retain(|_, left| left.until > now);
    }

    /// Somebody goes by this name again.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}
