//! Messages from clients.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::{self, Answer};
use super::events::{Delivery, EventLog, First, Reader, Resumption};
use super::sessions::Session;
use super::{Accepts, SESSION, Shared, accepts};
use crate::calls::Underway;
use crate::gateway::{Context, Outlet};
use crate::param_headers;
use crate::rpc::{self, Fault, Message, Request as Asked, code};
use crate::version::{self, BATCHES, Era, HANDSHAKE, MODERN};

/// The longest message that is taken.
const BODY: usize = 16 * 1024 * 1024;
/// How long a client may take to send one.
const BODY_TIME: Duration = Duration::from_secs(60);
/// So many requests outside of sessions at once.
pub(super) const MAX_LOOSE: usize = 1024;
/// An answer that is there by then is sent as it is; one that takes longer becomes a stream.
const SOON: Duration = Duration::from_millis(500);
/// How long a lost client may take to come back for its stream.
const COMING_BACK: Duration = Duration::from_secs(60);

/// A stream that was read to its end is kept if it is no larger than this.
const MAX_RETIRED: usize = 1024 * 1024;

type Refused = Box<Response<Answer>>;

/// Answers a POST.
pub(super) async fn post(shared: Arc<Shared>, request: Request<Incoming>) -> Response<Answer> {
    let (head, body) = request.into_parts();
    let exchange = Exchange {
        accepts: accepts(&head.headers),
        headers: head.headers,
        shared,
    };
    let answered = match exchange.body(body).await {
        Ok(body) => exchange.message(&body).await,
        Err(refused) => Err(refused),
    };
    answered.unwrap_or_else(|refused| *refused)
}

struct Exchange {
    shared: Arc<Shared>,
    headers: HeaderMap,
    accepts: Accepts,
}

fn refused(status: StatusCode, words: impl Into<std::borrow::Cow<'static, str>>) -> Refused {
    answer::refused(status, words).into()
}

