//! `openai-codex`: a ChatGPT subscription, as pi stored its login. pinion renews it and never makes one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::tokens::{Tokens, expiry, post_form, renewed_only, require_refresh};
use crate::{Login, LoginError, LoginProvider, SignIn};

const CLIENT: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
const WHAT: &str = "OpenAI Codex token renewal";

/// Renews logins of ChatGPT subscriptions.
#[derive(Debug, Clone)]
pub struct OpenAiCodex {
    server: String,
}

impl Default for OpenAiCodex {
    fn default() -> Self {
        Self::at("https://auth.openai.com")
    }
}

impl OpenAiCodex {
    /// Uses the authorization server at this address.
    pub fn at(server: &str) -> Self {
        Self {
            server: server.to_owned(),
        }
    }
}

impl LoginProvider for OpenAiCodex {
    fn name(&self) -> String {
        "ChatGPT subscription (Codex)".to_owned()
    }

    fn can_sign_in(&self) -> bool {
        false
    }

    fn sign_in<'a>(&'a self, _sign_in: SignIn<'a>) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(std::future::ready(Err(renewed_only("openai-codex"))))
    }

    fn renew<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(async move {
            let refresh = require_refresh(login, "openai-codex")?;
            let form = [
                ("grant_type", "refresh_token"),
                ("refresh_token", refresh),
                ("client_id", CLIENT),
            ];
            let answer = post_form(&format!("{}/oauth/token", self.server), &form).await?;
            let tokens = Tokens::read(&answer, WHAT)?;
            let seconds = tokens.complete(WHAT)?;
            let account = account_id(&tokens.access).ok_or_else(|| {
                LoginError::from(format!("{WHAT} failed: the token names no account"))
            })?;
            Ok(
                Login::new(&tokens.access, &tokens.refresh, expiry(seconds, 0))
                    .with("accountId", json!(account)),
            )
        })
    }
}

/// Returns the account in the payload of a token of OpenAI.
pub fn account_id(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    let account = claims
        .get("https://api.openai.com/auth")?
        .get("chatgpt_account_id")?;
    account
        .as_str()
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
}
