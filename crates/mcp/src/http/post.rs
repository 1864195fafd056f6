//! Handles POST requests, which carry the messages of clients.

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
use super::events::{AnswerForm, Delivery, EventLog, Reader, Resumption};
use super::sessions::Session;
use super::{Accepts, HttpShared, SESSION_HEADER, accepts};
use crate::gateway::{NotificationSink, RequestContext};
use crate::in_flight::InFlightRequest;
use crate::param_headers;
use crate::rpc::{self, Fault, Message, Request as RpcRequest, code};
use crate::version::{self, BATCH_REVISION, Era, HANDSHAKE_REVISIONS, MODERN_REVISION};

/// The longest accepted message, in bytes.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// Time limit for receiving a message.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Concurrent requests outside sessions.
pub(super) const MAX_SESSIONLESS_REQUESTS: usize = 1024;
/// Time after which an answer becomes a stream; one that is ready earlier is sent as a single message.
const STREAM_AFTER: Duration = Duration::from_millis(500);
/// Time a client has to reconnect for its stream.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// The largest stream, in bytes, that is stored after it was read to its end.
const MAX_FINISHED_BYTES: usize = 1024 * 1024;

type Refused = Box<Response<Answer>>;

pub(super) async fn post(shared: Arc<HttpShared>, request: Request<Incoming>) -> Response<Answer> {
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
    shared: Arc<HttpShared>,
    headers: HeaderMap,
    accepts: Accepts,
}

fn refused(status: StatusCode, reason: impl Into<std::borrow::Cow<'static, str>>) -> Refused {
    answer::refused(status, reason).into()
}

impl Exchange {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    async fn body(&self, body: Incoming) -> Result<Bytes, Refused> {
        let kind = self.header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let reason = "messages are sent as Content-Type: application/json";
            return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
        if !self.accepts.json && !self.accepts.events {
            let reason = "answers are application/json or text/event-stream; Accept must name both";
            return Err(refused(StatusCode::NOT_ACCEPTABLE, reason));
        }
        match timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY_BYTES).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                let reason = format!("a message may have {MAX_BODY_BYTES} bytes");
                Err(refused(StatusCode::PAYLOAD_TOO_LARGE, reason))
            }
            Ok(Err(_)) => Err(refused(
                StatusCode::BAD_REQUEST,
                "the connection ended inside the message",
            )),
            Err(_) => Err(refused(
                StatusCode::REQUEST_TIMEOUT,
                "the message was not received in time",
            )),
        }
    }

    async fn message(&self, body: &[u8]) -> Result<Response<Answer>, Refused> {
        let message = match rpc::read(body) {
            rpc::Incoming::One(Ok(message)) => message,
            rpc::Incoming::One(Err(wrong)) => {
                let refusal =
                    answer::fault(StatusCode::BAD_REQUEST, wrong.id.as_ref(), &wrong.fault);
                return Err(refusal.into());
            }
            rpc::Incoming::Batch(_) => {
                let reason =
                    format!("send one message at a time: only {BATCH_REVISION} has batches");
                return Err(refused(StatusCode::BAD_REQUEST, reason));
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
                    session.calls.handle_notification(&notification);
                }
                Ok(answer::empty(StatusCode::ACCEPTED))
            }
            // The gateway never sends requests to clients.
            Message::Response(_) => {
                self.session()?;
                Ok(answer::empty(StatusCode::ACCEPTED))
            }
        }
    }

    fn session(&self) -> Result<Option<Arc<Session>>, Refused> {
        self.shared.session(&self.headers)
    }

    /// Reports whether the request belongs to revision 2026-07-28, according to its header or its `_meta`.
    fn is_modern(&self, request: &RpcRequest) -> bool {
        let named = version::named(request.params.as_deref());
        self.header("mcp-protocol-version") == Some(MODERN_REVISION)
            || named.is_some_and(|named| named == MODERN_REVISION)
    }

    fn initialize(&self, request: &RpcRequest) -> Result<Response<Answer>, Refused> {
        if self.headers.contains_key(SESSION_HEADER) {
            let reason = "initialize starts a session; send it without a session id";
            return Err(refused(StatusCode::BAD_REQUEST, reason));
        }
        let answer = self.shared.gateway.initialize(request);
        let (revision, result) = match answer {
            Ok(answer) => answer,
            Err(fault) => return Ok(answer::fault(StatusCode::OK, Some(&request.id), &fault)),
        };
        let session = self.shared.sessions.begin(revision);
        let mut response = self.whole(StatusCode::OK, rpc::result(&request.id, &result));
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION_HEADER, id);
        }
        Ok(response)
    }

    async fn request(&self, request: RpcRequest) -> Result<Response<Answer>, Refused> {
        let wrong = |fault: &Fault| -> Refused {
            answer::fault(StatusCode::BAD_REQUEST, Some(&request.id), fault).into()
        };
        let header = self.header("mcp-protocol-version");
        let named = version::named(request.params.as_deref());
        match (header, &named) {
            (Some(header), Some(named)) if named != header => {
                return Err(wrong(&header_mismatch("MCP-Protocol-Version")));
            }
            (Some(MODERN_REVISION), None) => return Err(wrong(&version::missing())),
            (Some(header), None) if !HANDSHAKE_REVISIONS.contains(&header) => {
                return Err(wrong(&version::unsupported(&header.into())));
            }
            _ => {}
        }
        let era = version::era(request.params.as_deref()).map_err(|fault| wrong(&fault))?;
        if era == Era::Modern {
            self.check_headers(&request)
                .await
                .map_err(|fault| wrong(&fault))?;
            let Ok(permit) = self.shared.sessionless.try_acquire() else {
                let reason = "too many requests are being answered; try again";
                return Err(refused(StatusCode::SERVICE_UNAVAILABLE, reason));
            };
            permit.forget();
            let log = EventLog::new(0, Resumption::None);
            let reader = log.attach(None);
            let work = PendingRequest {
                shared: self.shared.clone(),
                request,
                era,
                log,
                takes_events: self.accepts.events,
            };
            tokio::spawn(work.run_sessionless());
            return Ok(self.first(reader).await);
        }
        let Some(session) = self.session()? else {
            let reason =
                "start with initialize, and send the session id in Mcp-Session-Id from then on";
            return Err(refused(StatusCode::BAD_REQUEST, reason));
        };
        let in_flight = match session.calls.begin(&request.id) {
            Ok(in_flight) => in_flight,
            Err(fault) => return Ok(answer::fault(StatusCode::OK, Some(&request.id), &fault)),
        };
        let (number, log) = session.open();
        let reader = log.attach(None);
        let work = PendingRequest {
            shared: self.shared.clone(),
            request,
            era,
            log,
            takes_events: self.accepts.events,
        };
        tokio::spawn(async move {
            let cancelled = in_flight.cancelled.clone();
            match work.run_in_session(&cancelled, &session, in_flight).await {
                Some(Delivery::Events) if work.log.bytes() <= MAX_FINISHED_BYTES => {
                    session.retire(number)
                }
                _ => session.close(number),
            }
        });
        Ok(self.first(reader).await)
    }

    /// Compares the headers with the message, because a proxy may have routed the request by them.
    async fn check_headers(&self, request: &RpcRequest) -> Result<(), Fault> {
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
            if !value.is_ok_and(|value| header.matches_arguments(value, &params.arguments)) {
                return Err(header_mismatch(&header.name));
            }
        }
        Ok(())
    }

    /// Answers with one message if the result is ready soon, else with a stream.
    async fn first(&self, reader: Reader) -> Response<Answer> {
        let timeout = if self.accepts.events {
            STREAM_AFTER
        } else {
            Duration::MAX
        };
        match reader.first(timeout).await {
            AnswerForm::Whole(status, Some(message)) => self.whole(status, message),
            // The client cancelled the request.
            AnswerForm::Whole(_, None) if self.accepts.events => {
                answer::events(futures_util::stream::empty())
            }
            AnswerForm::Whole(_, None) => answer::empty(StatusCode::ACCEPTED),
            AnswerForm::Stream => answer::events(reader.into_events()),
        }
    }

    /// Returns one message in the form that the client accepts.
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
struct PendingRequest {
    shared: Arc<HttpShared>,
    request: RpcRequest,
    era: Era,
    log: Arc<EventLog>,
    takes_events: bool,
}

