//! Errors of the service: the texts that clients of pi expect, and the statuses that are tried again.

use pinion_http::header::HeaderMap;
use serde_json::Value;

/// The page about models that need another mode of data retention.
const RETENTION_PAGE: &str =
    "https://docs.aws.amazon.com/bedrock/latest/userguide/data-retention.html";

/// Reports whether another attempt may succeed.
pub(crate) fn is_retryable_status(status: u16) -> bool {
    matches!(status, 429 | 500 | 502 | 503 | 504)
}

/// The text for an error status.
pub(crate) fn failure_text(status: u16, headers: &HeaderMap, body: &str) -> String {
    let json = serde_json::from_str::<Value>(body)
        .ok()
        .filter(Value::is_object);
    let Some(json) = json else {
        let body = body.trim();
        return match body {
            "" => format!("{status} status code (no body)"),
            _ => format!("{status} {body}"),
        };
    };
    let header = headers
        .get("x-amzn-errortype")
        .and_then(|value| value.to_str().ok());
    let header = header.map(|name| name.split(':').next().unwrap_or_default());
    let member = |name: &str| json.get(name).and_then(Value::as_str);
    let in_body = || {
        let name = member("__type").or_else(|| member("code"))?;
        // A namespace comes before the name.
        name.rsplit('#').next()
    };
    let name = header.filter(|name| !name.is_empty()).or_else(in_body);
    let message = member("message")
        .or_else(|| member("Message"))
        .unwrap_or_default();
    match name {
        Some(name) => exception_text(name, message),
        None if message.is_empty() => format!("{status} {json}"),
        None => format!("{status} {message}"),
    }
}

/// The text for an exception with this name.
pub(crate) fn exception_text(name: &str, message: &str) -> String {
    let mut letters = name.chars();
    // Exceptions of a stream begin with a small letter.
    let name: String = letters
        .next()
        .map(|first| first.to_ascii_uppercase())
        .into_iter()
        .chain(letters)
        .collect();
    let prefix = match name.as_str() {
        "InternalServerException" => "Internal server error",
        "ModelStreamErrorException" => "Model stream error",
        "ValidationException" => "Validation error",
        "ThrottlingException" => "Throttling error",
        "ServiceUnavailableException" => "Service unavailable",
        other => other,
    };
    let mut text = format!("{prefix}: {message}");
    if message.contains("data retention mode") {
        text += &format!(" See {RETENTION_PAGE} for supported data retention modes.");
    }
    text
}
