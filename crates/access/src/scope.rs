//! Scopes: the owners of clips and tokens.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use pinion_status::Failure;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest name of a scope, in characters, without its `@`.
const MAX_NAME_LENGTH: usize = 64;

/// The owner of a clip or token: `@name`, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Arc<str>);

impl Scope {
    /// Returns the scope with its `@`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Scope {
    type Err = Failure;

    /// Parses `@name` or `name`: letters, digits and inner `-`, `_`, `.`. Letters become lower case.
    fn from_str(text: &str) -> Result<Self, Failure> {
        let name = text.trim();
        let name = name.strip_prefix('@').unwrap_or(name);
        let plain = |letter: &u8| letter.is_ascii_alphanumeric();
        let bytes = name.as_bytes();
        let is_name = bytes.len() <= MAX_NAME_LENGTH
            && bytes.first().is_some_and(plain)
            && bytes.last().is_some_and(plain)
            && bytes
                .iter()
                .all(|letter| plain(letter) || b"-_.".contains(letter));
        if is_name {
            Ok(Self(format!("@{}", name.to_ascii_lowercase()).into()))
        } else {
            Err(Failure::invalid(format!(
                "{text:?} is not a scope; write @name, with letters, digits and inner - _ . and at most {MAX_NAME_LENGTH} of them"
            )))
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scopes_are_names_behind_an_at_sign() {
        for (text, scope) in [("@me", "@me"), ("Ada.L", "@ada.l"), (" @a-b_c ", "@a-b_c")] {
            assert_eq!(text.parse::<Scope>().unwrap().as_str(), scope);
        }
        for text in [
            "",
            "@",
            "@@me",
            "@-me",
            "me.",
            "@a/b",
            "@a b",
            "@\u{e9}",
            &"x".repeat(65),
        ] {
            assert!(text.parse::<Scope>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_parsed_scope_is_stable(text in "\\PC{0,80}") {
            if let Ok(scope) = text.parse::<Scope>() {
                prop_assert_eq!(scope.as_str().parse::<Scope>().unwrap(), scope.clone());
                prop_assert!(scope.as_str().is_ascii() && scope.as_str().starts_with('@'));
            }
        }
    }
}
