//! Requests on their way out, and what their answers say.

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

use super::line::{Answering, Line};
use super::stream::{Receiver, Sender, Source};
use super::{CallOptions, HttpVersion, Inner, Reply};
use crate::body::{Body, Piece};
use crate::envelope::{self, COMPRESSED};
use crate::inbound::Side;
use crate::outbox::{Framing, Outbox};
use crate::protocol::{Codec, Protocol, Speech};
use crate::timeout::{self, Deadline};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("pinion/", env!("CARGO_PKG_VERSION")));
static CONNECT_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");

/// What is sent, kept until it is sure that it was.
enum Outgoing {
    Whole(Piece),
    /// A message that goes into the address.
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
        let speech = self.speech(false);
        let asking = async {
            let response = match self.ask(method, request, speech, options).await {
                Ok(response) => response,
                Err(failure) => return failed(failure),
            };
            let answer = self.read_head(response, speech).await;
            if speech.enveloped {
                let mut receiver = Receiver::of(answer, speech, None);
                let answer = receiver.single().await;
                let (headers, trailers) = receiver.into_metadata();
                return Reply {
                    headers,
                    trailers,
                    answer,
                };
            }
            let message = match answer.messages {
                Ok(mut inbound) => inbound.bare().await,
                Err(failure) => Err(failure),
            };
            let message = message.and_then(|bytes| speech.codec.decode(bytes, Side::Answer));
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
        let speech = self.speech(true);
        let options = CallOptions {
            timeout: limit,
            ..CallOptions::default()
        };
        let deadline = limit.and_then(Deadline::of);
        let asking = async {
            let response = self.ask(method, request, speech, &options).await?;
            let answer = self.read_head(response, speech).await;
            match answer.messages {
                Ok(_) => Ok(answer),
                Err(failure) => Err(failure),
            }
        };
        let answer = match deadline {
            None => asking.await?,
            Some(deadline) => deadline.limit(Box::pin(asking)).await?,
        };
        Ok(Receiver::of(answer, speech, deadline))
    }

