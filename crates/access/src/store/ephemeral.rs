//! Tokens that are never written to a file and end with their guard.

use std::fmt;

use pinion_status::Failure;

use super::TokenStore;
use crate::token::Fingerprint;
use crate::{Grant, NewToken, Record, Token, TokenId};

/// A token that is valid until this is dropped.
pub struct EphemeralToken {
    store: TokenStore,
    id: TokenId,
    token: Token,
}

impl TokenStore {
    /// Creates a token that is valid until its guard is dropped, for a clip while it runs.
    pub fn mint_ephemeral(&self, grant: Grant) -> Result<EphemeralToken, Failure> {
        let token = Token::random(grant.kind())?;
        self.pass(token, grant)
    }

    /// Accepts a super token from a flag or a variable until its guard is dropped.
    pub fn accept_super(&self, token: Token) -> Result<EphemeralToken, Failure> {
        let token = Token::chosen(token.reveal())?;
        self.pass(token, Grant::Super)
    }

    fn pass(&self, token: Token, grant: Grant) -> Result<EphemeralToken, Failure> {
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
                .ephemeral
                .insert(Record::new(id.clone(), fingerprint, new, now));
            Ok(id)
        })?;
        let store = self.clone();
        Ok(EphemeralToken { store, id, token })
    }
}

impl EphemeralToken {
    pub fn token(&self) -> &Token {
        &self.token
    }

    pub fn id(&self) -> &TokenId {
        &self.id
    }
}

impl Drop for EphemeralToken {
    fn drop(&mut self) {
        self.store.write(|state| state.ephemeral.remove(&self.id));
        self.store.shared.changes.send_replace(());
    }
}

impl fmt::Debug for EphemeralToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("EphemeralToken")
            .field(&self.id)
            .finish()
    }
}
