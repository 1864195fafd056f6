//! The lease of a hub: one key that is renewed, and the standing that follows from it.

use std::time::Duration;

use pinion_clip::logs::Level;
use pinion_sync::lock;
use tokio::time::Instant;

use super::Node;
use crate::clock::now_unix_ms;
use crate::mirror::hub_key;
use crate::store::{Expected, KeyState, Store, WriteError};
use crate::talk::WIRE;
use crate::values::{HubValue, Value};

/// Seconds for which the lease lasts without a renewal.
const LEASE_SECONDS: u32 = 20;
const RENEWAL_INTERVAL: Duration = Duration::from_secs(4);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// The time for one renewal.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(4);
/// The time since the sending of the last renewal that was acknowledged for which a hub has standing: the lease without
/// an election of the servers and delays.
const STANDING: Duration = Duration::from_secs(14);

/// The state of this hub's lease.
#[derive(Debug, Default)]
pub(super) struct LeaseState {
    revision: Option<u64>,
    /// The time at which the last acknowledged renewal was sent.
    renewed: Option<Instant>,
    /// The beginning of the uninterrupted standing.
    since: Option<Instant>,
}

impl LeaseState {
    pub fn has_standing(&self, now: Instant) -> bool {
        self.renewed
            .is_some_and(|at| now.duration_since(at) < STANDING)
    }

    /// Reports whether this hub has had standing for long enough to judge others by their silence.
    pub fn judges(&self, now: Instant, after: Duration) -> bool {
        self.has_standing(now)
            && self
                .since
                .is_some_and(|since| now.duration_since(since) >= after)
    }

    /// Notes a renewal that was sent at `sent`.
    fn renew(&mut self, revision: u64, sent: Instant) {
        if !self.has_standing(sent) {
            self.since = Some(sent);
        }
        self.revision = Some(revision);
        self.renewed = Some(sent);
    }

    pub fn revision(&self) -> Option<u64> {
        self.revision
    }

    /// A lost connection interrupts the listening, so silence proves nothing for a while.
    pub fn listens_again(&mut self) {
        self.since = Some(Instant::now());
    }
}

/// Takes the lease and renews it until the epoch ends.
pub(super) async fn hold(node: &Node, store: &Store) {
    let Some(hub) = node.hub() else {
        return;
    };
    let value = HubValue {
        v: HubValue::VERSION,
        name: node.options.name.clone(),
        url: node.options.url.clone(),
        version: hub.settings().version.clone(),
        wire: [WIRE, WIRE],
        started: now_unix_ms(),
        mode: hub.settings().mode.name().to_owned(),
    };
    drop(hub);
    let key = hub_key(&node.me);
    loop {
        let known = lock(&node.lease).revision();
        let expected = known.map_or(Expected::Nothing, Expected::Revision);
        let sent = Instant::now();
        let renewing = store.put_within(
            &key,
            value.to_bytes(),
            expected,
            LEASE_SECONDS,
            RENEWAL_TIMEOUT,
        );
        let pause = match renewing.await {
            Ok(revision) => {
                let had_standing = node.has_standing();
                lock(&node.lease).renew(revision, sent);
                if !had_standing {
                    node.kick.notify_one();
                }
                RENEWAL_INTERVAL.saturating_sub(sent.elapsed())
            }
            Err(WriteError::Conflict(last)) => {
                take_again(node, store, &key, last).await;
                Duration::ZERO
            }
            Err(WriteError::Unavailable(failure)) => {
                tracing::warn!(%failure, "the lease of this hub was not renewed");
                RETRY_INTERVAL
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Looks at a lease that has expired, or was renewed by a write whose answer was lost.
async fn take_again(node: &Node, store: &Store, key: &str, last: u64) {
    if let Ok(Some(entry)) = store.last(key).await
        && entry.revision >= last
        && entry.state == KeyState::Removed
    {
        let message = "the lease of this hub was removed by another program; it is taken again";
        node.log(Level::Warn, message);
    }
    // The id is random, so no other hub has written the key.
    lock(&node.lease).revision = Some(last);
    tokio::time::sleep(Duration::from_millis(10)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn standing_ends_before_the_lease_does() {
        let mut lease = LeaseState::default();
        let start = Instant::now();
        assert!(!lease.has_standing(start));
        lease.renew(1, start);
        assert!(lease.has_standing(start + STANDING - RETRY_INTERVAL));
        assert!(!lease.has_standing(start + STANDING));
        assert!(STANDING < Duration::from_secs(LEASE_SECONDS.into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_was_away_judges_others_only_after_a_while() {
        let mut lease = LeaseState::default();
        let start = Instant::now();
        let after = Duration::from_secs(20);
        let mut now = start;
        while now < start + after {
            assert!(!lease.judges(now, after));
            lease.renew(1, now);
            now += RENEWAL_INTERVAL;
        }
        assert!(lease.judges(now, after));
        let later = now + STANDING;
        assert!(!lease.judges(later, after));
        lease.renew(2, later);
        assert!(!lease.judges(later, after));
    }
}
