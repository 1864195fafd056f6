//! A server at an address: every message is a request of its own, answered as it is or as a stream of events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pinion_llm::{FetchError, FetchRequest, FetchResponse, Fetcher, Frame, Redirect, SseParser};
use pinion_status::{Code, Failure};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::connection::{Asides, Broken};
use crate::rpc::{self, Id, Incoming, Message, Response};
use crate::version::MODERN;

/// The longest answer that is read.
const BODY: usize = 32 * 1024 * 1024;
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

    /// From now on requests say this revision.
    pub(super) fn speaks(&self, version: &str) {
        self.line.agreed().version = Some(version.to_owned());
    }

    pub(super) fn lost_at(&self) -> Option<Instant> {
        self.line.agreed().lost_at
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, Broken> {
        self.send(method, None, params).await
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, Broken> {
        self.send("tools/call", Some(tool), params).await
    }

    async fn send(
        &self,
        method: &str,
        name: Option<&str>,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, Broken> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let message = rpc::request(&Id::Number(id.into()), method, Some(params));
        let wanted = Wanted {
            line: Some(self.line.clone()),
            id,
        };
        let outcome = self.line.exchange(message, id, method, name).await;
        wanted.over();
        outcome
    }

    pub(super) async fn notify(&self, method: &str) {
        let message = rpc::notification::<()>(method, None);
        // What comes back says nothing.
        let _ = self.line.post(message, method, None).await;
    }

    /// Ends the session.
    pub(super) async fn stop(&self) {
        self.line.agreed().lost_at.get_or_insert_with(Instant::now);
        if self.line.agreed().session.is_some() {
            let _ = self.line.fetch("DELETE", None, "", None).await;
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
            runtime.spawn(async move { drop(line.post(told, method, None).await) });
        }
    }
}

impl Wire {
    fn agreed(&self) -> MutexGuard<'_, Agreed> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn post(
        &self,
        message: Bytes,
        method: &str,
        name: Option<&str>,
    ) -> Result<FetchResponse, FetchError> {
        self.fetch("POST", Some(message), method, name).await
    }

    async fn fetch(
        &self,
        verb: &str,
        message: Option<Bytes>,
        method: &str,
        name: Option<&str>,
    ) -> Result<FetchResponse, FetchError> {
        let agreed = self.agreed().clone();
        let mut headers = self.headers.clone();
        let mut set = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        set("accept", "application/json, text/event-stream");
        if message.is_some() {
            set("content-type", "application/json");
        }
        if let Some(session) = &agreed.session {
            set("mcp-session-id", session);
        }
        if let Some(version) = &agreed.version {
            set("mcp-protocol-version", version);
            if version == MODERN {
                set("mcp-method", method);
                if let Some(name) = name {
                    set("mcp-name", &encoded(name));
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
        method: &str,
        name: Option<&str>,
    ) -> Result<Box<RawValue>, Broken> {
        let had_session = self.agreed().session.is_some();
        let sent = self.post(message, method, name).await;
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        if response.status == 404 && had_session {
            self.agreed().lost_at.get_or_insert_with(Instant::now);
            return Err(Broken::Forgotten);
        }
        if method == "initialize"
            && let Some(session) = header(&response, "mcp-session-id")
        {
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

    /// Reads events until the answer is among them.
    async fn events(
        self: &Arc<Self>,
        mut response: FetchResponse,
        id: u64,
    ) -> Result<Box<RawValue>, Broken> {
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
            for message in messages.drain(..) {
                if let Some(answer) = self.take(message, id) {
                    return answer.outcome.map_err(Broken::Answered);
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
                        tokio::spawn(async move { drop(line.post(answer, "", None).await) });
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

/// A name as a header may carry it.
fn encoded(name: &str) -> String {
    use base64::Engine;
    let is_plain = name.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    let looks_wrapped = name.starts_with("=?base64?") && name.ends_with("?=");
    if is_plain && !looks_wrapped {
        return name.to_owned();
    }
    let wrapped = base64::prelude::BASE64_STANDARD.encode(name);
    format!("=?base64?{wrapped}?=")
}
