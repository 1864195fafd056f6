//! Requests on their way out, and what their answers say.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, TE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use pinion_proto::Binary;
use pinion_status::{Code, Failure};
use tokio::time::Instant;

use super::line::{Answering, Line};
use super::stream::{Receiver, Sender, Source};
use super::{HttpVersion, Inner};
use crate::arriving::Arriving;
use crate::body::{Body, Piece};
use crate::inbound::{Inbound, Side};
use crate::outbox::{Framing, Outbox};
use crate::protocol::{Protocol, Speech};
use crate::{envelope, failures, timeout};

/// Bytes of an answer that is an error are read up to here.
const WORDS: usize = 256 * 1024;
const AGENT: HeaderValue = HeaderValue::from_static(concat!("pinion/", env!("CARGO_PKG_VERSION")));

/// What is sent, kept until it is sure that it was.
enum Outgoing {
    Whole(Piece),
    Stream(Outbox),
}

impl Inner {
    pub(super) async fn unary<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
        limit: Option<Duration>,
    ) -> Result<Resp, Failure> {
        let speech = self.speech(false);
        let asking = async {
            let response = self.ask(method, request, speech, limit).await?;
            let mut inbound = self.inbound(response, speech).await?;
            if !speech.enveloped {
                let answer = inbound.inbound.bare().await?;
                return speech.codec.decode(answer, Side::Answer);
            }
            let mut receiver = Receiver::new(Source::Open(Box::new(inbound)), speech, None, None);
            let Some(answer) = receiver.next().await? else {
                let message = "the server ended the call without an answer";
                return Err(Failure::new(Code::Internal, message));
            };
            match receiver.next().await? {
                None => Ok(answer),
                Some(_) => {
                    let message = "the server gave more than one answer to a unary call";
                    Err(Failure::new(Code::Internal, message))
                }
            }
        };
        match limit {
            None => asking.await,
            Some(limit) => {
                let asked = tokio::time::timeout(limit, asking).await;
                asked.unwrap_or_else(|_| Err(timeout::timed_out(limit)))
            }
        }
    }

    pub(super) async fn server_stream<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
        limit: Option<Duration>,
    ) -> Result<Receiver<Resp>, Failure> {
        let speech = self.speech(true);
        let deadline = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
        let asking = async {
            let response = self.ask(method, request, speech, limit).await?;
            self.inbound(response, speech).await
        };
        let inbound = match deadline {
            None => asking.await?,
            Some((at, limit)) => {
                let asked = tokio::time::timeout_at(at, asking).await;
                asked.unwrap_or_else(|_| Err(timeout::timed_out(limit)))?
            }
        };
        Ok(Receiver::new(
            Source::Open(Box::new(inbound)),
            speech,
            deadline,
            None,
        ))
    }

    pub(super) async fn bidi<Req: Binary, Resp: Binary>(
        self: &std::sync::Arc<Self>,
        method: &str,
        limit: Option<Duration>,
    ) -> Result<(Sender<Req>, Receiver<Resp>), Failure> {
        let speech = self.speech(true);
        let deadline = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
        let mut line = self.lines.get(&self.address, &self.options, false).await?;
        if !line.is_duplex() {
            let message = format!("{method} needs HTTP/2");
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        let outbox = Outbox::new(Framing::Stream);
        let outgoing = Outgoing::Stream(outbox.clone());
        let answering = line.send(self.request(method, speech, outgoing, limit, &line)?);
        let source = Source::Waiting(answering, std::sync::Arc::clone(self));
        let sender = Sender::new(outbox.clone(), speech.codec);
        Ok((
            sender,
            Receiver::new(source, speech, deadline, Some(outbox)),
        ))
    }

    /// Sends one message and waits for the beginning of the answer. A connection that was lost before is opened anew.
    async fn ask<Req: Binary>(
        &self,
        method: &str,
        request: &Req,
        speech: Speech,
        limit: Option<Duration>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut body = Vec::new();
        if speech.enveloped {
            body.extend_from_slice(&[0; envelope::HEAD]);
        }
        let tail = speech.codec.put(request, &mut body);
        if speech.enveloped {
            let length = body.len() - envelope::HEAD + tail.iter().map(Bytes::len).sum::<usize>();
            body[..envelope::HEAD].copy_from_slice(&envelope::head(0, length)?);
        }
        let piece = Piece::new(std::iter::once(body.into()).chain(tail).collect());
        let mut line = self.lines.get(&self.address, &self.options, false).await?;
        let outgoing = Outgoing::Whole(piece.clone());
        let request = self.request(method, speech, outgoing, limit, &line)?;
        match self.answer(line.send(request), line).await {
            Ok(response) => return Ok(response),
            Err((failure, Sent::Maybe)) => return Err(failure),
            // The connection was lost while nobody used it.
            Err((_, Sent::No)) => {}
        }
        let mut line = self.lines.get(&self.address, &self.options, true).await?;
        let request = self.request(method, speech, Outgoing::Whole(piece), limit, &line)?;
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

    /// Looks at the head of an answer; its messages follow, unless it is an error.
    pub(super) async fn inbound(
        &self,
        response: Response<Incoming>,
        speech: Speech,
    ) -> Result<Answer, Failure> {
        let (parts, body) = response.into_parts();
        let body = Arriving::answer(body);
        let encoding = parts.headers.get(speech.encoding_header());
        let gzip = encoding.is_some_and(|value| value == "gzip");
        if parts.status != StatusCode::OK {
            let packed = parts.headers.get("content-encoding");
            let gzip = packed.is_some_and(|value| value == "gzip");
            let mut words = Inbound::new(body, gzip, WORDS, None, Side::Answer);
            let words = words.bare().await.unwrap_or_default();
            return Err(failures::read_unary(parts.status, &words));
        }
        let kind = parts.headers.get(CONTENT_TYPE);
        if kind.and_then(Speech::parse) != Some(speech) {
            let kind = String::from_utf8_lossy(kind.map_or(b"", HeaderValue::as_bytes));
            let message = format!(
                "{} does not answer as {} is answered, but with {kind:?}; is this the right address?",
                self.address.authority,
                speech.content_type(),
            );
            return Err(Failure::new(Code::Unknown, message));
        }
        // A gRPC call that failed at once says so in its headers.
        if speech.protocol != Protocol::Connect
            && let Some(Err(failure)) = failures::read_grpc(&parts.headers)
        {
            return Err(failure);
        }
        let inbound = Inbound::new(body, gzip, self.options.message, None, Side::Answer);
        Ok(Answer {
            inbound,
            headers: parts.headers,
        })
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
        limit: Option<Duration>,
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
        let body = match outgoing {
            Outgoing::Whole(piece) => Body::piece(piece),
            Outgoing::Stream(outbox) => Body::outbox(outbox),
        };
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.address.uri(method, http)?;
        let mut headers = self.base_headers(Some(speech))?;
        if http == HttpVersion::One {
            let host = HeaderValue::from_str(self.address.authority.as_str());
            headers.insert(
                HOST,
                host.map_err(|error| Failure::invalid(error.to_string()))?,
            );
        } else {
            *request.version_mut() = Version::HTTP_2;
        }
        if let Some(limit) = limit {
            let (name, value) = timeout::write(limit, speech.protocol);
            headers.insert(name, value);
        }
        *request.headers_mut() = headers;
        Ok(request)
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
                headers.insert("connect-protocol-version", HeaderValue::from_static("1"));
            }
            Protocol::Grpc => {
                headers.insert(TE, HeaderValue::from_static("trailers"));
            }
            Protocol::GrpcWeb => {
                headers.insert("x-grpc-web", HeaderValue::from_static("1"));
            }
        }
        Ok(headers)
    }
}

/// An answer whose head was understood.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) inbound: Inbound,
    pub(super) headers: HeaderMap,
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
