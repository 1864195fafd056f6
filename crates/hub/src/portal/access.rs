//! Sessions and tokens over plain HTTP, in JSON.
//!
//! ```text
//! POST   /auth/session      {"token":"…"}                                   204, with a cookie
//! GET    /auth/session                                                      200 {"kind","scope","alias","manage","signedIn"}
//! DELETE /auth/session                                                      204
//! GET    /auth/whoami                                                       200 {"username","scope","kind"}
//! GET    /auth/tokens                                                       200 {"tokens":[{"id","kind",…}]}
//! POST   /auth/tokens       {"kind","scope","alias","manage","ttlSeconds","label"}   201, with the token this once
//! DELETE /auth/tokens/<id>                                                  204
//! ```
//!
//! Requests that change something must have the media type of JSON, which a page of another origin cannot send without
//! a preflight request.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use jiff::Timestamp;
use pinion_access::{
    Caller, DEFAULT_LIFETIME, Gate, Grant, NewToken, Peer, Principal, Record, TokenId, TokenKind,
    Transport, bearer,
};
use pinion_connect::Body;
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};

use super::add_security_headers;
use crate::neighbours::Neighbours;
use crate::service::text_of;

const SESSION: &str = "/auth/session";
const WHOAMI: &str = "/auth/whoami";
const TOKENS: &str = "/auth/tokens";
const ONE_TOKEN: &str = "/auth/tokens/";
/// The longest lifetime of a token in seconds: about a hundred years. No token outlives the people who know its purpose.
const MAX_LIFETIME_SECONDS: u64 = 100 * 366 * 86_400;
const MAX_LABEL_CHARACTERS: usize = 200;

/// The origin of a request, as far as sessions depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visitor {
    pub(crate) peer: Peer,
    pub(crate) transport: Transport,
}

/// Reports whether a path is one of these routes.
pub(crate) fn is_access(path: &str) -> bool {
    path.starts_with("/auth/")
}

/// Returns the token of a request to one of these routes: from the body if it signs in, from the header otherwise.
pub(crate) fn token_in(request: &Request<Bytes>) -> Option<String> {
    match (request.method(), request.uri().path()) {
        (&Method::POST, SESSION) => {
            let SignIn { token } = read(request.body()).ok()?;
            Some(token.trim().to_owned())
        }
        _ => {
            let header = text_of(request.headers(), header::AUTHORIZATION)?;
            bearer(header).map(str::to_owned)
        }
    }
}

/// Answers a request to one of these routes.
pub(crate) async fn answer(
    gate: &Gate,
    neighbours: Option<&dyn Neighbours>,
    request: &Request<Bytes>,
    visitor: Visitor,
) -> Result<Response<Body>, Failure> {
    let path = request.uri().path();
    let method = request.method();
    if method != Method::GET {
        require_json(request.headers())?;
    }
    let unknown = || Failure::new(Code::NotFound, format!("there is no {method} {path}"));
    let caller = || admit(gate, request.headers(), visitor);
    match (method, path) {
        (&Method::POST, SESSION) => open_session(gate, request.body(), visitor),
        (&Method::GET, SESSION) => show_session(&caller()?),
        (&Method::DELETE, SESSION) => {
            let cookie = gate.close_session(text_of(request.headers(), header::COOKIE));
            with_cookie(nothing(), &cookie)
        }
        (&Method::GET, WHOAMI) => show_whoami(&caller()?),
        (&Method::GET, TOKENS) => {
            require_super(&caller()?)?;
            let records = gate.store().list()?;
            let tokens: Vec<TokenInfo<'_>> = records.iter().map(TokenInfo::of).collect();
            json(StatusCode::OK, &serde_json::json!({ "tokens": tokens }))
        }
        (&Method::POST, TOKENS) => {
            require_super(&caller()?)?;
            mint(gate, neighbours, request.body()).await
        }
        (&Method::DELETE, _) => {
            let id = path.strip_prefix(ONE_TOKEN).ok_or_else(unknown)?;
            require_super(&caller()?)?;
            revoke(gate, neighbours, &TokenId::from(id)).await?;
            Ok(nothing())
        }
        _ => Err(unknown()),
    }
}

