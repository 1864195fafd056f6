//! What answers and requests are made of: nothing, bytes, a file, a stream, or a running call.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::Stream;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, ReadBuf};

use crate::outbox::Outbox;
use crate::server::{Guard, Streaming};

/// How much of a file is read at a time.
const FILE_PIECE: usize = 64 * 1024;

/// The body of an HTTP message.
#[derive(Default)]
pub struct Body {
    kind: Kind,
    /// Tells the connection that something is still going on.
    guard: Option<Guard>,
}

#[derive(Default)]
enum Kind {
    #[default]
    Empty,
    Full(Piece),
    /// The answer of a streaming call: polling it runs the call.
    Call(Streaming),
    /// What a client sends into a stream.
    Outbox(OutboxBody),
    File(Box<FileBody>),
    Stream(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>),
    /// A message and the trailers behind it.
    Trailed(Piece, Option<Box<http::HeaderMap>>),
}

/// Tells the producer when the connection lets go.
struct OutboxBody(Outbox);

impl Drop for OutboxBody {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

struct FileBody {
    file: tokio::fs::File,
    left: u64,
    room: Vec<u8>,
}

impl Body {
    /// No bytes at all.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The next `length` bytes of a file. A file that turns out shorter breaks the answer off.
    pub fn file(file: tokio::fs::File, length: u64) -> Self {
        if length == 0 {
            return Self::empty();
        }
        let room = vec![0; FILE_PIECE.min(usize::try_from(length).unwrap_or(FILE_PIECE))];
        let left = length;
        Self::of(Kind::File(Box::new(FileBody { file, left, room })))
    }

    /// Pieces as they come; an error breaks the answer off.
    pub fn stream(pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self::of(Kind::Stream(Box::pin(pieces)))
    }

    pub(crate) fn call(call: Streaming) -> Self {
        Self::of(Kind::Call(call))
    }

    pub(crate) fn outbox(outbox: Outbox) -> Self {
        Self::of(Kind::Outbox(OutboxBody(outbox)))
    }

    pub(crate) fn piece(piece: Piece) -> Self {
        match piece.has_remaining() {
            true => Self::of(Kind::Full(piece)),
            false => Self::empty(),
        }
    }

    pub(crate) fn trailed(piece: Piece, trailers: http::HeaderMap) -> Self {
        Self::of(Kind::Trailed(piece, Some(Box::new(trailers))))
    }

    fn of(kind: Kind) -> Self {
        Self { kind, guard: None }
    }

    pub(crate) fn guarded(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::piece(Piece::from(bytes.into()))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Empty => "empty",
            Kind::Full(_) => "full",
            Kind::Call(_) => "call",
            Kind::Outbox(_) => "outbox",
            Kind::File(_) => "file",
            Kind::Stream(_) => "stream",
            Kind::Trailed(..) => "trailed",
        };
        formatter.debug_tuple("Body").field(&kind).finish()
    }
}

impl http_body::Body for Body {
    type Data = Piece;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Piece>>>> {
        let data = |piece: Piece| Poll::Ready(Some(Ok(Frame::data(piece))));
        match &mut self.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(piece) => {
                let piece = std::mem::take(piece);
                self.kind = Kind::Empty;
                data(piece)
            }
            Kind::Trailed(piece, _) if piece.has_remaining() => data(std::mem::take(piece)),
            Kind::Trailed(_, trailers) => {
                let trailers = trailers.take();
                self.kind = Kind::Empty;
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(*trailers))))
            }
            Kind::Call(call) => call.poll_frame(context).map(|frame| frame.map(Ok)),
            Kind::Outbox(outbox) => {
                let piece = ready!(outbox.0.poll_take(context));
                Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
            }
            Kind::File(file) => {
                let piece = ready!(file.poll_piece(context))?;
                if file.left == 0 {
                    self.kind = Kind::Empty;
                }
                data(piece.into())
            }
            Kind::Stream(stream) => {
                let piece = ready!(stream.as_mut().poll_next(context));
                Poll::Ready(piece.map(|piece| piece.map(|bytes| Frame::data(bytes.into()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Call(call) => call.is_over(),
            Kind::Outbox(outbox) => outbox.0.is_over(),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let exact = |length: usize| SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX));
        match &self.kind {
            Kind::Empty => exact(0),
            Kind::Full(piece) => exact(piece.remaining()),
            Kind::File(file) => SizeHint::with_exact(file.left),
            _ => SizeHint::default(),
        }
    }
}

impl FileBody {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let most = self
            .room
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let mut buffer = ReadBuf::new(&mut self.room[..most]);
        ready!(Pin::new(&mut self.file).poll_read(context, &mut buffer))?;
        let filled = buffer.filled();
        if filled.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.left -= u64::try_from(filled.len()).unwrap_or(self.left);
        Poll::Ready(Ok(Bytes::copy_from_slice(filled)))
    }
}

/// Bytes on their way out, in parts, so that large payloads need not be copied behind what stands before them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    head: Bytes,
    tail: VecDeque<Bytes>,
}

impl Piece {
    pub(crate) fn new(parts: Vec<Bytes>) -> Self {
        let mut tail = VecDeque::from(parts);
        let head = tail.pop_front().unwrap_or_default();
        Self { head, tail }
    }
}

impl From<Bytes> for Piece {
    fn from(head: Bytes) -> Self {
        Self {
            head,
            tail: VecDeque::new(),
        }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.head.len() + self.tail.iter().map(Bytes::len).sum::<usize>()
    }

    fn chunk(&self) -> &[u8] {
        let parts = std::iter::once(&self.head).chain(&self.tail);
        let mut filled = parts.filter(|part| !part.is_empty());
        filled.next().map_or(&[], |part| part)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [io::IoSlice<'a>]) -> usize {
        let parts = std::iter::once(&self.head).chain(&self.tail);
        let mut filled = 0;
        for (slice, part) in slices.iter_mut().zip(parts.filter(|part| !part.is_empty())) {
            *slice = io::IoSlice::new(part);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        while count > self.head.len()
            && let Some(next) = self.tail.pop_front()
        {
            count -= self.head.len();
            self.head = next;
        }
        self.head.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_reads_as_one_run_of_bytes() {
        let whole = Bytes::from_static(b"0123456789");
        for (cut, second) in (0..=10).flat_map(|cut| (cut..=10).map(move |second| (cut, second))) {
            let piece = Piece::new(vec![
                whole.slice(..cut),
                whole.slice(cut..second),
                whole.slice(second..),
            ]);
            let mut slices = [io::IoSlice::new(b""); 4];
            let filled = piece.chunks_vectored(&mut slices);
            let seen: Vec<u8> = slices[..filled].iter().flat_map(|s| s.to_vec()).collect();
            assert_eq!(seen, b"0123456789");
            for skip in 0..=10 {
                let mut piece = piece.clone();
                piece.advance(skip);
                assert_eq!(piece.remaining(), 10 - skip);
                assert_eq!(piece.copy_to_bytes(10 - skip), whole.slice(skip..));
            }
        }
    }
}
