//! The rights and lifetime of a new token.

use std::time::Duration;

use pinion_status::Failure;
use pinion_text::duration;

use crate::{Scope, TokenKind};

/// A hundred years.
const MAX_LIFETIME_SECONDS: u64 = 100 * 366 * 24 * 60 * 60;

/// The identity that a token gives to its bearer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// May do everything.
    Super,
    /// A user.
    Hub {
        /// The user's scope.
        scope: Scope,
        /// The user may also install, remove and bind clips of the scope.
        manage: bool,
    },
    /// A clip.
    Clip {
        alias: String,
        /// The owner; `None` for clips installed without a scope.
        owner: Option<Scope>,
    },
    /// May read the hub's metrics.
    Metrics,
}

impl Grant {
    /// Creates a grant from the values of a form or a command line.
    pub fn from_words(
        kind: TokenKind,
        scope: Option<&str>,
        alias: Option<&str>,
        manage: bool,
    ) -> Result<Self, Failure> {
        let wrong = |message| Err(Failure::invalid(message));
        let scope = scope.map(str::parse).transpose()?;
        match (kind, scope, alias) {
            (TokenKind::Hub, Some(scope), None) => Ok(Self::Hub { scope, manage }),
            (TokenKind::Hub, None, _) => {
                wrong("a hub token needs the scope of its user, such as @me")
            }
            (TokenKind::Hub | TokenKind::Super | TokenKind::Metrics, _, Some(_)) => {
                wrong("only a clip token has an alias")
            }
            (TokenKind::Clip | TokenKind::Super | TokenKind::Metrics, ..) if manage => {
                wrong("only a hub token has manage")
            }
            (TokenKind::Clip, owner, Some(alias)) if is_alias(alias) => {
                let alias = alias.to_owned();
                Ok(Self::Clip { alias, owner })
            }
            (TokenKind::Clip, ..) => {
                wrong("a clip token needs the alias of its clip: a-z, 0-9 and -")
            }
            (TokenKind::Super, Some(_), _) => {
                wrong("a super token has no scope: it may do everything")
            }
            (TokenKind::Super, None, None) => Ok(Self::Super),
            (TokenKind::Metrics, Some(_), _) => {
                wrong("a metrics token has no scope: it reads the metrics of the whole hub")
            }
            (TokenKind::Metrics, None, None) => Ok(Self::Metrics),
        }
    }

    /// Returns the kind of token that has this grant.
    pub fn kind(&self) -> TokenKind {
        match self {
            Self::Super => TokenKind::Super,
            Self::Hub { .. } => TokenKind::Hub,
            Self::Clip { .. } => TokenKind::Clip,
            Self::Metrics => TokenKind::Metrics,
        }
    }
}

fn is_alias(text: &str) -> bool {
    let fits = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-');
    !text.is_empty() && text.bytes().all(fits)
}

/// The lifetime of a token whose creator sets none: 90 days.
pub const DEFAULT_LIFETIME: Duration = Duration::from_hours(90 * 24);

/// The properties of a token to be created.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub(crate) grant: Grant,
    pub(crate) lifetime: Option<Duration>,
    pub(crate) label: String,
}

impl NewToken {
    /// Creates the properties of a token that never expires.
    pub fn new(grant: Grant) -> Self {
        let (lifetime, label) = (None, String::new());
        Self {
            grant,
            lifetime,
            label,
        }
    }

    /// Sets the lifetime.
    #[must_use]
    pub fn lasting(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Sets the label that people see.
    #[must_use]
    pub fn labelled(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
}

fn parse_lifetime(text: &str) -> Result<Duration, Failure> {
    let wrong = || {
        Failure::invalid(format!(
            "{text:?} is not a lifetime of a token; write 30m, 12h, 90d, 2w or never"
        ))
    };
    let lifetime = duration::parse(&text.trim().to_ascii_lowercase()).ok_or_else(wrong)?;
    if (1..=MAX_LIFETIME_SECONDS).contains(&lifetime.as_secs()) {
        Ok(lifetime)
    } else {
        Err(wrong())
    }
}

/// Parses an expiry: `never` is `None`, else `90d`, `12h`, `30m`, `45s`, `2w`.
pub fn parse_expiry(text: &str) -> Result<Option<Duration>, Failure> {
    if text.trim().eq_ignore_ascii_case("never") {
        return Ok(None);
    }
    parse_lifetime(text).map(Some)
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
            let lifetime = parse_expiry(text).unwrap();
            assert_eq!(lifetime, Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse_expiry(" Never ").unwrap(), None);
        for text in [
            "",
            "nevr",
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
            assert!(parse_expiry(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_that_do_not_fit_together_are_refused() {
        let read = Grant::from_words;
        let me: Scope = "@me".parse().unwrap();
        let hub = Grant::Hub {
            scope: me.clone(),
            manage: true,
        };
        assert_eq!(read(TokenKind::Hub, Some("me"), None, true), Ok(hub));
        let clip = |owner| Grant::Clip {
            alias: "todo-2".into(),
            owner,
        };
        assert_eq!(
            read(TokenKind::Clip, None, Some("todo-2"), false),
            Ok(clip(None))
        );
        assert_eq!(
            read(TokenKind::Clip, Some("@me"), Some("todo-2"), false),
            Ok(clip(Some(me)))
        );
        assert_eq!(read(TokenKind::Super, None, None, false), Ok(Grant::Super));
        assert_eq!(
            read(TokenKind::Metrics, None, None, false),
            Ok(Grant::Metrics)
        );
        for (kind, scope, alias, manage) in [
            (TokenKind::Metrics, Some("@me"), None, false),
            (TokenKind::Metrics, None, Some("todo"), false),
            (TokenKind::Metrics, None, None, true),
            (TokenKind::Hub, None, None, false),
            (TokenKind::Hub, Some("@"), None, false),
            (TokenKind::Hub, Some("@me"), Some("todo"), false),
            (TokenKind::Clip, None, None, false),
            (TokenKind::Clip, None, Some(""), false),
            (TokenKind::Clip, None, Some("To Do"), false),
            (TokenKind::Clip, None, Some("todo"), true),
            (TokenKind::Super, Some("@me"), None, false),
            (TokenKind::Super, None, Some("todo"), false),
            (TokenKind::Super, None, None, true),
        ] {
            assert!(
                read(kind, scope, alias, manage).is_err(),
                "{kind} {scope:?} {alias:?} {manage}"
            );
        }
    }

    proptest! {
        #[test]
        fn lifetimes_never_panic(text in "\\PC{0,30}") {
            let _ = parse_expiry(&text);
        }
    }
}