fn admit(gate: &Gate, headers: &HeaderMap, visitor: Visitor) -> Result<Caller, Failure> {
    let authorization = text_of(headers, header::AUTHORIZATION);
    gate.admit(
        authorization,
        text_of(headers, header::COOKIE),
        visitor.peer,
    )
}

fn require_json(headers: &HeaderMap) -> Result<(), Failure> {
    let kind = text_of(headers, header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Failure::invalid("send Content-Type: application/json"))
}

fn require_super(caller: &Caller) -> Result<(), Failure> {
    match caller.principal {
        Principal::Super => Ok(()),
        Principal::Anonymous => Err(not_signed_in()),
        _ => Err(Failure::new(
            Code::PermissionDenied,
            "managing tokens requires a super token; the owner of the hub has one",
        )),
    }
}

fn not_signed_in() -> Failure {
    Failure::new(Code::Unauthenticated, "you are not signed in")
}

#[derive(Deserialize)]
struct SignIn {
    token: String,
}

fn open_session(gate: &Gate, body: &[u8], visitor: Visitor) -> Result<Response<Body>, Failure> {
    let SignIn { token } = read(body)?;
    let token = token.trim();
    if token.is_empty() {
        return Err(Failure::new(Code::Unauthenticated, "the token is empty"));
    }
    let caller = gate.authenticate(Some(token), visitor.peer)?;
    let cookie = gate.open_session(&caller, visitor.transport)?;
    with_cookie(nothing(), &cookie)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Session<'a> {
    kind: &'static str,
    scope: &'a str,
    alias: &'a str,
    manage: bool,
    signed_in: bool,
}

fn show_session(caller: &Caller) -> Result<Response<Body>, Failure> {
    let (kind, alias, manage) = match &caller.principal {
        Principal::Super => (TokenKind::Super.as_str(), "", true),
        Principal::Hub { manage, .. } => (TokenKind::Hub.as_str(), "", *manage),
        Principal::Clip { alias, .. } => (TokenKind::Clip.as_str(), &**alias, false),
        Principal::Metrics => (TokenKind::Metrics.as_str(), "", false),
        Principal::Guest => ("guest", "", false),
        Principal::Anonymous => return Err(not_signed_in()),
    };
    let scope = caller.scope().map_or("", |scope| scope.as_str());
    let signed_in = caller.token.is_some();
    let session = Session {
        kind,
        scope,
        alias,
        manage,
        signed_in,
    };
    json(StatusCode::OK, &session)
}

/// Answers with the name of the caller, for programs that store it beside their token.
fn show_whoami(caller: &Caller) -> Result<Response<Body>, Failure> {
    if caller.token.is_none() {
        return Err(not_signed_in());
    }
    let scope = caller.scope().map_or("", |scope| scope.as_str());
    let (kind, otherwise) = match &caller.principal {
        Principal::Clip { alias, .. } => (TokenKind::Clip, &**alias),
        Principal::Hub { .. } => (TokenKind::Hub, ""),
        Principal::Metrics => (TokenKind::Metrics, "metrics"),
        _ => (TokenKind::Super, "super"),
    };
    let username = match scope.strip_prefix('@') {
        Some(name) => name,
        None => otherwise,
    };
    let kind = kind.as_str();
    let who = serde_json::json!({"username": username, "scope": scope, "kind": kind});
    json(StatusCode::OK, &who)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenInfo<'a> {
    id: &'a str,
    kind: &'static str,
    scope: &'a str,
    alias: &'a str,
    manage: bool,
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used: Option<String>,
}

impl<'a> TokenInfo<'a> {
    fn of(record: &'a Record) -> Self {
        let (scope, alias, manage) = match &record.grant {
            Grant::Super => (None, "", true),
            Grant::Metrics => (None, "", false),
            Grant::Hub { scope, manage } => (Some(scope), "", *manage),
            Grant::Clip { alias, owner } => (owner.as_ref(), alias.as_str(), false),
        };
        let time = |milliseconds| {
            Timestamp::from_millisecond(milliseconds)
                .ok()
                .map(|time| time.to_string())
        };
        Self {
            id: record.id.as_str(),
            kind: record.kind().as_str(),
            scope: scope.map_or("", |scope| scope.as_str()),
            alias,
            manage,
            label: &record.label,
            created: time(record.created),
            expires: record.expires.and_then(time),
            last_used: record.last_used.and_then(time),
        }
    }
}

