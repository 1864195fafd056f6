//! A server at a URL: every message is an HTTP request, answered with JSON or a stream of events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pinion_http::{FetchError, FetchRequest, FetchResponse, Fetcher, Frame, Redirect, SseParser};
use pinion_status::{Code, Failure};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::connection::{RequestError, ServerMessages};
use crate::param_headers;
use crate::rpc::{self, Id, Incoming, Message, Response};
use crate::version::MODERN_REVISION;

/// The longest answer that is read, in bytes.
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// The pause before a stream is resumed, unless the server sets one.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest pause that a server can ask for.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Consecutive resumptions without a new event after which the call fails.
const MAX_RESUMPTIONS: u32 = 5;
/// Bytes of a malformed answer that are quoted in an error.
const MAX_QUOTED_BYTES: usize = 200;

#[derive(Debug)]
pub(super) struct Remote {
    transport: Arc<HttpTransport>,
    last_id: AtomicU64,
}

struct HttpTransport {
    url: String,
    headers: Vec<(String, String)>,
    fetcher: Fetcher,
    server_messages: Arc<ServerMessages>,
    session: Mutex<SessionHeaders>,
}

impl std::fmt::Debug for HttpTransport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("HttpTransport")
            .field(&self.url)
            .finish()
    }
}

/// The parts of a request's headers that differ from request to request.
#[derive(Debug, Default)]
struct RequestHead<'a> {
    method: &'a str,
    tool: Option<&'a str>,
    headers: Vec<(String, String)>,
    last_event_id: Option<&'a str>,
}

/// The position in a stream of events from which it can be resumed.
#[derive(Debug, Default)]
struct Position {
    last_event_id: Option<String>,
    retry: Option<Duration>,
}

impl Position {
    fn follow(&mut self, parser: &SseParser) {
        if let Some(id) = parser.last_event_id()
            && self.last_event_id.as_deref() != Some(id)
        {
            self.last_event_id = Some(id.to_owned());
        }
        self.retry = parser.retry().or(self.retry);
    }
}

/// The headers that every request has once the server has set them.
#[derive(Debug, Clone, Default)]
struct SessionHeaders {
    version: Option<String>,
    session: Option<String>,
    lost_at: Option<Instant>,
}

impl Remote {
    pub(super) fn new(
        url: &str,
        headers: &[(String, String)],
        server_messages: Arc<ServerMessages>,
    ) -> Result<Self, Failure> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let message = format!("{url} is no address that begins with http:// or https://");
            return Err(Failure::invalid(message));
        }
        Ok(Self {
            transport: Arc::new(HttpTransport {
                url: url.to_owned(),
                headers: headers.to_vec(),
                fetcher: Fetcher::default(),
                server_messages,
                session: Mutex::default(),
            }),
            last_id: AtomicU64::new(0),
        })
    }

    /// Sets the revision for every later request; `None` before one is negotiated.
    pub(super) fn set_revision(&self, version: Option<&str>) {
        self.transport.session().version = version.map(str::to_owned);
    }

    pub(super) fn lost_at(&self) -> Option<Instant> {
        self.transport.session().lost_at
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, RequestError> {
        let head = RequestHead {
            method,
            ..RequestHead::default()
        };
        self.send(head, params).await
    }

    /// Calls a tool. `headers` repeat some of its arguments.
    pub(super) async fn call(
        &self,
        tool: &str,
        params: &impl Serialize,
        headers: Vec<(String, String)>,
    ) -> Result<Box<RawValue>, RequestError> {
        let head = RequestHead {
            method: "tools/call",
            tool: Some(tool),
            headers,
            last_event_id: None,
        };
        self.send(head, params).await
    }

    async fn send(
        &self,
        head: RequestHead<'_>,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, RequestError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let message = rpc::request(&Id::Number(id.into()), head.method, Some(params));
        let wanted = CancelOnDrop {
            transport: Some(self.transport.clone()),
            id,
        };
        let outcome = self.transport.exchange(message, id, head).await;
        wanted.over();
        outcome
    }

    pub(super) async fn notify(&self, method: &str) {
        let message = rpc::notification::<()>(method, None);
        // A notification has no answer.
        let _ = self.transport.post(message, method).await;
    }

    /// Ends the session.
    pub(super) async fn stop(&self) {
        self.transport
            .session()
            .lost_at
            .get_or_insert_with(Instant::now);
        if self.transport.session().session.is_some() {
            let _ = self
                .transport
                .fetch("DELETE", None, RequestHead::default())
                .await;
        }
    }
}

