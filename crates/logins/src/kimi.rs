//! `kimi-coding`: a login at Kimi Code, as pi stored it. pinion renews it and never makes one.

use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_oauth::Answer;

use crate::tokens::{Tokens, expiry, post_form, renewed_only, require_refresh};
use crate::{Login, LoginError, LoginProvider, SignIn};

const CLIENT: &str = "17e5f671-d194-4dfb-9706-5516cb48c098";
const WHAT: &str = "Kimi Code token renewal";
/// Delays before the retries of a renewal; the server is known to need them.
const RETRY_DELAYS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// Renews logins at Kimi Code.
#[derive(Debug, Clone)]
pub struct KimiCoding {
    server: String,
}

/// Uses the address in `KIMI_CODE_OAUTH_HOST` or `KIMI_OAUTH_HOST`, else Kimi's own.
impl Default for KimiCoding {
    fn default() -> Self {
        let named = ["KIMI_CODE_OAUTH_HOST", "KIMI_OAUTH_HOST"]
            .iter()
            .filter_map(|name| std::env::var(name).ok());
        let named = named
            .filter(|host| !host.trim().is_empty())
            .map(|host| host.trim().to_owned())
            .next();
        Self::at(named.as_deref().unwrap_or("https://auth.kimi.com"))
    }
}

impl KimiCoding {
    /// Uses the authorization server at this address.
    pub fn at(server: &str) -> Self {
        Self {
            server: server.trim_end_matches('/').to_owned(),
        }
    }

    async fn request(&self, refresh: &str) -> Result<Answer, String> {
        let form = [
            ("client_id", CLIENT),
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh),
        ];
        let url = format!("{}/api/oauth/token", self.server);
        let mut delays = RETRY_DELAYS.into_iter();
        loop {
            let answer = post_form(&url, &form).await;
            let passes = match &answer {
                Ok(answer) => answer.status == 429 || answer.status >= 500,
                Err(_) => true,
            };
            match delays.next().filter(|_| passes) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return answer,
            }
        }
    }
}

impl LoginProvider for KimiCoding {
    fn name(&self) -> String {
        "Kimi Code".to_owned()
    }

    fn can_sign_in(&self) -> bool {
        false
    }

    fn sign_in<'a>(&'a self, _sign_in: SignIn<'a>) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(std::future::ready(Err(renewed_only("kimi-coding"))))
    }

    fn renew<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Login, LoginError>> {
        Box::pin(async move {
            let refresh = require_refresh(login, "kimi-coding")?;
            let answer = self.request(refresh).await?;
            let tokens = Tokens::read(&answer, WHAT)?;
            let seconds = tokens.complete(WHAT)?;
            Ok(Login::new(
                &tokens.access,
                &tokens.refresh,
                expiry(seconds, 0),
            ))
        })
    }
}
