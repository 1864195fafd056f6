//! The way in, made by the first start.

use std::path::PathBuf;

use pinion_status::Failure;

use crate::{Grant, Kind, LOCAL_TOKEN, NewToken, Token, TokenId, TokenStore, disk, local_token};

/// The local super token, and where it is.
#[derive(Debug)]
pub struct Entrance {
    /// The token.
    pub token: Token,
    /// What it is called.
    pub id: TokenId,
    /// The file it is in.
    pub path: PathBuf,
    /// Whether it was made just now, so that it is worth telling how to get in.
    pub is_new: bool,
}

/// Makes sure that there is a local super token, in a file that only its owner can read.
///
/// A token whose file was lost is revoked and replaced, and so is one that was revoked or has expired while its file is still there.
pub fn bootstrap(store: &TokenStore) -> Result<Entrance, Failure> {
    let path = store.root().join(LOCAL_TOKEN);
    let now = store.clock().now();
    if let Some(token) = local_token(store.root())? {
        store.refresh();
        let good = store.recognise(token.reveal()).ok();
        if let Some(entry) = good.filter(|entry| entry.record.is_local) {
            let id = entry.record.id.clone();
            let is_new = false;
            return Ok(Entrance {
                token,
                id,
                path,
                is_new,
            });
        }
    }
    let token = Token::random(Kind::Super)?;
    let (id, token, is_new) = store.change(|document| {
        // Another process may have been here since.
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
        // Written first: a file without its record is replaced by the next start, under the same lock as here.
        disk::replace(&path, format!("{}\n", token.reveal()).as_bytes())?;
        Ok((record.id, token, true))
    })?;
    Ok(Entrance {
        token,
        id,
        path,
        is_new,
    })
}
