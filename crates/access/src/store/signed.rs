//! Tokens of an external issuer, accepted until they expire.

use pinion_status::Failure;

use super::TokenStore;
use crate::token::Fingerprint;
use crate::{NewToken, Record, TokenId, VerifiedGrant};

/// The number of tokens in memory. One more removes the least recently used one, which is verified again when it
/// returns.
const MAX_TOKENS: usize = 10_000;
/// The number of tokens from which expired ones are searched for.
const SWEEP_THRESHOLD: usize = 256;

impl TokenStore {
    /// Reports whether the token with this plain text is in the store, or was accepted already.
    pub fn is_known(&self, token: &str) -> bool {
        matches!(self.find(&Fingerprint::of(token)), Ok(Some(_)))
    }

    /// Accepts a token until it expires, because a trusted issuer signed it. It is never written to a file.
    pub fn accept_signed(&self, token: &str, signed: VerifiedGrant) -> Result<(), Failure> {
        let fingerprint = Fingerprint::of(token);
        let now = self.clock().now();
        self.write(|state| {
            if state.signed.find(&fingerprint).is_some() {
                return Ok(());
            }
            if state.signed.len() >= SWEEP_THRESHOLD {
                state.signed.evict(now, MAX_TOKENS);
            }
            let id = loop {
                let id = TokenId::random()?;
                if state.by_id(&id).is_none() {
                    break id;
                }
            };
            let mut record = Record::new(id, fingerprint, NewToken::new(signed.grant), now);
            record.expires = Some(signed.expires);
            state.signed.insert(record);
            Ok(())
        })
    }
}
