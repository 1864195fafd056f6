//! `openai`: "Sign in with ChatGPT", which OpenAI documents for open-source and locally hosted tools.
//!
//! The server issues a client id during the first sign-in; it belongs to the login, and later sign-ins of the same
//! installation use it again.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::BoxFuture;
use pinion_message::now_millis;
use pinion_oauth::{AuthorizationAnswer, Callback, Pkce, Verdict, pasted_answer, random_text};
use serde_json::{Value, json};
use url::Url;

use crate::conversation::pasted;
use crate::tokens::{Tokens, expiry, post_form, require_refresh};
use crate::{Login, LoginError, LoginMessage, LoginProvider, SignIn};

/// The client of an installation that has none yet.
const DYNAMIC_CLIENT: &str = "dynamic_agent_client";
/// The name that OpenAI shows to the user.
const AGENT_NAME: &str = "pinion";
const RESOURCE: &str = "https://api.openai.com/v1";
const SCOPE: &str = "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct";
/// The scope without which a token cannot be used.
const REQUIRED_SCOPE: &str = "chatgpt.tokens.use.direct";
/// The only redirect URI that the server accepts.
const CALLBACK: &str = "http://127.0.0.1:1455/auth/callback";
/// Seconds by which the stored end precedes the real one, as in pi.
const MARGIN: i64 = 180;
/// Seconds by which the clocks of the server and this machine may differ.
const CLOCK_SKEW: i64 = 300;
/// The longest wait for the browser.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Signs in with ChatGPT.
#[derive(Debug, Clone)]
pub struct OpenAi {
    server: String,
    callback: String,
}

impl Default for OpenAi {
    fn default() -> Self {
        Self::at("https://auth.openai.com", CALLBACK)
    }
}

impl OpenAi {
    /// Uses the authorization server at this address, and this redirect URI.
    pub fn at(server: &str, callback: &str) -> Self {
        Self {
            server: server.to_owned(),
            callback: callback.to_owned(),
        }
    }

    fn token_url(&self) -> String {
        format!("{}/api/accounts/oauth/token", self.server)
    }

    async fn flow(&self, sign_in: SignIn<'_>) -> Result<Login, LoginError> {
        let conversation = sign_in.conversation;
        let pkce = Pkce::new()?;
        let (state, nonce) = (random_text()?, random_text()?);
        let callback = Callback::open(&self.callback).await.map_err(|error| {
            format!(
                "OpenAI: {error}. The sign-in needs exactly this port: end the program that uses it, or paste the address on \
                 a machine where it is free."
            )
        })?;
        let known = sign_in.previous.and_then(|login| login.text("clientId"));
        let mut url = Url::parse(&format!("{}/api/accounts/authorize", self.server))
            .map_err(|error| error.to_string())?;
        url.query_pairs_mut()
            .append_pair("client_id", known.unwrap_or(DYNAMIC_CLIENT))
            .append_pair("agent_name_hint", AGENT_NAME)
            .append_pair(
                "ext_agent_host_id",
                &format!("urn:uuid:{}", sign_in.device_id),
            )
            .append_pair("response_type", "code")
            .append_pair("redirect_uri", callback.url.as_str())
            .append_pair("resource", RESOURCE)
            .append_pair("scope", SCOPE)
            .append_pair("state", &state)
            .append_pair("code_challenge", &pkce.challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("nonce", &nonce);
        conversation.show(LoginMessage::Open {
            url: url.to_string(),
            instructions: None,
        });
        let judge = |url: &Url| self.judge(url, &state, known.is_some());
        let answer = tokio::select! {
            answer = callback.answer(judge) => answer?,
            text = pasted(conversation, callback.url.as_str()) => {
                self.pasted_url(&text.ok_or(LoginError::Cancelled)?, &callback.url)?
            }
        };
        let failed = |reason: String| format!("OpenAI: the sign-in {reason}");
        let answer = AuthorizationAnswer::from_url(&answer).map_err(failed)?;
        if answer.state.as_deref() != Some(state.as_str()) {
            return Err(
                failed("got an answer that belongs to another sign-in; try again".into()).into(),
            );
        }
        let client = answer.client_id.as_deref().or(known);
        let client =
            client.ok_or_else(|| failed("got an answer without an issued client id".into()))?;
        conversation.show(LoginMessage::Progress(
            "Exchanging the code for tokens …".to_owned(),
        ));
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", answer.code.as_str()),
            ("code_verifier", pkce.verifier.as_str()),
            ("redirect_uri", callback.url.as_str()),
            ("resource", RESOURCE),
        ];
        let what = "OpenAI token exchange";
        let exchanged = post_form(&self.token_url(), &form).await?;
        let tokens = Tokens::read(&exchanged, what)
            .map_err(|error| error.to_string().replace(&answer.code, "***"))?;
        check_id_token(&tokens.answer, &self.server, client, &nonce)?;
        login(&tokens, client, what)
    }

