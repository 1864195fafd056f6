//! Requests to token endpoints.

use std::time::Duration;

use pinion_message::{Millis, now_millis};
use pinion_oauth::{Answer, HttpOptions, post};
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::{Login, LoginError};

/// Time limit of a token request with its answer.
pub const TOKEN_TIMEOUT: Duration = Duration::from_secs(15);

/// Posts a form. The error names the address and the cause.
pub async fn post_form(url: &str, form: &[(&str, &str)]) -> Result<Answer, String> {
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let options = HttpOptions {
        timeout: TOKEN_TIMEOUT,
    };
    post(
        url,
        "application/x-www-form-urlencoded",
        Vec::new(),
        body,
        options,
    )
    .await
}

/// Posts a JSON body. The error names the address and the cause.
pub async fn post_json(
    url: &str,
    headers: Vec<(String, String)>,
    body: &Value,
) -> Result<Answer, String> {
    let options = HttpOptions {
        timeout: TOKEN_TIMEOUT,
    };
    post(url, "application/json", headers, body.to_string(), options).await
}

/// The tokens of an answer.
pub struct Tokens {
    pub access: String,
    /// Empty if the answer has none.
    pub refresh: String,
    /// Seconds of validity.
    pub expires_in: Option<i64>,
    pub answer: Value,
}

impl Tokens {
    /// Reads a successful answer. `what` names the request in errors, such as "xAI token renewal".
    pub fn read(answer: &Answer, what: &str) -> Result<Self, LoginError> {
        if !answer.is_success() {
            let (code, reason) = (answer.error_code(), answer.reason());
            let reason = if code.is_empty() || code == reason {
                reason
            } else {
                format!("{code}: {reason}")
            };
            let status = answer.status;
            return Err(format!("{what} failed (HTTP {status}): {reason}").into());
        }
        let Some(json) = answer.json() else {
            return Err(format!("{what} failed: the answer is not JSON").into());
        };
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        let tokens = Self {
            access: text("access_token"),
            refresh: text("refresh_token"),
            expires_in: json["expires_in"].as_f64().map(|seconds| seconds as i64),
            answer: json,
        };
        if tokens.access.is_empty() {
            return Err(missing(what, "access_token"));
        }
        Ok(tokens)
    }

    /// Fails if the answer has no refresh token or no validity.
    pub fn complete(&self, what: &str) -> Result<i64, LoginError> {
        if self.refresh.is_empty() {
            return Err(missing(what, "refresh_token"));
        }
        let seconds = self.expires_in.filter(|seconds| *seconds > 0);
        seconds.ok_or_else(|| missing(what, "expires_in"))
    }
}

fn missing(what: &str, member: &str) -> LoginError {
    format!("{what} failed: the answer has no \"{member}\"").into()
}

/// Returns the time in `seconds` from now, less `margin` seconds.
pub fn expiry(seconds: i64, margin: i64) -> Millis {
    now_millis().saturating_add(seconds.saturating_sub(margin).saturating_mul(1000))
}

/// Fails for a login without a refresh token.
pub fn require_refresh<'a>(login: &'a Login, name: &str) -> Result<&'a str, LoginError> {
    match login.refresh() {
        "" => Err(format!("the stored login of {name} has no refresh token").into()),
        refresh => Ok(refresh),
    }
}

/// The failure of a provider whose logins are only renewed.
pub fn renewed_only(provider: &str) -> LoginError {
    crate::not_offered(provider)
        .unwrap_or("pinion cannot sign in to this provider.")
        .into()
}
