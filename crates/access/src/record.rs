//! The stored properties of a token.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::clock::{self, Millis};
use crate::token::Fingerprint;
use crate::{Grant, NewToken, Principal, Scope, TokenId, TokenKind};

/// The version of records in a cluster.
const SHARED_VERSION: u64 = 1;

/// The stored properties of a token, without the token itself.
///
/// It serialises as the list of tokens shows it, which is the form in the file without the hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The id that lists show and that revokes the token.
    pub id: TokenId,
    /// The identity of its bearer.
    pub grant: Grant,
    pub created: Millis,
    /// `None` if the token never expires.
    pub expires: Option<Millis>,
    /// The last use, accurate to a minute.
    pub last_used: Option<Millis>,
    /// The label that people see.
    pub label: String,
    /// The token is the one in the file for the local command line.
    pub is_local: bool,
    pub(crate) fingerprint: Fingerprint,
    other: Map<String, Value>,
}

impl Record {
    pub(crate) fn new(id: TokenId, fingerprint: Fingerprint, new: NewToken, now: Millis) -> Self {
        let lifetime = new
            .lifetime
            .map(|lifetime| Millis::try_from(lifetime.as_millis()).unwrap_or(Millis::MAX));
        Self {
            id,
            grant: new.grant,
            created: now,
            expires: lifetime.map(|lifetime| now.saturating_add(lifetime)),
            last_used: None,
            label: new.label,
            is_local: false,
            fingerprint,
            other: Map::new(),
        }
    }

    /// Encodes the record for the hubs of a cluster, with the hash of the token; `None` if that is impossible.
    pub fn to_shared(&self) -> Option<String> {
        let mut value = serde_json::to_value(StoredRecord::from(self.clone())).ok()?;
        value["v"] = SHARED_VERSION.into();
        Some(value.to_string())
    }

    /// Decodes a record of the cluster; `None` if it is damaged or of another version.
    pub fn from_shared(bytes: &[u8]) -> Option<Self> {
        let mut value: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
        let version = value.remove("v")?;
        if version.as_u64() != Some(SHARED_VERSION) {
            return None;
        }
        let stored: StoredRecord = serde_json::from_value(Value::Object(value)).ok()?;
        Self::try_from(stored).ok()
    }

    pub fn kind(&self) -> TokenKind {
        self.grant.kind()
    }

    pub fn is_expired(&self, now: Millis) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns the identity of the bearer.
    pub fn principal(&self) -> Principal {
        match &self.grant {
            Grant::Super => Principal::Super,
            Grant::Hub { scope, manage } => Principal::Hub {
                scope: scope.clone(),
                manage: *manage,
                id: self.id.clone(),
            },
            Grant::Clip { alias, owner } => Principal::Clip {
                alias: alias.as_str().into(),
                owner: owner.clone(),
            },
            Grant::Metrics => Principal::Metrics,
        }
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut shown = StoredRecord::from(self.clone());
        shown.sha256 = None;
        shown.serialize(out)
    }
}

