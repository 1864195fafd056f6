//! A service like the hub's, small enough that every answer is known, and a server of it.

use std::future::pending;
use std::io::{Seek, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use pinion_connect::{
    Body, Code, Failure, IncomingBody, IncomingCall, MethodKind, Peer, Requests, Server,
    ServerOptions, Service,
};
use pinion_proto::hub::{
    AddClipRequest, HubError, InvokeRequest, InvokeResponse, ListClipsRequest, ListClipsResponse,
};
use pinion_proto::{Binary, FirstInvoke, Message};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub const SERVICE: &str = "pinix.v2.HubService";

/// The state that tests look at.
#[derive(Debug, Default)]
pub struct Hub {
    /// Calls in flight.
    pub running: AtomicUsize,
    /// Calls that have begun.
    pub begun: AtomicUsize,
    /// Messages sent by the endless calls.
    pub sent: AtomicUsize,
    /// Notifies waiting tests of changed counts.
    pub changed: Notify,
    /// The last failure that a handler received.
    pub seen: Mutex<Option<Failure>>,
}

impl Hub {
    /// Waits until `what` is true.
    pub async fn until(&self, what: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !what(self) {
                let _ =
                    tokio::time::timeout(Duration::from_millis(5), self.changed.notified()).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        assert!(waited.is_ok(), "it never came to that: {self:?}");
    }

    pub fn running(&self) -> usize {
        self.running.load(SeqCst)
    }

    /// Waits until an endless call is blocked by a caller that does not read.
    pub async fn stands_still(&self) {
        self.until(|hub| hub.running() == 1).await;
        let mut sent = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = self.sent.load(SeqCst);
            if now > 0 && now == sent {
                break;
            }
            sent = now;
        }
        assert_eq!(self.running(), 1);
    }
}

/// Counts a call while it runs.
struct Running(Arc<Hub>);

impl Running {
    fn new(hub: &Arc<Hub>) -> Self {
        hub.running.fetch_add(1, SeqCst);
        hub.begun.fetch_add(1, SeqCst);
        hub.changed.notify_waiters();
        Self(Arc::clone(hub))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, SeqCst);
        self.0.changed.notify_waiters();
    }
}

impl Service for Hub {
    fn method(&self, name: &str) -> Option<MethodKind> {
        match name {
            "ListClips" | "AddClip" | "Panic" => Some(MethodKind::Unary),
            "Invoke" => Some(MethodKind::Either),
            "InvokeStream" | "Refuse" => Some(MethodKind::BidiOrSingle),
            "GetLogs" => Some(MethodKind::ServerStream),
            "ProviderStream" | "RuntimeStream" => Some(MethodKind::Bidi),
            _ => None,
        }
    }

    async fn serve(self: Arc<Self>, mut call: IncomingCall) -> Result<(), Failure> {
        let _running = Running::new(&self);
        if call.context.bearer().is_some() {
            call.context.peer.mark_authenticated();
        }
        let method = call.context.method().to_owned();
        let served = match method.as_str() {
            "ListClips" => list(&mut call).await,
            "AddClip" => add(&mut call).await,
            "Panic" => panic!("on demand"),
            "Invoke" => {
                let request = call.requests.message().await?;
                self.invoke(&mut call, request).await
            }
            "InvokeStream" => self.invoke_stream(&mut call).await,
            "GetLogs" => self.flood(&mut call).await,
            "Refuse" => Err(Failure::new(Code::PermissionDenied, "not you")),
            "RuntimeStream" => return detached(self, call).await,
            _ => echo(&mut call).await,
        };
        *self.seen.lock().unwrap() = served.clone().err();
        served
    }

    async fn plain(self: Arc<Self>, request: Request<IncomingBody>, peer: Peer) -> Response<Body> {
        match request.uri().path() {
            "/file" => {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(&[b'f'; 300_000]).unwrap();
                file.rewind().unwrap();
                Response::new(Body::file(tokio::fs::File::from_std(file), 200_000))
            }
            "/stream" => {
                let pieces = ["one ", "two"].map(|text| Ok(Bytes::from(text)));
                Response::new(Body::stream(futures_util::stream::iter(pieces)))
            }
            path => {
                let text = format!("{} {path} {}", request.method(), peer.secure);
                Response::new(Body::from(text))
            }
        }
    }
}