impl Exchange {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    async fn body(&self, body: Incoming) -> Result<Bytes, Refused> {
        let kind = self.header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let words = "messages are sent as Content-Type: application/json";
            return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, words));
        }
        if !self.accepts.json && !self.accepts.events {
            let words = "answers are application/json or text/event-stream; Accept must name both";
            return Err(refused(StatusCode::NOT_ACCEPTABLE, words));
        }
        match timeout(BODY_TIME, Limited::new(body, BODY).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                let words = format!("a message may have {BODY} bytes");
                Err(refused(StatusCode::PAYLOAD_TOO_LARGE, words))
            }
            Ok(Err(_)) => Err(refused(StatusCode::BAD_REQUEST, "the message broke off")),
            Err(_) => Err(refused(
                StatusCode::REQUEST_TIMEOUT,
                "the message did not come in time",
            )),
        }
    }

    async fn message(&self, body: &[u8]) -> Result<Response<Answer>, Refused> {
        let message = match rpc::read(body) {
            rpc::Incoming::One(Ok(message)) => message,
            rpc::Incoming::One(Err(wrong)) => {
                let told = answer::fault(StatusCode::BAD_REQUEST, wrong.id.as_ref(), &wrong.fault);
                return Err(told.into());
            }
            rpc::Incoming::Batch(_) => {
                let words = format!("one message at a time: batches were part of {BATCHES} only");
                return Err(refused(StatusCode::BAD_REQUEST, words));
            }
        };
        match message {
            Message::Request(request)
                if request.method == "initialize" && !self.is_modern(&request) =>
            {
                self.initialize(&request)
            }
            Message::Request(request) => self.request(request).await,
            Message::Notification(notification) => {
                if let Some(session) = self.session()? {
                    session.calls.heed(&notification);
                }
                Ok(answer::empty(StatusCode::ACCEPTED))
            }
            // Nothing is ever asked of clients.
            Message::Response(_) => {
                self.session()?;
                Ok(answer::empty(StatusCode::ACCEPTED))
            }
        }
    }

    fn session(&self) -> Result<Option<Arc<Session>>, Refused> {
        self.shared.session(&self.headers)
    }

    /// The request is one of 2026-07-28, by its header or by its `_meta`.
    fn is_modern(&self, request: &Asked) -> bool {
        let named = version::named(request.params.as_deref());
        self.header("mcp-protocol-version") == Some(MODERN)
            || named.is_some_and(|named| named == MODERN)
    }

    fn initialize(&self, request: &Asked) -> Result<Response<Answer>, Refused> {
        if self.headers.contains_key(SESSION) {
            let words = "initialize begins a session; it cannot be part of one";
            return Err(refused(StatusCode::BAD_REQUEST, words));
        }
        let answer = self.shared.gateway.initialize(request);
        let (agreed, result) = match answer {
            Ok(answer) => answer,
            Err(fault) => return Ok(answer::fault(StatusCode::OK, Some(&request.id), &fault)),
        };
        let session = self.shared.sessions.begin(agreed);
        let mut response = self.whole(StatusCode::OK, rpc::result(&request.id, &result));
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION, id);
        }
        Ok(response)
    }

    async fn request(&self, request: Asked) -> Result<Response<Answer>, Refused> {
        let wrong = |fault: &Fault| -> Refused {
            answer::fault(StatusCode::BAD_REQUEST, Some(&request.id), fault).into()
        };
        let header = self.header("mcp-protocol-version");
        let named = version::named(request.params.as_deref());
        match (header, &named) {
            (Some(header), Some(named)) if named != header => {
                return Err(wrong(&header_mismatch("MCP-Protocol-Version")));
            }
            (Some(MODERN), None) => return Err(wrong(&version::missing())),
            (Some(header), None) if !HANDSHAKE.contains(&header) => {
                return Err(wrong(&version::unsupported(&header.into())));
            }
            _ => {}
        }
        let era = version::era(request.params.as_deref()).map_err(|fault| wrong(&fault))?;
        if era == Era::Modern {
            self.check_headers(&request)
                .await
                .map_err(|fault| wrong(&fault))?;
            let Ok(place) = self.shared.loose.try_acquire() else {
                let words = "too many requests are being answered; try again";
                return Err(refused(StatusCode::SERVICE_UNAVAILABLE, words));
            };
            place.forget();
            let log = EventLog::new(0, Resumption::None);
            let reader = log.attach(None);
            let work = Work {
                shared: self.shared.clone(),
                request,
                era,
                log,
                takes_events: self.accepts.events,
            };
            tokio::spawn(work.alone());
            return Ok(self.first(reader).await);
        }
        let Some(session) = self.session()? else {
            let words =
                "begin with initialize, and name the session in Mcp-Session-Id from then on";
            return Err(refused(StatusCode::BAD_REQUEST, words));
        };
        let underway = match session.calls.begin(&request.id) {
            Ok(underway) => underway,
            Err(fault) => return Ok(answer::fault(StatusCode::OK, Some(&request.id), &fault)),
        };
        let (number, log) = session.open();
        let reader = log.attach(None);
        let work = Work {
            shared: self.shared.clone(),
            request,
            era,
            log,
            takes_events: self.accepts.events,
        };
        tokio::spawn(async move {
            let cancelled = underway.cancelled.clone();
            match work.resumable(&cancelled, &session, underway).await {
                Some(Delivery::Events) if work.log.bytes() <= MAX_RETIRED => session.retire(number),
                _ => session.close(number),
            }
        });
        Ok(self.first(reader).await)
    }

    /// Compares the headers with the message: a proxy may have routed the request by them.
    async fn check_headers(&self, request: &Asked) -> Result<(), Fault> {
        #[derive(Deserialize)]
        struct Params {
            name: String,
            #[serde(default)]
            arguments: Value,
        }
        if self.header("mcp-protocol-version").is_none() {
            return Err(header_mismatch("MCP-Protocol-Version"));
        }
        if self.header("mcp-method") != Some(&request.method) {
            return Err(header_mismatch("Mcp-Method"));
        }
        if request.method != "tools/call" {
            return Ok(());
        }
        let params = request.params.as_ref();
        let params = params.and_then(|it| serde_json::from_str::<Params>(it.get()).ok());
        let name = self.header("mcp-name").and_then(param_headers::decode);
        if name.as_ref() != params.as_ref().map(|params| &params.name) {
            return Err(header_mismatch("Mcp-Name"));
        }
        // The call itself reports a tool that does not exist or cannot be found.
        let Some(params) = params else {
            return Ok(());
        };
        let Ok(Some(tool)) = self.shared.gateway.tool(&params.name).await else {
            return Ok(());
        };
        for header in &tool.headers {
            let mut values = self.headers.get_all(&header.name).iter();
            let value = match (values.next(), values.next()) {
                (None, _) => Ok(None),
                (Some(value), None) => value.to_str().map(Some).map_err(drop),
                _ => Err(()),
            };
            if !value.is_ok_and(|value| header.agrees(value, &params.arguments)) {
                return Err(header_mismatch(&header.name));
            }
        }
        Ok(())
    }

    /// The answer as it is if it comes soon, else as a stream.
    async fn first(&self, reader: Reader) -> Response<Answer> {
        let patience = if self.accepts.events {
            SOON
        } else {
            Duration::MAX
        };
        match reader.first(patience).await {
            First::Whole(status, Some(message)) => self.whole(status, message),
            // The client took the request back.
            First::Whole(_, None) if self.accepts.events => {
                answer::events(futures_util::stream::empty())
            }
            First::Whole(_, None) => answer::empty(StatusCode::ACCEPTED),
            First::Stream => answer::events(reader.into_events()),
        }
    }

    /// One message, in the form the client takes.
    fn whole(&self, status: StatusCode, message: Bytes) -> Response<Answer> {
        if self.accepts.json {
            return answer::message(status, message);
        }
        let mut event = b"event: message\ndata: ".to_vec();
        event.extend_from_slice(&message);
        event.extend_from_slice(b"\n\n");
        let event = Bytes::from(event);
        let mut response = answer::events(futures_util::stream::once(async move { event }));
        *response.status_mut() = status;
        response
    }
}

