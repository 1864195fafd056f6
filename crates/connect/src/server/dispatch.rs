//! From an HTTP request to a call and back.

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

use super::going::{Going, shutting_down};
use super::options::ServerOptions;
use super::reply::{Reply, refusal};
use super::stream::Streaming;
use super::{Kind, Service, bare, cross, get};
use crate::arriving::Arriving;
use crate::body::Body;
use crate::call::{Answers, Call, Context, Count, Peer, Requests};
use crate::inbound::{Inbound, Side};
use crate::outbox::{Framing, Hold, Outbox, Rest};
use crate::protocol::{ACCEPTED, Protocol, Speech};
use crate::timeout;

/// Headers that a request may have; HTTP/1.1 has the same limit where it is parsed.
const MOST_HEADERS: usize = 100;
static ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");
static CONNECT_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");

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
        return refusal(&*service, &failure);
    }
    let origin = cross::check_origin(options, &parts);
    if parts.method == Method::OPTIONS {
        return cross::preflight(origin.ok().flatten());
    }
    let origin = match origin {
        Ok(origin) => origin,
        Err(failure) => return refusal(&*service, &failure),
    };
    let path = parts.uri.path();
    let under = |prefix: &String| path.starts_with(prefix.as_str()).then_some(prefix.len());
    let mut response = match options.prefixes.iter().find_map(under) {
        Some(method_at) => call(service, options, parts, body, method_at, line).await,
        None if is_grpc(&parts) => no_method(&*service, &parts, parts.uri.path()),
        None => {
            let request = Request::from_parts(parts, body);
            let answer = Arc::clone(&service).plain(request, line.peer.clone());
            tokio::select! {
                biased;
                answer = AssertUnwindSafe(answer).catch_unwind() => {
                    answer.unwrap_or_else(|_| bare(StatusCode::INTERNAL_SERVER_ERROR))
                }
                () = line.cut.cancelled() => refusal(&*service, &shutting_down()),
            }
        }
    };
    if let Some(origin) = origin {
        cross::allow(response.headers_mut(), origin);
    }
    response
}

/// Whether a request is a call in gRPC or gRPC-Web, wherever it goes.
fn is_grpc(parts: &Parts) -> bool {
    let speech = parts.headers.get(CONTENT_TYPE).and_then(Speech::parse);
    parts.method == Method::POST
        && speech.is_some_and(|speech| speech.protocol != Protocol::Connect)
}

/// The answer to a call of a method that there is not.
fn no_method<S: Service>(service: &S, parts: &Parts, name: &str) -> Response<Body> {
    let content_type = parts.headers.get(CONTENT_TYPE);
    match content_type.and_then(Speech::parse) {
        Some(speech) if speech.protocol != Protocol::Connect => {
            let message = format!("there is no method {name:?}");
            let failure = Failure::new(Code::Unimplemented, message);
            let reply = Reply::new(service, speech, content_type.cloned());
            reply.whole(Err(failure), Rest::default())
        }
        _ => bare(StatusCode::NOT_FOUND),
    }
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
    let name = parts.uri.path().get(method_at..).unwrap_or_default();
    let Some(kind) = service.method(name) else {
        return no_method(&*service, &parts, name);
    };
    let gets = matches!(kind, Kind::Unary | Kind::Either) && service.has_no_side_effects(name);
    let asked = match parts.method {
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
    let Some(asked) = asked else {
        let mut response = bare(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        response
            .headers_mut()
            .insert(&ACCEPT_POST, HeaderValue::from_static(ACCEPTED));
        return response;
    };
    let Asked { speech, unary, .. } = asked;
    let old = parts.version < Version::HTTP_2;
    if old && (kind == Kind::Bidi || speech.protocol == Protocol::Grpc) {
        return bare(StatusCode::HTTP_VERSION_NOT_SUPPORTED);
    }
    let reply = Reply::new(&*service, speech, Some(asked.content_type));
    let version = || check_version(&parts.headers, speech.protocol);
    let limit = || timeout::read(&parts.headers, speech.protocol);
    let read = version().and_then(|()| Ok((asked.inbound?, limit()?)));
    let (mut inbound, timeout) = match read {
        Ok(read) => read,
        Err(failure) if unary || speech.protocol == Protocol::Grpc => {
            return reply.whole(Err(failure), Rest::default());
        }
        Err(failure) => return reply.failed_stream(failure),
    };
    let limit = timeout.or(options.limits.unary_time.filter(|_| unary));
    let deadline = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));

    let single = unary || kind == Kind::ServerStream || kind == Kind::Either;
    let (framing, count) = match (unary, speech.enveloped, single) {
        (true, false, _) => (Framing::Bare, Count::Bare),
        (true, true, _) => (Framing::Single, Count::One),
        (false, _, true) => (Framing::Stream, Count::One),
        (false, _, false) if kind == Kind::ClientStream => (Framing::Single, Count::Many),
        (false, _, false) => (Framing::Stream, Count::Many),
    };
    let outbox = Outbox::new(framing);
    let hold = match kind {
        _ if unary => Hold::No,
        Kind::ClientStream => Hold::WholeRequest,
        Kind::BidiOrSingle if old => Hold::WholeRequest,
        _ => Hold::FirstMessage,
    };
    let mut held = (hold != Hold::No).then(|| outbox.hold(hold));
    if let Some(held) = held.take_if(|_| hold == Hold::WholeRequest) {
        inbound.hold(held);
    }
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
    let served = unharmed(Arc::clone(&service), call);
    if unary {
        let result = tokio::select! {
            biased;
            result = bounded(served, deadline) => result,
            () = line.cut.cancelled() => Err(shutting_down()),
        };
        return reply.whole(result, outbox.close());
    }
    let streaming = Streaming::new(Box::pin(served), outbox.clone(), speech.protocol, deadline);
    stream(streaming, outbox, reply, &line.going).await
}

