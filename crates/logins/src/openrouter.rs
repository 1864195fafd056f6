//! `openrouter`: the documented sign-in with PKCE, which yields an ordinary API key.

use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_oauth::{AuthorizationAnswer, Callback, Pkce, Verdict, pasted_answer};
use serde_json::json;
use url::Url;

use crate::conversation::pasted;
use crate::tokens::post_json;
use crate::{Login, LoginConversation, LoginError, LoginMessage, LoginProvider, SignIn};

/// The longest wait for the browser.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Signs in to OpenRouter.
#[derive(Debug, Clone)]
pub struct OpenRouter {
    server: String,
}

impl Default for OpenRouter {
    fn default() -> Self {
        Self::at("https://openrouter.ai")
    }
}

impl OpenRouter {
    /// Uses the server at this address.
    pub fn at(server: &str) -> Self {
        Self {
            server: server.to_owned(),
        }
    }

    async fn flow(&self, conversation: &dyn LoginConversation) -> Result<Login, LoginError> {
        let pkce = Pkce::new()?;
        // There is no state; the path is as hard to guess.
        let path = uuid::Uuid::new_v4();
        let callback = Callback::open(&format!("http://127.0.0.1/oauth/callback/{path}")).await?;
        let mut url =
            Url::parse(&format!("{}/auth", self.server)).map_err(|error| error.to_string())?;
        url.query_pairs_mut()
            .append_pair("callback_url", callback.url.as_str())
            .append_pair("code_challenge", &pkce.challenge)
            .append_pair("code_challenge_method", "S256");
        conversation.show(LoginMessage::Open {
            url: url.to_string(),
            instructions: None,
        });
        let judge = |url: &Url| match AuthorizationAnswer::from_url(url) {
            Ok(_) => Verdict::Accept,
            Err(reason) if reason.starts_with("was refused") => Verdict::Fail(reason),
            Err(reason) => Verdict::Ignore(reason),
        };
        let answer = tokio::select! {
            answer = callback.answer(judge) => AuthorizationAnswer::from_url(&answer?),
            text = pasted(conversation, callback.url.as_str()) => {
                pasted_answer(&text.ok_or(LoginError::Cancelled)?)
            }
        };
        let answer = answer.map_err(|reason| format!("OpenRouter: the sign-in {reason}"))?;
        conversation.show(LoginMessage::Progress(
            "Exchanging the code for a key …".to_owned(),
        ));
        let body = json!({
            "code": answer.code,
            "code_verifier": pkce.verifier,
            "code_challenge_method": "S256",
        });
        let exchanged = post_json(
            &format!("{}/api/v1/auth/keys", self.server),
            Vec::new(),
            &body,
        )
        .await?;
        if !exchanged.is_success() {
            let (status, reason) = (exchanged.status, exchanged.reason());
            let reason = reason.replace(&answer.code, "***");
            return Err(format!("OpenRouter key exchange failed (HTTP {status}): {reason}").into());
        }
        let key = exchanged.json().unwrap_or_default();
        match key["key"].as_str() {
            Some(key) if !key.is_empty() => Ok(Login::permanent(key)),
            _ => Err("OpenRouter key exchange failed: the answer has no \"key\"".into()),
        }
    }
}

impl LoginProvider for OpenRouter {
    fn name(&self) -> String {
        "OpenRouter".to_owned()
    }

    fn sign_in<'a>(&'a self, sign_in: SignIn<'a>) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(async move {
            let flow = tokio::time::timeout(TIMEOUT, self.flow(sign_in.conversation));
            flow.await.unwrap_or_else(|_| {
                let seconds = TIMEOUT.as_secs();
                Err(format!(
                    "OpenRouter: the sign-in was not completed within {seconds} s; try again"
                )
                .into())
            })
        })
    }

    fn renew<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Login, LoginError>> {
        // Its keys do not expire.
        Box::pin(std::future::ready(Ok(login.clone())))
    }
}
