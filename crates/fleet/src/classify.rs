//! Derives the kind of a failure from an error message: children report failures in prose, at best with an HTTP status.

use crate::FailureKind;

/// Parts of messages about a prompt that exceeds the context window.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "context window",
    "context length",
    "context_length_exceeded",
    "maximum prompt length",
    "input is too long",
    "too many tokens",
    "token limit exceeded",
    "request_too_large",
    "contextoverflow",
];

/// Parts of messages about a missing or rejected key.
const AUTH: &[&str] = &[
    "invalid x-api-key",
    "invalid api key",
    "incorrect api key",
    "authentication",
    "unauthorized",
    "not logged in",
    "no api key",
    "permission_error",
    "providerautherror",
    "credential",
    "please run /login",
];

/// Parts of messages about an exhausted quota, which a retry does not restore.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "insufficient quota",
    "exceeded your current quota",
    "billing",
    "credit balance",
    "monthly limit",
    "usage limit",
];

/// Parts of messages about overload and lost connections, which are temporary.
const TRANSIENT: &[&str] = &[
    "overloaded",
    "rate limit",
    "rate_limit",
    "too many requests",
    "unavailable",
    "server error",
    "server_error",
    "internal error",
    "bad gateway",
    "upstream connect",
    "reset before headers",
    "resource_exhausted",
    "connection error",
    "connection refused",
    "connection reset",
    "connection closed",
    "connection lost",
    "could not connect",
    "cannot connect",
    "unable to connect",
    "error sending request",
    "network error",
    "fetch failed",
    "socket hang up",
    "other side closed",
    "websocket closed",
    "websocket error",
    "broken pipe",
    "http2 request did not get a response",
    "econnrefused",
    "econnreset",
    "econnaborted",
    "etimedout",
    "ehostunreach",
    "enetunreach",
    "epipe",
    "no route to host",
    "network is unreachable",
    "enotfound",
    "eai_again",
    "dns error",
    "timed out",
    "time out",
    "timeout",
    "terminated",
    "stream disconnected",
    "stream ended",
    "ended without",
];

/// Parts of messages about a child that was stopped.
const ABORTED: &[&str] = &[
    "aborted",
    "interrupted",
    "cancelled by",
    "messageabortederror",
];

/// Parts of messages that match [`ABORTED`] but have a network failure as their cause.
const NETWORK_ABORTED: &[&str] = &["econnaborted", "due to timeout", "connection aborted"];

/// Derives the kind of a failure from its message, and from the HTTP status in it.
pub fn classify_text(text: &str) -> FailureKind {
    classify_status(status_in(text), text)
}

/// Derives the kind of a failure from its HTTP status, if known, and its message.
pub fn classify_status(status: Option<u16>, text: &str) -> FailureKind {
    let text = text.to_ascii_lowercase();
    let contains_any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_rate = status == Some(429) || text.contains("rate limit");
    match status {
        Some(401 | 403) => return FailureKind::ProviderAuth,
        Some(413) => return FailureKind::ContextOverflow,
        Some(500..=599) => {
            return FailureKind::Api {
                status,
                retryable: true,
            };
        }
        _ => {}
    }
    if contains_any(OVERFLOW) && !is_rate {
        return FailureKind::ContextOverflow;
    }
    if contains_any(QUOTA) {
        return FailureKind::Api {
            status,
            retryable: false,
        };
    }
    if matches!(status, Some(429 | 408)) {
        return FailureKind::Api {
            status,
            retryable: true,
        };
    }
    if status.is_none() {
        if contains_any(AUTH) {
            return FailureKind::ProviderAuth;
        }
        if contains_any(ABORTED) && !contains_any(NETWORK_ABORTED) {
            return FailureKind::Aborted;
        }
    }
    FailureKind::Api {
        status,
        retryable: status.is_none() && contains_any(TRANSIENT),
    }
}

