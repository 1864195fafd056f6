//! JSON-RPC 2.0 as MCP uses it: messages read and written. Knows no method.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;
use serde_json::value::RawValue;

/// What JSON-RPC and MCP call the kinds of failures.
pub(crate) mod code {
    pub(crate) const PARSE: i64 = -32700;
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    pub(crate) const INTERNAL: i64 = -32603;
    pub(crate) const HEADER_MISMATCH: i64 = -32020;
    pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
}

/// Which request an answer belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Id {
    Text(String),
    Number(Number),
}

/// Asks for an answer.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) id: Id,
    pub(crate) method: String,
    /// An object, if there are any.
    pub(crate) params: Option<Box<RawValue>>,
}

/// Asks for nothing.
#[derive(Debug, Clone)]
pub(crate) struct Notification {
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

/// Answers a request.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    /// `None` if the other side could not tell which request it was.
    pub(crate) id: Option<Id>,
    pub(crate) outcome: Result<Box<RawValue>, Fault>,
}

/// Why there is no result.
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

/// One message.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// Something that is no message, and what to answer.
#[derive(Debug, Clone)]
pub(crate) struct Wrong {
    pub(crate) id: Option<Id>,
    pub(crate) fault: Fault,
}

/// What came in at once.
#[derive(Debug, Clone)]
pub(crate) enum Incoming {
    One(Result<Message, Wrong>),
    /// Several in an array, which is never empty.
    Batch(Vec<Result<Message, Wrong>>),
}

/// A value that is there, even if it is null.
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

/// Reads what came in. Every part of it becomes a message or an answer that says what is wrong with it.
pub(crate) fn read(bytes: &[u8]) -> Incoming {
    let text: &RawValue = match serde_json::from_slice(bytes) {
        Ok(text) => text,
        Err(error) => {
            let fault = Fault::new(code::PARSE, format!("this is not JSON: {error}"));
            return Incoming::One(Err(Wrong { id: None, fault }));
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

fn invalid(id: Option<Id>, what: &str) -> Wrong {
    let fault = Fault::new(
        code::INVALID_REQUEST,
        format!("this is no message of JSON-RPC 2.0: {what}"),
    );
    Wrong { id, fault }
}

fn message(text: &RawValue) -> Result<Message, Wrong> {
    // A list would be read as the fields in their order.
    if !text.get().starts_with('{') {
        return Err(invalid(None, "it is no object"));
    }
    let envelope: Envelope<'_> =
        serde_json::from_str(text.get()).map_err(|error| invalid(None, &error.to_string()))?;
    let id = match envelope.id {
        Some(id) => serde_json::from_str::<Id>(id.get())
            .map(Some)
            .map_err(|_| invalid(None, "its id is neither a text nor a number")),
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
        return Err(invalid(id, "its method is no text"));
    };
    let params = envelope
        .params
        .filter(|params| params.get() != "null")
        .map(RawValue::to_owned);
    let is_object = params.as_ref().is_none_or(|it| it.get().starts_with('{'));
    match id {
        Some(id) if is_object => Ok(Message::Request(Request { id, method, params })),
        Some(id) => Err(Wrong {
            id: Some(id),
            fault: Fault::invalid_params("params must be an object"),
        }),
        // Nobody waits for an answer, so nobody can be told.
        None => Ok(Message::Notification(Notification {
            method,
            params: params.filter(|_| is_object),
        })),
    }
}

fn response(envelope: &Envelope<'_>, id: Result<Option<Id>, Wrong>) -> Result<Message, Wrong> {
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
    // A fault about a message that could not be read has null for an id, or none.
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

const NOTHING: Outgoing<'_, (), ()> = Outgoing {
    jsonrpc: "2.0",
    id: None,
    method: None,
    params: None,
    result: None,
    error: None,
};

/// The text of an answer.
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

/// The text of an answer that there is no result.
pub(crate) fn fault(id: Option<&Id>, fault: &Fault) -> Bytes {
    print(&Outgoing {
        id,
        error: Some(fault),
        ..NOTHING
    })
}

/// The text of an answer, whichever it is.
pub(crate) fn answer(id: &Id, outcome: &Result<Box<RawValue>, Fault>) -> Bytes {
    match outcome {
        Ok(value) => result(id, value),
        Err(reason) => fault(Some(id), reason),
    }
}

/// The text of a notification.
pub(crate) fn notification<P: Serialize>(method: &str, params: Option<&P>) -> Bytes {
    ask(None, method, params)
}

/// The text of a request.
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

/// On one line, whatever others put into it: outside of texts a line break is as good as a space, and inside there is none.
fn print<P: Serialize, R: Serialize>(message: &Outgoing<'_, P, R>) -> Bytes {
    let mut text = serde_json::to_vec(message).unwrap_or_else(|error| {
        let fault = Fault::new(code::INTERNAL, error.to_string());
        let told = Outgoing {
            id: message.id,
            error: Some(&fault),
            ..NOTHING
        };
        serde_json::to_vec(&told).unwrap_or_default()
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
