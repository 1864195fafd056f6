//! `xai`: a login at xAI, as pi stored it. pinion renews it and never makes one.

use futures_util::future::BoxFuture;

use crate::tokens::{Tokens, expiry, post_form, renewed_only, require_refresh};
use crate::{Login, LoginError, LoginProvider, SignIn};

const CLIENT: &str = "b1a00492-073a-47ea-816f-4c329264a828";
/// Seconds of validity of a token whose answer has none.
const DEFAULT_VALIDITY: i64 = 3600;
/// Seconds by which the stored end precedes the real one, as in pi.
const MARGIN: i64 = 300;

/// Renews logins at xAI.
#[derive(Debug, Clone)]
pub struct Xai {
    server: String,
}

impl Default for Xai {
    fn default() -> Self {
        Self::at("https://auth.x.ai")
    }
}

impl Xai {
    /// Uses the authorization server at this address.
    pub fn at(server: &str) -> Self {
        Self {
            server: server.to_owned(),
        }
    }
}

impl LoginProvider for Xai {
    fn name(&self) -> String {
        "xAI".to_owned()
    }

    fn can_sign_in(&self) -> bool {
        false
    }

    fn sign_in<'a>(&'a self, _sign_in: SignIn<'a>) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(std::future::ready(Err(renewed_only("xai"))))
    }

    fn renew<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(async move {
            let refresh = require_refresh(login, "xai")?;
            let form = [
                ("grant_type", "refresh_token"),
                ("client_id", CLIENT),
                ("refresh_token", refresh),
            ];
            let answer = post_form(&format!("{}/oauth2/token", self.server), &form).await?;
            let tokens = Tokens::read(&answer, "xAI token renewal")?;
            let seconds = tokens.expires_in.filter(|seconds| *seconds > 0);
            let expires = expiry(seconds.unwrap_or(DEFAULT_VALIDITY), MARGIN);
            // A server that does not rotate the refresh token leaves it out.
            let refresh = match tokens.refresh.as_str() {
                "" => refresh,
                new => new,
            };
            Ok(Login::new(&tokens.access, refresh, expires))
        })
    }
}
