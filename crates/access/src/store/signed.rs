//! Tokens that somebody else made, recognised until they end.

use pinion_status::Failure;

use super::TokenStore;
use crate::token::Fingerprint;
use crate::{NewToken, Record, TokenId, Vouched};

/// As many are remembered; the one that was not used for longest goes when there is one more, and is checked anew when it is shown again.
const MOST: usize = 10_000;
/// From so many on those that have ended are looked for.
const SOME: usize = 256;

impl TokenStore {
    /// Whether the token with this plain text was made here, or vouched for already.
    pub fn knows(&self, token: &str) -> bool {
        matches!(self.find(&Fingerprint::of(token)), Ok(Some(_)))
    }

    /// Recognises a token until it ends, because somebody who is trusted signed it. It is never written down.
    pub fn vouch(&self, token: &str, vouched: Vouched) -> Result<(), Failure> {
        let fingerprint = Fingerprint::of(token);
        let now = self.clock().now();
        self.write(|state| {
            if state.vouched.find(&fingerprint).is_some() {
                return Ok(());
            }
            if state.vouched.len() >= SOME {
                state.vouched.make_room(now, MOST);
            }
            let id = loop {
                let id = TokenId::random()?;
                if state.by_id(&id).is_none() {
                    break id;
                }
            };
            let mut record = Record::new(id, fingerprint, NewToken::new(vouched.grant), now);
            record.expires = Some(vouched.expires);
            state.vouched.insert(record);
            Ok(())
        })
    }
}
