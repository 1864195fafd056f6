//! Tokens that are never written down and end with whoever holds them.

use std::fmt;

use pinion_status::Failure;

use super::TokenStore;
use crate::token::Fingerprint;
use crate::{Grant, NewToken, Record, Token, TokenId};

/// A token that is good until this is dropped.
pub struct PassingToken {
    store: TokenStore,
    id: TokenId,
    token: Token,
}

impl TokenStore {
    /// Makes a token that is good until its guard is dropped, for a clip as long as it runs.
    pub fn mint_ephemeral(&self, grant: Grant) -> Result<PassingToken, Failure> {
        let token = Token::random(grant.kind())?;
        self.pass(token, grant)
    }

    /// Accepts a super token that was given by a flag or a variable, until its guard is dropped.
    pub fn accept_super(&self, token: Token) -> Result<PassingToken, Failure> {
        let token = Token::chosen(token.reveal())?;
        self.pass(token, Grant::Super)
    }

    fn pass(&self, token: Token, grant: Grant) -> Result<PassingToken, Failure> {
        let now = self.clock().now();
        let fingerprint = Fingerprint::of(token.reveal());
        let id = self.write(|state| {
            let id = loop {
                let id = TokenId::random()?;
                if state.by_id(&id).is_none() {
                    break id;
                }
            };
            let new = NewToken::new(grant);
            state
                .passing
                .insert(Record::new(id.clone(), fingerprint, new, now));
            Ok(id)
        })?;
        let store = self.clone();
        Ok(PassingToken { store, id, token })
    }
}

impl PassingToken {
    /// The token itself.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// What it is called.
    pub fn id(&self) -> &TokenId {
        &self.id
    }
}

impl Drop for PassingToken {
    fn drop(&mut self) {
        self.store.write(|state| state.passing.remove(&self.id));
        self.store.shared.changes.send_replace(());
    }
}

impl fmt::Debug for PassingToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("PassingToken")
            .field(&self.id)
            .finish()
    }
}