/// The form of records in the file.
pub(crate) mod stored {
    use super::{Record, StoredRecord};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(records: &[Record], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(records.iter().cloned().map(StoredRecord::from))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Record>, D::Error> {
        let stored = Vec::<StoredRecord>::deserialize(from)?;
        let records = stored.into_iter().map(Record::try_from);
        records.collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// A record in the form of the file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredRecord {
    id: TokenId,
    kind: TokenKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    manage: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    local: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<Fingerprint>,
    #[serde(
        default,
        serialize_with = "clock::to_text",
        deserialize_with = "clock::from_text"
    )]
    created: Option<Millis>,
    #[serde(
        default,
        serialize_with = "clock::to_text",
        deserialize_with = "clock::from_text",
        skip_serializing_if = "Option::is_none"
    )]
    expires: Option<Millis>,
    #[serde(
        default,
        serialize_with = "clock::to_text",
        deserialize_with = "clock::from_text",
        skip_serializing_if = "Option::is_none"
    )]
    last_used: Option<Millis>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    label: String,
    /// Members of later versions.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl TryFrom<StoredRecord> for Record {
    type Error = String;

    fn try_from(stored: StoredRecord) -> Result<Self, String> {
        let id = &stored.id;
        if id.as_str().is_empty() {
            return Err("a token has no id".into());
        }
        let no_hash = || format!("token {id} has no sha256");
        let fingerprint = stored.sha256.ok_or_else(no_hash)?;
        let grant = match stored.kind {
            TokenKind::Super => Grant::Super,
            TokenKind::Hub => Grant::Hub {
                scope: stored
                    .scope
                    .ok_or_else(|| format!("hub token {id} has no scope"))?,
                manage: stored.manage,
            },
            TokenKind::Clip => Grant::Clip {
                alias: stored
                    .alias
                    .ok_or_else(|| format!("clip token {id} has no alias"))?,
                owner: stored.scope,
            },
            TokenKind::Metrics => Grant::Metrics,
        };
        Ok(Self {
            id: stored.id,
            grant,
            created: stored.created.unwrap_or_default(),
            expires: stored.expires,
            last_used: stored.last_used,
            label: stored.label,
            is_local: stored.local,
            fingerprint,
            other: stored.other,
        })
    }
}

impl From<Record> for StoredRecord {
    fn from(record: Record) -> Self {
        let kind = record.kind();
        let (scope, alias, manage) = match record.grant {
            Grant::Super | Grant::Metrics => (None, None, false),
            Grant::Hub { scope, manage } => (Some(scope), None, manage),
            Grant::Clip { alias, owner } => (owner, Some(alias), false),
        };
        Self {
            id: record.id,
            kind,
            scope,
            alias,
            manage,
            local: record.is_local,
            sha256: Some(record.fingerprint),
            created: Some(record.created),
            expires: record.expires,
            last_used: record.last_used,
            label: record.label,
            other: record.other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Record, String> {
        let stored: StoredRecord = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Record::try_from(stored)
    }

    #[test]
    fn keys_of_later_versions_stay() {
        let text = format!(
            r#"{{"id":"a1","kind":"clip","alias":"todo","sha256":"{}","created":"2026-01-31T18:56:25.478Z","colour":"red"}}"#,
            "0".repeat(64)
        );
        let record = read(&text).unwrap();
        assert_eq!(record.created, 1_769_885_785_478);
        assert_eq!(
            serde_json::to_string(&StoredRecord::from(record)).unwrap(),
            text
        );
    }

    #[test]
    fn a_list_shows_no_hash() {
        let text = format!(
            r#"{{"id":"a1","kind":"hub","scope":"@me","manage":true,"sha256":"{}","created":"2026-01-31T18:56:25.478Z"}}"#,
            "0".repeat(64)
        );
        let shown = serde_json::to_string(&read(&text).unwrap()).unwrap();
        let expected = r#"{"id":"a1","kind":"hub","scope":"@me","manage":true,"created":"2026-01-31T18:56:25.478Z"}"#;
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_record_that_grants_nothing_is_refused() {
        let hash = "0".repeat(64);
        for text in [
            format!(r#"{{"id":"a1","kind":"hub","sha256":"{hash}"}}"#),
            format!(r#"{{"id":"a1","kind":"clip","sha256":"{hash}"}}"#),
            format!(r#"{{"id":"","kind":"super","sha256":"{hash}"}}"#),
            format!(r#"{{"id":"a1","kind":"root","sha256":"{hash}"}}"#),
            format!(r#"{{"id":"a1","kind":"super","sha256":"{hash}","expires":"never"}}"#),
            r#"{"id":"a1","kind":"super","sha256":"00"}"#.into(),
            r#"{"id":"a1","kind":"super"}"#.into(),
        ] {
            assert!(read(&text).is_err(), "{text}");
        }
    }
}
