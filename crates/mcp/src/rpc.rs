//! JSON-RPC 2.0 as MCP uses it: parses and writes messages. It contains no methods.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;
use serde_json::value::RawValue;

/// Error codes of JSON-RPC and MCP.
pub(crate) mod code {
    pub(crate) const PARSE: i64 = -32700;
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    pub(crate) const INTERNAL: i64 = -32603;
    pub(crate) const HEADER_MISMATCH: i64 = -32020;
    pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
}

/// The id that relates an answer to its request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Id {
    Text(String),
    Number(Number),
}

/// A message that requires an answer.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) id: Id,
    pub(crate) method: String,
    /// An object, if present.
    pub(crate) params: Option<Box<RawValue>>,
}

/// A message without an answer.
#[derive(Debug, Clone)]
pub(crate) struct Notification {
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    /// `None` if the other side could not read the id of the request.
    pub(crate) id: Option<Id>,
    pub(crate) outcome: Result<Box<RawValue>, Fault>,
}

/// The error of a request without a result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Box<serde_json::Value>>,
}

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    pub(crate) fn no_method(method: &str) -> Self {
        Self::new(
            code::METHOD_NOT_FOUND,
            format!("method not found: {method}"),
        )
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// A malformed message, and the error to answer it with.
#[derive(Debug, Clone)]
pub(crate) struct MalformedMessage {
    pub(crate) id: Option<Id>,
    pub(crate) fault: Fault,
}

/// The content of one line or HTTP body.
#[derive(Debug, Clone)]
pub(crate) enum Incoming {
    One(Result<Message, MalformedMessage>),
    /// Several messages in an array, which is never empty.
    Batch(Vec<Result<Message, MalformedMessage>>),
}

/// Deserializes a value that is present, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Parses the received bytes. Every part becomes a message, or an error to answer it with.
pub(crate) fn read(bytes: &[u8]) -> Incoming {
    let text: &RawValue = match serde_json::from_slice(bytes) {
        Ok(text) => text,
        Err(error) => {
            let fault = Fault::new(code::PARSE, format!("this is not JSON: {error}"));
            return Incoming::One(Err(MalformedMessage { id: None, fault }));
        }
    };
    if !text.get().starts_with('[') {
        return Incoming::One(message(text));
    }
    match serde_json::from_str::<Vec<&RawValue>>(text.get()) {
        Ok(parts) if !parts.is_empty() => Incoming::Batch(parts.into_iter().map(message).collect()),
        _ => Incoming::One(Err(invalid(None, "an empty batch"))),
    }
}

fn invalid(id: Option<Id>, what: &str) -> MalformedMessage {
    let fault = Fault::new(
        code::INVALID_REQUEST,
        format!("this is not a JSON-RPC 2.0 message: {what}"),
    );
    MalformedMessage { id, fault }
}

fn message(text: &RawValue) -> Result<Message, MalformedMessage> {
    // serde would read a list as the fields in their order.
    if !text.get().starts_with('{') {
        return Err(invalid(None, "it is not an object"));
    }
    let envelope: Envelope<'_> =
        serde_json::from_str(text.get()).map_err(|error| invalid(None, &error.to_string()))?;
    let id = match envelope.id {
        Some(id) => serde_json::from_str::<Id>(id.get())
            .map(Some)
            .map_err(|_| invalid(None, "its id is neither a string nor a number")),
        None => Ok(None),
    };
    let version = envelope.jsonrpc.map(RawValue::get);
    if version != Some(r#""2.0""#) {
        return Err(invalid(id.ok().flatten(), "\"jsonrpc\" is not \"2.0\""));
    }
    let Some(method) = envelope.method else {
        return response(&envelope, id);
    };
    let id = id?;
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        return Err(invalid(id, "its method is not a string"));
    };
    let params = envelope
        .params
        .filter(|params| params.get() != "null")
        .map(RawValue::to_owned);
    let is_object = params.as_ref().is_none_or(|it| it.get().starts_with('{'));
    match id {
        Some(id) if is_object => Ok(Message::Request(Request { id, method, params })),
        Some(id) => Err(MalformedMessage {
            id: Some(id),
            fault: Fault::invalid_params("params must be an object"),
        }),
        // A notification has no answer, so the error cannot be reported.
        None => Ok(Message::Notification(Notification {
            method,
            params: params.filter(|_| is_object),
        })),
    }
}

