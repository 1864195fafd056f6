//! Translates HTTP requests into calls and their results into HTTP answers.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use pinion_status::{Code, Failure};
use tokio_util::sync::CancellationToken;

use super::in_flight::{InFlightCalls, shutting_down};
use super::options::ServerOptions;
use super::reply::{Reply, refusal};
use super::stream::Streaming;
use super::{MethodKind, Service, bare, cross_origin, get};
use crate::body::Body;
use crate::call::{Answers, CallContext, IncomingCall, Peer, RequestCount, Requests};
use crate::inbound::{Inbound, Side};
use crate::incoming_body::IncomingBody;
use crate::outbox::{Framing, Hold, Outbox, Rest};
use crate::protocol::{ACCEPTED, Protocol, WireFormat};
use crate::timeout;

/// Headers that a request may have. The parser of HTTP/1.1 has the same limit.
const MOST_HEADERS: usize = 100;
static ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");
static CONNECT_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");

/// The parts of a connection that its calls need.
#[derive(Debug)]
pub(crate) struct ConnectionInfo {
    pub(crate) peer: Peer,
    pub(crate) in_flight: Arc<InFlightCalls>,
    /// Cancelled when calls must end.
    pub(crate) cut: CancellationToken,
}

pub(crate) async fn answer<S: Service>(
    service: Arc<S>,
    options: &ServerOptions,
    request: Request<Incoming>,
    info: &ConnectionInfo,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = IncomingBody::request(body, options.limits.message);
    if parts.headers.len() > MOST_HEADERS {
        return bare(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    if let Err(failure) = cross_origin::check_host(options, &parts) {
        return refusal(&*service, &failure);
    }
    let origin = cross_origin::check_origin(options, &parts);
    if parts.method == Method::OPTIONS {
        return cross_origin::preflight(origin.ok().flatten());
    }
    let origin = match origin {
        Ok(origin) => origin,
        Err(failure) => return refusal(&*service, &failure),
    };
    let path = parts.uri.path();
    let under = |prefix: &String| path.starts_with(prefix.as_str()).then_some(prefix.len());
    let mut response = match options.prefixes.iter().find_map(under) {
        Some(method_at) => call(service, options, parts, body, method_at, info).await,
        None if is_grpc(&parts) => no_method(&*service, &parts, parts.uri.path()),
        None => {
            let request = Request::from_parts(parts, body);
            let answer = Arc::clone(&service).plain(request, info.peer.clone());
            tokio::select! {
                biased;
                answer = AssertUnwindSafe(answer).catch_unwind() => {
                    answer.unwrap_or_else(|_| bare(StatusCode::INTERNAL_SERVER_ERROR))
                }
                () = info.cut.cancelled() => refusal(&*service, &shutting_down()),
            }
        }
    };
    if let Some(origin) = origin {
        cross_origin::allow(response.headers_mut(), origin);
    }
    response
}

/// Reports whether a request is a gRPC or gRPC-Web call, for any path.
fn is_grpc(parts: &Parts) -> bool {
    let wire_format = parts.headers.get(CONTENT_TYPE).and_then(WireFormat::parse);
    parts.method == Method::POST
        && wire_format.is_some_and(|wire_format| wire_format.protocol != Protocol::Connect)
}

/// Answers a call of an unknown method.
fn no_method<S: Service>(service: &S, parts: &Parts, name: &str) -> Response<Body> {
    let content_type = parts.headers.get(CONTENT_TYPE);
    match content_type.and_then(WireFormat::parse) {
        Some(wire_format) if wire_format.protocol != Protocol::Connect => {
            let message = format!("unknown method {name:?}");
            let failure = Failure::new(Code::Unimplemented, message);
            let reply = Reply::new(service, wire_format, content_type.cloned());
            reply.whole(Err(failure), Rest::default())
        }
        _ => bare(StatusCode::NOT_FOUND),
    }
}

/// Answers a call, or reports why the request is not a valid call.
async fn call<S: Service>(
    service: Arc<S>,
    options: &ServerOptions,
    mut parts: Parts,
    body: IncomingBody,
    method_at: usize,
    info: &ConnectionInfo,
) -> Response<Body> {
    let name = parts.uri.path().get(method_at..).unwrap_or_default();
    let Some(kind) = service.method(name) else {
        return no_method(&*service, &parts, name);
    };
    let gets =
        matches!(kind, MethodKind::Unary | MethodKind::Either) && service.has_no_side_effects(name);
    let call_head = match parts.method {
        Method::POST => post(kind, &parts, body, options),
        Method::GET if gets => get::read(&parts, options.limits.message),
        _ => {
            let mut response = bare(StatusCode::METHOD_NOT_ALLOWED);
            let allowed = if gets { "GET, POST" } else { "POST" };
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static(allowed));
            return response;
        }
    };
    let Some(call_head) = call_head else {
        let mut response = bare(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        response
            .headers_mut()
            .insert(&ACCEPT_POST, HeaderValue::from_static(ACCEPTED));
        return response;
    };
    let CallHead {
        wire_format, unary, ..
    } = call_head;
    let old = parts.version < Version::HTTP_2;
    if old && (kind == MethodKind::Bidi || wire_format.protocol == Protocol::Grpc) {
        return bare(StatusCode::HTTP_VERSION_NOT_SUPPORTED);
    }
    let reply = Reply::new(&*service, wire_format, Some(call_head.content_type));
    let version = || check_version(&parts.headers, wire_format.protocol);
    let limit = || timeout::read(&parts.headers, wire_format.protocol);
    let read = version().and_then(|()| Ok((call_head.inbound?, limit()?)));
    let (mut inbound, timeout) = match read {
        Ok(read) => read,
        Err(failure) if unary || wire_format.protocol == Protocol::Grpc => {
            return reply.whole(Err(failure), Rest::default());
        }
        Err(failure) => return reply.failed_stream(failure),
    };
    let limit = timeout.or(options.limits.unary_timeout.filter(|_| unary));
    let deadline = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));

    let single = unary || kind == MethodKind::ServerStream || kind == MethodKind::Either;
    let (framing, count) = match (unary, wire_format.enveloped, single) {
        (true, false, _) => (Framing::Bare, RequestCount::Bare),
        (true, true, _) => (Framing::Single, RequestCount::One),
        (false, _, true) => (Framing::Stream, RequestCount::One),
        (false, _, false) if kind == MethodKind::ClientStream => {
            (Framing::Single, RequestCount::Many)
        }
        (false, _, false) => (Framing::Stream, RequestCount::Many),
    };
    let outbox = Outbox::new(framing);
    let hold = match kind {
        _ if unary => Hold::No,
        MethodKind::ClientStream => Hold::WholeRequest,
        MethodKind::BidiOrSingle if old => Hold::WholeRequest,
        _ => Hold::FirstMessage,
    };
    let mut held = (hold != Hold::No).then(|| outbox.hold(hold));
    if let Some(held) = held.take_if(|_| hold == Hold::WholeRequest) {
        inbound.hold(held);
    }
    let call = IncomingCall {
        context: CallContext {
            protocol: wire_format.protocol,
            codec: wire_format.codec,
            unary,
            headers: std::mem::take(&mut parts.headers),
            version: parts.version,
            peer: info.peer.clone(),
            deadline: deadline.map(|(at, _)| at),
            timeout,
            uri: parts.uri,
            method_at,
        },
        requests: Requests {
            inbound,
            codec: wire_format.codec,
            count,
            held,
            first: None,
        },
        answers: Answers {
            outbox: outbox.clone(),
            codec: wire_format.codec,
        },
    };
    let served = catch_panic(Arc::clone(&service), call);
    if unary {
        let result = tokio::select! {
            biased;
            result = bounded(served, deadline) => result,
            () = info.cut.cancelled() => Err(shutting_down()),
        };
        return reply.whole(result, outbox.close());
    }
    let streaming = Streaming::new(
        Box::pin(served),
        outbox.clone(),
        wire_format.protocol,
        deadline,
    );
    stream(streaming, outbox, reply, &info.in_flight).await
}

