//! What comes in: a body as one message or as envelopes, unpacked and within limits.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body as _;
use pinion_status::{Code, Failure};

use crate::arriving::Arriving;
use crate::envelope::{self, COMPRESSED, Deframer, Envelope};
use crate::outbox::Held;

/// What is read, which decides whose fault it is when it cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Request,
    Answer,
}

/// A body being read. Every method may be dropped while it waits: nothing is lost.
#[derive(Debug)]
pub(crate) struct Inbound {
    /// `None` once it has ended.
    body: Option<Arriving>,
    deframer: Deframer,
    /// The first piece of a body that is read as a whole; most have no other.
    first: Bytes,
    /// All pieces, once there are two.
    gathered: Vec<u8>,
    trailers: Option<HeaderMap>,
    /// Compressed messages are gzip; otherwise there must be none.
    gzip: bool,
    limit: usize,
    /// How long to wait for the next bytes.
    patience: Option<Duration>,
    side: Side,
}

impl Inbound {
    pub(crate) fn new(
        body: Arriving,
        gzip: bool,
        limit: usize,
        patience: Option<Duration>,
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
            patience,
            side,
        }
    }

    /// A message that came without a body.
    pub(crate) fn of(message: Bytes, gzip: bool, limit: usize) -> Self {
        Self {
            body: None,
            deframer: Deframer::new(limit),
            first: message,
            gathered: Vec::new(),
            trailers: None,
            gzip,
            limit,
            patience: None,
            side: Side::Request,
        }
    }

    /// From now on takes no message longer than this.
    pub(crate) fn shorten(&mut self, most: usize) {
        self.limit = self.limit.min(most);
        self.deframer.shorten(most);
    }

    /// The whole body as one message.
    pub(crate) async fn bare(&mut self) -> Result<Bytes, Failure> {
        let packed = self.gather().await?;
        match self.gzip {
            true => envelope::inflate(&packed, self.limit),
            false => Ok(packed),
        }
    }

    /// The next envelope, unpacked; `None` is the end of the body.
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
                None => return Err(self.torn()),
            }
        }
    }

    /// Keeps the answer from beginning before the body has ended.
    pub(crate) fn hold(&mut self, held: Held) {
        if let Some(body) = &mut self.body {
            body.hold(held);
        }
    }

    /// Trailers that came behind the last byte.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    fn unpack(&self, packed: &[u8]) -> Result<Bytes, Failure> {
        if !self.gzip {
            let message = "a message is compressed, but no header says how";
            return Err(Failure::new(Code::Internal, message));
        }
        envelope::inflate(packed, self.limit)
    }

    /// All bytes of the body. One that lies in a single piece is not copied.
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
        match self.gathered.is_empty() {
            true => Ok(std::mem::take(&mut self.first)),
            false => Ok(std::mem::take(&mut self.gathered).into()),
        }
    }

    /// The next bytes that come, `None` at the end.
    async fn piece(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(patience) = self.patience else {
            return self.frame().await;
        };
        match tokio::time::timeout(patience, self.frame()).await {
            Ok(piece) => piece,
            Err(_) => {
                self.body = None;
                let seconds = patience.as_secs();
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
                    return Err(self.broken(&error));
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

    /// The failure of a body that ends where it must not.
    fn torn(&self) -> Failure {
        let code = match self.side {
            Side::Request => Code::InvalidArgument,
            Side::Answer => Code::Unavailable,
        };
        Failure::new(code, "the stream ended inside a message")
    }

    /// The failure of a body that broke off.
    fn broken(&self, error: &hyper::Error) -> Failure {
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
