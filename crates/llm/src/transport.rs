//! One attempt at a request, and the meaning of its failure: the text for the user, whether another
//! attempt may help, and the delay before it. Handles statuses and headers, not the messages of an
//! API.

use std::time::{Duration, SystemTime};

use pinion_http::header::{HeaderMap, HeaderName, HeaderValue};
use pinion_http::{Client, Response, causes, root_cause};
use pinion_text::shorten_bytes;
use serde_json::{Value, json};

use crate::http_request::HttpRequest;
use crate::wire_json::error_message;
use crate::{bedrock, responses};

/// Bytes of an error body that are read.
const MAX_ERROR_BODY: usize = 256 * 1024;
/// Bytes of an error body that are shown.
const MAX_ERROR_TEXT: usize = 16 * 1024;

/// An attempt that failed before the answer began.
pub(crate) struct Failure {
    pub(crate) text: String,
    /// Another attempt may succeed.
    pub(crate) retryable: bool,
    /// The delay that the server requests.
    pub(crate) delay: Option<Duration>,
    /// The status of the response, if there was one.
    pub(crate) status: Option<u16>,
    /// The reason, if there was no response.
    pub(crate) cause: Option<Cause>,
}

/// The reason why a request got no response.
pub(crate) struct Cause {
    /// For use after a colon.
    pub(crate) description: String,
    /// No program listens at the address.
    pub(crate) refused: bool,
}

/// Sends `request` and waits for the response headers; an error status is still a response.
pub(crate) async fn send(client: &Client, request: &HttpRequest) -> Result<Response, Failure> {
    let mut headers = HeaderMap::with_capacity(request.headers.len() + 1);
    // Compressed streams arrive in large pieces instead of token by token.
    headers.insert("accept-encoding", HeaderValue::from_static("identity"));
    for (name, value) in &request.headers {
        let header = HeaderName::try_from(name)
            .ok()
            .zip(HeaderValue::from_str(value).ok());
        let Some((name, mut value)) = header else {
            return Err(final_failure(format!(
                "Header {name:?} cannot be sent as it is."
            )));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let sent = client
        .post(&request.url)
        .headers(headers)
        .body(request.body.clone())
        .send()
        .await;
    sent.map_err(|error| connection_failure(&error))
}

fn final_failure(text: String) -> Failure {
    Failure {
        text,
        retryable: false,
        delay: None,
        status: None,
        cause: None,
    }
}

fn connection_failure(error: &pinion_http::Error) -> Failure {
    if error.is_builder() || error.is_redirect() {
        return final_failure(format!(
            "The request could not be made: {}.",
            root_cause(error)
        ));
    }
    let text = if error.is_timeout() {
        "Connection timed out.".to_owned()
    } else if is_plain_disconnect(error) {
        "Connection error.".to_owned()
    } else {
        // Names the cause of unresolved names and invalid certificates.
        format!("Connection error. {}", root_cause(error))
    };
    let kind = |error: &pinion_http::Error| {
        let io = causes(error).find_map(|cause| cause.downcast_ref::<std::io::Error>());
        io.map(std::io::Error::kind)
    };
    let refused = kind(error) == Some(std::io::ErrorKind::ConnectionRefused);
    let description = if refused {
        "connection refused".to_owned()
    } else if error.is_timeout() {
        "no answer in time".to_owned()
    } else {
        root_cause(error)
    };
    Failure {
        text,
        retryable: true,
        delay: None,
        status: None,
        cause: Some(Cause {
            description,
            refused,
        }),
    }
}

/// Reports whether the connection was refused, reset or closed. The error text adds nothing to
/// that.
fn is_plain_disconnect(error: &pinion_http::Error) -> bool {
    if !error.is_connect() {
        return true;
    }
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset};
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| {
            matches!(
                io.kind(),
                ConnectionRefused | ConnectionReset | ConnectionAborted | BrokenPipe
            )
        })
}

/// The failure that an error status means. Reads the body for the text.
pub(crate) async fn status_failure(api: &str, mut response: Response) -> Failure {
    let status = response.status();
    let headers = response.headers().clone();
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= MAX_ERROR_BODY {
            break;
        }
    }
    let body = String::from_utf8_lossy(&body);
    let reason = status.canonical_reason().unwrap_or_default();
    let code = status.as_u16();
    if api == "bedrock-converse-stream" {
        return Failure {
            text: shorten_bytes(bedrock::failure_text(code, &headers, &body), MAX_ERROR_TEXT),
            retryable: bedrock::is_retryable_status(code),
            delay: server_delay(&headers),
            status: Some(code),
            cause: None,
        };
    }
    if api == "openai-codex-responses" {
        let (text, is_final) = responses::codex_failure(code, &body);
        return Failure {
            text: shorten_bytes(text, MAX_ERROR_TEXT),
            retryable: !is_final && matches!(code, 429 | 500 | 502 | 503 | 504),
            delay: server_delay(&headers),
            status: Some(code),
            cause: None,
        };
    }
    Failure {
        text: status_text(api, status.as_u16(), reason, &body),
        retryable: is_retryable_status(status.as_u16(), &headers),
        delay: server_delay(&headers),
        status: Some(status.as_u16()),
        cause: None,
    }
}

