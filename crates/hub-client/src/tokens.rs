//! The tokens of a hub, in its files or over HTTP. Tokens are returned as JSON, in the form of the hub's lists.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use pinion_access::client::chosen_hub;
use pinion_access::{Grant, LOCAL_TOKEN, Minted, NewToken, TOKENS, TokenId, TokenStore};
use pinion_http::{FetchError, FetchRequest, Fetcher, Redirect};
use pinion_hub::{CLUSTER_ID, HubProcess, pid_file};
use pinion_status::{Code, Failure};
use serde_json::{Value, json};

use crate::HubClient;

/// The headings of the rows of [`token_row`].
pub const TOKEN_HEADINGS: [&str; 7] = ["ID", "KIND", "FOR", "MAY", "EXPIRES", "LAST USED", "LABEL"];

/// The longest answer about tokens, in bytes.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;

/// The properties of a new token.
#[derive(Debug)]
pub struct TokenRequest {
    pub grant: Grant,
    /// `None` for a token that never expires.
    pub lifetime: Option<Duration>,
    pub label: String,
}

/// Creates, lists and revokes the tokens of a hub.
#[derive(Debug)]
pub enum TokenManager {
    /// The files of a hub, whether it runs or not.
    Files(TokenStore),
    /// A hub, called with a super token.
    Hub(HubClient),
}

impl TokenManager {
    /// Returns the manager of the files in `root`; `None` if the user chose another hub with `server`, the environment
    /// or `client.json`. Fails if there is no hub in `root`.
    pub fn of_files(
        root: &Path,
        server: Option<&str>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Failure> {
        let running = HubProcess::hub_at(&pid_file(root)).map(|process| process.url);
        let chosen = chosen_hub(root, server, environment)?;
        if server.is_some() || (chosen.is_some() && chosen != running) {
            return Ok(None);
        }
        // The tokens of a cluster are not in the files of its hubs.
        if running.is_some() && root.join(CLUSTER_ID).exists() {
            return Ok(None);
        }
        // A directory with only a client's settings is not a hub: no hub would accept its tokens.
        if !root.join(TOKENS).exists() && !root.join(LOCAL_TOKEN).exists() {
            let message = format!(
                "there is no hub in {}. For a hub elsewhere, name it with --server or log in with `pinion hub login`. \
                 `pinion hub serve` makes one here; --root names another directory.",
                root.display()
            );
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        Ok(Some(Self::Files(TokenStore::open(root)?)))
    }

    /// Creates a token. Only this answer contains the token itself.
    pub async fn create(&self, request: TokenRequest) -> Result<Value, Failure> {
        match self {
            Self::Files(store) => {
                let mut new = NewToken::new(request.grant).labelled(request.label);
                if let Some(lifetime) = request.lifetime {
                    new = new.lasting(lifetime);
                }
                let Minted { token, record } = store.mint(new)?;
                let mut created = json!(record);
                created["token"] = token.reveal().into();
                Ok(created)
            }
            Self::Hub(client) => {
                let (scope, alias, manage) = match &request.grant {
                    Grant::Super | Grant::Metrics => (None, None, false),
                    Grant::Hub { scope, manage } => (Some(scope), None, *manage),
                    Grant::Clip { alias, owner } => (owner.as_ref(), Some(alias), false),
                };
                let kind = request.grant.kind();
                let mut body = json!({"kind": kind, "manage": manage, "label": request.label});
                if let Some(scope) = scope {
                    body["scope"] = json!(scope);
                }
                if let Some(alias) = alias {
                    body["alias"] = json!(alias);
                }
                body["ttlSeconds"] = request.lifetime.map_or(0, |time| time.as_secs()).into();
                call(client, "POST", "", Some(&body)).await
            }
        }
    }

    /// Returns all tokens, without their secrets.
    pub async fn list(&self) -> Result<Vec<Value>, Failure> {
        let tokens = match self {
            Self::Files(store) => json!(store.list()?),
            Self::Hub(client) => call(client, "GET", "", None).await?["tokens"].take(),
        };
        match tokens {
            Value::Array(tokens) => Ok(tokens),
            _ => Ok(Vec::new()),
        }
    }

    pub async fn revoke(&self, id: &str) -> Result<(), Failure> {
        match self {
            Self::Files(store) => store.revoke(&TokenId::from(id)).map(drop),
            Self::Hub(_) if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => Err(
                Failure::invalid(format!("{id:?} is not the id of a token.")),
            ),
            Self::Hub(client) => {
                call(client, "DELETE", &format!("/{id}"), None).await?;
                Ok(())
            }
        }
    }
}

/// Returns the cells of a token in a table.
pub fn token_row(token: &Value) -> Vec<String> {
    let text = |key: &str| token[key].as_str().unwrap_or_default();
    let may = match (text("kind"), token["manage"].as_bool()) {
        ("super", _) => "everything",
        (_, Some(true)) => "call, manage",
        _ => "call",
    };
    let who = match text("alias") {
        "" => text("scope"),
        alias => alias,
    };
    vec![
        text("id").to_owned(),
        text("kind").to_owned(),
        who.to_owned(),
        may.to_owned(),
        minute(text("expires"), "never"),
        minute(text("lastUsed"), "-"),
        text("label").to_owned(),
    ]
}

/// Returns an RFC 3339 time to the minute, or `otherwise` if it is empty.
pub fn minute(time: &str, otherwise: &str) -> String {
    match time {
        "" => otherwise.to_owned(),
        time => time.chars().take(16).collect::<String>().replace('T', " "),
    }
}

async fn call(
    client: &HubClient,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, Failure> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    if let Some(token) = client.token() {
        headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    }
    let request = FetchRequest {
        method: method.to_owned(),
        url: format!("{}/auth/tokens{path}", client.url()),
        headers,
        body: body.map(|body| Bytes::from(body.to_string())),
        redirect: Redirect::Refuse,
    };
    let unreachable = |error: FetchError| {
        let message = format!("no connection to {}: {error}", client.url());
        client.explain(Failure::new(Code::Unavailable, message))
    };
    let mut response = Fetcher::default()
        .fetch(request)
        .await
        .map_err(unreachable)?;
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        text.extend_from_slice(&chunk);
        if text.len() > ANSWER_LIMIT {
            let message = format!("the hub's answer is larger than {ANSWER_LIMIT} bytes.");
            return Err(Failure::new(Code::ResourceExhausted, message));
        }
    }
    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    if (200..300).contains(&response.status) {
        return Ok(answer);
    }
    let code = Code::parse(answer["error"]["code"].as_str().unwrap_or_default());
    let message = match answer["error"]["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!("the hub answers with {}", response.status),
    };
    Err(client.explain(Failure::new(code, message)))
}
