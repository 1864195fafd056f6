//! Plain HTTP for extensions, MCP servers and hubs: a request as given, the response as it arrives, from any server.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue,
    LOCATION, PROXY_AUTHORIZATION,
};
use reqwest::{Method, Response, StatusCode, Url};

use crate::cause::root_cause;
use crate::client::Redirects;
use crate::clients::Clients;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(300);
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_REDIRECTS: usize = 20;

/// The handling of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirect {
    /// Request the new address.
    #[default]
    Follow,
    /// Return the redirect as the response.
    Manual,
    /// Fail.
    Refuse,
}

/// A request to send.
#[derive(Debug, Clone, Default)]
pub struct FetchRequest {
    /// The method, such as `GET`.
    pub method: String,
    /// The absolute address.
    pub url: String,
    /// Names and values, as given.
    pub headers: Vec<(String, String)>,
    /// The body, if the request has one.
    pub body: Option<Bytes>,
    /// The handling of redirects.
    pub redirect: Redirect,
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FetchError {
    /// A stable name, such as `ECONNREFUSED`.
    pub code: &'static str,
    /// The cause, for people.
    pub message: String,
}

/// The head of a response, and its body as it arrives.
#[derive(Debug)]
pub struct FetchResponse {
    /// The status code.
    pub status: u16,
    /// The reason phrase beside the status.
    pub status_text: String,
    /// The address that answered, after redirects.
    pub url: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    response: Response,
}

impl FetchResponse {
    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    ///
    /// When the connection ends early or nothing arrives for five minutes.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        match tokio::time::timeout(IDLE_TIMEOUT, self.response.chunk()).await {
            Ok(result) => result.map_err(|error| failure(&error)),
            Err(_) => Err(timed_out("Body Timeout Error")),
        }
    }
}

/// Sends requests and reuses connections between them.
#[derive(Debug, Clone)]
pub struct Fetcher {
    clients: Clients,
}

impl Default for Fetcher {
    fn default() -> Self {
        // `fetch` follows redirects itself, because each request decides about its own.
        Self {
            clients: Clients::new(Redirects::None),
        }
    }
}

impl Fetcher {
    /// Sends `request` and waits for the head of the response.
    ///
    /// # Errors
    ///
    /// When the request cannot be made or no server answers.
    pub async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let mut url = Url::parse(&request.url).map_err(|_| {
            let url = &request.url;
            invalid(&format!(
                "{url:?} is not a URL; write it like \"https://example.com/path\""
            ))
        })?;
        let mut method =
            Method::from_bytes(request.method.as_bytes()).map_err(|_| invalid("not a method"))?;
        let mut headers = header_map(&request.headers)?;
        let mut body = request.body;
        for _ in 0..=MAX_REDIRECTS {
            let client = self.clients.get(&url, CONNECT_TIMEOUT).await;
            let client = client.map_err(|message| FetchError {
                code: "ERR_TLS",
                message,
            })?;
            let mut outgoing = client
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some(body) = &body {
                outgoing = outgoing.body(body.clone());
            }
            let response = match tokio::time::timeout(FIRST_BYTE_TIMEOUT, outgoing.send()).await {
                Ok(result) => result.map_err(|error| failure(&error))?,
                Err(_) => return Err(timed_out("Headers Timeout Error")),
            };
            let Some(next) = redirected(&response) else {
                return Ok(received(response));
            };
            match request.redirect {
                Redirect::Manual => return Ok(received(response)),
                Redirect::Refuse => {
                    return Err(FetchError {
                        code: "ERR_REDIRECT",
                        message: "unexpected redirect".to_owned(),
                    });
                }
                Redirect::Follow => {}
            }
            let status = response.status();
            let posted = method == Method::POST
                && matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND);
            let see_other = status == StatusCode::SEE_OTHER && method != Method::HEAD;
            if posted || see_other && method != Method::GET {
                method = Method::GET;
                body = None;
                headers.remove(CONTENT_LENGTH);
                headers.remove(CONTENT_TYPE);
            }
            if next.origin() != url.origin() {
                for secret in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
                    headers.remove(secret);
                }
            }
            url = next;
        }
        Err(FetchError {
            code: "ERR_REDIRECT",
            message: "redirect count exceeded".to_owned(),
        })
    }
}

fn redirected(response: &Response) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let place = response.headers().get(LOCATION)?.to_str().ok()?;
    let next = response.url().join(place).ok()?;
    matches!(next.scheme(), "http" | "https").then_some(next)
}

fn received(response: Response) -> FetchResponse {
    let status = response.status();
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| {
            (
                name.as_str().to_owned(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    FetchResponse {
        status: status.as_u16(),
        status_text: status.canonical_reason().unwrap_or_default().to_owned(),
        url: response.url().to_string(),
        headers,
        response,
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, FetchError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| invalid(&format!("invalid header name {name:?}")))?;
        let value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| invalid(&format!("invalid value of the header {name}")))?;
        map.append(name, value);
    }
    Ok(map)
}

fn invalid(message: &str) -> FetchError {
    FetchError {
        code: "ERR_INVALID_ARG_VALUE",
        message: message.to_owned(),
    }
}

fn timed_out(message: &str) -> FetchError {
    FetchError {
        code: "ETIMEDOUT",
        message: message.to_owned(),
    }
}

fn failure(error: &reqwest::Error) -> FetchError {
    let cause = root_cause(error);
    let lower = cause.to_lowercase();
    let code = if error.is_timeout() {
        "ETIMEDOUT"
    } else if lower.contains("refused") {
        "ECONNREFUSED"
    } else if lower.contains("reset") || lower.contains("closed before") {
        "ECONNRESET"
    } else if lower.contains("lookup") || lower.contains("name or service not known") {
        "ENOTFOUND"
    } else {
        "ERR_NETWORK"
    };
    FetchError {
        code,
        message: if cause.is_empty() {
            error.to_string()
        } else {
            cause
        },
    }
}
