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

/// An answer.
pub(super) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body)
            .ok()
            .filter(Value::is_object)
    }

    /// Returns the object of a successful answer. The error shows the server's own words.
    pub fn success(&self) -> Result<Value, String> {
        let answer = self.json().unwrap_or_default();
        if (200..300).contains(&self.status) && answer.is_object() {
            return Ok(answer);
        }
        let texts = ["error_description", "error"].map(|name| answer[name].as_str());
        let text = texts.into_iter().flatten().next().unwrap_or("no reason");
        let text: String = text.chars().take(MAX_SHOWN_CHARS).collect();
        let text = pinion_text::harmless_line(&text);
        Err(format!("HTTP {}: {text}", self.status))
    }
}

/// Sends a request and reads its answer.
pub(super) async fn send(request: FetchRequest) -> Result<Answer, String> {
    let url = request.url.clone();
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
    let answer = tokio::time::timeout(TIMEOUT, exchange).await;
    let answer = answer.unwrap_or_else(|_| Err("it did not answer in time".into()));
    answer.map_err(|error| format!("{url}: {error}"))
}

/// Requests a JSON document.
pub(super) async fn get(url: &str) -> Result<Answer, String> {
    send(FetchRequest {
        method: "GET".into(),
        url: url.to_owned(),
        headers: vec![("accept".into(), "application/json".into())],
        body: None,
        redirect: Redirect::Follow,
    })
    .await
}

/// Posts a body of the type `kind`. The body contains secrets, so a redirect fails.
pub(super) async fn post(
    url: &str,
    kind: &str,
    headers: Vec<(String, String)>,
    body: String,
) -> Result<Answer, String> {
    let mut all = vec![
        ("content-type".to_owned(), kind.to_owned()),
        ("accept".into(), "application/json".into()),
    ];
    all.extend(headers);
    send(FetchRequest {
        method: "POST".into(),
        url: url.to_owned(),
        headers: all,
        body: Some(Bytes::from(body)),
        redirect: Redirect::Refuse,
    })
    .await
}
