//! The other end of `ProviderStream` and `RuntimeStream`, frame by frame: messages are JSON here, whatever is on the wire.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test file uses its part; a test fails by panicking"
)]

use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use pinion_proto::hub::{
    HubMessage, HubRuntimeMessage, InvokeResponse, InvokeStreamMessage, ProviderMessage,
    RuntimeMessage,
};
use pinion_proto::{Binary, Strictness};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc as channel;

use crate::common::Running;

/// What is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    ConnectJson,
    ConnectProto,
    Grpc,
}

impl Wire {
    pub const ALL: [Self; 3] = [Self::ConnectJson, Self::ConnectProto, Self::Grpc];

    fn content_type(self) -> &'static str {
        match self {
            Self::ConnectJson => "application/connect+json",
            Self::ConnectProto => "application/connect+proto",
            Self::Grpc => "application/grpc+proto",
        }
    }
}

/// What came.
#[derive(Debug, Clone, PartialEq)]
pub enum Came {
    Message(Value),
    /// The stream has ended: well, or with this code and message.
    End(Result<(), (String, String)>),
    /// The connection is gone.
    Broken,
}

/// Whether an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ears {
    Open,
    Shut,
}

/// More messages than any test sends to a hub that does not read.
const MOST_SENT: usize = 1 << 16;
/// More messages than any test leaves unread.
const MOST_UNREAD: usize = 1 << 14;

/// A stream that a test holds the far end of.
pub struct Stream {
    wire: Wire,
    method: String,
    sending: Option<channel::Sender<Bytes>>,
    receiving: mpsc::Receiver<Came>,
    socket: std::net::TcpStream,
}

struct Sending(channel::Receiver<Bytes>);

impl Body for Sending {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.0.poll_recv(context);
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

fn envelope(payload: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(payload.len() + 5);
    bytes.extend_from_slice(&[0]);
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes.freeze()
}

fn binary<M: Binary>(message: &Value) -> Bytes {
    let text = message.to_string();
    let read = M::decode_json(text.as_bytes(), Strictness::Lenient);
    read.unwrap_or_else(|error| panic!("{text}: {error}"))
        .to_bytes()
}

fn json<M: Binary>(bytes: Bytes) -> Value {
    serde_json::from_str(&M::decode(bytes).unwrap().to_json()).unwrap()
}

impl Stream {
    /// Opens a stream with the hub's own token.
    pub fn open(hub: &Running, method: &str, wire: Wire) -> Self {
        Self::open_as(hub, method, wire, Some(&hub.token))
    }

    pub fn open_as(hub: &Running, method: &str, wire: Wire, token: Option<&str>) -> Self {
        Self::begin(hub, method, wire, token, Ears::Open)
    }

    /// Opens a stream whose answer is never read.
    pub fn deaf(hub: &Running, method: &str, wire: Wire) -> Self {
        Self::begin(hub, method, wire, Some(&hub.token), Ears::Shut)
    }

    fn begin(hub: &Running, method: &str, wire: Wire, token: Option<&str>, ears: Ears) -> Self {
        let (sending, outgoing) = channel::channel(MOST_SENT);
        let (came, receiving) = mpsc::sync_channel(MOST_UNREAD);
        let address = hub.address;
        let mut request = Request::post(format!("http://{address}/pinix.v2.HubService/{method}"))
            .header("content-type", wire.content_type());
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Sending(outgoing)).unwrap();
        let socket = std::net::TcpStream::connect(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let other = socket.try_clone().unwrap();
        let connecting = async move {
            let io = TokioIo::new(TcpStream::from_std(other).unwrap());
            let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
            if ears == Ears::Shut {
                builder.initial_stream_window_size(4096);
            }
            let (sender, connection) = builder.handshake(io).await.unwrap();
            tokio::spawn(connection);
            sender
        };
        let mut sender = hub.runtime.block_on(connecting);
        let name = method.to_owned();
        hub.runtime.spawn(async move {
            let end = match sender.send_request(request).await {
                Ok(_response) if ears == Ears::Shut => std::future::pending().await,
                Ok(response) => receive(response, wire, &name, &came).await,
                Err(_) => Came::Broken,
            };
            pass_on(&came, end);
        });
        Self {
            wire,
            method: method.to_owned(),
            sending: Some(sending),
            receiving,
            socket,
        }
    }

    /// Sends a message.
    pub fn send(&self, message: Value) {
        self.send_raw(&self.encode(&message));
    }

    /// A message as it is sent.
    pub fn encode(&self, message: &Value) -> Bytes {
        match (self.wire, self.method.as_str()) {
            (Wire::ConnectJson, _) => message.to_string().into(),
            (_, "ProviderStream") => binary::<ProviderMessage>(message),
            (_, "RuntimeStream") => binary::<RuntimeMessage>(message),
            (_, "InvokeStream") => binary::<InvokeStreamMessage>(message),
            (_, method) => panic!("{method}"),
        }
    }

