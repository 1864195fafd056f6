//! Requests to authorization servers: small JSON documents and forms.

use std::time::Duration;

use bytes::Bytes;
use pinion_http::{FetchRequest, FetchResponse, Fetcher, Redirect};
use serde_json::Value;

/// The largest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Time limit of a request with its answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Characters of an error text that are shown.
const MAX_SHOWN_CHARS: usize = 300;

/// The limits of a request.
#[derive(Debug, Clone, Copy)]
pub struct HttpOptions {
    /// Time limit of the request with its answer.
    pub timeout: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { timeout: TIMEOUT }
    }
}

/// An answer.
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Bodies hold tokens, so only their length is shown.
impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl Answer {
    /// Returns the first value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the body as a JSON object.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body)
            .ok()
            .filter(Value::is_object)
    }

    /// Reports whether the status is between 200 and 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the object of a successful answer.
    ///
    /// # Errors
    ///
    /// For any other answer; the error shows the server's own words.
    pub fn success(&self) -> Result<Value, String> {
        match self.json() {
            Some(object) if self.is_success() => Ok(object),
            _ => Err(format!("HTTP {}: {}", self.status, self.reason())),
        }
    }

    /// Returns the server's own words for a failure, as one short line. It may repeat what it received.
    pub fn reason(&self) -> String {
        let answer = self.json().unwrap_or_default();
        let error = &answer["error"];
        let texts = [
            answer["error_description"].as_str(),
            error["message"].as_str(),
            error.as_str(),
            answer["message"].as_str(),
        ];
        let text = texts.into_iter().flatten().next().unwrap_or("no reason");
        let text: String = text.chars().take(MAX_SHOWN_CHARS).collect();
        pinion_text::harmless_line(&text)
    }

    /// Returns the server's stable word for a failure: `error`, or its `code`.
    pub fn error_code(&self) -> String {
        let answer = self.json().unwrap_or_default();
        let error = &answer["error"];
        let code = error.as_str().or_else(|| error["code"].as_str());
        code.unwrap_or_default().to_owned()
    }
}

/// Sends a request and reads its answer.
///
/// # Errors
///
/// When no server answers in time, or the answer is too large. The error names the address without its query.
pub async fn send(request: FetchRequest, options: HttpOptions) -> Result<Answer, String> {
    let shown = request.url.split('?').next().unwrap_or_default().to_owned();
    let exchange = async {
        let mut response: FetchResponse = Fetcher::default()
            .fetch(request)
            .await
            .map_err(|error| error.to_string())?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| error.to_string())? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_ANSWER_BYTES {
                return Err(format!(
                    "it answered with more than {MAX_ANSWER_BYTES} bytes"
                ));
            }
        }
        Ok(Answer {
            status: response.status,
            headers: response.headers,
            body,
        })
    };
    let answer = tokio::time::timeout(options.timeout, exchange).await;
    let answer = answer.unwrap_or_else(|_| Err("it did not answer in time".into()));
    answer.map_err(|error| format!("{shown}: {error}"))
}

/// Requests a JSON document.
///
/// # Errors
///
/// As [`send`].
pub async fn get(url: &str) -> Result<Answer, String> {
    let request = FetchRequest {
        method: "GET".into(),
        url: url.to_owned(),
        headers: vec![("accept".into(), "application/json".into())],
        body: None,
        redirect: Redirect::Follow,
    };
    send(request, HttpOptions::default()).await
}

/// Posts a body of the type `kind`. The body contains secrets, so a redirect fails.
///
/// # Errors
///
/// As [`send`].
pub async fn post(
    url: &str,
    kind: &str,
    headers: Vec<(String, String)>,
    body: String,
    options: HttpOptions,
) -> Result<Answer, String> {
    let mut all = vec![
        ("content-type".to_owned(), kind.to_owned()),
        ("accept".into(), "application/json".into()),
    ];
    all.extend(headers);
    let request = FetchRequest {
        method: "POST".into(),
        url: url.to_owned(),
        headers: all,
        body: Some(Bytes::from(body)),
        redirect: Redirect::Refuse,
    };
    send(request, options).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn failures_show_the_words_of_the_server() {
        for (body, reason, code) in [
            (
                r#"{"error":"invalid_grant","error_description":"revoked"}"#,
                "revoked",
                "invalid_grant",
            ),
            (
                r#"{"error":"invalid_token"}"#,
                "invalid_token",
                "invalid_token",
            ),
            (
                r#"{"error":{"message":"Invalid code","code":"x"}}"#,
                "Invalid code",
                "x",
            ),
            ("<html>", "no reason", ""),
        ] {
            let answer = answer(400, body);
            assert_eq!(answer.reason(), reason);
            assert_eq!(answer.error_code(), code);
            assert_eq!(answer.success().unwrap_err(), format!("HTTP 400: {reason}"));
        }
        assert!(answer(200, "[]").success().is_err());
        assert!(answer(200, "{}").success().is_ok());
        let shown = format!("{:?}", answer(200, r#"{"access_token":"planted"}"#));
        assert!(!shown.contains("planted"), "{shown}");
    }
}
