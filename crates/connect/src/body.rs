//! Bodies of requests and answers: empty, bytes, a file, a stream, or a running call.

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
use crate::server::{CallGuard, Streaming};

/// Bytes read from a file at a time.
const FILE_CHUNK_SIZE: usize = 64 * 1024;

/// The body of an HTTP message.
#[derive(Default)]
pub struct Body {
    kind: BodyKind,
    /// Marks the connection as busy while the body exists.
    guard: Option<CallGuard>,
}

#[derive(Default)]
enum BodyKind {
    #[default]
    Empty,
    Full(Piece),
    /// The answer of a streaming call: polling it runs the call.
    Call(Streaming),
    /// The messages that a client sends into a stream.
    Outbox(OutboxBody),
    File(Box<FileBody>),
    Stream(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>),
    /// A message followed by trailers.
    Trailed(Piece, Option<Box<http::HeaderMap>>),
}

/// Informs the producer when the connection drops the body.
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
    /// Creates a body without bytes.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a body of the next `length` bytes of a file. If the file turns out to be shorter, the answer is aborted.
    pub fn file(file: tokio::fs::File, length: u64) -> Self {
        if length == 0 {
            return Self::empty();
        }
        let room = vec![0; FILE_CHUNK_SIZE.min(usize::try_from(length).unwrap_or(FILE_CHUNK_SIZE))];
        let left = length;
        Self::of(BodyKind::File(Box::new(FileBody { file, left, room })))
    }

    /// Creates a body from a stream of chunks. An error aborts the answer.
    pub fn stream(pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self::of(BodyKind::Stream(Box::pin(pieces)))
    }

    pub(crate) fn call(call: Streaming) -> Self {
        Self::of(BodyKind::Call(call))
    }

    pub(crate) fn outbox(outbox: Outbox) -> Self {
        Self::of(BodyKind::Outbox(OutboxBody(outbox)))
    }

    pub(crate) fn piece(piece: Piece) -> Self {
        if piece.has_remaining() {
            Self::of(BodyKind::Full(piece))
        } else {
            Self::empty()
        }
    }

    pub(crate) fn trailed(piece: Piece, trailers: http::HeaderMap) -> Self {
        Self::of(BodyKind::Trailed(piece, Some(Box::new(trailers))))
    }

    fn of(kind: BodyKind) -> Self {
        Self { kind, guard: None }
    }

    pub(crate) fn guarded(mut self, guard: CallGuard) -> Self {
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
            BodyKind::Empty => "empty",
            BodyKind::Full(_) => "full",
            BodyKind::Call(_) => "call",
            BodyKind::Outbox(_) => "outbox",
            BodyKind::File(_) => "file",
            BodyKind::Stream(_) => "stream",
            BodyKind::Trailed(..) => "trailed",
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
            BodyKind::Empty => Poll::Ready(None),
            BodyKind::Full(piece) => {
                let piece = std::mem::take(piece);
                self.kind = BodyKind::Empty;
                data(piece)
            }
            BodyKind::Trailed(piece, _) if piece.has_remaining() => data(std::mem::take(piece)),
            BodyKind::Trailed(_, trailers) => {
                let trailers = trailers.take();
                self.kind = BodyKind::Empty;
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(*trailers))))
            }
            BodyKind::Call(call) => call.poll_frame(context).map(|frame| frame.map(Ok)),
            BodyKind::Outbox(outbox) => {
                let piece = ready!(outbox.0.poll_take(context));
                Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
            }
            BodyKind::File(file) => {
                let piece = ready!(file.poll_piece(context))?;
                if file.left == 0 {
                    self.kind = BodyKind::Empty;
                }
                data(piece.into())
            }
            BodyKind::Stream(stream) => {
                let piece = ready!(stream.as_mut().poll_next(context));
                Poll::Ready(piece.map(|piece| piece.map(|bytes| Frame::data(bytes.into()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Empty => true,
            BodyKind::Call(call) => call.is_over(),
            BodyKind::Outbox(outbox) => outbox.0.is_over(),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let exact = |length: usize| SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX));
        match &self.kind {
            BodyKind::Empty => exact(0),
            BodyKind::Full(piece) => exact(piece.remaining()),
            BodyKind::File(file) => SizeHint::with_exact(file.left),
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

/// Bytes to be sent, in several parts, so that large payloads are not copied behind their prefixes.
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
