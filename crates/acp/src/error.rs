//! The errors of requests: codes of JSON-RPC and of the protocol, a sentence, and a stable name for programs.

use serde_json::{Map, Value, json};

/// A failed request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct AcpError {
    code: i32,
    message: String,
    data: Value,
}

impl AcpError {
    fn new(code: i32, message: String, name: &str) -> Self {
        Self {
            code,
            message,
            data: json!({ "code": name }),
        }
    }

    /// The line is not JSON.
    pub fn parse() -> Self {
        Self::new(-32700, "Parse error".into(), "parse_error")
    }

    /// The line is JSON and not a valid message, or comes out of order.
    pub fn invalid_request(problem: &str, name: &str) -> Self {
        Self::new(-32600, format!("Invalid request: {problem}"), name)
    }

    /// The method is unknown.
    pub fn method_not_found(method: &str) -> Self {
        Self {
            code: -32601,
            message: format!("Method not found: {method}"),
            data: json!({ "method": method }),
        }
    }

    /// A parameter is missing, has the wrong type or an unknown value.
    pub fn invalid_params(problem: impl std::fmt::Display) -> Self {
        let message = format!("Invalid params: {problem}");
        Self::new(-32602, message, "invalid_params")
    }

    /// The request failed for another reason; `name` is its stable name.
    pub fn internal(message: impl Into<String>, name: &str) -> Self {
        Self::new(-32603, message.into(), name)
    }

    /// A session is missing.
    pub fn no_session(problem: impl std::fmt::Display) -> Self {
        let message = format!("Resource not found: {problem}");
        Self::new(-32002, message, "session_not_found")
    }

    /// There is no session `id` that is open.
    pub fn not_open(id: &str) -> Self {
        Self::no_session(format_args!("there is no open session \"{id}\""))
    }

    /// There is no session `id`.
    pub fn unknown_session(id: &str) -> Self {
        Self::no_session(format_args!("there is no session \"{id}\""))
    }

    /// The request needs a login or a key. The connection adds the methods of authentication that it offers.
    pub fn authentication_required(problem: impl std::fmt::Display) -> Self {
        let message = format!("Authentication required: {problem}");
        Self {
            code: -32000,
            message,
            data: json!({}),
        }
    }

    /// The client cancelled the request.
    pub fn cancelled() -> Self {
        let message = "Request cancelled".to_owned();
        Self::new(-32800, message, "request_cancelled")
    }

    /// Adds a member to the data.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data[name] = value.into();
        self
    }

    /// Reports whether the request needs a login or a key.
    pub(crate) fn is_about_authentication(&self) -> bool {
        self.code == -32000
    }

    /// Returns the member `error` of a response.
    pub(crate) fn to_value(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".into(), self.code.into());
        error.insert("message".into(), self.message.as_str().into());
        error.insert("data".into(), self.data.clone());
        Value::Object(error)
    }
}
