//! The store of tokens: the files of a hub, or another hub over HTTP.

use std::time::Duration;

use bytes::Bytes;
use pinion_access::{Grant, LOCAL_TOKEN, Minted, NewToken, TOKENS, TokenId, TokenStore};
use pinion_connect::{Code, Failure as Refusal};
use pinion_http::{FetchRequest, Fetcher, Redirect};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::hub::caller::{self, Caller};
use crate::hub::seat::{Holder, pid_file};
use crate::hub::{failed, place};
use crate::verb::Line;

/// The longest answer about tokens, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;

/// The properties of a new token.
pub(super) struct Wish {
    pub grant: Grant,
    /// `None` for a token that never expires.
    pub lifetime: Option<Duration>,
    pub label: String,
}

/// The store of tokens. Tokens are returned as JSON, in the form of lists.
pub(super) enum Keeper {
    /// The files of a hub, whether it runs or not.
    Files(TokenStore),
    /// A hub, called with a super token.
    Hub(Caller),
}

impl Keeper {
    /// Returns the hub that the user chose, else the files of the local hub. Fails without a hub in the directory.
    pub fn of(line: &Line) -> Result<Self, Failure> {
        let root = place::root(line)?;
        let own = Holder::at(&pid_file(&root)).map(|holder| holder.url);
        let pointed_at = caller::pointed_at(line.value("--server"), &root)?;
        if line.has("--server") || (pointed_at.is_some() && pointed_at != own) {
            return Ok(Self::Hub(Caller::of(line)?));
        }
        // A directory with only a client's settings is not a hub: no hub would accept its tokens.
        if !root.join(TOKENS).exists() && !root.join(LOCAL_TOKEN).exists() {
            return Err(Failure::failed(format!(
                "Error: there is no hub in {}. For a hub elsewhere, name it with --server or log in with `pinion hub login`. \
                 `pinion hub serve` makes one here; --root names another directory.",
                root.display()
            )));
        }
        Ok(Self::Files(TokenStore::open(&root).map_err(failed)?))
    }

    /// Creates a token. Only this answer contains the token itself.
    pub fn make(&self, wish: Wish) -> Result<Value, Failure> {
        match self {
            Self::Files(store) => {
                let mut new = NewToken::new(wish.grant).labelled(wish.label);
                if let Some(lifetime) = wish.lifetime {
                    new = new.lasting(lifetime);
                }
                let Minted { token, record } = store.mint(new).map_err(failed)?;
                let mut told = json!(record);
                told["token"] = token.reveal().into();
                Ok(told)
            }
            Self::Hub(caller) => {
                let (scope, alias, manage) = match &wish.grant {
                    Grant::Super => (None, None, false),
                    Grant::Hub { scope, manage } => (Some(scope), None, *manage),
                    Grant::Clip { alias, owner } => (owner.as_ref(), Some(alias), false),
                };
                let mut asked =
                    json!({"kind": wish.grant.kind(), "manage": manage, "label": wish.label});
                if let Some(scope) = scope {
                    asked["scope"] = json!(scope);
                }
                if let Some(alias) = alias {
                    asked["alias"] = json!(alias);
                }
                asked["ttlSeconds"] = wish.lifetime.map_or(0, |time| time.as_secs()).into();
                ask(caller, "POST", "", Some(&asked))
            }
        }
    }

    /// Returns all tokens, without their secrets.
    pub fn list(&self) -> Result<Vec<Value>, Failure> {
        let told = match self {
            Self::Files(store) => json!(store.list().map_err(failed)?),
            Self::Hub(caller) => ask(caller, "GET", "", None)?["tokens"].take(),
        };
        match told {
            Value::Array(tokens) => Ok(tokens),
            _ => Ok(Vec::new()),
        }
    }

    pub fn revoke(&self, id: &str) -> Result<(), Failure> {
        match self {
            Self::Files(store) => store.revoke(&TokenId::from(id)).map(drop).map_err(failed),
            Self::Hub(_) if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => Err(
                Failure::failed(format!("Error: {id:?} is no id of a token.")),
            ),
            Self::Hub(caller) => ask(caller, "DELETE", &format!("/{id}"), None).map(drop),
        }
    }
}

fn ask(caller: &Caller, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    if let Some(token) = caller.token() {
        headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    }
    let request = FetchRequest {
        method: method.to_owned(),
        url: format!("{}/auth/tokens{path}", caller.url()),
        headers,
        body: body.map(|body| Bytes::from(body.to_string())),
        redirect: Redirect::Refuse,
    };
    caller::wait(async {
        let lost = |error: pinion_http::FetchError| {
            let message = format!("no connection to {}: {error}", caller.url());
            caller.explain(Refusal::new(Code::Unavailable, message))
        };
        let mut response = Fetcher::default().fetch(request).await.map_err(lost)?;
        let mut text = Vec::new();
        while let Some(part) = response.chunk().await.map_err(lost)? {
            text.extend_from_slice(&part);
            if text.len() > LONGEST {
                return Err(Failure::failed("Error: the answer does not end."));
            }
        }
        let told: Value = serde_json::from_slice(&text).unwrap_or_default();
        if (200..300).contains(&response.status) {
            return Ok(told);
        }
        let code = told["error"]["code"].as_str().unwrap_or_default();
        let code = Code::all().find(|known| known.as_str() == code);
        let message = match told["error"]["message"].as_str() {
            Some(message) => message.to_owned(),
            None => format!("the hub answers with {}", response.status),
        };
        Err(caller.explain(Refusal::new(code.unwrap_or(Code::Unknown), message)))
    })
}