/// The parsed head of a call.
pub(super) struct CallHead {
    pub(super) wire_format: WireFormat,
    /// The call has one request and one answer.
    pub(super) unary: bool,
    pub(super) content_type: HeaderValue,
    pub(super) inbound: Result<Inbound, Failure>,
}

/// Parses the head of a call made with POST; `None` if the method does not accept the content type.
fn post(
    kind: MethodKind,
    parts: &Parts,
    body: IncomingBody,
    options: &ServerOptions,
) -> Option<CallHead> {
    let content_type = parts.headers.get(CONTENT_TYPE)?;
    let wire_format = WireFormat::parse(content_type)?;
    let unary = fits(kind, wire_format)?;
    let single = unary || kind == MethodKind::ServerStream || kind == MethodKind::Either;
    let waits = single || parts.version < Version::HTTP_2;
    let read_timeout = waits.then_some(options.limits.body_timeout);
    let name = wire_format.encoding_header();
    let encoding = parts
        .headers
        .get(name)
        .map_or(b"".as_slice(), HeaderValue::as_bytes);
    let inbound = is_gzip(name.as_str(), encoding).map(|gzip| {
        Inbound::new(
            body,
            gzip,
            options.limits.message,
            read_timeout,
            Side::Request,
        )
    });
    Some(CallHead {
        wire_format,
        unary,
        content_type: content_type.clone(),
        inbound,
    })
}

