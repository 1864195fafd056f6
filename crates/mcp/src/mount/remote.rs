//! A server at an address: every message is a request of its own, answered as it is or as a stream of events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pinion_llm::{FetchError, FetchRequest, FetchResponse, Fetcher, Frame, Redirect, SseParser};
use pinion_status::{Code, Failure};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::connection::{Asides, Broken};
use crate::param_headers;
use crate::rpc::{self, Id, Incoming, Message, Response};
use crate::version::MODERN;

/// The longest answer that is read.
const BODY: usize = 32 * 1024 * 1024;
/// The pause before a stream is resumed, unless the server names one.
const RETRY: Duration = Duration::from_secs(1);
/// The longest pause that a server can ask for.
const MAX_RETRY: Duration = Duration::from_secs(30);
/// Resumptions in a row that bring nothing new; then the call fails.
const MAX_RESUMPTIONS: u32 = 5;
/// So much of an answer that makes no sense is shown.
const SHOWN: usize = 200;

/// A server at an address.
#[derive(Debug)]
pub(super) struct Remote {
    line: Arc<Wire>,
    last_id: AtomicU64,
}

struct Wire {
    url: String,
    headers: Vec<(String, String)>,
    fetcher: Fetcher,
    asides: Arc<Asides>,
    agreed: Mutex<Agreed>,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Wire").field(&self.url).finish()
    }
}

/// The parts of a request's headers that differ from request to request.
#[derive(Debug, Default)]
struct Head<'a> {
    method: &'a str,
    tool: Option<&'a str>,
    headers: Vec<(String, String)>,
    last_event_id: Option<&'a str>,
}

/// The place in a stream of events from which it can be resumed.
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

/// What every request says once it is known.
#[derive(Debug, Clone, Default)]
struct Agreed {
    version: Option<String>,
    session: Option<String>,
    lost_at: Option<Instant>,
}

impl Remote {
    pub(super) fn new(
        url: &str,
        headers: &[(String, String)],
        asides: Arc<Asides>,
    ) -> Result<Self, Failure> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let message = format!("{url} is no address that begins with http:// or https://");
            return Err(Failure::invalid(message));
        }
        Ok(Self {
            line: Arc::new(Wire {
                url: url.to_owned(),
                headers: headers.to_vec(),
                fetcher: Fetcher::default(),
                asides,
                agreed: Mutex::default(),
            }),
            last_id: AtomicU64::new(0),
        })
    }

    /// Names this revision in every request from now on; none before one is agreed on.
    pub(super) fn speaks(&self, version: Option<&str>) {
        self.line.agreed().version = version.map(str::to_owned);
    }

    pub(super) fn lost_at(&self) -> Option<Instant> {
        self.line.agreed().lost_at
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, Broken> {
        let head = Head {
            method,
            ..Head::default()
        };
        self.send(head, params).await
    }

    /// Calls a tool. `headers` repeat some of its arguments.
    pub(super) async fn call(
        &self,
        tool: &str,
        params: &impl Serialize,
        headers: Vec<(String, String)>,
    ) -> Result<Box<RawValue>, Broken> {
        let head = Head {
            method: "tools/call",
            tool: Some(tool),
            headers,
            last_event_id: None,
        };
        self.send(head, params).await
    }

    async fn send(&self, head: Head<'_>, params: &impl Serialize) -> Result<Box<RawValue>, Broken> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let message = rpc::request(&Id::Number(id.into()), head.method, Some(params));
        let wanted = Wanted {
            line: Some(self.line.clone()),
            id,
        };
        let outcome = self.line.exchange(message, id, head).await;
        wanted.over();
        outcome
    }

    pub(super) async fn notify(&self, method: &str) {
        let message = rpc::notification::<()>(method, None);
        // A notification has no answer.
        let _ = self.line.post(message, method).await;
    }

    /// Ends the session.
    pub(super) async fn stop(&self) {
        self.line.agreed().lost_at.get_or_insert_with(Instant::now);
        if self.line.agreed().session.is_some() {
            let _ = self.line.fetch("DELETE", None, Head::default()).await;
        }
    }
}

/// Tells the server when an answer is no longer wanted.
struct Wanted {
    line: Option<Arc<Wire>>,
    id: u64,
}

impl Wanted {
    fn over(mut self) {
        self.line = None;
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        let Some(line) = self.line.take() else {
            return;
        };
        // In the newest revision the lost connection says it.
        let modern = line.agreed().version.as_deref() == Some(MODERN);
        if let Ok(runtime) = Handle::try_current()
            && !modern
        {
            let told = json!({ "requestId": self.id, "reason": "the caller went away" });
            let method = "notifications/cancelled";
            let told = rpc::notification(method, Some(&told));
            runtime.spawn(async move { drop(line.post(told, method).await) });
        }
    }
}

