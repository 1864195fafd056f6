//! `meta`: a login at Meta, as pi stored it, which mints a new key each day. pinion renews it and never makes one.

use futures_util::future::BoxFuture;
use serde_json::json;

use crate::tokens::{expiry, post_json, renewed_only, require_refresh};
use crate::{Login, LoginError, LoginProvider, SignIn};

/// Seconds for which a key is used.
const KEY_VALIDITY: i64 = 24 * 3600;

/// Mints keys for logins at Meta.
#[derive(Debug, Clone)]
pub struct Meta {
    server: String,
}

impl Default for Meta {
    fn default() -> Self {
        Self::at("https://api.meta.ai")
    }
}

impl Meta {
    /// Uses the server at this address.
    pub fn at(server: &str) -> Self {
        Self {
            server: server.to_owned(),
        }
    }
}

impl LoginProvider for Meta {
    fn name(&self) -> String {
        "Meta".to_owned()
    }

    fn can_sign_in(&self) -> bool {
        false
    }

    fn sign_in<'a>(&'a self, _sign_in: SignIn<'a>) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(std::future::ready(Err(renewed_only("meta"))))
    }

    fn renew<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(async move {
            // The identity token, which stays the same.
            let identity = require_refresh(login, "meta")?;
            let headers = vec![
                ("authorization".to_owned(), format!("Bearer {identity}")),
                ("x-api-version".to_owned(), "1.0.0".to_owned()),
            ];
            let url = format!("{}/muse-code/key", self.server);
            let answer = post_json(&url, headers, &json!({})).await?;
            if matches!(answer.status, 401 | 403) {
                let (status, reason) = (answer.status, answer.reason());
                return Err(
                    format!("the session at Meta has expired (HTTP {status}): {reason}").into(),
                );
            }
            let minted = answer
                .success()
                .map_err(|error| LoginError::from(format!("Meta minted no key: {error}")))?;
            match minted["api_key"].as_str() {
                Some(key) if !key.is_empty() => {
                    Ok(Login::new(key, identity, expiry(KEY_VALIDITY, 0)))
                }
                _ => Err("Meta minted no key: the answer has no \"api_key\"".into()),
            }
        })
    }
}
