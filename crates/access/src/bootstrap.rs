//! Creates the local super token on the first start of a hub.

use std::path::PathBuf;

use pinion_status::Failure;

use crate::{
    Grant, LOCAL_TOKEN, NewToken, Token, TokenId, TokenKind, TokenStore, disk, local_token,
};

/// The local super token and its file.
#[derive(Debug)]
pub struct LocalToken {
    pub token: Token,
    pub id: TokenId,
    /// The file that contains the token.
    pub path: PathBuf,
    /// The token was created by this call, so the user should see how to log in.
    pub is_new: bool,
}

/// Creates the local super token if there is none, in a file that only its owner can read.
///
/// A token whose file was lost is revoked and replaced. So is a token that was revoked or has expired while its file
/// still exists.
pub fn bootstrap(store: &TokenStore) -> Result<LocalToken, Failure> {
    let path = store.root().join(LOCAL_TOKEN);
    let now = store.clock().now();
    if let Some(token) = local_token(store.root())? {
        store.refresh();
        let good = store.recognise(token.reveal()).ok();
        if let Some(entry) = good.filter(|entry| entry.record.is_local) {
            let id = entry.record.id.clone();
            let is_new = false;
            return Ok(LocalToken {
                token,
                id,
                path,
                is_new,
            });
        }
    }
    let token = Token::random(TokenKind::Super)?;
    let (id, token, is_new) = store.change(|document| {
        // Another process may have created it in the meantime.
        if let Some(present) = local_token(store.root())? {
            let record = document
                .record_of(&present)
                .filter(|record| record.is_local);
            if let Some(record) = record.filter(|record| !record.is_expired(now)) {
                return Ok((record.id.clone(), present, false));
            }
        }
        document.tokens.retain(|record| !record.is_local);
        let new = NewToken::new(Grant::Super).labelled("local command line");
        let record = document.add(&token, new, now)?;
        if let Some(kept) = document.tokens.last_mut() {
            kept.is_local = true;
        }
        // The file is written before the record: the next start replaces a file without a record, under the same lock.
        disk::replace(&path, format!("{}\n", token.reveal()).as_bytes())?;
        Ok((record.id, token, true))
    })?;
    Ok(LocalToken {
        token,
        id,
        path,
        is_new,
    })
}
