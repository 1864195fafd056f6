//! Accounts: who somebody is at a registry, or at another service that gives out tokens.
//!
//! One logs in with a name and a password, or by confirming a slip in a browser. What comes of it is a token; where that is kept
//! is for others to say.

use std::time::Duration;

use reqwest::Url;
use serde_json::{Value, json};

use super::client::Client;
use super::{Address, address};
use crate::clip::Token;
use crate::{ClipError, Code};

/// What a program calls itself that asks for a slip.
const PROGRAM: &str = "pinix-cli";
/// How often to ask whether a slip was confirmed, and for how long, where the service does not say.
const INTERVAL: u64 = 5;
const LASTS: u64 = 300;

/// A service with accounts.
#[derive(Debug)]
pub struct Accounts {
    base: Url,
    client: Client,
}

/// Somebody has logged in.
#[derive(Debug)]
pub struct Login {
    /// The token to show from now on.
    pub token: Token,
    /// The name of the account; empty if the service does not say.
    pub username: String,
    /// Its scope, if the service says.
    pub scope: Option<String>,
    /// The hub the token is for, if the service says.
    pub hub: Option<String>,
}

/// A slip to be confirmed in a browser.
#[derive(Debug)]
pub struct Slip {
    secret: String,
    /// The page to open.
    pub page: String,
    /// What to type there, where the page does not know already.
    pub code: String,
    /// How often to ask whether it was confirmed.
    pub interval: Duration,
    /// How long it can be.
    pub lasts: Duration,
}

/// What became of a slip.
#[derive(Debug)]
pub enum Confirmation {
    /// Nothing yet.
    Pending,
    /// It was confirmed.
    Confirmed(Login),
    /// It no longer can be.
    Expired,
}

impl Accounts {
    /// The accounts at an address; `token` is shown there by who has logged in before.
    pub fn at(address: &Address, token: Option<Token>) -> Result<Self, ClipError> {
        let Address::Service(base) = address else {
            let message = format!("{address} is files only: there are no accounts to log in to");
            return Err(ClipError::new(Code::FailedPrecondition, message));
        };
        Ok(Self {
            client: Client::new(address, token),
            base: base.clone(),
        })
    }

    /// Makes an account. A service may let one in at once or not.
    pub async fn register(
        &self,
        username: &str,
        email: &str,
        password: &str,
    ) -> Result<Option<Login>, ClipError> {
        let account = json!({"username": username, "email": email, "password": password});
        let said = self.ask(&["auth", "register"], &account).await?;
        Ok(Login::read(&said))
    }

    /// Logs in with a password.
    pub async fn log_in(&self, username: &str, password: &str) -> Result<Login, ClipError> {
        let account = json!({"username": username, "password": password});
        let said = self.ask(&["auth", "login"], &account).await?;
        self.logged_in(&said)
    }

    /// The name of the account that the token is for.
    pub async fn name(&self) -> Result<String, ClipError> {
        let url = address::segments(&self.base, &["auth", "whoami"])?;
        let said = self.client.json(&url).await?;
        match username(&said) {
            "" => Err(self.nonsense("who this is")),
            name => Ok(name.to_owned()),
        }
    }

    /// Asks for a slip.
    pub async fn slip(&self) -> Result<Slip, ClipError> {
        let said = self
            .ask(&["auth", "device", "code"], &json!({"client_id": PROGRAM}))
            .await?;
        let seconds = |key: &str, otherwise: u64| {
            let said = said.get(key).and_then(Value::as_u64);
            Duration::from_secs(said.filter(|said| *said > 0).unwrap_or(otherwise))
        };
        let (secret, code) = (text(&said, "device_code"), text(&said, "user_code"));
        let page = Url::parse(text(&said, "verification_url")).ok();
        let page = page.filter(|page| matches!(page.scheme(), "http" | "https"));
        let (Some(mut page), false) = (page, secret.is_empty()) else {
            return Err(self.nonsense("where to confirm"));
        };
        page.query_pairs_mut().append_pair("code", code);
        Ok(Slip {
            secret: secret.to_owned(),
            page: page.into(),
            code: code.to_owned(),
            interval: seconds("interval", INTERVAL),
            lasts: seconds("expires_in", LASTS),
        })
    }

    /// Asks what became of a slip.
    pub async fn confirmation(&self, slip: &Slip) -> Result<Confirmation, ClipError> {
        let asked = json!({"device_code": slip.secret});
        let said = self.ask(&["auth", "device", "poll"], &asked).await?;
        match text(&said, "status") {
            "pending" | "authorization_pending" => Ok(Confirmation::Pending),
            "expired" => Ok(Confirmation::Expired),
            _ => self.logged_in(&said).map(Confirmation::Confirmed),
        }
    }

    async fn ask(&self, path: &[&str], body: &Value) -> Result<Value, ClipError> {
        let url = address::segments(&self.base, path)?;
        self.client.ask(&url, body).await
    }

    fn logged_in(&self, said: &Value) -> Result<Login, ClipError> {
        Login::read(said).ok_or_else(|| self.nonsense("a token"))
    }

    fn nonsense(&self, what: &str) -> ClipError {
        let message = format!("{} answered without saying {what}", self.base);
        ClipError::new(Code::Unavailable, message)
    }
}

impl Login {
    fn read(said: &Value) -> Option<Self> {
        let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let user = said.get("user").unwrap_or(&Value::Null);
        Some(Self {
            token: Token::new(filled(text(said, "token"))?),
            username: username(said).to_owned(),
            scope: filled(text(said, "scope")).or_else(|| filled(text(user, "scope"))),
            hub: filled(text(said, "hub")),
        })
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Services write it in one of two places.
fn username(said: &Value) -> &str {
    match text(said, "username") {
        "" => text(said.get("user").unwrap_or(&Value::Null), "username"),
        name => name,
    }
}