impl Wire {
    fn agreed(&self) -> MutexGuard<'_, Agreed> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn post(&self, message: Bytes, method: &str) -> Result<FetchResponse, FetchError> {
        let head = Head {
            method,
            ..Head::default()
        };
        self.fetch("POST", Some(message), head).await
    }

    async fn fetch(
        &self,
        verb: &str,
        message: Option<Bytes>,
        head: Head<'_>,
    ) -> Result<FetchResponse, FetchError> {
        let agreed = self.agreed().clone();
        let mut headers = self.headers.clone();
        headers.extend(head.headers);
        let mut set = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        set("accept", "application/json, text/event-stream");
        if message.is_some() {
            set("content-type", "application/json");
        }
        if let Some(session) = &agreed.session {
            set("mcp-session-id", session);
        }
        if let Some(id) = head.last_event_id {
            set("last-event-id", id);
        }
        if let Some(version) = &agreed.version {
            set("mcp-protocol-version", version);
            if version == MODERN {
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
            // Keys ride in the headers.
            redirect: Redirect::Refuse,
        };
        self.fetcher.fetch(request).await
    }

    async fn exchange(
        self: &Arc<Self>,
        message: Bytes,
        id: u64,
        head: Head<'_>,
    ) -> Result<Box<RawValue>, Broken> {
        let had_session = self.agreed().session.is_some();
        let begins = head.method == "initialize";
        let sent = self.fetch("POST", Some(message), head).await;
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        if response.status == 404 && had_session {
            self.agreed().lost_at.get_or_insert_with(Instant::now);
            return Err(Broken::Forgotten);
        }
        if begins && let Some(session) = header(&response, "mcp-session-id") {
            self.agreed().session = Some(session.to_owned());
        }
        let kind = header(&response, "content-type").unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return self.events(response, id).await;
        }
        let body = self.body(&mut response).await?;
        // Who is turned away is told so by others than the server as well, and need not try again in another way.
        let is_answer = matches!(response.status, 200..=299 | 400 | 404);
        if is_answer && let Incoming::One(Ok(Message::Response(answer))) = rpc::read(&body) {
            return answer.outcome.map_err(Broken::Answered);
        }
        Err(Broken::Lost(self.refused(response.status, &body)))
    }

    async fn body(&self, response: &mut FetchResponse) -> Result<Vec<u8>, Broken> {
        let mut body = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|error| self.unreachable(&error))?
        {
            body.extend_from_slice(&piece);
            if body.len() > BODY {
                let message = format!("{} answered with more than {BODY} bytes", self.url);
                return Err(Broken::Lost(Failure::new(Code::ResourceExhausted, message)));
            }
        }
        Ok(body)
    }

    /// Reads events until the answer is among them, and resumes the stream if it ends before.
    async fn events(
        self: &Arc<Self>,
        mut response: FetchResponse,
        id: u64,
    ) -> Result<Box<RawValue>, Broken> {
        let mut position = Position::default();
        let mut failures = 0;
        loop {
            let before = position.last_event_id.clone();
            let ended = match self.read_events(&mut response, id, &mut position).await {
                Ok(answer) => return answer.outcome.map_err(Broken::Answered),
                Err(ended) => ended,
            };
            if position.last_event_id != before {
                failures = 0;
            }
            loop {
                // Since 2026-07-28 a stream that is lost takes its request back.
                let modern = self.agreed().version.as_deref() == Some(MODERN);
                let Some(last) = position.last_event_id.as_deref().filter(|_| !modern) else {
                    return Err(ended);
                };
                failures += 1;
                if failures > MAX_RESUMPTIONS {
                    return Err(ended);
                }
                tokio::time::sleep(position.retry.unwrap_or(RETRY).min(MAX_RETRY)).await;
                let head = Head {
                    last_event_id: Some(last),
                    ..Head::default()
                };
                match self.fetch("GET", None, head).await {
                    Ok(resumed) if resumed.status == 200 => {
                        response = resumed;
                        break;
                    }
                    // The server does not resume streams.
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
    ) -> Result<Response, Broken> {
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
                return Err(Broken::Lost(Failure::new(Code::ResourceExhausted, message)));
            }
            position.follow(&parser);
            for message in messages.drain(..) {
                if let Some(answer) = self.take(message, id) {
                    return Ok(answer);
                }
            }
            if piece.is_none() {
                let message = format!("{} ended its answer before it was complete", self.url);
                return Err(Broken::Lost(Failure::new(Code::Unavailable, message)));
            }
        }
    }

    /// Deals with what is on a stream beside the answer.
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
                    if let Some(answer) = self.asides.take(&message) {
                        let line = self.clone();
                        tokio::spawn(async move { drop(line.post(answer, "").await) });
                    }
                }
            }
        }
        found
    }

    fn unreachable(&self, error: &FetchError) -> Broken {
        let code = match error.code {
            "ETIMEDOUT" => Code::DeadlineExceeded,
            _ => Code::Unavailable,
        };
        Broken::Lost(Failure::new(
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
        let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
        let message = format!("{} answered with HTTP {status}: {}", self.url, shown.trim());
        Failure::new(code, message)
    }
}

fn header<'a>(response: &'a FetchResponse, name: &str) -> Option<&'a str> {
    let found = response.headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}
