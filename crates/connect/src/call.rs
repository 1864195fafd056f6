//! One call as its handler sees it: the caller, the request messages and the answer messages.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, Version};
use pinion_proto::Binary;
use pinion_status::{Code, Failure};

use crate::inbound::{Inbound, Side};
use crate::outbox::{HoldGuard, Outbox};
use crate::protocol::{Codec, Protocol};
use crate::server::AuthenticationMark;

/// A call to be served. The server cancels a call by dropping the future that serves it.
#[derive(Debug)]
pub struct IncomingCall {
    /// The caller, the method and the protocol of the call.
    pub context: CallContext,
    /// The messages from the caller.
    pub requests: Requests,
    /// The messages to the caller.
    pub answers: Answers,
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The peer's IP address and port.
    pub address: SocketAddr,
    /// The connection uses TLS.
    pub secure: bool,
    pub(crate) authentication: AuthenticationMark,
}

impl Peer {
    /// Marks the caller as authenticated. From then on the server does not close this connection to admit others.
    pub fn mark_authenticated(&self) {
        self.authentication.mark_authenticated();
    }
}

/// The caller, the method and the protocol of a call.
#[derive(Debug)]
pub struct CallContext {
    /// The protocol of the call.
    pub protocol: Protocol,
    /// The encoding of the messages, in both directions.
    pub codec: Codec,
    /// The call has one request and one answer.
    pub unary: bool,
    /// The headers of the request.
    pub headers: HeaderMap,
    /// The version of HTTP.
    pub version: Version,
    /// The other end of the connection.
    pub peer: Peer,
    /// The time at which the server ends the call with `deadline_exceeded`.
    pub deadline: Option<Instant>,
    /// The time limit that the caller asked for.
    pub timeout: Option<Duration>,
    pub(crate) uri: Uri,
    /// The byte offset of the method's name in the path.
    pub(crate) method_at: usize,
}

impl CallContext {
    /// Returns the name of the method, without the path before it.
    pub fn method(&self) -> &str {
        self.uri.path().get(self.method_at..).unwrap_or_default()
    }

    /// Returns the query of the URL. A Connect call made with GET has its message there.
    pub fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// Returns the host name and port that the caller addressed.
    pub fn authority(&self) -> Option<&str> {
        crate::authority(&self.uri, &self.headers)
    }

    /// Returns the token of the `Authorization` header.
    pub fn bearer(&self) -> Option<&str> {
        bearer(&self.headers)
    }
}

/// Returns the token of an `Authorization: Bearer` header. The scheme matches in upper and lower case.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The messages from the caller. The server reads bytes from the connection only when a method of this type is called.
#[derive(Debug)]
pub struct Requests {
    pub(crate) inbound: Inbound,
    pub(crate) codec: Codec,
    pub(crate) count: RequestCount,
    /// Delays the answer until the first message was read.
    pub(crate) held: Option<HoldGuard>,
    /// The first message, while the call waits to see whether a second one follows.
    pub(crate) first: Option<Bytes>,
}

/// The number of messages the caller may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestCount {
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
    /// Reads the next message; `None` after the caller's last one.
    pub async fn next<T: Binary>(&mut self) -> Result<Option<T>, Failure> {
        let codec = self.codec;
        let message = self.next_raw().await?;
        message
            .map(|bytes| codec.decode(bytes, Side::Request))
            .transpose()
    }

    /// Reads the only message of a call that has one.
    pub async fn message<T: Binary>(&mut self) -> Result<T, Failure> {
        match self.next().await? {
            Some(message) => Ok(message),
            None => Err(no_message()),
        }
    }

    /// Lowers the limit on the length of the messages that follow, in bytes.
    pub fn lower_limit(&mut self, most: usize) {
        self.inbound.lower_limit(most);
    }

    /// Reads the next message without decoding it. It is in the codec of the call.
    pub async fn next_raw(&mut self) -> Result<Option<Bytes>, Failure> {
        let next = self.take_next().await;
        self.held = None;
        next
    }

    async fn take_next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self.count {
            RequestCount::Done => Ok(None),
            RequestCount::Many => self.enveloped().await,
            RequestCount::Bare => {
                let message = self.inbound.whole_message().await?;
                self.count = RequestCount::Done;
                Ok(Some(message))
            }
            RequestCount::One => {
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
                self.count = RequestCount::Done;
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

/// The failure of a request without the message it must have. Connect and gRPC both report a wrong number of messages
/// as unimplemented.
fn no_message() -> Failure {
    Failure::new(Code::Unimplemented, "the request holds no message")
}

/// The messages to the caller. They wait here for the connection; sending returns when there is room for more.
#[derive(Debug)]
pub struct Answers {
    pub(crate) outbox: Outbox,
    pub(crate) codec: Codec,
}

impl Answers {
    /// Sends a message. A unary call accepts exactly one.
    pub async fn send<T: Binary>(&mut self, message: &T) -> Result<(), Failure> {
        let codec = self.codec;
        self.outbox
            .put(0, |buffer| codec.put(message, buffer))
            .await
    }

    /// Sends a message that is already encoded in the codec of the call.
    pub async fn send_raw(&mut self, message: Bytes) -> Result<(), Failure> {
        self.outbox.put(0, |_| vec![message.clone()]).await
    }

    /// Sends `prefix` followed by `payload` as one message. A large payload is not copied.
    pub async fn send_split(&mut self, prefix: &[u8], payload: Bytes) -> Result<(), Failure> {
        let write = |buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(prefix);
            vec![payload.clone()]
        };
        self.outbox.put(0, write).await
    }

    /// Adds a header to the answer. A stream sends its headers when the handler first waits after it has read a message
    /// of the request or sent one of the answer; headers added later are not sent.
    pub fn header(&mut self, name: HeaderName, value: HeaderValue) {
        self.outbox.headers(|headers| {
            headers.append(name, value);
        });
    }

    /// Adds a trailer, sent after the last message.
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