impl Hub {
    async fn invoke(&self, call: &mut IncomingCall, request: InvokeRequest) -> Result<(), Failure> {
        let output = |text: &str| InvokeResponse {
            output: Bytes::copy_from_slice(text.as_bytes()),
            ..InvokeResponse::default()
        };
        match (request.clip_name.as_str(), request.command.as_str()) {
            ("todo", "add") => {
                call.answers
                    .send(&output(r#"{"id":"t1","title":"Buy milk"}"#))
                    .await
            }
            ("todo", "list") => call.answers.send(&output(r#"{"items":[]}"#)).await,
            ("todo", "boom") if call.context.unary => {
                Err(Failure::new(Code::Internal, "boom: handler failed"))
            }
            ("todo", "boom") => {
                let error = HubError {
                    code: "internal".into(),
                    message: "boom: handler failed".into(),
                };
                let answer = InvokeResponse {
                    error: Some(error),
                    ..InvokeResponse::default()
                };
                call.answers.send(&answer).await
            }
            ("feed", "monitor") => {
                call.answers.send(&output(r#"{"tick":1}"#)).await?;
                call.answers.send(&output(r#"{"tick":2}"#)).await
            }
            ("feed", "ticks") => {
                for _ in 0..10 {
                    call.answers.send(&output("{}")).await?;
                    tokio::time::sleep(Duration::from_millis(60)).await;
                }
                Ok(())
            }
            ("feed", "status") => Err(Failure::new(Code::Unavailable, "provider disconnected")),
            ("feed", "slow") => pending().await,
            ("echo", "twice") => {
                let answer = InvokeResponse {
                    output: request.input,
                    ..InvokeResponse::default()
                };
                call.answers.send(&answer).await?;
                call.answers.send(&answer).await
            }
            ("echo", "split") => {
                let mut prefix = InvokeResponse {
                    output: request.input.clone(),
                    ..InvokeResponse::default()
                }
                .to_bytes();
                prefix.truncate(prefix.len() - request.input.len());
                call.answers.send_split(&prefix, request.input).await
            }
            ("echo", code) if code.starts_with("code:") => {
                let code = Code::parse(&code[5..]);
                call.answers.header(
                    HeaderName::from_static("x-before"),
                    HeaderValue::from_static("b"),
                );
                call.answers.trailer(
                    HeaderName::from_static("x-behind"),
                    HeaderValue::from_static("t"),
                );
                Err(Failure::new(code, "50 % ünïcode\n\"quoted\""))
            }
            ("echo", _) => {
                call.answers.header(
                    HeaderName::from_static("x-before"),
                    HeaderValue::from_static("b"),
                );
                call.answers.trailer(
                    HeaderName::from_static("x-behind"),
                    HeaderValue::from_static("t"),
                );
                let answer = InvokeResponse {
                    output: request.input,
                    ..InvokeResponse::default()
                };
                call.answers.send(&answer).await
            }
            ("quiet", _) => Ok(()),
            (other, _) => Err(Failure::no_clip(other)),
        }
    }

    async fn invoke_stream(&self, call: &mut IncomingCall) -> Result<(), Failure> {
        let first = call.requests.next_raw().await?.unwrap_or_default();
        let read = match call.context.codec {
            pinion_connect::Codec::Json => FirstInvoke::decode_json(&first),
            pinion_connect::Codec::Proto => FirstInvoke::decode(first),
        };
        let request = match read {
            Ok(FirstInvoke::Open(request) | FirstInvoke::Whole(request)) => request,
            other => return Err(Failure::invalid(format!("no start: {other:?}"))),
        };
        self.invoke(call, request).await
    }

    /// Sends as long as the caller reads.
    async fn flood(&self, call: &mut IncomingCall) -> Result<(), Failure> {
        let _: InvokeRequest = call.requests.message().await?;
        let answer = InvokeResponse {
            output: Bytes::from(vec![b'x'; 8 * 1024]),
            ..InvokeResponse::default()
        };
        loop {
            call.answers.send(&answer).await?;
            self.sent.fetch_add(1, SeqCst);
            tokio::task::yield_now().await;
        }
    }
}

async fn list(call: &mut IncomingCall) -> Result<(), Failure> {
    let _: ListClipsRequest = call.requests.message().await?;
    if call.context.bearer().is_none() {
        return Err(Failure::new(Code::Unauthenticated, "token required"));
    }
    call.answers.send(&ListClipsResponse::default()).await
}

async fn add(call: &mut IncomingCall) -> Result<(), Failure> {
    let request: AddClipRequest = call.requests.message().await?;
    match call.context.bearer() {
        Some("pnc_example") => {
            let message = "token does not allow AddClip";
            Err(Failure::new(Code::PermissionDenied, message))
        }
        _ => call.answers.send(&request).await,
    }
}

/// Answers from a task of its own, as long as the caller reads.
async fn detached(hub: Arc<Hub>, mut call: IncomingCall) -> Result<(), Failure> {
    let mut answers = call.answers;
    tokio::spawn(async move {
        let answer = InvokeResponse::default();
        while let Ok(()) = answers.send(&answer).await {
            hub.sent.fetch_add(1, SeqCst);
            tokio::task::yield_now().await;
        }
        *hub.seen.lock().unwrap() = answers.send(&answer).await.err();
    });
    while call.requests.next::<InvokeRequest>().await?.is_some() {}
    Ok(())
}

/// Sends each message back.
async fn echo(call: &mut IncomingCall) -> Result<(), Failure> {
    while let Some(message) = Requests::next::<InvokeRequest>(&mut call.requests).await? {
        let answer = InvokeResponse {
            output: message.input,
            ..InvokeResponse::default()
        };
        call.answers.send(&answer).await?;
    }
    Ok(())
}

/// A server that runs until this is dropped.
pub struct Serving {
    pub hub: Arc<Hub>,
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Serving {
    /// Stops the server and all of its connections.
    pub async fn end(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Settings with both paths of the service.
pub fn options() -> ServerOptions {
    ServerOptions::at(["/pinix.v2.HubService/", "/pinix.hub.v1.HubService/"])
}

pub async fn start(options: ServerOptions) -> Serving {
    start_at(([127, 0, 0, 1], 0).into(), options).await
}

/// Starts a server at an address that may have been released a moment ago.
pub async fn start_at(address: SocketAddr, options: ServerOptions) -> Serving {
    let hub = Arc::new(Hub::default());
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    let listener = socket.listen(1024).unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::new(Arc::clone(&hub), options);
    let task = tokio::spawn(async move { server.run(listener, pending(), Duration::ZERO).await });
    Serving { hub, address, task }
}

/// Returns the JSON of a message, for requests written by hand.
pub fn json<T: Message>(message: &T) -> Vec<u8> {
    message.to_json().into_bytes()
}