fn response(
    envelope: &Envelope<'_>,
    id: Result<Option<Id>, MalformedMessage>,
) -> Result<Message, MalformedMessage> {
    let outcome = match (envelope.result, envelope.error) {
        (Some(result), None) => Ok(result.to_owned()),
        (None, Some(error)) => {
            let fault = serde_json::from_str::<Fault>(error.get());
            Err(fault.unwrap_or_else(|_| Fault::new(code::INTERNAL, error.get().to_owned())))
        }
        _ => {
            let what = "it has neither a method nor a result nor an error";
            return Err(invalid(id.ok().flatten(), what));
        }
    };
    // An error about a message that could not be parsed has the id null, or none.
    let id = match (id, &outcome) {
        (Ok(id), _) => id,
        (Err(_), Err(_)) => None,
        (Err(wrong), Ok(_)) => return Err(wrong),
    };
    Ok(Message::Response(Response { id, outcome }))
}

#[derive(Serialize)]
struct Outgoing<'a, P: Serialize, R: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

const EMPTY: Outgoing<'_, (), ()> = Outgoing {
    jsonrpc: "2.0",
    id: None,
    method: None,
    params: None,
    result: None,
    error: None,
};

/// Writes a successful answer.
pub(crate) fn result<R: Serialize>(id: &Id, result: &R) -> Bytes {
    print(&Outgoing::<(), _> {
        jsonrpc: "2.0",
        id: Some(id),
        method: None,
        params: None,
        result: Some(result),
        error: None,
    })
}

/// Writes an answer with an error.
pub(crate) fn fault(id: Option<&Id>, fault: &Fault) -> Bytes {
    print(&Outgoing {
        id,
        error: Some(fault),
        ..EMPTY
    })
}

/// Writes an answer of either kind.
pub(crate) fn answer(id: &Id, outcome: &Result<Box<RawValue>, Fault>) -> Bytes {
    match outcome {
        Ok(value) => result(id, value),
        Err(reason) => fault(Some(id), reason),
    }
}

/// Writes a notification.
pub(crate) fn notification<P: Serialize>(method: &str, params: Option<&P>) -> Bytes {
    ask(None, method, params)
}

/// Writes a request.
pub(crate) fn request<P: Serialize>(id: &Id, method: &str, params: Option<&P>) -> Bytes {
    ask(Some(id), method, params)
}

fn ask<P: Serialize>(id: Option<&Id>, method: &str, params: Option<&P>) -> Bytes {
    print(&Outgoing::<_, ()> {
        jsonrpc: "2.0",
        id,
        method: Some(method),
        params,
        result: None,
        error: None,
    })
}

/// Writes a message on one line. Embedded JSON may contain line breaks: outside strings they are replaced by spaces,
/// and inside strings JSON has none.
fn print<P: Serialize, R: Serialize>(message: &Outgoing<'_, P, R>) -> Bytes {
    let mut text = serde_json::to_vec(message).unwrap_or_else(|error| {
        let fault = Fault::new(code::INTERNAL, error.to_string());
        let outgoing = Outgoing {
            id: message.id,
            error: Some(&fault),
            ..EMPTY
        };
        serde_json::to_vec(&outgoing).unwrap_or_default()
    });
    if memchr::memchr2(b'\n', b'\r', &text).is_some() {
        for byte in &mut text {
            if matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    text.into()
}

#[cfg(test)]
mod tests;
