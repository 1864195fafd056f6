//! Accounts at a registry, or at another service that issues tokens.
//!
//! A user logs in with a name and a password, or by confirming a device code in a browser. The result is a token; the
//! caller decides where to store it.

use std::time::Duration;

use pinion_http::Url;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::Client;
use super::{Address, address};
use crate::clip::Token;
use crate::{ClipError, Code};

/// The name of this client in requests for a device code.
const CLIENT_ID: &str = "pinix-cli";
/// Defaults for services that do not send these values: the interval between polls, and the lifetime of a device code,
/// in seconds.
const DEFAULT_POLL_SECONDS: u64 = 5;
const DEFAULT_EXPIRY_SECONDS: u64 = 300;

/// A client of a service with accounts.
#[derive(Debug)]
pub struct Accounts {
    base: Url,
    client: Client,
}

/// The result of a login.
#[derive(Debug)]
pub struct Login {
    /// The token for later requests.
    pub token: Token,
    /// The name of the account; empty if the service does not send it.
    pub username: String,
    /// The scope of the account, if the service sends it.
    pub scope: Option<String>,
    /// The hub that the token is for, if the service sends it.
    pub hub: Option<String>,
}

/// A device code, which the user confirms in a browser.
#[derive(Debug)]
pub struct DeviceCode {
    secret: String,
    /// The address of the page to open.
    pub page: String,
    /// The code to type there if the page does not show it.
    pub code: String,
    /// Time between two polls for the confirmation.
    interval: Duration,
    /// Time for which the code can be confirmed.
    expires_in: Duration,
}

/// The state of a device code.
#[derive(Debug)]
enum Confirmation {
    /// The user has not confirmed it yet.
    Pending,
    /// The user has confirmed it.
    Confirmed(Login),
    /// It can no longer be confirmed.
    Expired,
}

impl Accounts {
    /// Creates a client of the accounts at an address. A user who has logged in before passes the `token`.
    pub fn at(address: &Address, token: Option<Token>) -> Result<Self, ClipError> {
        let Address::Service(base) = address else {
            let message = format!(
                "{address} is a directory or a file, which has no accounts; use the address of a registry service"
            );
            return Err(ClipError::new(Code::FailedPrecondition, message));
        };
        Ok(Self {
            client: Client::new(address, token),
            base: base.clone(),
        })
    }

    /// Creates an account. Returns a login if the service logs new accounts in at once.
    pub async fn register(
        &self,
        username: &str,
        email: &str,
        password: &str,
    ) -> Result<Option<Login>, ClipError> {
        let account = json!({"username": username, "email": email, "password": password});
        let reply = self.ask(&["auth", "register"], &account).await?;
        Ok(Login::read(&reply))
    }

    pub async fn log_in(&self, username: &str, password: &str) -> Result<Login, ClipError> {
        let account = json!({"username": username, "password": password});
        let reply = self.ask(&["auth", "login"], &account).await?;
        self.logged_in(&reply)
    }

    /// Returns the name of the account that the token belongs to.
    pub async fn name(&self) -> Result<String, ClipError> {
        let url = address::segments(&self.base, &["auth", "whoami"])?;
        let reply = self.client.json(&url).await?;
        match username(&reply) {
            "" => Err(self.missing("the name of the account")),
            name => Ok(name.to_owned()),
        }
    }

    /// Requests a device code.
    pub async fn device_code(&self) -> Result<DeviceCode, ClipError> {
        let reply = self
            .ask(
                &["auth", "device", "code"],
                &json!({"client_id": CLIENT_ID}),
            )
            .await?;
        let seconds = |key: &str, otherwise: u64| {
            let reply = reply.get(key).and_then(Value::as_u64);
            Duration::from_secs(reply.filter(|reply| *reply > 0).unwrap_or(otherwise))
        };
        let (secret, code) = (text(&reply, "device_code"), text(&reply, "user_code"));
        let page = Url::parse(text(&reply, "verification_url")).ok();
        let page = page.filter(|page| matches!(page.scheme(), "http" | "https"));
        let (Some(mut page), false) = (page, secret.is_empty()) else {
            return Err(self.missing("the address of a page for confirming the login"));
        };
        page.query_pairs_mut().append_pair("code", code);
        Ok(DeviceCode {
            secret: secret.to_owned(),
            page: page.into(),
            code: code.to_owned(),
            interval: seconds("interval", DEFAULT_POLL_SECONDS),
            expires_in: seconds("expires_in", DEFAULT_EXPIRY_SECONDS),
        })
    }

    /// Polls until the user has confirmed a device code; `None` if it expires first. A service that is not available for
    /// a while is polled again.
    pub async fn wait_for_confirmation(
        &self,
        device_code: &DeviceCode,
    ) -> Result<Option<Login>, ClipError> {
        let end = Instant::now() + device_code.expires_in;
        while Instant::now() + device_code.interval <= end {
            tokio::time::sleep(device_code.interval).await;
            match self.confirmation(device_code).await {
                Ok(Confirmation::Pending) => {}
                Ok(Confirmation::Confirmed(login)) => return Ok(Some(login)),
                Ok(Confirmation::Expired) => break,
                Err(error) if error.code == Code::Unavailable => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Polls the state of a device code.
    async fn confirmation(&self, device_code: &DeviceCode) -> Result<Confirmation, ClipError> {
        let asked = json!({"device_code": device_code.secret});
        let reply = self.ask(&["auth", "device", "poll"], &asked).await?;
        match text(&reply, "status") {
            "pending" | "authorization_pending" => Ok(Confirmation::Pending),
            "expired" => Ok(Confirmation::Expired),
            _ => self.logged_in(&reply).map(Confirmation::Confirmed),
        }
    }

    async fn ask(&self, path: &[&str], body: &Value) -> Result<Value, ClipError> {
        let url = address::segments(&self.base, path)?;
        self.client.ask(&url, body).await
    }

    fn logged_in(&self, reply: &Value) -> Result<Login, ClipError> {
        Login::read(reply).ok_or_else(|| self.missing("a token"))
    }

    fn missing(&self, what: &str) -> ClipError {
        let message = format!("{} answered without {what}", self.base);
        ClipError::new(Code::Unavailable, message)
    }
}

impl Login {
    fn read(reply: &Value) -> Option<Self> {
        let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let user = reply.get("user").unwrap_or(&Value::Null);
        Some(Self {
            token: Token::new(filled(text(reply, "token"))?),
            username: username(reply).to_owned(),
            scope: filled(text(reply, "scope")).or_else(|| filled(text(user, "scope"))),
            hub: filled(text(reply, "hub")),
        })
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the name of the account, which services send in one of two places.
fn username(reply: &Value) -> &str {
    match text(reply, "username") {
        "" => text(reply.get("user").unwrap_or(&Value::Null), "username"),
        name => name,
    }
}
