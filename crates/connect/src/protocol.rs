//! Derives the protocol and the codec of a request from its content type.

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{HeaderName, HeaderValue};
use pinion_proto::{Binary, Strictness};
use pinion_status::{Code, Failure};

use crate::inbound::Side;

/// A protocol for remote calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Connect: plain HTTP for unary calls, envelopes for streams.
    Connect,
    /// gRPC: envelopes, with a status in the trailers.
    Grpc,
    /// gRPC-Web: envelopes, with a status in the last of them.
    GrpcWeb,
}

/// The encoding of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codec {
    /// JSON text, in protobuf's canonical mapping.
    Json,
    /// Protobuf's binary form.
    #[default]
    Proto,
}

/// The protocol, codec and framing that a content type stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WireFormat {
    pub(crate) protocol: Protocol,
    pub(crate) codec: Codec,
    /// Messages come in envelopes. Only Connect has calls without envelopes.
    pub(crate) enveloped: bool,
}

static CONNECT_ENCODING: HeaderName = HeaderName::from_static("connect-content-encoding");
static GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
static CONNECT_ACCEPTS: HeaderName = HeaderName::from_static("connect-accept-encoding");
static GRPC_ACCEPTS: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Bytes to reserve for a message of unknown length.
const INITIAL_CAPACITY: usize = 256;
/// The length in bytes from which a message is searched for payloads to be sent without a copy.
const SPLIT_THRESHOLD: usize = 16 * 1024;

/// The accepted content types. Other requests get a 415 answer that lists them.
pub(crate) const ACCEPTED: &str = "application/json, application/proto, application/connect+json, \
     application/connect+proto, application/grpc, application/grpc+proto, application/grpc+json, \
     application/grpc-web, application/grpc-web+proto, application/grpc-web+json";

impl WireFormat {
    /// Parses a content type; `None` if it is not supported.
    pub(crate) fn parse(value: &HeaderValue) -> Option<Self> {
        let text = value.as_bytes();
        let end = text.iter().position(|byte| *byte == b';');
        let kind = text[..end.unwrap_or(text.len())].trim_ascii();
        let wire_format = |protocol, codec, enveloped| Self {
            protocol,
            codec,
            enveloped,
        };
        let known = |kind: &[u8]| match kind {
            b"application/json" => Some(wire_format(Protocol::Connect, Codec::Json, false)),
            b"application/proto" => Some(wire_format(Protocol::Connect, Codec::Proto, false)),
            b"application/connect+json" => Some(wire_format(Protocol::Connect, Codec::Json, true)),
            b"application/connect+proto" => {
                Some(wire_format(Protocol::Connect, Codec::Proto, true))
            }
            b"application/grpc" | b"application/grpc+proto" => {
                Some(wire_format(Protocol::Grpc, Codec::Proto, true))
            }
            b"application/grpc+json" => Some(wire_format(Protocol::Grpc, Codec::Json, true)),
            b"application/grpc-web" | b"application/grpc-web+proto" => {
                Some(wire_format(Protocol::GrpcWeb, Codec::Proto, true))
            }
            b"application/grpc-web+json" => Some(wire_format(Protocol::GrpcWeb, Codec::Json, true)),
            _ => None,
        };
        known(kind).or_else(|| known(&kind.to_ascii_lowercase()))
    }

    pub(crate) fn content_type(self) -> &'static str {
        match (self.protocol, self.codec, self.enveloped) {
            (Protocol::Connect, Codec::Json, false) => "application/json",
            (Protocol::Connect, Codec::Proto, false) => "application/proto",
            (Protocol::Connect, Codec::Json, true) => "application/connect+json",
            (Protocol::Connect, Codec::Proto, true) => "application/connect+proto",
            (Protocol::Grpc, Codec::Json, _) => "application/grpc+json",
            (Protocol::Grpc, Codec::Proto, _) => "application/grpc+proto",
            (Protocol::GrpcWeb, Codec::Json, _) => "application/grpc-web+json",
            (Protocol::GrpcWeb, Codec::Proto, _) => "application/grpc-web+proto",
        }
    }

    /// Returns the header that names the compression of messages.
    pub(crate) fn encoding_header(self) -> &'static HeaderName {
        match (self.protocol, self.enveloped) {
            (Protocol::Connect, false) => &CONTENT_ENCODING,
            (Protocol::Connect, true) => &CONNECT_ENCODING,
            _ => &GRPC_ENCODING,
        }
    }

    /// Returns the header that lists the compressions accepted in the other direction.
    pub(crate) fn accept_encoding_header(self) -> &'static HeaderName {
        match (self.protocol, self.enveloped) {
            (Protocol::Connect, false) => &ACCEPT_ENCODING,
            (Protocol::Connect, true) => &CONNECT_ACCEPTS,
            _ => &GRPC_ACCEPTS,
        }
    }
}

impl Codec {
    /// Appends a message to `out`, or returns it in chunks if it has large payloads, so that they are not copied.
    pub(crate) fn put<T: Binary>(self, message: &T, out: &mut Vec<u8>) -> Vec<Bytes> {
        match self {
            Self::Json => {
                out.reserve(INITIAL_CAPACITY);
                message.encode_json(out);
            }
            Self::Proto if message.encoded_len() >= SPLIT_THRESHOLD => {
                return message.to_pieces(Vec::new());
            }
            Self::Proto => message.encode(out),
        }
        Vec::new()
    }

    /// Decodes a message. Unknown fields are ignored. An empty text is an empty message in JSON too.
    pub(crate) fn decode<T: Binary>(self, bytes: Bytes, side: Side) -> Result<T, Failure> {
        let decoded = match self {
            Self::Json if bytes.is_empty() => return Ok(T::default()),
            Self::Json => T::decode_json(&bytes, Strictness::Lenient),
            Self::Proto => T::decode(bytes),
        };
        decoded.map_err(|error| {
            let name = T::FULL_NAME;
            match side {
                Side::Request => Failure::invalid(format!("the request is not {name}: {error}")),
                Side::Answer => {
                    let message = format!("the answer is not {name}: {error}");
                    Failure::new(Code::Internal, message)
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_content_type_is_read_in_any_spelling() {
        for kind in ACCEPTED.split(", ") {
            let wire_format = WireFormat::parse(&HeaderValue::from_static(kind)).unwrap();
            let written = HeaderValue::from_static(wire_format.content_type());
            assert_eq!(WireFormat::parse(&written), Some(wire_format), "{kind}");
            let loud = format!("{} ; charset=utf-8", kind.to_uppercase());
            let loud = HeaderValue::from_str(&loud).unwrap();
            assert_eq!(WireFormat::parse(&loud), Some(wire_format), "{kind}");
        }
        for kind in [
            "text/plain",
            "application/grpc-web-text",
            "application/jsonx",
            "",
        ] {
            assert_eq!(
                WireFormat::parse(&HeaderValue::from_static(kind)),
                None,
                "{kind}"
            );
        }
    }
}