/// The request for a new token. Members that are absent grant nothing: in particular `manage`, which permits running
/// programs on the hub's machine, must be requested.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TokenRequest {
    kind: String,
    scope: String,
    alias: String,
    manage: bool,
    /// Seconds; 0 never expires.
    ttl_seconds: u64,
    label: String,
}

impl Default for TokenRequest {
    fn default() -> Self {
        Self {
            kind: TokenKind::Hub.as_str().into(),
            scope: String::new(),
            alias: String::new(),
            manage: false,
            ttl_seconds: DEFAULT_LIFETIME.as_secs(),
            label: String::new(),
        }
    }
}

impl TokenRequest {
    fn into_new(self) -> Result<NewToken, Failure> {
        let scope = || match self.scope.trim() {
            "" => Ok(None),
            text => text.parse().map(Some),
        };
        let grant = match self.kind.as_str() {
            "super" => Grant::Super,
            "metrics" => Grant::Metrics,
            "hub" => Grant::Hub {
                scope: scope()?
                    .ok_or_else(|| Failure::invalid("a hub token requires a scope, such as @me"))?,
                manage: self.manage,
            },
            "clip" => {
                let alias = pinion_clip::alias::normalise(&self.alias)
                    .ok_or_else(|| Failure::invalid("a clip token requires the alias of a clip"))?;
                Grant::Clip {
                    alias,
                    owner: scope()?,
                }
            }
            other => {
                return Err(Failure::invalid(format!(
                    "unknown kind of token {other:?}; use hub, clip, super or metrics"
                )));
            }
        };
        let label = self.label.trim();
        if label.chars().count() > MAX_LABEL_CHARACTERS {
            return Err(Failure::invalid(format!(
                "a label has at most {MAX_LABEL_CHARACTERS} characters"
            )));
        }
        let new = NewToken::new(grant).labelled(label);
        match self.ttl_seconds {
            0 => Ok(new),
            seconds @ 1..=MAX_LIFETIME_SECONDS => Ok(new.lasting(Duration::from_secs(seconds))),
            _ => Err(Failure::invalid(
                "a token lasts at most a hundred years; ttlSeconds 0 makes one that never expires",
            )),
        }
    }
}

#[derive(Serialize)]
struct CreatedToken<'a> {
    #[serde(flatten)]
    shown: TokenInfo<'a>,
    token: &'a str,
}

/// Creates a token: in the cluster, if the hub belongs to one, else in the hub's file.
async fn mint(
    gate: &Gate,
    neighbours: Option<&dyn Neighbours>,
    body: &[u8],
) -> Result<Response<Body>, Failure> {
    let wanted: TokenRequest = read(body)?;
    let new = wanted.into_new()?;
    let tokens = gate.store();
    let minted = match neighbours {
        Some(neighbours) => {
            let minted = tokens.prepare(new)?;
            neighbours.share_token(minted.record.clone()).await?;
            minted
        }
        None => tokens.mint(new)?,
    };
    let shown = TokenInfo::of(&minted.record);
    let token = minted.token.reveal();
    json(StatusCode::CREATED, &CreatedToken { shown, token })
}

/// Revokes a token where it is stored.
async fn revoke(
    gate: &Gate,
    neighbours: Option<&dyn Neighbours>,
    id: &TokenId,
) -> Result<(), Failure> {
    let tokens = gate.store();
    match neighbours {
        Some(neighbours) if tokens.is_shared(id) => neighbours.revoke_token(id.clone()).await,
        _ => tokens.revoke(id).map(drop),
    }
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::invalid(format!("the request body is invalid: {error}")))
}

fn json(status: StatusCode, value: &impl Serialize) -> Result<Response<Body>, Failure> {
    let mut text = serde_json::to_string(value)
        .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    text.push('\n');
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    forbid_caching(headers);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    Ok(response)
}

fn nothing() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    forbid_caching(response.headers_mut());
    response
}

/// Forbids caches to store the answer, which is meant only for the caller.
fn forbid_caching(headers: &mut HeaderMap) {
    add_security_headers(headers);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

fn with_cookie(mut response: Response<Body>, cookie: &str) -> Result<Response<Body>, Failure> {
    let cookie = HeaderValue::from_str(cookie)
        .map_err(|_| Failure::new(Code::Internal, "a session cannot be put into a cookie"))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

#[cfg(test)]
mod tests;
