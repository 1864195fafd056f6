//! Logins in registry files: a token and its expiry. This module does not log in.

use jiff::Timestamp;
use pinion_message::Secret;
use serde_json::Value;

use crate::error::ProfileError;
use crate::library::Selected;

/// The extension that holds a login.
pub(crate) const EXTENSION: &str = "pinocchio.oauth@v1";

/// Returns the token to send instead of a key, if the profile has a login.
pub(crate) fn token(
    profile: &Selected,
    has_static_key: bool,
    now: Timestamp,
) -> Result<Option<Secret>, ProfileError> {
    let Some(login) = profile.extensions.get(&[EXTENSION]) else {
        return Ok(None);
    };
    let wrong = |message: String| {
        Err(ProfileError::OAuth {
            profile: profile.slug.to_string(),
            message,
        })
    };
    let text = |name: &str| {
        let value = login.get(name).and_then(Value::as_str);
        value.map(str::trim).filter(|value| !value.is_empty())
    };
    match text("kind") {
        None | Some("oauth_bearer") => {}
        Some(kind) => {
            return wrong(format!(
                "{EXTENSION} is of kind \"{kind}\", and only oauth_bearer is known"
            ));
        }
    }
    if has_static_key {
        return wrong(format!(
            "it has both a login ({EXTENSION}) and a key under api.api_keys; take one of them out"
        ));
    }
    let again = format!(
        "log in again and write the token to {EXTENSION}, in {}",
        profile.origin
    );
    let Some(token) = text("access_token") else {
        return wrong(format!("it has a login and no access_token; {again}"));
    };
    if let Some(value) = login.get("expires_at").filter(|value| !value.is_null()) {
        match expiry(value) {
            None => {
                return wrong(
                    "expires_at of its login is not a time; write 2026-01-31T12:00:00Z".to_owned(),
                );
            }
            Some(end) if end <= now => {
                return wrong(format!("its login ended at {end}; {again}"));
            }
            Some(_) => {}
        }
    }
    Ok(Some(Secret::from(token.to_owned())))
}

/// Parses a time as text, or as seconds or milliseconds since 1970. An empty text never expires.
fn expiry(value: &Value) -> Option<Timestamp> {
    let number = |number: i64| match number {
        // As seconds this would be in the year 5138.
        100_000_000_000.. => Timestamp::from_millisecond(number).ok(),
        _ => Timestamp::from_second(number).ok(),
    };
    match value {
        Value::Number(seconds) => number(seconds.as_i64().or(seconds.as_f64().map(|n| n as i64))?),
        Value::String(text) if text.trim().is_empty() => Some(Timestamp::MAX),
        Value::String(text) => {
            let text = text.trim();
            match text.parse::<i64>() {
                Ok(seconds) => number(seconds),
                Err(_) => text.parse().ok(),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use serde_json::json;

    use super::*;
    use crate::slug::Slug;
    use crate::tree::Tree;

    fn profile(login: Value) -> Selected {
        let mut extensions = Tree::default();
        extensions.set(&[EXTENSION], login);
        Selected {
            registry: Slug::new("team").unwrap(),
            slug: Slug::new("work").unwrap(),
            display_name: None,
            origin: "team.yaml".to_owned(),
            lineage: Vec::new(),
            settings: Tree::default(),
            extensions,
        }
    }

    #[test]
    fn a_login_is_used_until_it_ends() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        for (expires, good) in [
            (json!(null), true),
            (json!(""), true),
            (json!("2026-06-01T00:00:01Z"), true),
            (json!("2026-06-01T00:00:00Z"), false),
            (json!("2026-06-01T02:00:00+02:00"), false),
            (json!(1_900_000_000), true),
            (json!(1_900_000_000_000_i64), true),
            (json!(1_500_000_000), false),
            (json!("1500000000"), false),
            (json!("soon"), false),
            (json!([]), false),
        ] {
            let login =
                json!({"kind": "oauth_bearer", "access_token": " tok ", "expires_at": expires});
            let token = token(&profile(login), false, now);
            let told = token.as_ref().err().map(ToString::to_string);
            let found = token.ok().flatten();
            let found = found.as_ref().map(ExposeSecret::expose_secret);
            assert_eq!(found, good.then_some("tok"), "{expires}");
            assert!(!told.unwrap_or_default().contains("tok "), "{expires}");
        }
    }

    #[test]
    fn a_login_that_cannot_be_used_says_why() {
        let now = Timestamp::UNIX_EPOCH;
        for (login, key, words) in [
            (json!({"access_token": "tok"}), true, "take one of them out"),
            (
                json!({"kind": "device", "access_token": "tok"}),
                false,
                "only oauth_bearer",
            ),
            (json!({"kind": "oauth_bearer"}), false, "no access_token"),
        ] {
            let told = token(&profile(login), key, now).unwrap_err();
            assert_eq!(told.code(), "login_unusable");
            assert!(told.to_string().contains(words), "{told}");
        }
    }
}
