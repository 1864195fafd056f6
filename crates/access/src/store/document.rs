//! `tokens.json`:
//! `{"version":1,"tokens":[{"id":"k3v9q2mx","kind":"hub","scope":"@me","manage":true,"sha256":"…","created":"…"}]}`.
//!
//! A file that is damaged, of a newer version or readable by others is an error and is never overwritten.

use std::collections::HashSet;
use std::path::Path;

use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::disk::{self, Stamp};
use crate::token::Fingerprint;
use crate::{Millis, NewToken, Record, Token, TokenId};

/// The version of the file that this program writes.
const VERSION: u32 = 1;
/// Milliseconds for which a record is listed after its token has expired: 30 days.
const EXPIRED_RECORD_TTL: Millis = 30 * 86_400_000;

#[derive(Serialize, Deserialize)]
pub(crate) struct Document {
    version: u32,
    #[serde(with = "crate::record::stored")]
    pub(crate) tokens: Vec<Record>,
    /// Members of later versions.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Document {
    /// Reads the file at `path`; empty if it does not exist.
    pub(super) fn read(path: &Path) -> Result<(Self, Option<Stamp>), Failure> {
        let Some(content) = disk::read_private(path)? else {
            let (tokens, other) = (Vec::new(), Map::new());
            let version = VERSION;
            return Ok((
                Self {
                    version,
                    tokens,
                    other,
                },
                None,
            ));
        };
        let document: Self =
            serde_json::from_slice(&content.bytes).map_err(|error| disk::damaged(path, error))?;
        if document.version != VERSION {
            let message = format!(
                "{} has version {}, and this program supports version {VERSION}; use the program that wrote it",
                path.display(),
                document.version
            );
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        let mut ids = HashSet::new();
        if let Some(twice) = document
            .tokens
            .iter()
            .find(|record| !ids.insert(&record.id))
        {
            return Err(disk::damaged(
                path,
                format_args!("the id {} occurs twice", twice.id),
            ));
        }
        Ok((document, Some(content.stamp)))
    }

    /// Replaces the file at `path`.
    pub(super) fn write(&self, path: &Path) -> Result<Stamp, Failure> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| {
            let message = format!("{} cannot be written: {error}", path.display());
            Failure::new(Code::Internal, message)
        })?;
        bytes.push(b'\n');
        disk::replace(path, &bytes)
    }

    /// Adds a record of `token` and removes those that expired long ago.
    pub(crate) fn add(
        &mut self,
        token: &Token,
        new: NewToken,
        now: Millis,
    ) -> Result<Record, Failure> {
        self.tokens
            .retain(|record| !record.is_expired(now.saturating_sub(EXPIRED_RECORD_TTL)));
        let id = loop {
            let id = TokenId::random()?;
            if self.tokens.iter().all(|record| record.id != id) {
                break id;
            }
        };
        let record = Record::new(id, Fingerprint::of(token.reveal()), new, now);
        self.tokens.push(record.clone());
        Ok(record)
    }

    /// Removes the record with this id.
    pub(crate) fn remove(&mut self, id: &TokenId) -> Option<Record> {
        let place = self.tokens.iter().position(|record| record.id == *id)?;
        Some(self.tokens.remove(place))
    }

    /// Returns the record of `token`.
    pub(crate) fn record_of(&self, token: &Token) -> Option<&Record> {
        let fingerprint = Fingerprint::of(token.reveal());
        self.tokens
            .iter()
            .find(|record| record.fingerprint == fingerprint)
    }
}