    /// Sends these bytes as one message.
    pub fn send_raw(&self, payload: &[u8]) {
        if let Some(sending) = &self.sending {
            let sent = sending.try_send(envelope(payload));
            let is_full = matches!(sent, Err(channel::error::TrySendError::Full(_)));
            assert!(!is_full, "the hub does not read");
        }
    }

    /// Says that no more messages will come.
    pub fn finish(&mut self) {
        self.sending = None;
    }

    /// Ends the connection without a word.
    pub fn kill(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// What comes next, within some seconds.
    pub fn came(&self) -> Came {
        let came = self.receiving.recv_timeout(Duration::from_secs(20));
        came.unwrap_or_else(|error| panic!("nothing came: {error}"))
    }

    /// The next message.
    pub fn message(&self) -> Value {
        match self.came() {
            Came::Message(message) => message,
            other => panic!("no message but {other:?}"),
        }
    }

    /// The next message with this member (or of this type), whatever comes before it.
    pub fn message_with(&self, key: &str) -> Value {
        loop {
            let message = self.message();
            if message["type"] == key || message.get(key).is_some() {
                return message;
            }
        }
    }

    /// How the stream ends.
    pub fn end(&self) -> Result<(), (String, String)> {
        loop {
            match self.came() {
                Came::Message(_) => {}
                Came::End(end) => return end,
                Came::Broken => panic!("the connection broke"),
            }
        }
    }

    /// Whether nothing has come so far.
    pub fn is_quiet(&self, time: Duration) -> bool {
        self.receiving.recv_timeout(time).is_err()
    }

    /// Greets and registers, in the register dialect.
    pub fn provider(hub: &Running, wire: Wire, name: &str, clips: Value) -> Self {
        let stream = Self::open(hub, "ProviderStream", wire);
        assert!(stream.message().get("providerHello").is_some());
        stream.send(serde_json::json!({"register": {"providerName": name, "clips": clips}}));
        let answer = stream.message();
        assert_eq!(answer["registerResponse"]["accepted"], true, "{answer}");
        stream
    }

    /// Greets and registers, in the typed dialect.
    pub fn typed(hub: &Running, name: &str, clips: Value) -> Self {
        let stream = Self::open(hub, "ProviderStream", Wire::ConnectJson);
        assert_eq!(stream.message()["type"], "ProviderHello");
        stream.send(
            serde_json::json!({"type": "RegisterClips", "providerName": name, "clips": clips}),
        );
        assert_eq!(stream.message()["type"], "ClipsRegistered");
        stream
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Passes on what came. A test that is over does not read it.
fn pass_on(to: &mpsc::SyncSender<Came>, came: Came) {
    let is_full = matches!(to.try_send(came), Err(mpsc::TrySendError::Full(_)));
    assert!(!is_full, "the test does not read");
}

async fn receive(
    response: http::Response<Incoming>,
    wire: Wire,
    method: &str,
    came: &mpsc::SyncSender<Came>,
) -> Came {
    let (parts, mut body) = response.into_parts();
    if let Some(end) = grpc_end(&parts.headers) {
        return end;
    }
    let mut bytes = BytesMut::new();
    let mut trailers = HeaderMap::new();
    loop {
        while bytes.len() >= 5 {
            let length = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) as usize;
            if bytes.len() < 5 + length {
                break;
            }
            let flags = bytes[0];
            bytes.advance(5);
            let payload = bytes.split_to(length).freeze();
            if flags & 2 != 0 {
                return connect_end(&payload);
            }
            let message = match (wire, method) {
                (Wire::ConnectJson, _) => serde_json::from_slice(&payload).unwrap(),
                (_, "ProviderStream") => json::<HubMessage>(payload),
                (_, "RuntimeStream") => json::<HubRuntimeMessage>(payload),
                _ => json::<InvokeResponse>(payload),
            };
            pass_on(came, Came::Message(message));
        }
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => bytes.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
            },
            Some(Err(_)) => return Came::Broken,
            None => return grpc_end(&trailers).unwrap_or(Came::Broken),
        }
    }
}

fn connect_end(payload: &[u8]) -> Came {
    let end: Value = serde_json::from_slice(payload).unwrap();
    let text = |key: &str| end["error"][key].as_str().unwrap_or_default().to_owned();
    match end.get("error") {
        None => Came::End(Ok(())),
        Some(_) => Came::End(Err((text("code"), text("message")))),
    }
}

fn grpc_end(headers: &HeaderMap) -> Option<Came> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let status: u64 = text("grpc-status")?.parse().ok()?;
    Some(Came::End(match pinion_connect::Code::from_number(status) {
        None => Ok(()),
        Some(code) => Err((
            code.as_str().to_owned(),
            text("grpc-message").unwrap_or_default(),
        )),
    }))
}
