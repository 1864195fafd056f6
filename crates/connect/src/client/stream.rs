//! The two ends of a stream, as a caller holds them.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use pinion_proto::Binary;
use pinion_status::{Code, Failure};
use tokio::time::Instant;

use super::Inner;
use super::exchange::{Answer, reason};
use super::line::Answering;
use crate::envelope::{END, Envelope, TRAILERS};
use crate::failures;
use crate::inbound::Side;
use crate::outbox::Outbox;
use crate::protocol::{Codec, Protocol, Speech};

/// What a caller sends into a stream. Dropping it ends what is sent, not what is received.
#[derive(Debug)]
pub struct Sender<Req> {
    outbox: Outbox,
    codec: Codec,
    kind: PhantomData<fn(Req)>,
}

impl<Req: Binary> Sender<Req> {
    pub(super) fn new(outbox: Outbox, codec: Codec) -> Self {
        Self {
            outbox,
            codec,
            kind: PhantomData,
        }
    }

    /// Sends a message; returns when there is room for the next. Fails when the stream is over.
    pub async fn send(&mut self, message: &Req) -> Result<(), Failure> {
        let codec = self.codec;
        self.outbox.put(|buffer| codec.put(message, buffer)).await
    }

    /// Says that no more messages will come.
    pub fn finish(self) {}
}

impl<Req> Drop for Sender<Req> {
    fn drop(&mut self) {
        self.outbox.finish();
    }
}

/// What a caller gets from a stream. Dropping it cancels the call.
pub struct Receiver<Resp> {
    source: Source,
    speech: Speech,
    deadline: Option<(Instant, Duration)>,
    /// What the caller still sends; ends with the call.
    outbox: Option<Outbox>,
    kind: PhantomData<fn() -> Resp>,
}

pub(super) enum Source {
    /// The server has not answered yet.
    Waiting(Answering, Arc<Inner>),
    Open(Box<Answer>),
    Over,
}

impl<Resp: Binary> Receiver<Resp> {
    pub(super) fn new(
        source: Source,
        speech: Speech,
        deadline: Option<(Instant, Duration)>,
        outbox: Option<Outbox>,
    ) -> Self {
        Self {
            source,
            speech,
            deadline,
            outbox,
            kind: PhantomData,
        }
    }

    /// The next message; `None` when the server has ended the call well. May be dropped while it waits: nothing is lost.
    pub async fn next(&mut self) -> Result<Option<Resp>, Failure> {
        let next = match self.deadline {
            None => self.receive().await,
            Some((at, limit)) => {
                let received = tokio::time::timeout_at(at, self.receive()).await;
                received.unwrap_or_else(|_| Err(crate::timeout::timed_out(limit)))
            }
        };
        if !matches!(next, Ok(Some(_))) {
            self.close();
        }
        next
    }

    /// The headers of the answer, once the server has begun it.
    pub async fn headers(&mut self) -> Result<Option<&HeaderMap>, Failure> {
        let opened = self.open().await;
        if let Err(failure) = opened {
            self.close();
            return Err(failure);
        }
        Ok(match &self.source {
            Source::Open(answer) => Some(&answer.headers),
            _ => None,
        })
    }

    async fn receive(&mut self) -> Result<Option<Resp>, Failure> {
        self.open().await?;
        let Source::Open(answer) = &mut self.source else {
            return Ok(None);
        };
        match answer.inbound.envelope().await? {
            Some(envelope) => self.read(envelope),
            None => {
                let status = answer.inbound.trailers().and_then(failures::read_grpc);
                status.unwrap_or_else(|| Err(broken_off())).map(|()| None)
            }
        }
    }

    fn read(&self, envelope: Envelope) -> Result<Option<Resp>, Failure> {
        let Envelope { flags, payload } = envelope;
        if flags & END != 0 && self.speech.protocol == Protocol::Connect {
            return failures::read_end(&payload).map(|()| None);
        }
        if flags & TRAILERS != 0 && self.speech.protocol == Protocol::GrpcWeb {
            let status = failures::read_grpc(&failures::read_grpc_web(&payload));
            return status.unwrap_or_else(|| Err(broken_off())).map(|()| None);
        }
        self.speech.codec.decode(payload, Side::Answer).map(Some)
    }

    /// Waits for the beginning of the answer.
    async fn open(&mut self) -> Result<(), Failure> {
        let Source::Waiting(answering, inner) = &mut self.source else {
            return Ok(());
        };
        let answered = answering.await;
        let inner = Arc::clone(inner);
        // Polled once more it would panic.
        self.source = Source::Over;
        let response = answered.map_err(|error| {
            Failure::new(
                Code::Unavailable,
                format!("the call was lost: {}", reason(error.error())),
            )
        })?;
        self.source = Source::Open(Box::new(inner.inbound(response, self.speech).await?));
        Ok(())
    }
}

impl<Resp> Receiver<Resp> {
    fn close(&mut self) {
        self.source = Source::Over;
        if let Some(outbox) = self.outbox.take() {
            outbox.break_off();
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
            Source::Over => "over",
        };
        formatter.debug_tuple("Receiver").field(&state).finish()
    }
}

/// The failure of a stream that ended without saying how.
fn broken_off() -> Failure {
    Failure::new(Code::Unavailable, "the stream broke off before its end")
}
