//! The aliases and logs that a provider finds again when it reconnects.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinion_access::Caller;
use pinion_clip::logs::ClipLog;
use tokio::time::Instant;

use super::session::{OfferedClip, Session};
use super::sessions::may_replace;
use crate::table::{Owner, RECONNECT_WINDOW};

/// The most logs of lost providers that are held in memory.
const MAX_LOGS: usize = 256;

/// The aliases and logs of an earlier session of the same provider.
#[derive(Debug, Default)]
pub(super) struct EarlierSession {
    /// The owner whose aliases the new session may take, if the earlier session is still connected.
    pub(super) owner: Option<Owner>,
    /// Logs, by the aliases that the provider requested for its clips.
    pub(super) logs: BTreeMap<String, Arc<ClipLog>>,
}

impl EarlierSession {
    /// Collects these from a session that is still connected.
    pub(super) fn of(session: &Session) -> Self {
        let state = session.state();
        let clips = state.clips.iter();
        Self {
            owner: Some(session.owner.clone()),
            // Includes logs without readers: a reader may arrive during the handover.
            logs: clips
                .map(|(name, offered)| (name.clone(), offered.clip.own_log().clone()))
                .collect(),
        }
    }
}

/// The logs of lost providers that may reconnect, by provider name.
#[derive(Debug, Default)]
pub(super) struct LostLogs(BTreeMap<Arc<str>, LostProvider>);

#[derive(Debug)]
struct LostProvider {
    /// The caller that may take over the logs.
    caller: Caller,
    logs: BTreeMap<String, Arc<ClipLog>>,
    until: Instant,
}

impl LostLogs {
    /// Stores the logs of a provider that was lost.
    pub(super) fn remember(&mut self, session: &Session, clips: &BTreeMap<String, OfferedClip>) {
        self.tidy();
        let kept: usize = self.0.values().map(|lost| lost.logs.len()).sum();
        let logs: BTreeMap<_, _> = clips
            .iter()
            .filter_map(|(name, offered)| Some((name.clone(), offered.clip.log_so_far()?)))
            .take(MAX_LOGS.saturating_sub(kept))
            .collect();
        if !logs.is_empty() {
            let lost = LostProvider {
                caller: session.caller.clone(),
                logs,
                until: Instant::now() + RECONNECT_WINDOW,
            };
            self.0.insert(session.name(), lost);
        }
    }

    /// Returns the logs of a lost provider if `caller` may replace it.
    pub(super) fn find(&mut self, name: &str, caller: &Caller) -> EarlierSession {
        self.tidy();
        let lost = self.0.get(name);
        let lost = lost.filter(|lost| may_replace(&lost.caller, caller));
        EarlierSession {
            owner: None,
            logs: lost.map(|lost| lost.logs.clone()).unwrap_or_default(),
        }
    }

    fn tidy(&mut self) {
        let now = Instant::now();
        self.0.retain(|_, lost| lost.until > now);
    }

    /// Drops the logs of a provider that has reconnected.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}
