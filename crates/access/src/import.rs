//! Imports the super token of a Pinix `config.json`, so that it works and is no longer stored in plain text.

use std::fmt;
use std::path::Path;

use pinion_status::Failure;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::disk::{self, Lock};
use crate::{Grant, NewToken, Token, TokenId, TokenStore};

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Import {
    /// The file has no super token.
    Nothing,
    /// The token is in the store now, and its plain text is deleted.
    Migrated(TokenId),
    /// The token is too short to be accepted; nothing was changed.
    TooShort,
}

/// Moves the plain `super_token` of the `config.json` at `path` into `store`. The rest of the file stays the same, byte
/// for byte.
pub fn import_super_token(store: &TokenStore, path: &Path) -> Result<Import, Failure> {
    if !path.try_exists().unwrap_or(true) {
        return Ok(Import::Nothing);
    }
    let _lock = Lock::of(path)?;
    let Some(content) = disk::read(path)? else {
        return Ok(Import::Nothing);
    };
    let members: Members =
        serde_json::from_slice(&content.bytes).map_err(|error| disk::damaged(path, error))?;
    let Some((_, value)) = members.0.iter().find(|(key, _)| key == "super_token") else {
        return Ok(Import::Nothing);
    };
    let text: Option<String> = serde_json::from_str(value.get())
        .map_err(|error| disk::damaged(path, format_args!("super_token: {error}")))?;
    let Some(token) = text.as_deref().and_then(Token::given) else {
        return Ok(Import::Nothing);
    };
    content.must_be_private(path)?;
    let Ok(token) = Token::chosen(token.reveal()) else {
        return Ok(Import::TooShort);
    };
    let now = store.clock().now();
    let id = store.change(|document| {
        if let Some(known) = document.record_of(&token) {
            return Ok(known.id.clone());
        }
        let new = NewToken::new(Grant::Super).labelled("from config.json");
        Ok(document.add(&token, new, now)?.id)
    })?;
    disk::replace(path, members.without("super_token").as_bytes())?;
    Ok(Import::Migrated(id))
}

/// The members of an object with the exact text of their values.
struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    fn without(&self, key: &str) -> String {
        let others = self.0.iter().filter(|(name, _)| name != key);
        let members = others.map(|(name, value)| {
            let name = serde_json::Value::from(name.as_str());
            format!("  {name}: {}", value.get())
        });
        let members: Vec<String> = members.collect();
        match members.as_slice() {
            [] => "{}\n".into(),
            members => format!("{{\n{}\n}}\n", members.join(",\n")),
        }
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Collect)
    }
}
