//! Encodes the answers of calls for each protocol.

use http::header::{CONTENT_TYPE, HeaderName, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use pinion_status::{Code, Failure};

use super::Service;
use super::stream::Streaming;
use crate::body::{Body, Piece};
use crate::envelope::TRAILERS;
use crate::failures;
use crate::outbox::{Framing, Outbox, Rest};
use crate::protocol::{Protocol, WireFormat};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ACCEPTED_ENCODINGS: HeaderValue = HeaderValue::from_static("gzip");

/// The service and wire format of the answer to one call.
#[derive(Debug)]
pub(super) struct Reply<'a, S> {
    service: &'a S,
    pub(super) wire_format: WireFormat,
    content_type: Option<HeaderValue>,
}

impl<'a, S: Service> Reply<'a, S> {
    pub(super) fn new(
        service: &'a S,
        wire_format: WireFormat,
        content_type: Option<HeaderValue>,
    ) -> Self {
        Self {
            service,
            wire_format,
            content_type,
        }
    }

    /// Answers with a stream.
    pub(super) fn stream(self, streaming: Streaming, headers: HeaderMap) -> Response<Body> {
        let mut response = Response::new(Body::call(streaming));
        open(&mut response, self.wire_format, self.content_type, headers);
        response
    }

    /// Answers a stream that fails before it begins.
    pub(super) fn failed_stream(self, failure: Failure) -> Response<Body> {
        let handler = Box::pin(std::future::ready(Err(failure)));
        let outbox = Outbox::new(Framing::Stream);
        let streaming = Streaming::new(handler, outbox, self.wire_format.protocol, None);
        self.stream(streaming, HeaderMap::new())
    }

    /// Answers a call that has one message, or none and a failure.
    pub(super) fn whole(self, result: Result<(), Failure>, mut rest: Rest) -> Response<Body> {
        let result = match result {
            Ok(()) if rest.lacks_message => Err(no_answer()),
            other => other,
        };
        let headers = std::mem::take(&mut rest.headers);
        let mut trailers = std::mem::take(&mut rest.trailers);
        let mut content_type = self.content_type;
        let mut response = match (self.wire_format.protocol, &result) {
            (Protocol::Connect, Ok(())) => Response::new(Body::piece(rest.into_piece())),
            (Protocol::Connect, Err(failure)) => {
                content_type = Some(JSON);
                refusal(self.service, failure)
            }
            (Protocol::Grpc, Ok(())) => {
                failures::grpc(None, &mut trailers);
                let trailers = std::mem::take(&mut trailers);
                Response::new(Body::trailed(rest.into_piece(), trailers))
            }
            (Protocol::Grpc, Err(failure)) if !headers.is_empty() => {
                failures::grpc(Some(failure), &mut trailers);
                let trailers = std::mem::take(&mut trailers);
                Response::new(Body::trailed(Piece::default(), trailers))
            }
            // An answer without headers of its own has its trailers in the head.
            (Protocol::Grpc, Err(failure)) => {
                failures::grpc(Some(failure), &mut trailers);
                let mut response = Response::new(Body::empty());
                *response.headers_mut() = std::mem::take(&mut trailers);
                response
            }
            (Protocol::GrpcWeb, result) => {
                failures::grpc(result.as_ref().err(), &mut trailers);
                let payload = failures::grpc_web(&std::mem::take(&mut trailers));
                let rest = if result.is_ok() {
                    rest
                } else {
                    Rest::default()
                };
                Response::new(Body::piece(rest.end_with(TRAILERS, &payload)))
            }
        };
        open(&mut response, self.wire_format, content_type, headers);
        for (name, value) in &trailers {
            if let Ok(name) = HeaderName::try_from(format!("trailer-{name}")) {
                response.headers_mut().append(name, value.clone());
            }
        }
        response
    }
}

/// The failure of a handler that succeeded without sending the required answer.
pub(super) fn no_answer() -> Failure {
    Failure::new(Code::Internal, "the method ended without an answer")
}

/// Starts an answer with the headers that every answer has.
fn open(
    response: &mut Response<Body>,
    wire_format: WireFormat,
    content_type: Option<HeaderValue>,
    more: HeaderMap,
) {
    let headers = response.headers_mut();
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    if wire_format.enveloped {
        headers.insert(wire_format.accept_encoding_header(), ACCEPTED_ENCODINGS);
    }
    for (name, value) in &more {
        headers.append(name, value.clone());
    }
}

/// Returns a plain HTTP response that reports why the call was refused.
pub(super) fn refusal<S: Service>(service: &S, failure: &Failure) -> Response<Body> {
    let mut response = Response::new(Body::from(service.error_body(failure)));
    let status = StatusCode::from_u16(failure.code.http_status());
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    if failure.code == Code::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