    pub(super) async fn open<Req: Binary, Resp: Binary>(
        self: &Arc<Self>,
        method: &str,
        options: &CallOptions,
        duplex: Duplex,
    ) -> Result<(Sender<Req>, Receiver<Resp>), Failure> {
        let speech = self.speech(true);
        let deadline = options.timeout.and_then(Deadline::of);
        let connecting = self.lines.get(&self.address, &self.options, false);
        let mut line = match deadline {
            None => connecting.await?,
            Some(deadline) => deadline.limit(Box::pin(connecting)).await?,
        };
        if duplex == Duplex::Required && !line.is_duplex() {
            let message = format!("{method} needs HTTP/2");
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        let outbox = Outbox::new(Framing::Stream);
        let outgoing = Outgoing::Stream(outbox.clone());
        let answering = line.send(self.request(method, speech, outgoing, options, &line)?);
        let source = Source::Waiting(answering, line, Arc::clone(self));
        let sender = Sender::new(outbox.clone(), speech.codec, self.options.gzip);
        let receiver = Receiver::new(source, speech, deadline, Some(outbox));
        Ok((sender, receiver))
    }

    /// Sends one message and waits for the beginning of the answer. A connection that was lost before is opened anew.
    async fn ask<Req: Binary>(
        &self,
        method: &str,
        request: &Req,
        speech: Speech,
        options: &CallOptions,
    ) -> Result<Response<Incoming>, Failure> {
        let piece = self.message(request, speech)?;
        let in_address = options.get && !speech.enveloped;
        let outgoing = || match in_address {
            true => Outgoing::Address(piece.clone()),
            false => Outgoing::Whole(piece.clone()),
        };
        let mut line = self.lines.get(&self.address, &self.options, false).await?;
        let request = self.request(method, speech, outgoing(), options, &line)?;
        match self.answer(line.send(request), line).await {
            Ok(response) => return Ok(response),
            Err((failure, Sent::Maybe)) => return Err(failure),
            // The connection was lost while nobody used it.
            Err((_, Sent::No)) => {}
        }
        let mut line = self.lines.get(&self.address, &self.options, true).await?;
        let request = self.request(method, speech, outgoing(), options, &line)?;
        let answer = self.answer(line.send(request), line).await;
        answer.map_err(|(failure, _)| failure)
    }

    async fn answer(
        &self,
        answering: Answering,
        line: Line,
    ) -> Result<Response<Incoming>, (Failure, Sent)> {
        let answered = answering.await;
        self.lines.keep(line);
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

    /// A message as the body of a request.
    fn message<Req: Binary>(&self, request: &Req, speech: Speech) -> Result<Piece, Failure> {
        let mut body = Vec::new();
        let mut tail = speech.codec.put(request, &mut body);
        if self.options.gzip {
            tail.iter().for_each(|part| body.extend_from_slice(part));
            body = envelope::deflate(&body)?;
            tail.clear();
        }
        let length = body.len() + tail.iter().map(Bytes::len).sum::<usize>();
        let mut parts = Vec::with_capacity(2 + tail.len());
        if speech.enveloped {
            let flags = u8::from(self.options.gzip) * COMPRESSED;
            parts.push(Bytes::copy_from_slice(&envelope::head(flags, length)?));
        }
        parts.push(body.into());
        parts.extend(tail);
        Ok(Piece::new(parts))
    }

    fn speech(&self, stream: bool) -> Speech {
        Speech {
            protocol: self.options.protocol,
            codec: self.options.codec,
            enveloped: stream || self.options.protocol != Protocol::Connect,
        }
    }

    fn request(
        &self,
        method: &str,
        speech: Speech,
        outgoing: Outgoing,
        options: &CallOptions,
        line: &Line,
    ) -> Result<Request<Body>, Failure> {
        let http = if line.is_duplex() {
            HttpVersion::Two
        } else {
            HttpVersion::One
        };
        if http == HttpVersion::One && speech.protocol == Protocol::Grpc {
            return Err(Failure::new(Code::FailedPrecondition, "gRPC needs HTTP/2"));
        }
        let mut headers = self.base_headers(Some(speech))?;
        let mut path = Cow::Borrowed(method);
        let mut verb = Method::POST;
        let body = match outgoing {
            Outgoing::Whole(piece) => Body::piece(piece),
            Outgoing::Stream(outbox) => Body::outbox(outbox),
            Outgoing::Address(piece) => {
                path = Cow::Owned(self.with_query(method, speech, piece));
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
            let (name, value) = timeout::write(limit, speech.protocol);
            headers.insert(name, value);
        }
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// The address of a call whose message is in it.
    fn with_query(&self, method: &str, speech: Speech, mut message: Piece) -> String {
        let encoding = match speech.codec {
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

    /// Headers of every request. An address or a token that cannot be sent is found here.
    pub(super) fn base_headers(&self, speech: Option<Speech>) -> Result<HeaderMap, Failure> {
        let mut headers = self.options.headers.clone();
        headers.insert(USER_AGENT, AGENT);
        if let Some(token) = &self.options.token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value =
                value.map_err(|_| Failure::invalid("the token holds characters no header can"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let Some(speech) = speech else {
            return Ok(headers);
        };
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static(speech.content_type()),
        );
        match speech.protocol {
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
            headers.insert(speech.encoding_header(), HeaderValue::from_static("gzip"));
            let accepts = speech.accept_encoding_header();
            headers.insert(accepts, HeaderValue::from_static("gzip"));
        }
        Ok(headers)
    }
}

/// Whether messages must be able to go both ways at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplex {
    Required,
    IfPossible,
}

/// Whether a request may have reached the server.
enum Sent {
    No,
    Maybe,
}

/// The innermost cause, which says most.
pub(super) fn reason(error: &hyper::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