/// What the head of a request says about a call.
pub(super) struct Asked {
    pub(super) speech: Speech,
    /// One request, one answer.
    pub(super) unary: bool,
    pub(super) content_type: HeaderValue,
    /// The message or messages of the request.
    pub(super) inbound: Result<Inbound, Failure>,
}

/// Reads the head of a call made with POST; `None` is a content type that the method does not take.
fn post(kind: Kind, parts: &Parts, body: Arriving, options: &ServerOptions) -> Option<Asked> {
    let content_type = parts.headers.get(CONTENT_TYPE)?;
    let speech = Speech::parse(content_type)?;
    let unary = fits(kind, speech)?;
    let single = unary || kind == Kind::ServerStream || kind == Kind::Either;
    let waits = single || parts.version < Version::HTTP_2;
    let patience = waits.then_some(options.limits.body_time);
    let name = speech.encoding_header();
    let encoding = parts
        .headers
        .get(name)
        .map_or(b"".as_slice(), HeaderValue::as_bytes);
    let inbound = is_gzip(name.as_str(), encoding)
        .map(|gzip| Inbound::new(body, gzip, options.limits.message, patience, Side::Request));
    Some(Asked {
        speech,
        unary,
        content_type: content_type.clone(),
        inbound,
    })
}

/// Refuses versions of Connect's protocol that there are not yet.
fn check_version(headers: &HeaderMap, protocol: Protocol) -> Result<(), Failure> {
    match headers.get(&CONNECT_VERSION) {
        Some(version) if protocol == Protocol::Connect && version != "1" => {
            let message = format!("{CONNECT_VERSION} {version:?} is not known; use \"1\"");
            Err(Failure::invalid(message))
        }
        _ => Ok(()),
    }
}

/// Starts a stream. Its head leaves once the handler waits and enough of the request was read, so that the handler may set
/// headers, and that clients that stop sending once an answer begins have sent what is needed.
async fn stream<S: Service>(
    mut streaming: Streaming,
    outbox: Outbox,
    reply: Reply<'_, S>,
    going: &Arc<Going>,
) -> Response<Body> {
    poll_fn(|context| {
        streaming.advance(context, going);
        match streaming.has_failed() {
            true => Poll::Ready(()),
            false => outbox.poll_open(context),
        }
    })
    .await;
    let headers = outbox.take_headers();
    if reply.speech.protocol == Protocol::Grpc
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

/// Whether a method takes a call in these words, and then whether it is a unary one.
fn fits(kind: Kind, speech: Speech) -> Option<bool> {
    match (kind, speech.enveloped) {
        (Kind::Unary | Kind::Either, false) => Some(true),
        (Kind::Unary, true) => (speech.protocol != Protocol::Connect).then_some(true),
        (_, true) => Some(false),
        (_, false) => None,
    }
}

/// Whether messages are compressed with gzip; other ways are not known.
pub(super) fn is_gzip(name: &str, encoding: &[u8]) -> Result<bool, Failure> {
    match encoding {
        b"" | b"identity" => Ok(false),
        b"gzip" => Ok(true),
        other => {
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