impl PendingRequest {
    /// Answers a request outside sessions; it ends with its connection.
    async fn run_sessionless(self) {
        let _place = PermitGuard(self.shared.clone());
        let _last = AnswerGuard(&self);
        tokio::select! {
            () = self.answer() => {}
            () = self.log.abandoned(Duration::ZERO) => self.log.finish(StatusCode::OK, None),
        }
    }

    /// Answers a request of a session, and stores the answer for a while if no client reads it.
    async fn run_in_session(
        &self,
        cancelled: &CancellationToken,
        session: &Session,
        in_flight: InFlightRequest,
    ) -> Option<Delivery> {
        let last = AnswerGuard(self);
        let in_flight = in_flight;
        tokio::select! {
            () = cancelled.cancelled() => self.log.finish(StatusCode::OK, None),
            () = self.log.abandoned(RECONNECT_TIMEOUT) => self.log.finish(StatusCode::OK, None),
            () = self.answer() => {}
        }
        drop((last, in_flight));
        tokio::select! {
            delivery = self.log.delivered() => Some(delivery),
            () = self.log.abandoned(RECONNECT_TIMEOUT) => None,
            () = session.ended.cancelled() => None,
        }
    }

    async fn answer(&self) {
        let sink: &dyn NotificationSink = &*self.log;
        let context = RequestContext {
            era: self.era,
            sink: self.takes_events.then_some(sink),
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

/// Ends a request with an error if the work on it ends without an answer.
struct AnswerGuard<'a>(&'a PendingRequest);

impl Drop for AnswerGuard<'_> {
    fn drop(&mut self) {
        let fault = Fault::new(
            code::INTERNAL,
            "pinion failed while it answered this request",
        );
        // Has no effect if the request has ended already.
        let message = rpc::fault(Some(&self.0.request.id), &fault);
        self.0.log.finish(StatusCode::OK, Some(message));
    }
}

struct PermitGuard(Arc<HttpShared>);

impl Drop for PermitGuard {
    fn drop(&mut self) {
        self.0.sessionless.add_permits(1);
    }
}