fn header_mismatch(name: &str) -> Fault {
    let message = format!("the header {name} is missing or differs from the message");
    Fault::new(code::HEADER_MISMATCH, message)
}

/// One request to answer.
struct Work {
    shared: Arc<Shared>,
    request: Asked,
    era: Era,
    log: Arc<EventLog>,
    takes_events: bool,
}

impl Work {
    /// Answers a request that belongs to no session; it ends with its connection.
    async fn alone(self) {
        let _place = GiveBack(self.shared.clone());
        let _last = LastWord(&self);
        tokio::select! {
            () = self.answer() => {}
            () = self.log.abandoned(Duration::ZERO) => self.log.finish(StatusCode::OK, None),
        }
    }

    /// Answers a request of a session, and keeps the answer for a while if nobody is there to read it.
    async fn resumable(
        &self,
        cancelled: &CancellationToken,
        session: &Session,
        underway: Underway,
    ) -> Option<Delivery> {
        let last = LastWord(self);
        let underway = underway;
        tokio::select! {
            () = cancelled.cancelled() => self.log.finish(StatusCode::OK, None),
            () = self.log.abandoned(COMING_BACK) => self.log.finish(StatusCode::OK, None),
            () = self.answer() => {}
        }
        drop((last, underway));
        tokio::select! {
            delivery = self.log.delivered() => Some(delivery),
            () = self.log.abandoned(COMING_BACK) => None,
            () = session.ended.cancelled() => None,
        }
    }

    async fn answer(&self) {
        let outlet: &dyn Outlet = &*self.log;
        let context = Context {
            era: self.era,
            outlet: self.takes_events.then_some(outlet),
            ending: &self.shared.ending,
        };
        let answer = self.shared.gateway.answer(&self.request, context).await;
        let status = match (&answer, self.era) {
            (Err(fault), Era::Modern) if fault.code == code::METHOD_NOT_FOUND => {
                StatusCode::NOT_FOUND
            }
            _ => StatusCode::OK,
        };
        let message = rpc::answer(&self.request.id, &answer);
        self.log.finish(status, Some(message));
    }
}

/// Makes sure that a request has an answer, whatever becomes of the work on it.
struct LastWord<'a>(&'a Work);

impl Drop for LastWord<'_> {
    fn drop(&mut self) {
        let fault = Fault::new(
            code::INTERNAL,
            "answering failed in a way that is our fault",
        );
        // Only the first end counts.
        let message = rpc::fault(Some(&self.0.request.id), &fault);
        self.0.log.finish(StatusCode::OK, Some(message));
    }
}

struct GiveBack(Arc<Shared>);

impl Drop for GiveBack {
    fn drop(&mut self) {
        self.0.loose.add_permits(1);
    }
}
