//! The sending and the receiving end of a stream.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use pinion_proto::Binary;
use pinion_status::{Code, Failure};

use super::Inner;
use super::answer::Answer;
use super::exchange::reason;
use super::pool::{Connection, PendingResponse};
use crate::envelope::{self, COMPRESSED, END, Envelope, TRAILERS};
use crate::failures;
use crate::inbound::{Inbound, Side};
use crate::outbox::Outbox;
use crate::protocol::{Codec, Protocol, WireFormat};
use crate::timeout::{BROKEN_OFF, Deadline};

/// The sending end of a stream. Dropping it ends the requests; answers can still be received.
#[derive(Debug)]
pub struct Sender<Req> {
    outbox: Outbox,
    codec: Codec,
    gzip: bool,
    kind: PhantomData<fn(Req)>,
}

impl<Req: Binary> Sender<Req> {
    pub(super) fn new(outbox: Outbox, codec: Codec, gzip: bool) -> Self {
        Self {
            outbox,
            codec,
            gzip,
            kind: PhantomData,
        }
    }

    /// Sends a message and returns when there is room for the next. Fails after the end of the stream.
    pub async fn send(&mut self, message: &Req) -> Result<(), Failure> {
        let codec = self.codec;
        if !self.gzip {
            let put = |buffer: &mut Vec<u8>| codec.put(message, buffer);
            return self.outbox.put(0, put).await;
        }
        let mut plain = Vec::new();
        for part in codec.put(message, &mut plain) {
            plain.extend_from_slice(&part);
        }
        let packed = Bytes::from(envelope::deflate(&plain)?);
        let put = |_: &mut Vec<u8>| vec![packed.clone()];
        self.outbox.put(COMPRESSED, put).await
    }

    /// Ends the requests.
    pub fn finish(self) {}
}

impl<Req> Drop for Sender<Req> {
    fn drop(&mut self) {
        self.outbox.finish();
    }
}

/// The receiving end of a stream. Dropping it cancels the call.
pub struct Receiver<Resp> {
    source: Source,
    wire_format: WireFormat,
    deadline: Option<Deadline>,
    /// The queue of the requests; it ends with the call.
    outbox: Option<Outbox>,
    /// The headers of the answer, once it has begun.
    headers: Option<HeaderMap>,
    trailers: HeaderMap,
    has_message: bool,
    kind: PhantomData<fn() -> Resp>,
}

pub(super) enum Source {
    /// The server has not answered yet.
    Waiting(PendingResponse, Connection, Arc<Inner>),
    Open(Box<Inbound>),
    /// The server answered with a failure at once.
    Failed(Failure),
    Over,
}

impl<Resp: Binary> Receiver<Resp> {
    pub(super) fn new(
        source: Source,
        wire_format: WireFormat,
        deadline: Option<Deadline>,
        outbox: Option<Outbox>,
    ) -> Self {
        Self {
            source,
            wire_format,
            deadline,
            outbox,
            headers: None,
            trailers: HeaderMap::new(),
            has_message: false,
            kind: PhantomData,
        }
    }

    /// Creates the receiver of an answer that has begun.
    pub(super) fn of(answer: Answer, wire_format: WireFormat, deadline: Option<Deadline>) -> Self {
        let mut receiver = Self::new(Source::Over, wire_format, deadline, None);
        receiver.begin(answer);
        receiver
    }

    fn begin(&mut self, answer: Answer) {
        self.headers = Some(answer.headers);
        self.trailers = answer.trailers;
        self.source = match answer.messages {
            Ok(inbound) => Source::Open(Box::new(inbound)),
            Err(failure) => Source::Failed(failure),
        };
    }

