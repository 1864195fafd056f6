//! One call as its handler sees it: who asks for what, what comes in, what goes out.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, Version};
use pinion_proto::Binary;
use pinion_status::{Code, Failure};

use crate::inbound::{Inbound, Side};
use crate::outbox::{Held, Outbox};
use crate::protocol::{Codec, Protocol};
use crate::server::Standing;

/// A call to be served. Dropping the future that serves it is how a call is cancelled.
#[derive(Debug)]
pub struct Call {
    /// Who asks for what, and how.
    pub context: Context,
    /// What the caller sends.
    pub requests: Requests,
    /// What the caller gets.
    pub answers: Answers,
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it came over TLS.
    pub secure: bool,
    pub(crate) standing: Standing,
}

impl Peer {
    /// The service knows who this is: from now on its connection does not have to make room for others.
    pub fn vouch(&self) {
        self.standing.vouch();
    }
}

/// Who asks for what, and how.
#[derive(Debug)]
pub struct Context {
    /// The protocol of the call.
    pub protocol: Protocol,
    /// How messages are written, both ways.
    pub codec: Codec,
    /// One request, one answer.
    pub unary: bool,
    /// The headers of the request.
    pub headers: HeaderMap,
    /// The version of HTTP.
    pub version: Version,
    /// Who is at the other end.
    pub peer: Peer,
    /// When the call is ended from here; the caller is told `deadline_exceeded`.
    pub deadline: Option<Instant>,
    /// The time limit the caller asked for.
    pub timeout: Option<Duration>,
    pub(crate) uri: Uri,
    /// Where in the path the name of the method begins.
    pub(crate) method_at: usize,
}

impl Context {
    /// The name of the method.
    pub fn method(&self) -> &str {
        self.uri.path().get(self.method_at..).unwrap_or_default()
    }

    /// The query of the address. A Connect call made with GET has its message there.
    pub fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// The name and port under which the call came.
    pub fn authority(&self) -> Option<&str> {
        crate::authority(&self.uri, &self.headers)
    }

    /// The token of the `Authorization` header, if there is one.
    pub fn bearer(&self) -> Option<&str> {
        bearer(&self.headers)
    }
}

/// The token of an `Authorization: Bearer` header; the scheme is read in any case.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// What the caller sends. Bytes are read from the connection only when asked for here.
#[derive(Debug)]
pub struct Requests {
    pub(crate) inbound: Inbound,
    pub(crate) codec: Codec,
    pub(crate) count: Count,
    /// Keeps the answer from beginning before the first message was read.
    pub(crate) held: Option<Held>,
    /// The one message, while it is not yet known whether it is the only one.
    pub(crate) first: Option<Bytes>,
}

/// How many messages the caller may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// One, without an envelope.
    Bare,
    /// One, in an envelope.
    One,
    /// Any number.
    Many,
    /// The one message was read.
    Done,
}

impl Requests {
    /// The next message; `None` when the caller has sent its last.
    pub async fn next<T: Binary>(&mut self) -> Result<Option<T>, Failure> {
        let codec = self.codec;
        let message = self.next_raw().await?;
        message
            .map(|bytes| codec.decode(bytes, Side::Request))
            .transpose()
    }

    /// The one message of a call that has one.
    pub async fn message<T: Binary>(&mut self) -> Result<T, Failure> {
        match self.next().await? {
            Some(message) => Ok(message),
            None => Err(no_message()),
        }
    }

    /// From now on no message may be longer than this.
    pub fn shorten(&mut self, most: usize) {
        self.inbound.shorten(most);
    }

    /// The next message as it stands on the wire, in the codec of the call.
    pub async fn next_raw(&mut self) -> Result<Option<Bytes>, Failure> {
        let next = self.take_next().await;
        self.held = None;
        next
    }

    async fn take_next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self.count {
            Count::Done => Ok(None),
            Count::Many => self.enveloped().await,
            Count::Bare => {
                let message = self.inbound.bare().await?;
                self.count = Count::Done;
                Ok(Some(message))
            }
            Count::One => {
                if self.first.is_none() {
                    self.first = self.enveloped().await?;
                }
                if self.first.is_none() {
                    return Err(no_message());
                }
                if self.enveloped().await?.is_some() {
                    let message = "the request holds a second message; this method takes one";
                    return Err(Failure::new(Code::Unimplemented, message));
                }
                self.count = Count::Done;
                Ok(self.first.take())
            }
        }
    }

    async fn enveloped(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(envelope) = self.inbound.envelope().await? else {
            return Ok(None);
        };
        match envelope.flags {
            0 | 1 => Ok(Some(envelope.payload)),
            flags => {
                let message = format!("an envelope has the unknown flags {flags:#04x}");
                Err(Failure::new(Code::InvalidArgument, message))
            }
        }
    }
}

/// The failure of a request that lacks the one message it must have. Connect and gRPC both call a wrong number unimplemented.
fn no_message() -> Failure {
    Failure::new(Code::Unimplemented, "the request holds no message")
}

/// What the caller gets. Messages wait here for the connection: sending returns when there is room for more.
#[derive(Debug)]
pub struct Answers {
    pub(crate) outbox: Outbox,
    pub(crate) codec: Codec,
}

impl Answers {
    /// Sends a message. A unary call takes exactly one.
    pub async fn send<T: Binary>(&mut self, message: &T) -> Result<(), Failure> {
        let codec = self.codec;
        self.outbox
            .put(0, |buffer| codec.put(message, buffer))
            .await
    }

    /// Sends a message that is already written in the codec of the call.
    pub async fn send_raw(&mut self, message: Bytes) -> Result<(), Failure> {
        self.outbox.put(0, |_| vec![message.clone()]).await
    }

    /// Sends a message whose end is `payload`, which is not copied when it is large.
    pub async fn send_split(&mut self, prefix: &[u8], payload: Bytes) -> Result<(), Failure> {
        let write = |buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(prefix);
            vec![payload.clone()]
        };
        self.outbox.put(0, write).await
    }

    /// Adds a header to the answer. The head of a stream leaves when its handler waits for the first time after it has read a
    /// message of the request or sent one of the answer; headers added later are not sent.
    pub fn header(&mut self, name: HeaderName, value: HeaderValue) {
        self.outbox.headers(|headers| {
            headers.append(name, value);
        });
    }

    /// Adds a trailer, sent behind the last message.
    pub fn trailer(&mut self, name: HeaderName, value: HeaderValue) {
        self.outbox.trailers(|trailers| {
            trailers.append(name, value);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_tokens_are_read_as_they_are_sent() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("authorization", HeaderValue::from_static(value));
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(of("Bearer pnx_1").as_deref(), Some("pnx_1"));
        assert_eq!(of("bEARER  pnx_1 ").as_deref(), Some("pnx_1"));
        for none in ["Bearer", "Bearer ", "Basic pnx_1", "pnx_1", ""] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
