//! A client of `ProviderStream` and `RuntimeStream`, frame by frame. Messages are JSON here, whatever the wire format.

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

/// The wire format of a stream.
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

/// An item that a stream received.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    Message(Value),
    /// The stream ended without an error, or with this code and message.
    End(Result<(), (String, String)>),
    /// The connection broke.
    Broken,
}

/// The client reads the answer, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Yes,
    No,
}

/// More messages than any test sends to a hub that does not read.
const MAX_SENT: usize = 1 << 16;
/// More messages than any test leaves unread.
const MAX_UNREAD: usize = 1 << 14;

/// The client's end of a stream.
pub struct Stream {
    wire: Wire,
    method: String,
    sending: Option<channel::Sender<Bytes>>,
    receiving: mpsc::Receiver<Received>,
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
        Self::begin(hub, method, wire, token, Reading::Yes)
    }

    /// Opens a stream whose answer is never read.
    pub fn open_without_reading(hub: &Running, method: &str, wire: Wire) -> Self {
        Self::begin(hub, method, wire, Some(&hub.token), Reading::No)
    }

    fn begin(
        hub: &Running,
        method: &str,
        wire: Wire,
        token: Option<&str>,
        reading: Reading,
    ) -> Self {
        let (sending, outgoing) = channel::channel(MAX_SENT);
        let (came, receiving) = mpsc::sync_channel(MAX_UNREAD);
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
            if reading == Reading::No {
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
                Ok(_response) if reading == Reading::No => std::future::pending().await,
                Ok(response) => receive(response, wire, &name, &came).await,
                Err(_) => Received::Broken,
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

    pub fn send(&self, message: Value) {
        self.send_raw(&self.encode(&message));
    }

    /// Encodes a message for the wire.
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

    /// Closes the sending side.
    pub fn finish(&mut self) {
        self.sending = None;
    }

    /// Breaks the connection.
    pub fn kill(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// Waits up to 20 s for the next item.
    pub fn came(&self) -> Received {
        let came = self.receiving.recv_timeout(Duration::from_secs(20));
        came.unwrap_or_else(|error| panic!("nothing came: {error}"))
    }

    /// Waits for the next message; panics on any other item.
    pub fn message(&self) -> Value {
        match self.came() {
            Received::Message(message) => message,
            other => panic!("no message but {other:?}"),
        }
    }

    /// Skips messages until one has this member or this `type`.
    pub fn message_with(&self, key: &str) -> Value {
        loop {
            let message = self.message();
            if message["type"] == key || message.get(key).is_some() {
                return message;
            }
        }
    }

    /// Skips messages and returns the end of the stream.
    pub fn end(&self) -> Result<(), (String, String)> {
        loop {
            match self.came() {
                Received::Message(_) => {}
                Received::End(end) => return end,
                Received::Broken => panic!("the connection broke"),
            }
        }
    }

    /// Reports whether nothing arrives within `time`.
    pub fn is_quiet(&self, time: Duration) -> bool {
        self.receiving.recv_timeout(time).is_err()
    }

    /// Registers a provider in the register dialect.
    pub fn provider(hub: &Running, wire: Wire, name: &str, clips: Value) -> Self {
        let stream = Self::open(hub, "ProviderStream", wire);
        assert!(stream.message().get("providerHello").is_some());
        stream.send(serde_json::json!({"register": {"providerName": name, "clips": clips}}));
        let answer = stream.message();
        assert_eq!(answer["registerResponse"]["accepted"], true, "{answer}");
        stream
    }

    /// Registers a provider in the typed dialect.
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

/// Sends a message to the test. A test that has ended does not read it.
fn pass_on(to: &mpsc::SyncSender<Received>, came: Received) {
    let is_full = matches!(to.try_send(came), Err(mpsc::TrySendError::Full(_)));
    assert!(!is_full, "the test does not read");
}

async fn receive(
    response: http::Response<Incoming>,
    wire: Wire,
    method: &str,
    came: &mpsc::SyncSender<Received>,
) -> Received {
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
            pass_on(came, Received::Message(message));
        }
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => bytes.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
            },
            Some(Err(_)) => return Received::Broken,
            None => return grpc_end(&trailers).unwrap_or(Received::Broken),
        }
    }
}

fn connect_end(payload: &[u8]) -> Received {
    let end: Value = serde_json::from_slice(payload).unwrap();
    let text = |key: &str| end["error"][key].as_str().unwrap_or_default().to_owned();
    match end.get("error") {
        None => Received::End(Ok(())),
        Some(_) => Received::End(Err((text("code"), text("message")))),
    }
}

fn grpc_end(headers: &HeaderMap) -> Option<Received> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let status: u64 = text("grpc-status")?.parse().ok()?;
    Some(Received::End(
        match pinion_connect::Code::from_number(status) {
            None => Ok(()),
            Some(code) => Err((
                code.as_str().to_owned(),
                text("grpc-message").unwrap_or_default(),
            )),
        },
    ))
}