    /// Receives the next message; `None` when the call has succeeded. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Resp>, Failure> {
        let next = self
            .in_time(async |receiver| receiver.receive().await)
            .await;
        if !matches!(next, Ok(Some(_))) {
            self.close();
        }
        next
    }

    /// Receives the only message of a call that has one answer.
    pub async fn single(&mut self) -> Result<Resp, Failure> {
        let wrong = |message| Err(Failure::new(Code::Unimplemented, message));
        let Some(answer) = self.next().await? else {
            return wrong("the server ended the call without an answer");
        };
        match self.next().await? {
            None => Ok(answer),
            Some(_) => wrong("the server gave more than one answer to a call that has one"),
        }
    }

    /// Returns the headers of the answer once the server has begun it; `None` if the call was lost before.
    pub async fn headers(&mut self) -> Result<Option<&HeaderMap>, Failure> {
        let opened = self.in_time(async |receiver| receiver.open().await).await;
        if let Err(failure) = opened {
            self.close();
            return Err(failure);
        }
        Ok(self.headers.as_ref())
    }

    /// Returns the trailers of the answer; empty before the call has ended.
    pub fn trailers(&self) -> &HeaderMap {
        &self.trailers
    }

    pub(super) fn into_metadata(mut self) -> (HeaderMap, HeaderMap) {
        let headers = self.headers.take().unwrap_or_default();
        (headers, std::mem::take(&mut self.trailers))
    }

    async fn in_time<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.deadline {
            None => work(self).await,
            Some(deadline) => deadline.limit(work(self)).await,
        }
    }

    async fn receive(&mut self) -> Result<Option<Resp>, Failure> {
        self.open().await?;
        let inbound = match &mut self.source {
            Source::Open(inbound) => inbound,
            Source::Failed(failure) => return Err(failure.clone()),
            Source::Waiting(..) | Source::Over => return Ok(None),
        };
        if let Some(envelope) = inbound.envelope().await? {
            return self.read(envelope);
        }
        // An answer without messages and trailers may contain the trailers in its head.
        self.trailers = match inbound.trailers() {
            Some(trailers) if self.wire_format.protocol == Protocol::Grpc => trailers.clone(),
            None if self.wire_format.protocol != Protocol::Connect && !self.has_message => {
                self.headers.clone().unwrap_or_default()
            }
            _ => HeaderMap::new(),
        };
        let status = failures::read_grpc(&self.trailers);
        status.unwrap_or_else(|| Err(aborted())).map(|()| None)
    }

    fn read(&mut self, envelope: Envelope) -> Result<Option<Resp>, Failure> {
        let Envelope { flags, payload } = envelope;
        if flags & END != 0 && self.wire_format.protocol == Protocol::Connect {
            let (result, trailers) = failures::read_end(&payload);
            self.trailers = trailers;
            return result.map(|()| None);
        }
        if flags & TRAILERS != 0 && self.wire_format.protocol == Protocol::GrpcWeb {
            self.trailers = failures::read_grpc_web(&payload);
            let status = failures::read_grpc(&self.trailers);
            return status.unwrap_or_else(|| Err(aborted())).map(|()| None);
        }
        self.has_message = true;
        self.wire_format
            .codec
            .decode(payload, Side::Answer)
            .map(Some)
    }

    /// Waits for the head of the answer.
    async fn open(&mut self) -> Result<(), Failure> {
        let Source::Waiting(pending, ..) = &mut self.source else {
            return Ok(());
        };
        let answered = pending.await;
        // The future has completed, and polling it again would panic.
        let Source::Waiting(_, connection, inner) =
            std::mem::replace(&mut self.source, Source::Over)
        else {
            return Ok(());
        };
        let response = answered.map_err(|error| {
            Failure::new(
                Code::Unavailable,
                format!("the call was lost: {}", reason(error.error())),
            )
        })?;
        inner.pool.put_back(connection);
        let answer = inner.read_head(response, self.wire_format).await;
        self.begin(answer);
        Ok(())
    }
}

impl<Resp> Receiver<Resp> {
    fn close(&mut self) {
        self.source = Source::Over;
        if let Some(outbox) = self.outbox.take() {
            outbox.abort();
        }
    }
}

impl<Resp> Drop for Receiver<Resp> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<Resp> fmt::Debug for Receiver<Resp> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.source {
            Source::Waiting(..) => "waiting",
            Source::Open(_) => "open",
            Source::Failed(_) => "failed",
            Source::Over => "over",
        };
        formatter.debug_tuple("Receiver").field(&state).finish()
    }
}

/// The failure of a stream that ended without a status. A correct server never does that; a lost connection ends with
/// an error.
fn aborted() -> Failure {
    Failure::new(Code::Internal, BROKEN_OFF)
}