/// The text for an error status, in the form of each vendor's own library.
pub(crate) fn status_text(api: &str, status: u16, reason: &str, body: &str) -> String {
    let json = serde_json::from_str::<Value>(body)
        .ok()
        .filter(|json| !json.is_null());
    let text = match (api, &json) {
        ("google-generative-ai" | "google-vertex", _) => {
            let wrapped = || json!({"error": {"message": body, "code": status, "status": reason}});
            return shorten_bytes(
                json.clone().unwrap_or_else(wrapped).to_string(),
                MAX_ERROR_TEXT,
            );
        }
        ("mistral-conversations", _) => {
            let body: String = body.chars().take(4000).collect();
            return format!("Mistral API error ({status}): {body}");
        }
        ("anthropic-messages", Some(json)) => json.to_string(),
        (_, Some(json)) => match json.get("error").filter(|error| !error.is_null()) {
            Some(error) => provider_error(error),
            None => json.to_string(),
        },
        (_, None) => body.trim().to_owned(),
    };
    if text.is_empty() {
        return format!("{status} status code (no body)");
    }
    shorten_bytes(format!("{status} {text}"), MAX_ERROR_TEXT)
}

/// The message of an error object, followed by that of the server behind a router.
pub(crate) fn provider_error(error: &Value) -> String {
    let mut text = error_message(error);
    if let Some(raw) = error.pointer("/metadata/raw").filter(|raw| !raw.is_null()) {
        text.push('\n');
        match raw.as_str() {
            Some(raw) => text.push_str(raw),
            None => text.push_str(&raw.to_string()),
        }
    }
    text
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::trim)
}

fn is_retryable_status(status: u16, headers: &HeaderMap) -> bool {
    match header(headers, "x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(status, 408 | 409 | 429) || status >= 500,
    }
}

/// `retry-after-ms`, or `retry-after` in seconds or as a date.
fn server_delay(headers: &HeaderMap) -> Option<Duration> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    if let Some(milliseconds) = header(headers, "retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let after = header(headers, "retry-after")?;
    if let Some(seconds) = number(after) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(after).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// The delay before attempt `retry` (from zero) when the server names none: half a second, doubling
/// up to eight, less a random part of up to a quarter so that clients do not retry at the same
/// moment.
pub(crate) fn backoff(retry: u32) -> Duration {
    let seconds = (0.5 * f64::from(2u32.saturating_pow(retry.min(10)))).min(8.0);
    Duration::from_secs_f64(seconds * (1.0 - 0.25 * random()))
}

/// A number in `[0, 1)`; the standard library's hash seeds are random enough for this.
pub(crate) fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|&(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)))
            .collect()
    }

    #[test]
    fn servers_may_name_a_delay_in_three_ways() {
        let delay = |pairs: &[(&'static str, &'static str)]| server_delay(&headers(pairs));
        assert_eq!(
            delay(&[("retry-after-ms", "20.5")]),
            Some(Duration::from_micros(20_500))
        );
        assert_eq!(
            delay(&[("retry-after", "1.5")]),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            delay(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]),
            Some(Duration::ZERO)
        );
        assert_eq!(delay(&[("retry-after", "-3")]), None);
        assert_eq!(delay(&[("retry-after", "soon")]), None);
    }

    #[test]
    fn the_server_may_overrule_which_statuses_are_retried() {
        for (status, expected) in [
            (429, true),
            (500, true),
            (408, true),
            (400, false),
            (413, false),
        ] {
            assert_eq!(
                is_retryable_status(status, &HeaderMap::new()),
                expected,
                "{status}"
            );
            let no = headers(&[("x-should-retry", "false")]);
            assert!(!is_retryable_status(status, &no));
            let yes = headers(&[("x-should-retry", "true")]);
            assert!(is_retryable_status(status, &yes));
        }
    }

    #[test]
    fn backoff_doubles_up_to_eight_seconds() {
        for (retry, longest) in [(0, 0.5), (1, 1.0), (4, 8.0), (40, 8.0)] {
            let seconds = backoff(retry).as_secs_f64();
            assert!(
                seconds <= longest && seconds > 0.75 * longest - 1e-9,
                "{retry}: {seconds}"
            );
        }
    }

    #[test]
    fn error_bodies_become_texts() {
        let text = |body: &str| status_text("openai-completions", 404, "Not Found", body);
        assert_eq!(
            text(r#"{"error":{"message":"no such model"}}"#),
            "404 no such model"
        );
        assert_eq!(text(r#"{"error":"no such model"}"#), "404 no such model");
        assert_eq!(text(r#"{"error":{"code":7}}"#), r#"404 {"code":7}"#);
        assert_eq!(
            text(r#"{"detail":"Not Found"}"#),
            r#"404 {"detail":"Not Found"}"#
        );
        assert_eq!(text("<html>"), "404 <html>");
        assert_eq!(text(""), "404 status code (no body)");
        let long = text(&"é".repeat(100_000));
        assert!(long.len() < MAX_ERROR_TEXT + 10 && long.ends_with('…'));
    }
}
