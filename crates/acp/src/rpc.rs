//! JSON-RPC 2.0: decodes lines into requests, notifications and responses, and prints messages.

use pinion_jsonl::{InputLine, json as javascript};
use serde_json::{Map, Value, json};

use crate::error::AcpError;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Params,
    },
    Notification {
        method: String,
        params: Params,
    },
    /// The answer to a request of the agent.
    Response {
        id: Value,
        result: Result<Value, Value>,
    },
    /// A line that is none of these. `id` is null if the line has none that can be used.
    Invalid {
        id: Value,
        error: AcpError,
    },
}

/// Decodes one line.
pub(crate) fn decode(line: &InputLine) -> Incoming {
    let invalid = |id, error| Incoming::Invalid { id, error };
    let InputLine::Complete(bytes) = line else {
        let problem = "the line is longer than 64 MiB; send less at once";
        let error = AcpError::invalid_request(problem, "line_too_long");
        return invalid(Value::Null, error);
    };
    let Ok(message) = serde_json::from_slice::<Value>(bytes) else {
        return invalid(Value::Null, AcpError::parse());
    };
    let Value::Object(mut message) = message else {
        let problem = if message.is_array() {
            "batches are not supported; send one message per line"
        } else {
            "a message must be an object"
        };
        let error = AcpError::invalid_request(problem, "invalid_request");
        return invalid(Value::Null, error);
    };
    let id = message.remove("id");
    let is_id = |id: &Value| matches!(id, Value::Null | Value::Number(_) | Value::String(_));
    if !id.as_ref().is_none_or(is_id) {
        let problem = "id must be a number, a string or null";
        let error = AcpError::invalid_request(problem, "invalid_request");
        return invalid(Value::Null, error);
    }
    let answered = id.clone().unwrap_or_default();
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        let error = AcpError::invalid_request("jsonrpc must be \"2.0\"", "invalid_request");
        return invalid(answered, error);
    }
    match (message.remove("method"), id) {
        (Some(Value::String(method)), id) => {
            let params = Params::of(message.remove("params"));
            match id {
                Some(id) => Incoming::Request { id, method, params },
                None => Incoming::Notification { method, params },
            }
        }
        (None, Some(id)) if message.contains_key("error") => Incoming::Response {
            id,
            result: Err(message.remove("error").unwrap_or_default()),
        },
        (None, Some(id)) if message.contains_key("result") => Incoming::Response {
            id,
            result: Ok(message.remove("result").unwrap_or_default()),
        },
        _ => {
            let error = AcpError::invalid_request("method is missing", "invalid_request");
            invalid(answered, error)
        }
    }
}

/// The parameters of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Params(Result<Map<String, Value>, ()>);

impl Params {
    fn of(params: Option<Value>) -> Self {
        Self(match params {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members),
            Some(_) => Err(()),
        })
    }

    /// Fails if the parameters are not an object.
    pub fn check(&self) -> Result<(), AcpError> {
        self.members().map(|_| ())
    }

    fn members(&self) -> Result<&Map<String, Value>, AcpError> {
        let members = self.0.as_ref();
        members.map_err(|()| AcpError::invalid_params("params must be an object"))
    }

    /// Returns a member that is present and not null.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let members = self.0.as_ref().ok()?;
        members.get(name).filter(|value| !value.is_null())
    }

    /// Returns a text.
    pub fn text(&self, name: &str) -> Result<&str, AcpError> {
        self.members()?;
        let missing = || AcpError::invalid_params(format_args!("{name} is missing"));
        self.optional_text(name)?.ok_or_else(missing)
    }

    /// Returns a text that may be absent.
    pub fn optional_text(&self, name: &str) -> Result<Option<&str>, AcpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(AcpError::invalid_params(format_args!(
                "{name} must be a string"
            ))),
        }
    }

    /// Returns a list.
    pub fn list(&self, name: &str) -> Result<&[Value], AcpError> {
        self.members()?;
        let missing = || AcpError::invalid_params(format_args!("{name} is missing"));
        self.optional_list(name)?.ok_or_else(missing)
    }

    /// Returns a list that may be absent.
    pub fn optional_list(&self, name: &str) -> Result<Option<&[Value]>, AcpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(AcpError::invalid_params(format_args!(
                "{name} must be a list"
            ))),
        }
    }
}

/// Prints a response.
pub(crate) fn response(id: &Value, result: &Result<Value, AcpError>) -> Vec<u8> {
    match result {
        Ok(result) => line(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
        Err(error) => line(&json!({"jsonrpc": "2.0", "id": id, "error": error.to_value()})),
    }
}

/// Prints a request of the agent.
pub(crate) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Prints a notification.
pub(crate) fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = javascript::to_vec(message);
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Incoming {
        decode(&InputLine::Complete(text.as_bytes().to_vec()))
    }

    #[test]
    fn messages_are_told_apart_by_their_members() {
        assert!(matches!(
            decoded(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#),
            Incoming::Request {
                id: Value::Null,
                ..
            }
        ));
        assert!(matches!(
            decoded(r#"{"jsonrpc":"2.0","method":"a","params":{}}"#),
            Incoming::Notification { .. }
        ));
        assert!(matches!(
            decoded(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
            Incoming::Response {
                result: Ok(Value::Null),
                ..
            }
        ));
        assert!(matches!(
            decoded(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#),
            Incoming::Response { result: Err(_), .. }
        ));
    }

    #[test]
    fn invalid_lines_get_the_code_that_fits() {
        for (text, id, code) in [
            ("nothing", Value::Null, -32700),
            ("", Value::Null, -32700),
            ("[]", Value::Null, -32600),
            ("5", Value::Null, -32600),
            (r#"{"id":1,"method":"a"}"#, json!(1), -32600),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
                Value::Null,
                -32600,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"x","method":5}"#,
                json!("x"),
                -32600,
            ),
            (r#"{"jsonrpc":"2.0","id":2}"#, json!(2), -32600),
        ] {
            let Incoming::Invalid {
                id: answered,
                error,
            } = decoded(text)
            else {
                panic!("{text} was accepted");
            };
            assert_eq!(
                (answered, error.to_value()["code"].clone()),
                (id, json!(code)),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_line_is_decoded(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            decode(&InputLine::Complete(line));
        }
    }
}