/// Rejects unknown versions of Connect's protocol.
fn check_version(headers: &HeaderMap, protocol: Protocol) -> Result<(), Failure> {
    match headers.get(&CONNECT_VERSION) {
        Some(version) if protocol == Protocol::Connect && version != "1" => {
            let message = format!("unknown {CONNECT_VERSION} {version:?}; use \"1\"");
            Err(Failure::invalid(message))
        }
        _ => Ok(()),
    }
}

/// Starts a stream. Its head is sent once the handler waits and enough of the request was read. So the handler can set
/// headers, and clients that stop sending when an answer begins have sent what the handler needs.
async fn stream<S: Service>(
    mut streaming: Streaming,
    outbox: Outbox,
    reply: Reply<'_, S>,
    in_flight: &Arc<InFlightCalls>,
) -> Response<Body> {
    poll_fn(|context| {
        streaming.advance(context, in_flight);
        if streaming.has_failed() {
            Poll::Ready(())
        } else {
            outbox.poll_open(context)
        }
    })
    .await;
    let headers = outbox.take_headers();
    if reply.wire_format.protocol == Protocol::Grpc
        && let Some((failure, trailers)) = streaming.early_failure()
    {
        let rest = Rest {
            headers,
            trailers,
            ..Rest::default()
        };
        return reply.whole(Err(failure), rest);
    }
    reply.stream(streaming, headers)
}

/// Returns `None` if a method does not accept this wire format, else whether the call is unary.
fn fits(kind: MethodKind, wire_format: WireFormat) -> Option<bool> {
    match (kind, wire_format.enveloped) {
        (MethodKind::Unary | MethodKind::Either, false) => Some(true),
        (MethodKind::Unary, true) => (wire_format.protocol != Protocol::Connect).then_some(true),
        (_, true) => Some(false),
        (_, false) => None,
    }
}

/// Reports whether messages are compressed with gzip; other compressions are rejected.
pub(super) fn is_gzip(name: &str, encoding: &[u8]) -> Result<bool, Failure> {
    match encoding {
        b"" | b"identity" => Ok(false),
        b"gzip" => Ok(true),
        other => {
            let other = String::from_utf8_lossy(other);
            let message = format!("unknown {name} {other:?}; use identity or gzip");
            Err(Failure::new(Code::Unimplemented, message))
        }
    }
}

/// Runs the handler. If it panics, only this call fails.
async fn catch_panic<S: Service>(service: Arc<S>, call: IncomingCall) -> Result<(), Failure> {
    let served = AssertUnwindSafe(service.serve(call)).catch_unwind().await;
    served.unwrap_or_else(|_| {
        Err(Failure::new(
            Code::Internal,
            "the server failed while it handled this call",
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
