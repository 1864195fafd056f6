//! Sends requests and waits for the heads of their answers.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{Buf, Bytes};
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, TE, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version};
use hyper::body::Incoming;
use pinion_proto::Binary;
use pinion_status::{Code, Failure};

use super::pool::{Connection, PendingResponse};
use super::stream::{Receiver, Sender, Source};
use super::{CallOptions, HttpVersion, Inner, Reply};
use crate::body::{Body, Piece};
use crate::envelope::{self, COMPRESSED};
use crate::inbound::Side;
use crate::outbox::{Framing, Outbox};
use crate::protocol::{Codec, Protocol, WireFormat};
use crate::timeout::{self, Deadline};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("pinion/", env!("CARGO_PKG_VERSION")));
static CONNECT_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");

/// The content of a request, which can be sent again until it is certain that the request was sent.
enum RequestPayload {
    Whole(Piece),
    /// A message in the query of the URL.
    Address(Piece),
    Stream(Outbox),
}

impl Inner {
    pub(super) async fn call<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
        options: &CallOptions,
    ) -> Reply<Resp> {
        let failed = |failure| Reply {
            headers: HeaderMap::new(),
            trailers: HeaderMap::new(),
            answer: Err(failure),
        };
        let wire_format = self.wire_format(false);
        let asking = async {
            let response = match self
                .send_message(method, request, wire_format, options)
                .await
            {
                Ok(response) => response,
                Err(failure) => return failed(failure),
            };
            let answer = self.read_head(response, wire_format).await;
            if wire_format.enveloped {
                let mut receiver = Receiver::of(answer, wire_format, None);
                let answer = receiver.single().await;
                let (headers, trailers) = receiver.into_metadata();
                return Reply {
                    headers,
                    trailers,
                    answer,
                };
            }
            let message = match answer.messages {
                Ok(mut inbound) => inbound.whole_message().await,
                Err(failure) => Err(failure),
            };
            let message = message.and_then(|bytes| wire_format.codec.decode(bytes, Side::Answer));
            Reply {
                headers: answer.headers,
                trailers: answer.trailers,
                answer: message,
            }
        };
        let Some(deadline) = options.timeout.and_then(Deadline::of) else {
            return asking.await;
        };
        let asked = tokio::time::timeout_at(deadline.at(), asking).await;
        let mut reply = asked.unwrap_or_else(|_| failed(deadline.timed_out()));
        reply.answer = reply.answer.map_err(|failure| deadline.explain(failure));
        reply
    }

    pub(super) async fn server_stream<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
        limit: Option<Duration>,
    ) -> Result<Receiver<Resp>, Failure> {
        let wire_format = self.wire_format(true);
        let options = CallOptions {
            timeout: limit,
            ..CallOptions::default()
        };
        let deadline = limit.and_then(Deadline::of);
        let asking = async {
            let response = self
                .send_message(method, request, wire_format, &options)
                .await?;
            let answer = self.read_head(response, wire_format).await;
            match answer.messages {
                Ok(_) => Ok(answer),
                Err(failure) => Err(failure),
            }
        };
        let answer = match deadline {
            None => asking.await?,
            Some(deadline) => deadline.limit(Box::pin(asking)).await?,
        };
        Ok(Receiver::of(answer, wire_format, deadline))
    }

    pub(super) async fn open<Req: Binary, Resp: Binary>(
        self: &Arc<Self>,
        method: &str,
        options: &CallOptions,
        duplex: Duplex,
    ) -> Result<(Sender<Req>, Receiver<Resp>), Failure> {
        let wire_format = self.wire_format(true);
        let deadline = options.timeout.and_then(Deadline::of);
        let connecting = self.pool.get(&self.address, &self.options, false);
        let mut connection = match deadline {
            None => connecting.await?,
            Some(deadline) => deadline.limit(Box::pin(connecting)).await?,
        };
        if duplex == Duplex::Required && !connection.is_duplex() {
            let message = format!("{method} needs HTTP/2");
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        let outbox = Outbox::new(Framing::Stream);
        let payload = RequestPayload::Stream(outbox.clone());
        let pending =
            connection.send(self.request(method, wire_format, payload, options, &connection)?);
        let source = Source::Waiting(pending, connection, Arc::clone(self));
        let sender = Sender::new(outbox.clone(), wire_format.codec, self.options.gzip);
        let receiver = Receiver::new(source, wire_format, deadline, Some(outbox));
        Ok((sender, receiver))
    }

    /// Sends one message and waits for the head of the answer. If the connection was lost before the request was sent,
    /// opens a new one and sends the request again.
    async fn send_message<Req: Binary>(
        &self,
        method: &str,
        request: &Req,
        wire_format: WireFormat,
        options: &CallOptions,
    ) -> Result<Response<Incoming>, Failure> {
        let piece = self.message(request, wire_format)?;
        let in_address = options.get && !wire_format.enveloped;
        let payload = || {
            if in_address {
                RequestPayload::Address(piece.clone())
            } else {
                RequestPayload::Whole(piece.clone())
            }
        };
        let mut connection = self.pool.get(&self.address, &self.options, false).await?;
        let request = self.request(method, wire_format, payload(), options, &connection)?;
        match self.answer(connection.send(request), connection).await {
            Ok(response) => return Ok(response),
            Err((failure, Sent::Maybe)) => return Err(failure),
            // The connection was lost while it was idle.
            Err((_, Sent::No)) => {}
        }
        let mut connection = self.pool.get(&self.address, &self.options, true).await?;
        let request = self.request(method, wire_format, payload(), options, &connection)?;
        let answer = self.answer(connection.send(request), connection).await;
        answer.map_err(|(failure, _)| failure)
    }

    async fn answer(
        &self,
        pending: PendingResponse,
        connection: Connection,
    ) -> Result<Response<Incoming>, (Failure, Sent)> {
        let answered = pending.await;
        self.pool.put_back(connection);
        answered.map_err(|mut error| {
            let sent = match error.take_message() {
                Some(_) => Sent::No,
                None => Sent::Maybe,
            };
            let why = reason(error.error());
            let failure = match sent {
                Sent::No => self.address.unreachable(&why),
                Sent::Maybe => self.address.lost(&why),
            };
            (failure, sent)
        })
    }

    /// Encodes a message as the body of a request.
    fn message<Req: Binary>(
        &self,
        request: &Req,
        wire_format: WireFormat,
    ) -> Result<Piece, Failure> {
        let mut body = Vec::new();
        let mut tail = wire_format.codec.put(request, &mut body);
        if self.options.gzip {
            tail.iter().for_each(|part| body.extend_from_slice(part));
            body = envelope::deflate(&body)?;
            tail.clear();
        }
        let length = body.len() + tail.iter().map(Bytes::len).sum::<usize>();
        let mut parts = Vec::with_capacity(2 + tail.len());
        if wire_format.enveloped {
            let flags = u8::from(self.options.gzip) * COMPRESSED;
            parts.push(Bytes::copy_from_slice(&envelope::head(flags, length)?));
        }
        parts.push(body.into());
        parts.extend(tail);
        Ok(Piece::new(parts))
    }

    fn wire_format(&self, stream: bool) -> WireFormat {
        WireFormat {
            protocol: self.options.protocol,
            codec: self.options.codec,
            enveloped: stream || self.options.protocol != Protocol::Connect,
        }
    }

    fn request(
        &self,
        method: &str,
        wire_format: WireFormat,
        payload: RequestPayload,
        options: &CallOptions,
        connection: &Connection,
    ) -> Result<Request<Body>, Failure> {
        let http = if connection.is_duplex() {
            HttpVersion::Two
        } else {
            HttpVersion::One
        };
        if http == HttpVersion::One && wire_format.protocol == Protocol::Grpc {
            return Err(Failure::new(Code::FailedPrecondition, "gRPC needs HTTP/2"));
        }
        let mut headers = self.base_headers(Some(wire_format))?;
        let mut path = Cow::Borrowed(method);
        let mut verb = Method::POST;
        let body = match payload {
            RequestPayload::Whole(piece) => Body::piece(piece),
            RequestPayload::Stream(outbox) => Body::outbox(outbox),
            RequestPayload::Address(piece) => {
                path = Cow::Owned(self.with_query(method, wire_format, piece));
                verb = Method::GET;
                headers.remove(CONTENT_TYPE);
                headers.remove(CONTENT_ENCODING);
                headers.remove(&CONNECT_VERSION);
                Body::empty()
            }
        };
        let mut request = Request::new(body);
        *request.method_mut() = verb;
        *request.uri_mut() = self.address.uri(&path, http)?;
        let traceparent = pinion_telemetry::traceparent();
        if let Some(Ok(traceparent)) = traceparent.map(HeaderValue::try_from) {
            headers.insert("traceparent", traceparent);
        }
        for (name, value) in &options.headers {
            headers.append(name, value.clone());
        }
        if http == HttpVersion::One {
            let host = HeaderValue::from_str(self.address.authority.as_str());
            headers.insert(
                HOST,
                host.map_err(|error| Failure::invalid(error.to_string()))?,
            );
        } else {
            *request.version_mut() = Version::HTTP_2;
        }
        if let Some(limit) = options.timeout {
            let (name, value) = timeout::write(limit, wire_format.protocol);
            headers.insert(name, value);
        }
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Returns the path and query of a call that has its message in the query.
    fn with_query(&self, method: &str, wire_format: WireFormat, mut message: Piece) -> String {
        let encoding = match wire_format.codec {
            Codec::Json => "json",
            Codec::Proto => "proto",
        };
        let compression = if self.options.gzip {
            "&compression=gzip"
        } else {
            ""
        };
        let message = message.copy_to_bytes(message.remaining());
        let message = URL_SAFE_NO_PAD.encode(message);
        format!("{method}?connect=v1&base64=1{compression}&encoding={encoding}&message={message}")
    }

    /// Returns the headers of every request. Fails if the address or the token cannot be sent in a header.
    pub(super) fn base_headers(
        &self,
        wire_format: Option<WireFormat>,
    ) -> Result<HeaderMap, Failure> {
        let mut headers = self.options.headers.clone();
        headers.insert(USER_AGENT, AGENT);
        if let Some(token) = &self.options.token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| {
                Failure::invalid("the token contains characters that a header cannot carry")
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let Some(wire_format) = wire_format else {
            return Ok(headers);
        };
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static(wire_format.content_type()),
        );
        match wire_format.protocol {
            Protocol::Connect => {
                headers.insert(&CONNECT_VERSION, HeaderValue::from_static("1"));
            }
            Protocol::Grpc => {
                headers.insert(TE, HeaderValue::from_static("trailers"));
            }
            Protocol::GrpcWeb => {
                headers.insert("x-grpc-web", HeaderValue::from_static("1"));
            }
        }
        if self.options.gzip {
            headers.insert(
                wire_format.encoding_header(),
                HeaderValue::from_static("gzip"),
            );
            let accepts = wire_format.accept_encoding_header();
            headers.insert(accepts, HeaderValue::from_static("gzip"));
        }
        Ok(headers)
    }
}

/// Required, if the call must send and receive at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplex {
    Required,
    IfPossible,
}

/// `Maybe`, if the request may have reached the server.
enum Sent {
    No,
    Maybe,
}

/// Returns the message of the innermost cause, which is the most specific one.
pub(super) fn reason(error: &hyper::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