    /// Decides about a request of the browser.
    fn judge(&self, url: &Url, state: &str, has_client: bool) -> Verdict {
        let value = |name: &str| {
            let mut pairs = url.query_pairs();
            pairs
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.into_owned())
        };
        if value("state").as_deref() != Some(state) {
            return Verdict::Ignore("This address belongs to another sign-in.".to_owned());
        }
        match AuthorizationAnswer::from_url(url) {
            Ok(answer) if answer.client_id.is_none() && !has_client => {
                Verdict::Ignore("The answer has no issued client id.".to_owned())
            }
            Ok(_) => Verdict::Accept,
            Err(reason) if reason.starts_with("was refused") => Verdict::Fail(reason),
            Err(reason) => Verdict::Ignore(reason),
        }
    }

    /// Reads a pasted answer: a bare code does not contain the issued client, so only the whole address is accepted.
    fn pasted_url(&self, text: &str, callback: &Url) -> Result<Url, LoginError> {
        let url = Url::parse(text.trim()).ok();
        let is_same =
            |url: &Url| url.origin() == callback.origin() && url.path() == callback.path();
        let Some(url) = url.filter(is_same) else {
            return Err(
                format!("OpenAI: paste the whole address that begins with {callback}").into(),
            );
        };
        // A code that cannot be read is reported with its reason.
        pasted_answer(url.as_str()).map_err(|reason| format!("OpenAI: the sign-in {reason}"))?;
        Ok(url)
    }
}

/// Makes a login of tokens.
fn login(tokens: &Tokens, client: &str, what: &str) -> Result<Login, LoginError> {
    let seconds = tokens.complete(what)?;
    let scope = tokens.answer["scope"].as_str().unwrap_or_default();
    let scopes: Vec<&str> = scope.split_whitespace().collect();
    if !scopes.contains(&REQUIRED_SCOPE) {
        return Err(
            format!("OpenAI did not grant {REQUIRED_SCOPE}: sign in again and permit it").into(),
        );
    }
    let login = Login::new(&tokens.access, &tokens.refresh, expiry(seconds, MARGIN));
    Ok(login
        .with("clientId", json!(client))
        .with("scopes", json!(scopes)))
}

/// Checks the id token against this sign-in. The token came directly from the server over TLS, which stands for its
/// signature (OpenID Connect Core 3.1.3.7).
fn check_id_token(
    answer: &Value,
    server: &str,
    client: &str,
    nonce: &str,
) -> Result<(), LoginError> {
    let wrong =
        |reason: &str| LoginError::from(format!("OpenAI: the id token {reason}; try again"));
    let Some(token) = answer["id_token"].as_str() else {
        return Err(wrong("is missing"));
    };
    let payload = token.split('.').nth(1).unwrap_or_default();
    let payload = URL_SAFE_NO_PAD
        .decode(payload.trim_end_matches('='))
        .unwrap_or_default();
    let Ok(claims @ Value::Object(_)) = serde_json::from_slice::<Value>(&payload) else {
        return Err(wrong("cannot be read"));
    };
    let origin = |text: &str| Url::parse(text).map(|url| url.origin()).ok();
    let issuer = claims["iss"].as_str().unwrap_or_default();
    if origin(issuer).is_none() || origin(issuer) != origin(server) {
        return Err(wrong("was issued by another server"));
    }
    let is_ours = |value: &Value| value.as_str() == Some(client);
    let audience = match &claims["aud"] {
        Value::Array(all) => all.iter().any(is_ours),
        one => is_ours(one),
    };
    if !audience {
        return Err(wrong("is for another client"));
    }
    if claims["nonce"].as_str() != Some(nonce) {
        return Err(wrong("belongs to another sign-in"));
    }
    let expires = claims["exp"].as_f64().unwrap_or_default() as i64;
    if expires.saturating_add(CLOCK_SKEW).saturating_mul(1000) < now_millis() {
        return Err(wrong("has expired; check the clock of this machine"));
    }
    Ok(())
}

impl LoginProvider for OpenAi {
    fn name(&self) -> String {
        "OpenAI (Sign in with ChatGPT)".to_owned()
    }

    fn sign_in<'a>(&'a self, sign_in: SignIn<'a>) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(async move {
            let flow = tokio::time::timeout(TIMEOUT, Box::pin(self.flow(sign_in)));
            flow.await.unwrap_or_else(|_| {
                let minutes = TIMEOUT.as_secs() / 60;
                Err(format!(
                    "OpenAI: the sign-in was not completed within {minutes} minutes; try again"
                )
                .into())
            })
        })
    }

    fn renew<'a>(&'a self, stored: &'a Login) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(async move {
            let refresh = require_refresh(stored, "openai")?;
            let Some(client) = stored.text("clientId").filter(|id| !id.is_empty()) else {
                return Err("the stored login has no \"clientId\"; sign in again".into());
            };
            let form = [
                ("grant_type", "refresh_token"),
                ("client_id", client),
                ("refresh_token", refresh),
                ("resource", RESOURCE),
            ];
            let what = "OpenAI token renewal";
            let answer = post_form(&self.token_url(), &form).await?;
            login(&Tokens::read(&answer, what)?, client, what)
        })
    }
}
