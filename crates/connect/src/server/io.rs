//! The socket of a connection: plain or TLS. It returns bytes read during the detection of the HTTP version again.

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

/// The first bytes of an HTTP/2 client.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One type for plain and TLS connections, so that HTTP is compiled once.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    /// Bytes read during the detection of the preface and not yet returned.
    put_back: [u8; PREFACE.len()],
    from: usize,
    to: usize,
    activity: Arc<Activity>,
    /// The longest time without a write for a client that has closed its sending side.
    half_close_timeout: Duration,
    half_close: Option<HalfClose>,
    /// The client has not yet received all bytes to be written.
    unsent: bool,
}

/// The end of a client's bytes over HTTP/1.1. The client may have left, or have sent everything and wait for its
/// answer; only a write can show which. So the end is reported only after a time in which nothing was written.
#[derive(Debug)]
struct HalfClose {
    timer: Pin<Box<Sleep>>,
    wrote: bool,
}

#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The version of HTTP that a client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetectedHttp {
    Http1,
    Http2,
}

impl Socket {
    pub(crate) fn new(
        stream: Stream,
        activity: Arc<Activity>,
        half_close_timeout: Duration,
    ) -> Self {
        Self {
            stream,
            put_back: [0; PREFACE.len()],
            from: 0,
            to: 0,
            activity,
            half_close_timeout,
            half_close: None,
            unsent: false,
        }
    }

    /// Reads until the version of HTTP is certain.
    pub(crate) async fn detect_http(&mut self) -> io::Result<DetectedHttp> {
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
                return Ok(DetectedHttp::Http1);
            }
        }
        // All calls of an HTTP/2 connection end with it.
        self.half_close_timeout = Duration::ZERO;
        Ok(DetectedHttp::Http2)
    }

    /// Waits until the end of the client's bytes may be reported.
    fn poll_half_close(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.half_close_timeout.is_zero() || !(self.unsent || self.activity.has_call()) {
            return Poll::Ready(());
        }
        let half_close_timeout = self.half_close_timeout;
        let half_close = self.half_close.get_or_insert_with(|| HalfClose {
            timer: Box::pin(tokio::time::sleep(half_close_timeout)),
            wrote: false,
        });
        loop {
            ready!(half_close.timer.as_mut().poll(context));
            if !std::mem::take(&mut half_close.wrote) {
                return Poll::Ready(());
            }
            half_close
                .timer
                .as_mut()
                .reset(Instant::now() + half_close_timeout);
        }
    }

    /// Records the result of a write.
    fn written(
        &mut self,
        context: &Context<'_>,
        count: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let waited = std::mem::replace(&mut self.unsent, count.is_pending());
        if count.is_ready() {
            self.activity.wrote();
            if let Some(half_close) = &mut self.half_close {
                half_close.wrote = true;
                if waited {
                    // It may have been the end of the answer, after which the connection ends.
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
        if self.half_close.is_some() {
            return self.poll_half_close(context).map(Ok);
        }
        let before = buffer.filled().len();
        ready!(on_stream!(self, stream => stream.poll_read(context, buffer)))?;
        if buffer.filled().len() > before {
            self.activity.read();
            return Poll::Ready(Ok(()));
        }
        self.poll_half_close(context).map(Ok)
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