/// Cancels the request at the server when its answer is no longer wanted.
struct CancelOnDrop {
    transport: Option<Arc<HttpTransport>>,
    id: u64,
}

impl CancelOnDrop {
    fn over(mut self) {
        self.transport = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(transport) = self.transport.take() else {
            return;
        };
        // In the newest revision the lost connection cancels the request.
        let modern = transport.session().version.as_deref() == Some(MODERN_REVISION);
        if let Ok(runtime) = Handle::try_current()
            && !modern
        {
            let notification = json!({ "requestId": self.id, "reason": "the caller went away" });
            let method = "notifications/cancelled";
            let notification = rpc::notification(method, Some(&notification));
            runtime.spawn(async move { drop(transport.post(notification, method).await) });
        }
    }
}

impl HttpTransport {
    fn session(&self) -> MutexGuard<'_, SessionHeaders> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn post(&self, message: Bytes, method: &str) -> Result<FetchResponse, FetchError> {
        let head = RequestHead {
            method,
            ..RequestHead::default()
        };
        self.fetch("POST", Some(message), head).await
    }

    async fn fetch(
        &self,
        verb: &str,
        message: Option<Bytes>,
        head: RequestHead<'_>,
    ) -> Result<FetchResponse, FetchError> {
        let session = self.session().clone();
        let mut headers = self.headers.clone();
        headers.extend(head.headers);
        let mut set = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        set("accept", "application/json, text/event-stream");
        if message.is_some() {
            set("content-type", "application/json");
        }
        if let Some(session) = &session.session {
            set("mcp-session-id", session);
        }
        if let Some(id) = head.last_event_id {
            set("last-event-id", id);
        }
        if let Some(version) = &session.version {
            set("mcp-protocol-version", version);
            if version == MODERN_REVISION {
                set("mcp-method", head.method);
                if let Some(tool) = head.tool {
                    set("mcp-name", &param_headers::encode(tool));
                }
            }
        }
        let request = FetchRequest {
            method: verb.to_owned(),
            url: self.url.clone(),
            headers,
            body: message,
            // The headers contain secrets.
            redirect: Redirect::Refuse,
        };
        self.fetcher.fetch(request).await
    }

    async fn exchange(
        self: &Arc<Self>,
        message: Bytes,
        id: u64,
        head: RequestHead<'_>,
    ) -> Result<Box<RawValue>, RequestError> {
        let had_session = self.session().session.is_some();
        let begins = head.method == "initialize";
        let sent = self.fetch("POST", Some(message), head).await;
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        if response.status == 404 && had_session {
            self.session().lost_at.get_or_insert_with(Instant::now);
            return Err(RequestError::SessionExpired);
        }
        if begins && let Some(session) = header(&response, "mcp-session-id") {
            self.session().session = Some(session.to_owned());
        }
        let kind = header(&response, "content-type").unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return self.events(response, id).await;
        }
        let body = self.body(&mut response).await?;
        // A proxy in front of the server may refuse a client too. In that case another revision does not help.
        let is_answer = matches!(response.status, 200..=299 | 400 | 404);
        if is_answer && let Incoming::One(Ok(Message::Response(answer))) = rpc::read(&body) {
            return answer.outcome.map_err(RequestError::Answered);
        }
        Err(RequestError::Lost(self.refused(response.status, &body)))
    }

    async fn body(&self, response: &mut FetchResponse) -> Result<Vec<u8>, RequestError> {
        let mut body = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|error| self.unreachable(&error))?
        {
            body.extend_from_slice(&piece);
            if body.len() > MAX_BODY_BYTES {
                let message = format!(
                    "{} answered with more than {MAX_BODY_BYTES} bytes",
                    self.url
                );
                return Err(RequestError::Lost(Failure::new(
                    Code::ResourceExhausted,
                    message,
                )));
            }
        }
        Ok(body)
    }

    /// Reads events until the answer arrives, and resumes the stream if it ends before.
    async fn events(
        self: &Arc<Self>,
        mut response: FetchResponse,
        id: u64,
    ) -> Result<Box<RawValue>, RequestError> {
        let mut position = Position::default();
        let mut failures = 0;
        loop {
            let before = position.last_event_id.clone();
            let ended = match self.read_events(&mut response, id, &mut position).await {
                Ok(answer) => return answer.outcome.map_err(RequestError::Answered),
                Err(ended) => ended,
            };
            if position.last_event_id != before {
                failures = 0;
            }
            loop {
                // Since 2026-07-28 a lost stream cancels its request.
                let modern = self.session().version.as_deref() == Some(MODERN_REVISION);
                let Some(last) = position.last_event_id.as_deref().filter(|_| !modern) else {
                    return Err(ended);
                };
                failures += 1;
                if failures > MAX_RESUMPTIONS {
                    return Err(ended);
                }
                tokio::time::sleep(position.retry.unwrap_or(RETRY_DELAY).min(MAX_RETRY_DELAY))
                    .await;
                let head = RequestHead {
                    last_event_id: Some(last),
                    ..RequestHead::default()
                };
                match self.fetch("GET", None, head).await {
                    Ok(resumed) if resumed.status == 200 => {
                        response = resumed;
                        break;
                    }
                    // The server does not support resumption.
                    Ok(resumed) if resumed.status < 500 => return Err(ended),
                    _ => {}
                }
            }
        }
    }

    /// Reads one response up to the answer. Fails with the reason if it ends before.
    async fn read_events(
        self: &Arc<Self>,
        response: &mut FetchResponse,
        id: u64,
        position: &mut Position,
    ) -> Result<Response, RequestError> {
        let mut parser = SseParser::new();
        let mut messages = Vec::new();
        loop {
            let piece = response
                .chunk()
                .await
                .map_err(|error| self.unreachable(&error))?;
            let keep = |frame: Frame<'_>| {
                if !frame.data.is_empty() {
                    messages.push(rpc::read(frame.data.as_bytes()));
                }
            };
            let parsed = match &piece {
                Some(piece) => parser.push(piece, keep),
                None => parser.finish(keep),
            };
            if parsed.is_err() {
                let message = format!("{} sent an event that is too long", self.url);
                return Err(RequestError::Lost(Failure::new(
                    Code::ResourceExhausted,
                    message,
                )));
            }
            position.follow(&parser);
            for message in messages.drain(..) {
                if let Some(answer) = self.take(message, id) {
                    return Ok(answer);
                }
            }
            if piece.is_none() {
                let message = format!("{} ended its answer before it was complete", self.url);
                return Err(RequestError::Lost(Failure::new(Code::Unavailable, message)));
            }
        }
    }

    /// Handles the messages on a stream besides the answer.
    fn take(self: &Arc<Self>, incoming: Incoming, id: u64) -> Option<Response> {
        let messages = match incoming {
            Incoming::One(message) => vec![message],
            Incoming::Batch(messages) => messages,
        };
        let mut found = None;
        for message in messages.into_iter().flatten() {
            match message {
                Message::Response(answer) if answer.id == Some(Id::Number(id.into())) => {
                    found = Some(answer);
                }
                message => {
                    if let Some(answer) = self.server_messages.handle(&message) {
                        let transport = self.clone();
                        tokio::spawn(async move { drop(transport.post(answer, "").await) });
                    }
                }
            }
        }
        found
    }

    fn unreachable(&self, error: &FetchError) -> RequestError {
        let code = match error.code {
            "ETIMEDOUT" => Code::DeadlineExceeded,
            _ => Code::Unavailable,
        };
        RequestError::Lost(Failure::new(
            code,
            format!("{}: {}", self.url, error.message),
        ))
    }

    fn refused(&self, status: u16, body: &[u8]) -> Failure {
        let code = match status {
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            429 => Code::ResourceExhausted,
            _ => Code::Unavailable,
        };
        let shown = String::from_utf8_lossy(&body[..body.len().min(MAX_QUOTED_BYTES)]);
        let message = format!("{} answered with HTTP {status}: {}", self.url, shown.trim());
        Failure::new(code, message)
    }
}

fn header<'a>(response: &'a FetchResponse, name: &str) -> Option<&'a str> {
    let found = response.headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}
