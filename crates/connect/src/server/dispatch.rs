//! From an HTTP request to a call and back.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use pinion_status::{Code, Failure};
use tokio_util::sync::CancellationToken;

use super::going::{Going, shutting_down};
use super::options::ServerOptions;
use super::stream::Streaming;
use super::{Kind, Service, bare, cross};
use crate::arriving::Arriving;
use crate::body::Body;
use crate::call::{Answers, Call, Context, Count, Peer, Requests};
use crate::envelope::TRAILERS;
use crate::inbound::{Inbound, Side};
use crate::outbox::{Framing, Outbox, Rest};
use crate::protocol::{ACCEPTED, Protocol, Speech};
use crate::{failures, timeout};

/// Headers that a request may have; HTTP/1.1 has the same limit where it is parsed.
const MOST_HEADERS: usize = 100;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("identity,gzip");
static GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
static ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");

/// What a call needs to know of its connection.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) peer: Peer,
    pub(crate) going: Arc<Going>,
    /// Cancelled when calls are to end.
    pub(crate) cut: CancellationToken,
}

/// Answers one request.
pub(crate) async fn answer<S: Service>(
    service: Arc<S>,
    options: &ServerOptions,
    request: Request<Incoming>,
    line: &Line,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = Arriving::request(body, options.limits.message);
    if parts.headers.len() > MOST_HEADERS {
        return bare(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    if let Err(failure) = cross::check_host(options, &parts) {
        return refusal(&failure);
    }
    let origin = cross::check_origin(options, &parts);
    if parts.method == Method::OPTIONS {
        return cross::preflight(origin.ok().flatten());
    }
    let origin = match origin {
        Ok(origin) => origin,
        Err(failure) => return refusal(&failure),
    };
    let path = parts.uri.path();
    let under = |prefix: &String| path.starts_with(prefix.as_str()).then_some(prefix.len());
    let mut response = match options.prefixes.iter().find_map(under) {
        Some(method_at) => call(service, options, parts, body, method_at, line).await,
        None => {
            let request = Request::from_parts(parts, body);
            let answer = AssertUnwindSafe(service.plain(request, line.peer.clone())).catch_unwind();
            tokio::select! {
                biased;
                answer = answer => {
                    answer.unwrap_or_else(|_| bare(StatusCode::INTERNAL_SERVER_ERROR))
                }
                () = line.cut.cancelled() => refusal(&shutting_down()),
            }
        }
    };
    if let Some(origin) = origin {
        cross::allow(response.headers_mut(), origin);
    }
    response
}

/// Answers a call, or says why it is none.
async fn call<S: Service>(
    service: Arc<S>,
    options: &ServerOptions,
    mut parts: Parts,
    body: Arriving,
    method_at: usize,
    line: &Line,
) -> Response<Body> {
    let content_type = parts.headers.get(CONTENT_TYPE).cloned();
    let speech = content_type.as_ref().and_then(Speech::parse);
    let name = parts.uri.path().get(method_at..).unwrap_or_default();
    let Some(kind) = service.method(name) else {
        return match speech {
            Some(speech) if speech.protocol != Protocol::Connect => {
                let message = format!("there is no method {name:?}");
                let failure = Failure::new(Code::Unimplemented, message);
                respond(speech, content_type, Err(failure), Rest::default())
            }
            _ => bare(StatusCode::NOT_FOUND),
        };
    };
    if parts.method != Method::POST {
        let mut response = bare(StatusCode::METHOD_NOT_ALLOWED);
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let Some((speech, unary)) = speech.and_then(|speech| Some((speech, fits(kind, speech)?)))
    else {
        let mut response = bare(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        response
            .headers_mut()
            .insert(&ACCEPT_POST, HeaderValue::from_static(ACCEPTED));
        return response;
    };
    let old = parts.version < Version::HTTP_2;
    if old && (kind == Kind::Bidi || speech.protocol == Protocol::Grpc) {
        return bare(StatusCode::HTTP_VERSION_NOT_SUPPORTED);
    }
    let asked = gzip(&parts.headers, speech)
        .and_then(|gzip| Ok((gzip, timeout::read(&parts.headers, speech.protocol)?)));
    let (gzip, timeout) = match asked {
        Ok(asked) => asked,
        Err(failure) => return fail(speech, unary, content_type, failure),
    };
    let limit = timeout.or(options.limits.unary_time.filter(|_| unary));
    let deadline = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));

    let single = unary || kind == Kind::ServerStream || kind == Kind::Either;
    let patience = (single || old).then_some(options.limits.body_time);
    let inbound = Inbound::new(body, gzip, options.limits.message, patience, Side::Request);
    let (framing, count) = match (unary, speech.enveloped, single) {
        (true, false, _) => (Framing::Bare, Count::Bare),
        (true, true, _) => (Framing::Single, Count::One),
        (false, _, true) => (Framing::Stream, Count::One),
        (false, _, false) => (Framing::Stream, Count::Many),
    };
    let outbox = Outbox::new(framing);
    let held = (old && kind == Kind::BidiOrSingle).then(|| {
        outbox.hold();
        outbox.clone()
    });
    let call = Call {
        context: Context {
            protocol: speech.protocol,
            codec: speech.codec,
            unary,
            headers: std::mem::take(&mut parts.headers),
            version: parts.version,
            peer: line.peer.clone(),
            deadline: deadline.map(|(at, _)| at),
            timeout,
            uri: parts.uri,
            method_at,
        },
        requests: Requests {
            inbound,
            codec: speech.codec,
            count,
            held,
            first: None,
        },
        answers: Answers {
            outbox: outbox.clone(),
            codec: speech.codec,
        },
    };
    if unary {
        let work = bounded(unharmed(service, call), deadline);
        let result = tokio::select! {
            biased;
            result = work => result,
            () = line.cut.cancelled() => Err(shutting_down()),
        };
        return respond(speech, content_type, result, outbox.close());
    }
    let handler = Box::pin(unharmed(service, call));
    let streaming = Streaming::new(handler, outbox.clone(), speech.protocol, deadline);
    stream(streaming, outbox, speech, content_type, &line.going).await
}

/// Starts a stream: its handler gets one chance to fail or to set headers before they go out. Where the request must be complete
/// first, they wait for that.
async fn stream(
    mut streaming: Streaming,
    outbox: Outbox,
    speech: Speech,
    content_type: Option<HeaderValue>,
    going: &Arc<Going>,
) -> Response<Body> {
    poll_fn(|context| {
        streaming.advance(context, going);
        match streaming.is_running() {
            true => outbox.poll_open(context),
            false => Poll::Ready(()),
        }
    })
    .await;
    let headers = outbox.take_headers();
    if speech.protocol == Protocol::Grpc
        && let Some((failure, trailers)) = streaming.early_failure()
    {
        let rest = Rest {
            headers,
            trailers,
            ..Rest::default()
        };
        return respond(speech, content_type, Err(failure), rest);
    }
    let mut response = Response::new(Body::call(streaming));
    open(&mut response, speech, content_type, headers);
    response
}

/// Whether a method takes a call in these words, and then whether it is a unary one.
fn fits(kind: Kind, speech: Speech) -> Option<bool> {
    match (kind, speech.enveloped) {
        (Kind::Unary | Kind::Either, false) => Some(true),
        (Kind::Unary, true) => (speech.protocol != Protocol::Connect).then_some(true),
        (_, true) => Some(false),
        (_, false) => None,
    }
}

/// Whether messages may be compressed with gzip; other ways are not known.
fn gzip(headers: &HeaderMap, speech: Speech) -> Result<bool, Failure> {
    let name = speech.encoding_header();
    match headers.get(name).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(false),
        Some(b"gzip") => Ok(true),
        Some(other) => {
            let other = String::from_utf8_lossy(other);
            let message = format!("{name} {other:?} is not known, use identity or gzip");
            Err(Failure::new(Code::Unimplemented, message))
        }
    }
}

/// Runs the handler; if it panics, the call fails and nothing else does.
async fn unharmed<S: Service>(service: Arc<S>, call: Call) -> Result<(), Failure> {
    let served = AssertUnwindSafe(service.serve(call)).catch_unwind().await;
    served.unwrap_or_else(|_| {
        Err(Failure::new(
            Code::Internal,
            "the server failed inside this call",
        ))
    })
}

async fn bounded(
    work: impl Future<Output = Result<(), Failure>>,
    deadline: Option<(Instant, Duration)>,
) -> Result<(), Failure> {
    let Some((at, limit)) = deadline else {
        return work.await;
    };
    let done = tokio::time::timeout_at(at.into(), work).await;
    done.unwrap_or_else(|_| Err(timeout::timed_out(limit)))
}

/// The answer of a call that fails before it begins.
fn fail(
    speech: Speech,
    unary: bool,
    content_type: Option<HeaderValue>,
    failure: Failure,
) -> Response<Body> {
    if unary || speech.protocol == Protocol::Grpc {
        return respond(speech, content_type, Err(failure), Rest::default());
    }
    let handler = Box::pin(std::future::ready(Err(failure)));
    let outbox = Outbox::new(Framing::Stream);
    let streaming = Streaming::new(handler, outbox, speech.protocol, None);
    let mut response = Response::new(Body::call(streaming));
    open(&mut response, speech, content_type, HeaderMap::new());
    response
}

/// The answer of a call that has one message, or none and a failure.
fn respond(
    speech: Speech,
    content_type: Option<HeaderValue>,
    result: Result<(), Failure>,
    mut rest: Rest,
) -> Response<Body> {
    let result = match result {
        Ok(()) if rest.messages == 0 => Err(Failure::new(
            Code::Internal,
            "the method ended without an answer",
        )),
        other => other,
    };
    let headers = std::mem::take(&mut rest.headers);
    let mut trailers = std::mem::take(&mut rest.trailers);
    let mut response = match (speech.protocol, &result) {
        (Protocol::Connect, Ok(())) => Response::new(Body::piece(rest.into_piece())),
        (Protocol::Connect, Err(failure)) => refusal(failure),
        (Protocol::Grpc, Ok(())) => {
            failures::grpc(None, &mut trailers);
            Response::new(Body::trailed(
                rest.into_piece(),
                std::mem::take(&mut trailers),
            ))
        }
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
    let content_type = match (speech.protocol, result) {
        (Protocol::Connect, Err(_)) => Some(JSON),
        _ => content_type,
    };
    open(&mut response, speech, content_type, headers);
    for (name, value) in &trailers {
        if let Ok(name) = HeaderName::try_from(format!("trailer-{name}")) {
            response.headers_mut().append(name, value.clone());
        }
    }
    response
}

/// Headers that every answer of a call has.
fn open(
    response: &mut Response<Body>,
    speech: Speech,
    content_type: Option<HeaderValue>,
    more: HeaderMap,
) {
    let headers = response.headers_mut();
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    if speech.protocol != Protocol::Connect {
        headers.insert(&GRPC_ACCEPT_ENCODING, ACCEPT_ENCODING);
    }
    headers.extend(more);
}

/// An answer in plain HTTP that says why there is no other.
fn refusal(failure: &Failure) -> Response<Body> {
    let mut response = Response::new(Body::from(failures::unary(failure)));
    let status = StatusCode::from_u16(failure.code.http_status());
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    if failure.code == Code::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
