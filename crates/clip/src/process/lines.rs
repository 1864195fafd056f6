//! Cuts what a process prints into lines, where it was read: long lines are not copied.
//!
//! A long line that somebody still holds keeps the buffer it was read into. Such buffers are set spare and used again when
//! they are free, so that a process that prints without end has its lines read into the same few pages.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// Room for what is read at once.
const SMALL: usize = 64 * 1024;
/// The same, once a process has filled that.
const LARGE: usize = 256 * 1024;
/// Shorter lines are copied, so that none keeps a buffer it is only a small part of.
const COPY_BELOW: usize = LARGE / 8;
/// So many buffers are set spare.
const SPARE_BUFFERS: usize = 8;

/// A line was longer than it may be. There is no going on after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// What was read of a process and is not a line yet.
#[derive(Debug)]
pub(super) struct Lines {
    unfinished: BytesMut,
    /// So many of its bytes are known to hold no end of a line.
    searched: usize,
    /// Buffers that were used before. Somebody may hold lines in them.
    spare: VecDeque<BytesMut>,
    is_large: bool,
    limit: usize,
}

impl Lines {
    /// Takes lines of up to `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            unfinished: BytesMut::new(),
            searched: 0,
            spare: VecDeque::new(),
            is_large: false,
            limit,
        }
    }

    /// Where to put what is read next; never without room.
    pub(super) fn room(&mut self) -> &mut BytesMut {
        let left = self.unfinished.capacity() - self.unfinished.len();
        if left < self.size() / 4 && !self.unfinished.try_reclaim(self.size()) {
            self.switch_buffer();
        }
        &mut self.unfinished
    }

    /// Goes on in another buffer.
    fn switch_buffer(&mut self) {
        // A line that is longer than any so far doubles its room, however often it is moved.
        let wanted = self.size().max(self.unfinished.len() * 2);
        let is_free = |buffer: &mut BytesMut| buffer.try_reclaim(wanted);
        let free = self.spare.iter_mut().position(is_free);
        let mut next = free
            .and_then(|free| self.spare.remove(free))
            .unwrap_or_else(|| BytesMut::with_capacity(wanted));
        next.extend_from_slice(&self.unfinished);
        self.unfinished.clear();
        let used = std::mem::replace(&mut self.unfinished, next);
        if self.spare.len() == SPARE_BUFFERS {
            self.spare.pop_front();
        }
        self.spare.push_back(used);
    }

    /// Whether a read of so many bytes shows that more should be read at once.
    pub(super) fn is_filled_by(count: usize) -> bool {
        count >= SMALL
    }

    /// From now on reads more at once; whether that is news.
    pub(super) fn enlarge(&mut self) -> bool {
        !std::mem::replace(&mut self.is_large, true)
    }

    /// Whether it reads more at once than at first.
    pub(super) fn is_large(&self) -> bool {
        self.is_large
    }

    /// From now on reads as little at once as at first, and lets go of every buffer that holds nothing.
    pub(super) fn shrink(&mut self) {
        self.is_large = false;
        self.spare = VecDeque::new();
        self.unfinished = BytesMut::from(&self.unfinished[..]);
    }

    fn size(&self) -> usize {
        if self.is_large { LARGE } else { SMALL }
    }

    /// The next line, without its LF and without one CR before it.
    pub(super) fn next(&mut self) -> Option<Result<Bytes, TooLong>> {
        let Some(end) = memchr::memchr(b'\n', &self.unfinished[self.searched..]) else {
            self.searched = self.unfinished.len();
            // One byte of grace: a CR that will be dropped does not count. A line that never ends is too long before it does.
            return (self.searched > self.limit + 1).then_some(Err(TooLong));
        };
        let end = self.searched + end;
        self.searched = 0;
        let line = self.cut(end);
        self.unfinished.advance(1);
        Some(self.checked(line))
    }

    /// The last line, when the output ended without LF.
    pub(super) fn finish(&mut self) -> Option<Result<Bytes, TooLong>> {
        let line = self.cut(self.unfinished.len());
        (!line.is_empty()).then(|| self.checked(line))
    }

    fn cut(&mut self, length: usize) -> Bytes {
        if length >= COPY_BELOW {
            return self.unfinished.split_to(length).freeze();
        }
        let line = Bytes::copy_from_slice(&self.unfinished[..length]);
        self.unfinished.advance(length);
        line
    }

    fn checked(&self, mut line: Bytes) -> Result<Bytes, TooLong> {
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        if line.len() <= self.limit {
            Ok(line)
        } else {
            Err(TooLong)
        }
    }
}

#[cfg(test)]
mod tests;
