//! Tokens of the cluster: records in the bucket, and what this hub accepts of them.

use std::collections::BTreeSet;
use std::time::Duration;

use pinion_access::{Record, SharedTrust, TokenId};
use pinion_proto::cluster::BeatState;
use pinion_status::{Code, Failure};
use pinion_sync::lock;
use tokio::time::Instant;

use super::Node;
use crate::members::Presence;
use crate::mirror::token_key;
use crate::names::ProcessId;
use crate::store::{Expected, KeyState, Lifetime, WriteError};

/// The time for which a hub without standing accepts tokens of the cluster.
const TRUST_WITHOUT_STANDING: Duration = Duration::from_secs(30);
/// Seconds for which the record of a token is stored after the token has expired.
const EXPIRED_RECORD_SECONDS: i64 = 30 * 86_400;
/// Attempts to change a key that other hubs change at the same time.
const ATTEMPTS: usize = 5;

/// The loss of standing, as far as the trust in tokens depends on it.
#[derive(Debug)]
pub(super) struct Isolation {
    since: Instant,
    /// The members that were there. As long as all of them are heard and isolated too, no token can be revoked.
    members: BTreeSet<ProcessId>,
}

impl Node {
    /// Stores a token for all hubs.
    pub(super) async fn store_token(&self, record: Record) -> Result<(), Failure> {
        let store = self.writable()?;
        let key = token_key(record.id.as_str());
        let json = record.to_shared().ok_or_else(|| {
            Failure::new(Code::Internal, "the record of the token cannot be encoded")
        })?;
        let lifetime = record.expires.map_or(Lifetime::Endless, |expires| {
            let left = (expires - crate::clock::now_unix_ms()) / 1_000 + EXPIRED_RECORD_SECONDS;
            Lifetime::Seconds(u32::try_from(left.max(1)).unwrap_or(u32::MAX))
        });
        match store
            .put(&key, json.into(), Expected::Nothing, lifetime)
            .await
        {
            Ok(_) => {}
            Err(WriteError::Conflict(_)) => {
                let message = "the id of the new token is in use; try again";
                return Err(Failure::new(Code::Aborted, message));
            }
            Err(WriteError::Unavailable(failure)) => return Err(failure),
        }
        // This hub accepts it at once, the others when the feed brings it.
        if let Some(hub) = self.hub() {
            hub.gate().store().share(record);
        }
        Ok(())
    }

    /// Removes a token of the cluster.
    pub(super) async fn remove_token(&self, id: TokenId) -> Result<(), Failure> {
        let store = self.writable()?;
        let key = token_key(id.as_str());
        let mut revision = lock(&self.mirror).entry(&key).map(|entry| entry.revision);
        for _ in 0..ATTEMPTS {
            let Some(last) = revision else {
                let message = format!("unknown token {id:?}; pinion hub token list shows the ids");
                return Err(Failure::new(Code::NotFound, message));
            };
            match store.remove(&key, last, None).await {
                Ok(_) => {
                    if let Some(hub) = self.hub() {
                        hub.gate().store().unshare(&id);
                    }
                    return Ok(());
                }
                Err(WriteError::Conflict(newer)) => revision = Some(newer),
                Err(WriteError::Unavailable(failure)) => return Err(failure),
            }
        }
        let message = "the token is changed by several hubs at the same time; try again";
        Err(Failure::new(Code::Aborted, message))
    }

    /// Applies the bucket's state of one token.
    pub(super) fn settle_token(&self, id: &str) {
        let Some(hub) = self.hub() else {
            return;
        };
        let record = {
            let mirror = lock(&self.mirror);
            let state = mirror.entry(&token_key(id)).map(|entry| &entry.state);
            match state {
                Some(KeyState::Value(value)) => Record::from_shared(value),
                _ => None,
            }
        };
        let tokens = hub.gate().store();
        match record.filter(|record| record.id.as_str() == id) {
            Some(record) => tokens.share(record),
            None => tokens.unshare(&TokenId::from(id)),
        }
    }

    /// Replaces all tokens of the cluster by those of the bucket.
    pub(super) fn settle_all_tokens(&self) {
        let Some(hub) = self.hub() else {
            return;
        };
        let records = lock(&self.mirror).tokens();
        hub.gate().store().replace_shared(records);
    }

    /// Decides whether this hub can still trust what it knows of tokens.
    pub(super) fn judge_tokens(&self) {
        let Some(hub) = self.hub() else {
            return;
        };
        let now = Instant::now();
        let mut isolation = lock(&self.isolation);
        let trust = if self.has_standing() {
            *isolation = None;
            SharedTrust::Current
        } else {
            let members = lock(&self.members);
            let lost = isolation.get_or_insert_with(|| Isolation {
                since: now,
                members: members
                    .all()
                    .filter(|member| {
                        member.id != self.me && member.presence(now) == Presence::There
                    })
                    .map(|member| member.id.clone())
                    .collect(),
            });
            let is_isolated = |id: &ProcessId| {
                members.get(id).is_some_and(|member| {
                    member.presence(now) == Presence::There && member.state == BeatState::Isolated
                })
            };
            let is_recent = now.duration_since(lost.since) < TRUST_WITHOUT_STANDING;
            if is_recent || (!lost.members.is_empty() && lost.members.iter().all(is_isolated)) {
                SharedTrust::Current
            } else {
                SharedTrust::Outdated
            }
        };
        drop(isolation);
        hub.gate().store().trust_shared(trust);
    }
}
