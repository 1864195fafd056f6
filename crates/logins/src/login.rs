//! A stored login: an entry of `auth.json` of the type `oauth`, with every member that its provider gave it.

use pinion_message::{Millis, Secret, now_millis};
use serde_json::{Map, Value};

/// Milliseconds before the end of a login at which it is renewed.
pub const RENEWAL_MARGIN: Millis = 5 * 60 * 1000;
/// The end of a login that never expires, as pi stores it: the largest exact integer of JavaScript.
const NEVER: i64 = 9_007_199_254_740_991;

/// A login. All of it is secret.
#[derive(Clone, PartialEq)]
pub struct Login {
    members: Map<String, Value>,
}

/// Shows the names of the members only.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.members.keys().collect();
        f.debug_struct("Login").field("members", &names).finish()
    }
}

impl Login {
    /// Creates a login from what a provider returned.
    pub fn new(access: &str, refresh: &str, expires: Millis) -> Self {
        let mut members = Map::new();
        members.insert("type".into(), "oauth".into());
        members.insert("access".into(), access.into());
        members.insert("refresh".into(), refresh.into());
        members.insert("expires".into(), expires.into());
        Self { members }
    }

    /// Creates a login that never expires and is never renewed.
    pub fn permanent(access: &str) -> Self {
        Self::new(access, "", NEVER)
    }

    /// Reads a stored entry. The error names the member that is wrong.
    pub fn from_entry(mut members: Map<String, Value>) -> Result<Self, String> {
        members.insert("type".into(), "oauth".into());
        match members.get("access") {
            Some(Value::String(_)) => {}
            Some(_) => return Err("\"access\" must be a text".into()),
            None => return Err("\"access\" is missing".into()),
        }
        for name in ["expires"] {
            if members.get(name).is_some_and(|value| !value.is_number()) {
                return Err(format!("\"{name}\" must be a number"));
            }
        }
        Ok(Self { members })
    }

    /// Adds a member of the provider.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }

    /// The entry to store.
    pub fn entry(&self) -> Value {
        Value::Object(self.members.clone())
    }

    /// The value that requests send.
    pub fn access(&self) -> &str {
        self.text("access").unwrap_or_default()
    }

    /// The value that renews the login; empty if it cannot be renewed.
    pub fn refresh(&self) -> &str {
        self.text("refresh").unwrap_or_default()
    }

    /// The end of the login, in milliseconds since 1970; 0 if it is not known.
    pub fn expires(&self) -> Millis {
        let expires = self.members.get("expires").and_then(Value::as_f64);
        // A cast from a float saturates.
        expires.unwrap_or_default() as Millis
    }

    /// A text member.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    /// Reports whether the login has expired.
    pub fn is_expired(&self) -> bool {
        self.expires() <= now_millis()
    }

    /// Reports whether the login must be renewed before a request: it ends within five minutes.
    pub fn is_due(&self) -> bool {
        self.ends_within(RENEWAL_MARGIN)
    }

    /// Reports whether the login ends within so many milliseconds.
    pub fn ends_within(&self, margin: Millis) -> bool {
        now_millis().saturating_add(margin) >= self.expires()
    }

    /// Every text of the login, for masks. Short ones are names, not secrets; masks ignore them.
    pub fn secrets(&self) -> Vec<Secret> {
        let secret = |name: &str| self.text(name).filter(|text| !text.is_empty());
        let named = ["access", "refresh", "idToken"]
            .into_iter()
            .filter_map(secret);
        named.map(Secret::from).collect()
    }

    /// Replaces the secrets of the login in `text`, which may repeat what a server received.
    pub fn masked(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for name in ["access", "refresh", "idToken"] {
            if let Some(secret) = self.text(name).filter(|secret| secret.len() >= 6) {
                text = text.replace(secret, "***");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn every_member_survives_and_none_is_printed() {
        let stored = json!({"type":"oauth","access":"planted-a","refresh":"planted-r","expires":5.5e12,"accountId":"acct","deep":{"x":[1]}});
        let login = Login::from_entry(entry(stored.clone())).unwrap();
        assert_eq!(login.entry(), stored);
        assert_eq!(login.expires(), 5_500_000_000_000);
        assert!(!format!("{login:?}").contains("planted"));
        assert_eq!(login.masked("bad planted-r!"), "bad ***!");
        assert!(Login::from_entry(entry(json!({"access": 7}))).is_err());
        assert!(Login::from_entry(entry(json!({"access": "a", "expires": "x"}))).is_err());
    }

    #[test]
    fn a_login_is_due_five_minutes_early() {
        let now = now_millis();
        let login = |expires| Login::new("a", "r", expires);
        assert!(login(now + 4 * 60_000).is_due() && !login(now + 4 * 60_000).is_expired());
        assert!(!login(now + 6 * 60_000).is_due());
        assert!(login(now - 1).is_expired());
        assert!(!Login::permanent("k").is_due());
        assert_eq!(Login::permanent("k").entry()["expires"], json!(NEVER));
    }
}
