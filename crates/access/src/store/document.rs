//! `tokens.json`: `{"version":1,"tokens":[{"id":"k3v9q2mx","kind":"hub","scope":"@me","manage":true,"sha256":"…","created":"…"}]}`.
//!
//! A file that is damaged, newer than we are or readable by others is an error, and never overwritten.

use std::collections::HashSet;
use std::path::Path;

use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::disk::{self, Stamp};
use crate::token::Fingerprint;
use crate::{Millis, NewToken, Record, Token, TokenId};

/// The version of the file we write.
const VERSION: u32 = 1;
/// How long a record is listed after its token has ended.
const REMEMBERED: Millis = 30 * 86_400_000;

/// The file as a whole.
#[derive(Serialize, Deserialize)]
pub(crate) struct Document {
    version: u32,
    #[serde(with = "crate::record::kept")]
    pub(crate) tokens: Vec<Record>,
    /// What later versions keep here.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Document {
    /// What the file at `path` says; an empty one if there is none.
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
                "{} is of version {}, and this program knows version {VERSION}: use the one that wrote it",
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
                format_args!("the id {} is there twice", twice.id),
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

    /// Adds a record of `token`, and forgets those that ended long ago.
    pub(crate) fn add(
        &mut self,
        token: &Token,
        new: NewToken,
        now: Millis,
    ) -> Result<Record, Failure> {
        self.tokens
            .retain(|record| !record.is_expired(now.saturating_sub(REMEMBERED)));
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

    /// Forgets the record with this id.
    pub(crate) fn remove(&mut self, id: &TokenId) -> Option<Record> {
        let place = self.tokens.iter().position(|record| record.id == *id)?;
        Some(self.tokens.remove(place))
    }

    /// The record of `token`, if it is there.
    pub(crate) fn record_of(&self, token: &Token) -> Option<&Record> {
        let fingerprint = Fingerprint::of(token.reveal());
        self.tokens
            .iter()
            .find(|record| record.fingerprint == fingerprint)
    }
}
