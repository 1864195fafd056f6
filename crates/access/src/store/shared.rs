//! Tokens that all hubs of a cluster accept. The cluster stores them; this is what a hub knows of them.
//!
//! A hub that cannot learn of revocations stops accepting them ([`TokenStore::trust_shared`]). The tokens of its own
//! file stay valid.

use std::sync::Arc;

use pinion_status::{Code, Failure};

use super::{Entry, Minted, TokenStore};
use crate::token::Fingerprint;
use crate::{NewToken, Record, Token, TokenId};

/// The trust in what a hub knows of shared tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SharedTrust {
    /// Revocations arrive.
    #[default]
    Current,
    /// A token may have been revoked without this hub knowing it.
    Outdated,
}

impl TokenStore {
    /// Creates a token without storing it. It is accepted once its record was passed to [`Self::share`].
    pub fn prepare(&self, new: NewToken) -> Result<Minted, Failure> {
        let token = Token::random(new.grant.kind())?;
        let id = loop {
            let id = TokenId::random()?;
            if self.read(|state| state.by_id(&id).is_none()) {
                break id;
            }
        };
        let now = self.clock().now();
        let record = Record::new(id, Fingerprint::of(token.reveal()), new, now);
        Ok(Minted { token, record })
    }

    /// Accepts a token of the cluster, or its changed record.
    pub fn share(&self, record: Record) {
        self.write(|state| {
            state.shared.remove(&record.id);
            state.shared.insert(record);
        });
        self.shared.changes.send_replace(());
    }

    /// Stops accepting a token of the cluster.
    pub fn unshare(&self, id: &TokenId) {
        self.write(|state| state.shared.remove(id));
        self.shared.changes.send_replace(());
    }

    /// Replaces all tokens of the cluster.
    pub fn replace_shared(&self, records: Vec<Record>) {
        self.write(|state| state.shared.adopt(records));
        self.shared.changes.send_replace(());
    }

    /// Reports whether the cluster stores the token with this id.
    pub fn is_shared(&self, id: &TokenId) -> bool {
        self.read(|state| state.shared.by_id(id).is_some())
    }

    /// Decides whether tokens of the cluster are accepted. Streams that were opened with one end when they are not.
    pub fn trust_shared(&self, trust: SharedTrust) {
        let before = self.write(|state| std::mem::replace(&mut state.shared_trust, trust));
        if before != trust {
            self.shared.changes.send_replace(());
        }
    }

    /// Finds a token of the cluster. Fails if it is known and cannot be trusted at the moment.
    pub(super) fn find_shared(
        &self,
        fingerprint: &Fingerprint,
    ) -> Result<Option<Arc<Entry>>, Failure> {
        self.read(|state| {
            let found = state.shared.find(fingerprint);
            match state.shared_trust {
                SharedTrust::Outdated if found.is_some() => Err(outdated()),
                _ => Ok(found),
            }
        })
    }

    /// Checks that a token, if the cluster stores it, can be trusted at the moment.
    pub(super) fn check_trusted(&self, id: &TokenId) -> Result<(), Failure> {
        self.read(|state| match state.shared_trust {
            SharedTrust::Outdated if state.shared.by_id(id).is_some() => Err(outdated()),
            _ => Ok(()),
        })
    }
}

fn outdated() -> Failure {
    let message = "this hub is cut off from its cluster and cannot tell whether the token was revoked; try again later \
                   or at another hub";
    Failure::new(Code::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gate, Grant, Mode, Peer};

    #[test]
    fn shared_tokens_are_accepted_until_they_are_revoked_or_doubtful() {
        let root = tempfile::tempdir().unwrap();
        let store = TokenStore::open(root.path()).unwrap();
        let gate = Gate::new(Mode::Secured, store.clone());
        let new = NewToken::new(Grant::Super).labelled("shared");
        let minted = store.prepare(new).unwrap();
        let admit = || gate.authenticate(Some(minted.token.reveal()), Peer::LOCAL);
        assert_eq!(admit().unwrap_err().code, Code::Unauthenticated);
        let json = minted.record.to_shared().unwrap();
        assert!(!json.contains(minted.token.reveal()));
        let record = Record::from_shared(json.as_bytes()).unwrap();
        assert_eq!(record, minted.record);
        store.share(record.clone());
        assert_eq!(admit().unwrap().token, Some(record.id.clone()));
        assert_eq!(store.list().unwrap().len(), 1);
        store.trust_shared(SharedTrust::Outdated);
        assert_eq!(admit().unwrap_err().code, Code::Unavailable);
        assert_eq!(store.by_id(&record.id).unwrap_err().code, Code::Unavailable);
        store.trust_shared(SharedTrust::Current);
        admit().unwrap();
        store.unshare(&record.id);
        assert_eq!(admit().unwrap_err().code, Code::Unauthenticated);
        assert_eq!(
            store.by_id(&record.id).unwrap_err().message,
            "token revoked"
        );
        assert!(!root.path().join(crate::TOKENS).exists());
    }

    #[test]
    fn a_damaged_record_is_not_a_token() {
        for bad in ["", "{}", r#"{"v":2}"#, r#"{"v":1,"id":"x","kind":"super"}"#] {
            assert!(Record::from_shared(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
