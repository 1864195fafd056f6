//! What is kept of a token, and what a new one is to be.

use std::time::Duration;

use pinion_status::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::{self, Millis};
use crate::token::Fingerprint;
use crate::{Kind, Principal, Scope, TokenId};

/// Whom a token makes of its bearer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// May do everything.
    Super,
    /// A user.
    Hub {
        /// Who it is.
        scope: Scope,
        /// Whether it may also install, remove and bind what it owns.
        manage: bool,
    },
    /// A clip.
    Clip {
        /// Its alias.
        alias: String,
        /// Who owns it; nobody in particular for clips installed without a scope.
        owner: Option<Scope>,
    },
}

impl Grant {
    /// The kind of token that grants this.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Super => Kind::Super,
            Self::Hub { .. } => Kind::Hub,
            Self::Clip { .. } => Kind::Clip,
        }
    }
}

/// What a token that is to be made is for.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub(crate) grant: Grant,
    pub(crate) lifetime: Option<Duration>,
    pub(crate) label: String,
}

impl NewToken {
    /// A token for this, without an end.
    pub fn new(grant: Grant) -> Self {
        let (lifetime, label) = (None, String::new());
        Self {
            grant,
            lifetime,
            label,
        }
    }

    /// It ends after `lifetime`.
    #[must_use]
    pub fn lasting(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// What people call it.
    #[must_use]
    pub fn labelled(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
}

/// Reads how long a token is to last: `90d`, `12h`, `30m`, `45s`, `2w`.
pub fn parse_lifetime(text: &str) -> Result<Duration, Failure> {
    let wrong = || {
        Failure::invalid(format!(
            "{text:?} is not a time to live: write 30m, 12h, 90d or 2w"
        ))
    };
    let trimmed = text.trim();
    let unit = trimmed.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit.to_ascii_lowercase() {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let count = &trimmed[..trimmed.len() - 1];
    let is_number = count.bytes().all(|digit| digit.is_ascii_digit());
    let count: u64 = count
        .parse()
        .ok()
        .filter(|&count| is_number && count > 0)
        .ok_or_else(wrong)?;
    let seconds = count
        .checked_mul(seconds)
        .filter(|&seconds| seconds <= 100 * 366 * 86_400);
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

/// What is kept of a token: everything but the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Record {
    /// What it is called when it is listed or revoked.
    pub id: TokenId,
    /// Whom it makes of its bearer.
    pub grant: Grant,
    /// When it was made.
    pub created: Millis,
    /// When it ends, if it does.
    pub expires: Option<Millis>,
    /// When it was last seen, give or take a minute.
    pub last_used: Option<Millis>,
    /// What people call it.
    pub label: String,
    /// Whether it is the one in the file for the local command line.
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

    /// The kind of token it is.
    pub fn kind(&self) -> Kind {
        self.grant.kind()
    }

    /// Whether it had ended by `now`.
    pub fn is_expired(&self, now: Millis) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Who its bearer is.
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
        }
    }
}

/// A record as the file has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    id: TokenId,
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    manage: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    local: bool,
    sha256: Fingerprint,
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
    /// What later versions keep here.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl TryFrom<Stored> for Record {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let id = &stored.id;
        if id.as_str().is_empty() {
            return Err("a token has no id".into());
        }
        let grant = match stored.kind {
            Kind::Super => Grant::Super,
            Kind::Hub => Grant::Hub {
                scope: stored
                    .scope
                    .ok_or_else(|| format!("hub token {id} has no scope"))?,
                manage: stored.manage,
            },
            Kind::Clip => Grant::Clip {
                alias: stored
                    .alias
                    .ok_or_else(|| format!("clip token {id} has no alias"))?,
                owner: stored.scope,
            },
        };
        Ok(Self {
            id: stored.id,
            grant,
            created: stored.created.unwrap_or_default(),
            expires: stored.expires,
            last_used: stored.last_used,
            label: stored.label,
            is_local: stored.local,
            fingerprint: stored.sha256,
            other: stored.other,
        })
    }
}

impl From<Record> for Stored {
    fn from(record: Record) -> Self {
        let kind = record.kind();
        let (scope, alias, manage) = match record.grant {
            Grant::Super => (None, None, false),
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
            sha256: record.fingerprint,
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
    use proptest::prelude::*;

    #[test]
    fn lifetimes_are_a_number_and_a_unit() {
        for (text, seconds) in [
            ("45s", 45),
            ("30m", 1800),
            ("12h", 43_200),
            ("90d", 7_776_000),
            (" 2W ", 1_209_600),
        ] {
            assert_eq!(parse_lifetime(text).unwrap().as_secs(), seconds, "{text}");
        }
        for text in [
            "",
            "d",
            "0d",
            "-1d",
            "+1d",
            "1.5h",
            "90",
            "1y",
            "99999999999999999999d",
            "36601d",
            "1\u{e9}",
        ] {
            assert!(parse_lifetime(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_of_later_versions_stay() {
        let text = format!(
            r#"{{"id":"a1","kind":"clip","alias":"todo","sha256":"{}","created":"2026-01-31T18:56:25.478Z","colour":"red"}}"#,
            "0".repeat(64)
        );
        let record: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(record.created, 1_769_885_785_478);
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
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
        ] {
            assert!(serde_json::from_str::<Record>(&text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn lifetimes_never_panic(text in "\\PC{0,30}") {
            let _ = parse_lifetime(&text);
        }
    }
}
