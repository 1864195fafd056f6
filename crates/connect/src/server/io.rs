//! The socket of a connection: plain or TLS, with bytes already read put back in front.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::server::TlsStream;

use super::activity::Activity;

/// What an HTTP/2 client says first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One type for both kinds, so that HTTP is compiled once.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    /// Read while looking for the preface, and not yet handed on.
    put_back: [u8; PREFACE.len()],
    from: usize,
    to: usize,
    activity: Arc<Activity>,
    /// How long a client that has sent its last byte may hear nothing of its call.
    patience: Duration,
    farewell: Option<Farewell>,
    /// The client has not yet taken all that was to be written.
    unsent: bool,
}

/// The last byte of a client over HTTP/1.1. It may have left, or just have nothing more to say and wait for its answer: nobody can
/// tell before something is written. So for a while nobody is told that it was the last one, and as long as something is written.
#[derive(Debug)]
struct Farewell {
    timer: Pin<Box<Sleep>>,
    wrote: bool,
}

#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The version of HTTP a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    Http1,
    Http2,
}

impl Socket {
    pub(crate) fn new(stream: Stream, activity: Arc<Activity>, patience: Duration) -> Self {
        Self {
            stream,
            put_back: [0; PREFACE.len()],
            from: 0,
            to: 0,
            activity,
            patience,
            farewell: None,
            unsent: false,
        }
    }

    /// Reads until it is clear which version of HTTP is spoken.
    pub(crate) async fn listen(&mut self) -> io::Result<Spoken> {
        while self.to < PREFACE.len() {
            let room = &mut self.put_back[self.to..];
            let count = match &mut self.stream {
                Stream::Plain(stream) => stream.read(room).await?,
                Stream::Tls(stream) => stream.read(room).await?,
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.to += count;
            self.activity.read();
            if self.put_back[..self.to] != PREFACE[..self.to] {
                return Ok(Spoken::Http1);
            }
        }
        // Its calls all end with the connection.
        self.patience = Duration::ZERO;
        Ok(Spoken::Http2)
    }

    /// Waits until it is time to know that the client has sent its last byte.
    fn poll_farewell(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.patience.is_zero() || !(self.unsent || self.activity.has_call()) {
            return Poll::Ready(());
        }
        let patience = self.patience;
        let farewell = self.farewell.get_or_insert_with(|| Farewell {
            timer: Box::pin(tokio::time::sleep(patience)),
            wrote: false,
        });
        loop {
            ready!(farewell.timer.as_mut().poll(context));
            if !std::mem::take(&mut farewell.wrote) {
                return Poll::Ready(());
            }
            farewell.timer.as_mut().reset(Instant::now() + patience);
        }
    }

    /// Notes how a write went.
    fn written(
        &mut self,
        context: &Context<'_>,
        count: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let waited = std::mem::replace(&mut self.unsent, count.is_pending());
        if count.is_ready() {
            self.activity.wrote();
            if let Some(farewell) = &mut self.farewell {
                farewell.wrote = true;
                if waited {
                    // It may have been the last of the answer, with which the connection ends.
                    context.waker().wake_by_ref();
                }
            }
        }
        count
    }
}

macro_rules! on_stream {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.stream {
            Stream::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Stream::Tls(stream) => {
                let $stream = Pin::new(&mut **stream);
                $call
            }
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.from < self.to {
            let count = (self.to - self.from).min(buffer.remaining());
            buffer.put_slice(&self.put_back[self.from..self.from + count]);
            self.from += count;
            return Poll::Ready(Ok(()));
        }
        if self.farewell.is_some() {
            return self.poll_farewell(context).map(Ok);
        }
        let before = buffer.filled().len();
        ready!(on_stream!(self, stream => stream.poll_read(context, buffer)))?;
        if buffer.filled().len() > before {
            self.activity.read();
            return Poll::Ready(Ok(()));
        }
        self.poll_farewell(context).map(Ok)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = on_stream!(self, stream => stream.poll_write(context, bytes));
        self.written(context, count)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let count = on_stream!(self, stream => stream.poll_write_vectored(context, slices));
        self.written(context, count)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => stream.poll_shutdown(context))
    }
}
