//! Reads a body as one message or as envelopes, decompressed and within limits.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body as _;
use pinion_status::{Code, Failure};

use crate::envelope::{self, COMPRESSED, Deframer, Envelope};
use crate::incoming_body::IncomingBody;
use crate::outbox::HoldGuard;

/// The direction of a message, which decides the code of the failure if it is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Request,
    Answer,
}

/// A body being read. Dropping the future of any method loses nothing.
#[derive(Debug)]
pub(crate) struct Inbound {
    /// `None` once the body has ended.
    body: Option<IncomingBody>,
    deframer: Deframer,
    /// The first chunk of a body that is read as a whole; most bodies have no other.
    first: Bytes,
    /// All chunks, once there are two.
    gathered: Vec<u8>,
    trailers: Option<HeaderMap>,
    /// Compressed messages use gzip. If false, compressed messages are rejected.
    gzip: bool,
    limit: usize,
    /// The longest wait for the next bytes.
    read_timeout: Option<Duration>,
    side: Side,
}

impl Inbound {
    pub(crate) fn new(
        body: IncomingBody,
        gzip: bool,
        limit: usize,
        read_timeout: Option<Duration>,
        side: Side,
    ) -> Self {
        Self {
            body: Some(body),
            deframer: Deframer::new(limit),
            first: Bytes::new(),
            gathered: Vec::new(),
            trailers: None,
            gzip,
            limit,
            read_timeout,
            side,
        }
    }

    /// Creates a reader of a message that came without a body, such as one in a URL.
    pub(crate) fn of(message: Bytes, gzip: bool, limit: usize) -> Self {
        Self {
            body: None,
            deframer: Deframer::new(limit),
            first: message,
            gathered: Vec::new(),
            trailers: None,
            gzip,
            limit,
            read_timeout: None,
            side: Side::Request,
        }
    }

    /// Lowers the limit on the length of the messages that follow.
    pub(crate) fn lower_limit(&mut self, most: usize) {
        self.limit = self.limit.min(most);
        self.deframer.lower_limit(most);
    }

    /// Reads the whole body as one message.
    pub(crate) async fn whole_message(&mut self) -> Result<Bytes, Failure> {
        let packed = self.gather().await?;
        if self.gzip {
            envelope::inflate(&packed, self.limit)
        } else {
            Ok(packed)
        }
    }

    /// Reads the next envelope and decompresses it; `None` at the end of the body.
    pub(crate) async fn envelope(&mut self) -> Result<Option<Envelope>, Failure> {
        loop {
            if let Some(mut envelope) = self.deframer.next()? {
                if envelope.flags & COMPRESSED != 0 {
                    envelope.payload = self.unpack(&envelope.payload)?;
                }
                return Ok(Some(envelope));
            }
            match self.piece().await? {
                Some(piece) => self.deframer.feed(piece),
                None if self.deframer.is_between() => return Ok(None),
                None => return Err(self.truncated()),
            }
        }
    }

    /// Delays the answer until the body has ended.
    pub(crate) fn hold(&mut self, held: HoldGuard) {
        if let Some(body) = &mut self.body {
            body.hold(held);
        }
    }

    /// Returns the trailers that followed the last byte.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    fn unpack(&self, packed: &[u8]) -> Result<Bytes, Failure> {
        if !self.gzip {
            let message = "a message is compressed, but no header names the compression";
            return Err(Failure::new(Code::Internal, message));
        }
        envelope::inflate(packed, self.limit)
    }

    /// Reads all bytes of the body. A body in a single chunk is not copied.
    async fn gather(&mut self) -> Result<Bytes, Failure> {
        let announced = self
            .body
            .as_ref()
            .map_or(0, |body| body.size_hint().lower());
        let announced = usize::try_from(announced).unwrap_or(usize::MAX);
        let announced = announced.max(self.first.len());
        if announced > self.limit {
            self.body = None;
            return Err(envelope::too_large(announced, self.limit));
        }
        while let Some(piece) = self.piece().await? {
            let length = self.first.len() + self.gathered.len() + piece.len();
            if length > self.limit {
                self.body = None;
                return Err(envelope::too_large(
                    format_args!("at least {length}"),
                    self.limit,
                ));
            }
            if self.first.is_empty() && self.gathered.is_empty() {
                self.first = piece;
                continue;
            }
            let first = std::mem::take(&mut self.first);
            self.gathered.extend_from_slice(&first);
            self.gathered.extend_from_slice(&piece);
        }
        if self.gathered.is_empty() {
            Ok(std::mem::take(&mut self.first))
        } else {
            Ok(std::mem::take(&mut self.gathered).into())
        }
    }

    /// Reads the next bytes; `None` at the end.
    async fn piece(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(read_timeout) = self.read_timeout else {
            return self.frame().await;
        };
        match tokio::time::timeout(read_timeout, self.frame()).await {
            Ok(piece) => piece,
            Err(_) => {
                self.body = None;
                let seconds = read_timeout.as_secs();
                let message = format!("no bytes of the request came for {seconds} s");
                Err(Failure::new(Code::DeadlineExceeded, message))
            }
        }
    }

    async fn frame(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let Some(body) = &mut self.body else {
                return Ok(None);
            };
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
            let frame = match frame {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => {
                    self.body = None;
                    return Err(self.connection_lost(&error));
                }
                None => {
                    self.body = None;
                    return Ok(None);
                }
            };
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Ok(Some(data)),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
    }

    /// The failure of a body that ends inside a message.
    fn truncated(&self) -> Failure {
        let code = match self.side {
            Side::Request => Code::InvalidArgument,
            Side::Answer => Code::Unavailable,
        };
        Failure::new(code, "the stream ended inside a message")
    }

    /// The failure of a body whose connection was lost.
    fn connection_lost(&self, error: &hyper::Error) -> Failure {
        let code = match self.side {
            Side::Request => Code::Canceled,
            Side::Answer => Code::Unavailable,
        };
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Failure::new(code, format!("the connection broke off: {cause}"))
    }
}
