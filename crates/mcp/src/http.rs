//! A gateway over HTTP: one address that takes messages and gives answers, as they are or as streams of events.
//!
//! Requests of 2026-07-28 stand for themselves, and losing the connection takes them back. Earlier revisions have sessions;
//! their streams can be resumed for a minute.

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

use crate::gateway::{Gateway, tell_changes};

/// The path of the one address.
const PATH: &str = "/mcp";
const SESSION: &str = "mcp-session-id";
const METHODS: &str = "POST, GET, DELETE, OPTIONS";
/// So many connections at once; more wait to be accepted.
const MAX_CONNECTIONS: usize = 512;
/// How long a client may take for the head of a request.
const HEAD: Duration = Duration::from_secs(10);
const SWEEP: Duration = Duration::from_secs(60);

/// Serves a gateway over HTTP.
#[derive(Debug)]
pub struct HttpServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    gateway: Arc<Gateway>,
    admission: Admission,
    sessions: Sessions,
    /// Requests outside of sessions that are being answered.
    loose: Semaphore,
    ending: CancellationToken,
}

impl HttpServer {
    /// A server for `gateway`.
    pub fn new(gateway: Arc<Gateway>, admission: Admission) -> Self {
        let shared = Shared {
            gateway,
            admission,
            sessions: Sessions::default(),
            loose: Semaphore::new(post::MAX_LOOSE),
            ending: CancellationToken::new(),
        };
        Self {
            shared: shared.into(),
        }
    }

    /// Takes connections until it is told to end; then what is being answered is cancelled.
    pub async fn serve(self, listener: TcpListener, ending: CancellationToken) {
        let _end = self.shared.ending.clone().drop_guard();
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let watched = self.shared.clone();
        let _watch = AbortOnDropHandle::new(tokio::spawn(async move {
            let tell = |message| {
                watched.sessions.tell(&message);
                std::future::ready(())
            };
            tell_changes(&watched.gateway, tell).await;
        }));
        let mut sweep = tokio::time::interval(SWEEP);
        let accept = || async {
            // The semaphore is never closed.
            let place = places.clone().acquire_owned().await.ok();
            (listener.accept().await, place)
        };
        loop {
            let (accepted, place) = tokio::select! {
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
                        let _place = place;
                        connection(shared, stream).await;
                    });
                }
                // Out of descriptors, most likely, which takes a while to pass.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        self.shared.sessions.end_all();
    }
}

async fn connection(shared: Arc<Shared>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let ending = shared.ending.clone();
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(shared.respond(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // What goes wrong on a connection is between it and its client.
        _ = served => {}
        () = ending.cancelled() => {}
    }
}

impl Shared {
    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Response<Answer> {
        let origin = self.admission.origin(request.headers()).map(str::to_owned);
        let mut response = if request.uri().path() != PATH {
            answer::refused(StatusCode::NOT_FOUND, format!("MCP is spoken at {PATH}"))
        } else if request.method() == Method::OPTIONS && origin.is_some() {
            preflight()
        } else if let Err(refusal) = self.admission.check(request.headers()) {
            answer::turned_away(refusal)
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

    /// The session a request belongs to.
    fn session(&self, headers: &HeaderMap) -> Result<Option<Arc<Session>>, Box<Response<Answer>>> {
        let Some(id) = headers.get(SESSION) else {
            return Ok(None);
        };
        let found = id.to_str().ok().and_then(|id| self.sessions.find(id));
        match found {
            Some(session) => Ok(Some(session)),
            None => {
                let words = "there is no such session, or no more; begin another with initialize";
                Err(answer::refused(StatusCode::NOT_FOUND, words).into())
            }
        }
    }

    /// Opens a stream for what nobody asked for, or goes on with one whose connection was lost.
    fn listen(&self, headers: &HeaderMap) -> Response<Answer> {
        let session = match self.session(headers) {
            Ok(Some(session)) => session,
            // In the newest revision there is nothing to get.
            Ok(None) => return answer::not_allowed("POST"),
            Err(refused) => return *refused,
        };
        if !accepts(headers).events {
            let words = "GET needs Accept: text/event-stream";
            return answer::refused(StatusCode::NOT_ACCEPTABLE, words);
        }
        let reader = match headers.get("last-event-id") {
            None => session.unasked.attach(None),
            Some(event) => match event.to_str().ok().and_then(|event| session.stream(event)) {
                Some((log, after)) => log.attach(Some(after)),
                None => {
                    let words = "the stream of this Last-Event-ID has ended or never was";
                    return answer::refused(StatusCode::BAD_REQUEST, words);
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

/// Tells a browser what a page may send.
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

/// What kinds of answers a client takes.
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
