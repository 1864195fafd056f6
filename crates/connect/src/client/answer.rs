//! Reads the head of an answer and detects calls that failed at once.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use pinion_status::{Code, Failure};

use super::Inner;
use crate::failures;
use crate::inbound::{Inbound, Side};
use crate::incoming_body::IncomingBody;
use crate::protocol::{Protocol, WireFormat};

/// Bytes to read of the body of an error answer.
const ERROR_BODY_LIMIT: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    /// Trailers that came with the head.
    pub(super) trailers: HeaderMap,
    /// The messages, unless the call failed at once.
    pub(super) messages: Result<Inbound, Failure>,
}

impl Inner {
    /// Reads the head of an answer. Its messages follow, unless it is an error.
    pub(super) async fn read_head(
        &self,
        response: Response<Incoming>,
        wire_format: WireFormat,
    ) -> Answer {
        let (parts, body) = response.into_parts();
        let body = IncomingBody::answer(body);
        let mut headers = parts.headers;
        let mut trailers = HeaderMap::new();
        if !wire_format.enveloped {
            trailers = take_trailers(&mut headers);
        }
        let is_all = body.is_end_stream();
        let messages = if parts.status == StatusCode::OK {
            self.messages(&headers, body, wire_format)
        } else {
            Err(self
                .refused(parts.status, &headers, body, wire_format)
                .await)
        };
        // A gRPC call that failed at once reports this in its headers, which are then its trailers.
        if wire_format.protocol != Protocol::Connect
            && is_all
            && messages.is_ok()
            && let Some(Err(failure)) = failures::read_grpc(&headers)
        {
            return Answer {
                trailers: headers.clone(),
                headers,
                messages: Err(failure),
            };
        }
        Answer {
            headers,
            trailers,
            messages,
        }
    }

    /// The failure of an answer with an HTTP status other than 200.
    async fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: IncomingBody,
        wire_format: WireFormat,
    ) -> Failure {
        if wire_format.enveloped
            && let Some(Err(failure)) = failures::read_grpc(headers)
        {
            return failure;
        }
        let gzip = headers
            .get(CONTENT_ENCODING)
            .is_some_and(|value| value == "gzip");
        let mut text = Inbound::new(body, gzip, ERROR_BODY_LIMIT, None, Side::Answer);
        let text = text.whole_message().await.unwrap_or_default();
        failures::read_unary(status, &text)
    }

    /// Checks the content type and compression of an answer and returns a reader of its messages.
    fn messages(
        &self,
        headers: &HeaderMap,
        body: IncomingBody,
        wire_format: WireFormat,
    ) -> Result<Inbound, Failure> {
        let kind = headers.get(CONTENT_TYPE);
        let received = kind.and_then(WireFormat::parse);
        if received != Some(wire_format) {
            let same = |received: WireFormat| {
                received.protocol == wire_format.protocol
                    && received.enveloped == wire_format.enveloped
            };
            let code = if received.is_some_and(same) {
                Code::Internal
            } else {
                Code::Unknown
            };
            let kind = String::from_utf8_lossy(kind.map_or(b"", HeaderValue::as_bytes));
            let message = format!(
                "{} answered with the content type {kind:?} instead of {:?}; check the address",
                self.address.authority,
                wire_format.content_type(),
            );
            return Err(Failure::new(code, message));
        }
        let name = wire_format.encoding_header();
        let gzip = match headers.get(name).map(HeaderValue::as_bytes) {
            None | Some(b"" | b"identity") => false,
            Some(b"gzip") => true,
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                let message =
                    format!("the answer has the {name} {other:?}, which was not asked for");
                return Err(Failure::new(Code::Internal, message));
            }
        };
        let limit = self.options.message;
        Ok(Inbound::new(body, gzip, limit, None, Side::Answer))
    }
}

/// Moves the trailers out of the headers of a unary Connect answer.
fn take_trailers(headers: &mut HeaderMap) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    let prefixed = |name: &&HeaderName| name.as_str().starts_with("trailer-");
    let names: Vec<HeaderName> = headers.keys().filter(prefixed).cloned().collect();
    for name in names {
        let Ok(plain) = HeaderName::try_from(&name.as_str()["trailer-".len()..]) else {
            continue;
        };
        for value in headers.get_all(&name) {
            trailers.append(plain.clone(), value.clone());
        }
        headers.remove(name);
    }
    trailers
}
