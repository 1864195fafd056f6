//! Calls made with GET, which have their message in the query. Connect permits them for unary methods without side
//! effects, so that caches can answer them.

use std::borrow::Cow;

use base64::Engine;
use bytes::Bytes;
use http::HeaderValue;
use http::request::Parts;
use pinion_status::Failure;
use pinion_text::percent;

use super::dispatch::{CallHead, is_gzip};
use crate::failures::URL_SAFE;
use crate::inbound::Inbound;
use crate::protocol::{Codec, Protocol, WireFormat};

/// Parses the query of a call; `None` if the message encoding is unknown.
pub(super) fn read(parts: &Parts, limit: usize) -> Option<CallHead> {
    let query = Query(parts.uri.query().unwrap_or_default());
    let codec = match &*query.get("encoding")? {
        b"json" => Codec::Json,
        b"proto" => Codec::Proto,
        _ => return None,
    };
    let wire_format = WireFormat {
        protocol: Protocol::Connect,
        codec,
        enveloped: false,
    };
    let inbound = message(&query).and_then(|message| {
        let compression = query.get("compression").unwrap_or_default();
        let gzip = is_gzip("compression", &compression)?;
        Ok(Inbound::of(message, gzip, limit))
    });
    Some(CallHead {
        wire_format,
        unary: true,
        content_type: HeaderValue::from_static(wire_format.content_type()),
        inbound,
    })
}

fn message(query: &Query<'_>) -> Result<Bytes, Failure> {
    match query.get("connect").as_deref() {
        None | Some(b"v1") => {}
        Some(other) => {
            let other = String::from_utf8_lossy(other);
            let message = format!("the parameter connect is {other:?}, and should be \"v1\"");
            return Err(Failure::invalid(message));
        }
    }
    let missing = || Failure::invalid("the parameter \"message\" is missing");
    let message = query.get("message").ok_or_else(missing)?;
    if query.get("base64").as_deref() != Some(b"1") {
        return Ok(message.into());
    }
    let decoded = URL_SAFE.decode(message);
    let garbage = |_| Failure::invalid("the parameter \"message\" is not base64 for addresses");
    decoded.map(Bytes::from).map_err(garbage)
}

/// The parameters of a query. Values are bytes, because a binary message need not be text.
struct Query<'a>(&'a str);

impl Query<'_> {
    fn get(&self, name: &str) -> Option<Vec<u8>> {
        let pairs = self
            .0
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let (_, value) = pairs.into_iter().find(|(known, _)| *known == name)?;
        let spaced = if value.contains('+') {
            Cow::Owned(value.replace('+', " "))
        } else {
            Cow::Borrowed(value)
        };
        Some(percent::decode(spaced.as_bytes()))
    }
}
