//! A gateway over HTTP: one URL that accepts messages and answers each with JSON or a stream of events.
//!
//! Requests of revision 2026-07-28 are independent of each other, and a lost connection cancels its requests. Earlier
//! revisions have sessions; a client can resume their streams for a minute.

mod admission;
mod answer;
mod events;
mod post;
mod sessions;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub use admission::Admission;
use answer::Answer;
use sessions::{Session, Sessions};

use crate::gateway::{Gateway, report_changes};

/// The path of the gateway.
const PATH: &str = "/mcp";
const SESSION_HEADER: &str = "mcp-session-id";
const METHODS: &str = "POST, GET, DELETE, OPTIONS";
/// Concurrent connections; more wait to be accepted.
const MAX_CONNECTIONS: usize = 512;
/// Time limit for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Serves a gateway over HTTP.
#[derive(Debug)]
pub struct HttpServer {
    shared: Arc<HttpShared>,
}

#[derive(Debug)]
struct HttpShared {
    gateway: Arc<Gateway>,
    admission: Admission,
    sessions: Sessions,
    /// Permits for requests outside sessions.
    sessionless: Semaphore,
    ending: CancellationToken,
}

impl HttpServer {
    pub fn new(gateway: Arc<Gateway>, admission: Admission) -> Self {
        let shared = HttpShared {
            gateway,
            admission,
            sessions: Sessions::default(),
            sessionless: Semaphore::new(post::MAX_SESSIONLESS_REQUESTS),
            ending: CancellationToken::new(),
        };
        Self {
            shared: shared.into(),
        }
    }

    /// Accepts connections until `ending` is cancelled, then cancels the requests in flight.
    pub async fn serve(self, listener: TcpListener, ending: CancellationToken) {
        let _end = self.shared.ending.clone().drop_guard();
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let watched = self.shared.clone();
        let _watch = AbortOnDropHandle::new(tokio::spawn(async move {
            let broadcast = |message| {
                watched.sessions.broadcast(&message);
                std::future::ready(())
            };
            report_changes(&watched.gateway, broadcast).await;
        }));
        let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
        let accept = || async {
            // The semaphore is never closed.
            let permit = permits.clone().acquire_owned().await.ok();
            (listener.accept().await, permit)
        };
        loop {
            let (accepted, permit) = tokio::select! {
                () = ending.cancelled() => break,
                accepted = accept() => accepted,
                _ = sweep.tick() => {
                    self.shared.sessions.sweep(tokio::time::Instant::now());
                    continue;
                }
            };
            match accepted {
                Ok((stream, _)) => {
                    let shared = self.shared.clone();
                    tokio::spawn(async move {
                        let _place = permit;
                        connection(shared, stream).await;
                    });
                }
                // Probably there are no file descriptors left, so wait before the next attempt.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        self.shared.sessions.end_all();
    }
}

async fn connection(shared: Arc<HttpShared>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let ending = shared.ending.clone();
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(shared.respond(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // An error of one connection concerns only its client.
        _ = served => {}
        () = ending.cancelled() => {}
    }
}

impl HttpShared {
    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Response<Answer> {
        let origin = self.admission.origin(request.headers()).map(str::to_owned);
        let mut response = if request.uri().path() != PATH {
            answer::refused(
                StatusCode::NOT_FOUND,
                format!("not found; the MCP server is at {PATH}"),
            )
        } else if request.method() == Method::OPTIONS && origin.is_some() {
            preflight()
        } else if let Err(refusal) = self.admission.check(request.headers()) {
            answer::forbidden(refusal)
        } else {
            match *request.method() {
                Method::POST => post::post(self, request).await,
                Method::GET => self.listen(request.headers()),
                Method::DELETE => self.forget(request.headers()),
                _ => answer::not_allowed(METHODS),
            }
        };
        if let Some(origin) = origin.and_then(|origin| HeaderValue::from_str(&origin).ok()) {
            let headers = response.headers_mut();
            headers.insert("access-control-allow-origin", origin);
            headers.insert("vary", HeaderValue::from_static("Origin"));
            let exposed = HeaderValue::from_static("Mcp-Session-Id");
            headers.insert("access-control-expose-headers", exposed);
        }
        response
    }

    /// Returns the session of a request.
    fn session(&self, headers: &HeaderMap) -> Result<Option<Arc<Session>>, Box<Response<Answer>>> {
        let Some(id) = headers.get(SESSION_HEADER) else {
            return Ok(None);
        };
        let found = id.to_str().ok().and_then(|id| self.sessions.find(id));
        match found {
            Some(session) => Ok(Some(session)),
            None => {
                let reason =
                    "the session does not exist or has ended; start another with initialize";
                Err(answer::refused(StatusCode::NOT_FOUND, reason).into())
            }
        }
    }

    /// Opens a stream for messages outside requests, or resumes a stream whose connection was lost.
    fn listen(&self, headers: &HeaderMap) -> Response<Answer> {
        let session = match self.session(headers) {
            Ok(Some(session)) => session,
            // The newest revision has no GET requests.
            Ok(None) => return answer::not_allowed("POST"),
            Err(refused) => return *refused,
        };
        if !accepts(headers).events {
            let reason = "GET needs Accept: text/event-stream";
            return answer::refused(StatusCode::NOT_ACCEPTABLE, reason);
        }
        let reader = match headers.get("last-event-id") {
            None => session.notifications.attach(None),
            Some(event) => match event.to_str().ok().and_then(|event| session.stream(event)) {
                Some((log, after)) => log.attach(Some(after)),
                None => {
                    let reason = "the stream of this Last-Event-ID has ended or never existed";
                    return answer::refused(StatusCode::BAD_REQUEST, reason);
                }
            },
        };
        let ended = session.ended.clone().cancelled_owned();
        let events = futures_util::StreamExt::take_until(reader.into_events(), Box::pin(ended));
        answer::events(events)
    }

    fn forget(&self, headers: &HeaderMap) -> Response<Answer> {
        match self.session(headers) {
            Ok(Some(session)) => {
                self.sessions.end(&session.id);
                answer::empty(StatusCode::NO_CONTENT)
            }
            Ok(None) => answer::refused(
                StatusCode::BAD_REQUEST,
                "which session? Mcp-Session-Id says",
            ),
            Err(refused) => *refused,
        }
    }
}

/// Answers a browser's preflight request.
fn preflight() -> Response<Answer> {
    let mut response = answer::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static(METHODS);
    headers.insert("access-control-allow-methods", methods);
    let allowed = "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name";
    headers.insert(
        "access-control-allow-headers",
        HeaderValue::from_static(allowed),
    );
    headers.insert("access-control-max-age", HeaderValue::from_static("600"));
    response
}

/// The content types that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Accepts {
    json: bool,
    events: bool,
}

fn accepts(headers: &HeaderMap) -> Accepts {
    let mut accepts = Accepts {
        json: !headers.contains_key(ACCEPT),
        events: false,
    };
    let values = headers.get_all(ACCEPT).iter();
    let kinds = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    for kind in kinds {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is = |wanted: &str| kind.eq_ignore_ascii_case(wanted);
        accepts.json |= is("application/json") || is("application/*") || is("*/*");
        accepts.events |= is("text/event-stream") || is("text/*") || is("*/*");
    }
    accepts
}