/// Finds the first number in the text that can be the status of a failed HTTP response: at its start, or after a word
/// such as "status".
fn status_in(text: &str) -> Option<u16> {
    let mut before = "";
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    for (at, word) in words.filter(|word| !word.is_empty()).enumerate() {
        let number = word.parse::<u16>().ok().filter(|_| word.len() == 3);
        if let Some(status) = number.filter(|status| (400..=599).contains(status)) {
            const BEFORE: [&str; 7] = [
                "status",
                "http",
                "error",
                "code",
                "statuscode",
                "api",
                "returned",
            ];
            if at == 0 || BEFORE.contains(&before.to_ascii_lowercase().as_str()) {
                return Some(status);
            }
        }
        before = word;
        if at > 40 {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(status: impl Into<Option<u16>>, retryable: bool) -> FailureKind {
        FailureKind::Api {
            status: status.into(),
            retryable,
        }
    }

    #[test]
    fn messages_of_providers_and_agents_are_classified() {
        for (text, kind) in [
            (
                r#"529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                api(529, true),
            ),
            ("429 Too Many Requests", api(429, true)),
            ("503 upstream", api(503, true)),
            (
                "unexpected status 503 Service Unavailable: overloaded, url: http://127.0.0.1:1/v1/responses",
                api(503, true),
            ),
            (
                "API Error: 529 Overloaded. This is a server-side issue",
                api(529, true),
            ),
            (
                "429 You exceeded your current quota, check your plan and billing details",
                api(429, false),
            ),
            ("401 bad key", FailureKind::ProviderAuth),
            (
                "unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:1",
                FailureKind::ProviderAuth,
            ),
            (
                "Invalid API key · Fix external API key",
                FailureKind::ProviderAuth,
            ),
            ("No API key found for anthropic", FailureKind::ProviderAuth),
            (
                "400 prompt is too long: 210000 tokens > 200000 maximum",
                FailureKind::ContextOverflow,
            ),
            (
                "Your input exceeds the context window of this model",
                FailureKind::ContextOverflow,
            ),
            (
                "400 messages: at least one message is required",
                api(400, false),
            ),
            ("404 model not found", api(404, false)),
            ("fetch failed: ECONNREFUSED 127.0.0.1:401", api(None, true)),
            ("Connection error.", api(None, true)),
            ("Request was aborted", FailureKind::Aborted),
            ("something nobody has seen", api(None, false)),
            ("we found 503 files", api(None, false)),
        ] {
            assert_eq!(classify_text(text), kind, "{text}");
        }
    }

    #[test]
    fn connection_errors_are_retryable() {
        for text in [
            "connect ETIMEDOUT 10.0.0.1:443",
            "connect EHOSTUNREACH 10.0.0.1:443",
            "connect ENETUNREACH 2606::1:443",
            "write EPIPE",
            "ECONNABORTED",
            "TypeError: terminated",
            "SocketError: other side closed",
            "Request timeout",
            "Request timed out.",
            "The operation was aborted due to timeout",
            "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
            "UNAVAILABLE: The model is overloaded. Please try again later.",
            "14 UNAVAILABLE: No connection established",
            "WebSocket closed before the response was complete",
            "No route to host (os error 113)",
            "http2 request did not get a response",
        ] {
            assert_eq!(classify_text(text), api(None, true), "{text}");
        }
    }

    #[test]
    fn only_overload_and_unavailability_fail_back() {
        for (kind, moves) in [
            (api(529, true), true),
            (api(None, true), true),
            (api(400, false), false),
            (FailureKind::ProviderAuth, false),
            (FailureKind::ContextOverflow, false),
            (FailureKind::Aborted, false),
            (FailureKind::Budget, false),
            (
                FailureKind::Crashed {
                    signal: Some(9),
                    code: None,
                },
                false,
            ),
        ] {
            assert_eq!(kind.should_fail_back(), moves, "{kind}");
        }
    }
}
