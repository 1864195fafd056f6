//! Splits the output of a process into lines without copying long ones.
//!
//! A long line shares the buffer that it was read into for as long as it is in use. Such buffers are set aside and used
//! again when they are free, so that the output of a process that never stops printing is read into the same few pages.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// Bytes read at once.
const SMALL: usize = 64 * 1024;
/// Bytes read at once after a process has filled a buffer of [`SMALL`] bytes.
const LARGE: usize = 256 * 1024;
/// Shorter lines are copied, so that a short line does not hold a large buffer in memory.
const COPY_BELOW: usize = LARGE / 8;
/// The largest number of buffers that are set aside.
const SPARE_BUFFERS: usize = 8;

/// A line exceeded the limit. Nothing can be read after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// The output of a process that does not form a complete line yet.
#[derive(Debug)]
pub(super) struct Lines {
    unfinished: BytesMut,
    /// Number of bytes at the start of `unfinished` that contain no end of a line.
    searched: usize,
    /// Buffers that were used before. Lines in them may still be in use.
    spare: VecDeque<BytesMut>,
    is_large: bool,
    limit: usize,
}

impl Lines {
    /// Accepts lines of up to `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            unfinished: BytesMut::new(),
            searched: 0,
            spare: VecDeque::new(),
            is_large: false,
            limit,
        }
    }

    /// Returns the buffer for the next read; it always has room.
    pub(super) fn room(&mut self) -> &mut BytesMut {
        let left = self.unfinished.capacity() - self.unfinished.len();
        if left < self.size() / 4 && !self.unfinished.try_reclaim(self.size()) {
            self.switch_buffer();
        }
        &mut self.unfinished
    }

    /// Continues in another buffer.
    fn switch_buffer(&mut self) {
        // Doubling the room of an unfinished line bounds the number of times it is moved.
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

    /// Reports whether a read of `count` bytes shows that more should be read at once.
    pub(super) fn is_filled_by(count: usize) -> bool {
        count >= SMALL
    }

    /// Reads more at once from now on. Returns whether this is a change.
    pub(super) fn enlarge(&mut self) -> bool {
        !std::mem::replace(&mut self.is_large, true)
    }

    /// Reports whether it reads more at once than at first.
    pub(super) fn is_large(&self) -> bool {
        self.is_large
    }

    /// Reads as little at once as at first from now on, and releases every buffer that holds nothing.
    pub(super) fn shrink(&mut self) {
        self.is_large = false;
        self.spare = VecDeque::new();
        self.unfinished = BytesMut::from(&self.unfinished[..]);
    }

    fn size(&self) -> usize {
        if self.is_large { LARGE } else { SMALL }
    }

    /// Returns the next line, without its LF and without one CR before it.
    pub(super) fn next(&mut self) -> Option<Result<Bytes, TooLong>> {
        let Some(end) = memchr::memchr(b'\n', &self.unfinished[self.searched..]) else {
            self.searched = self.unfinished.len();
            // One byte more is allowed, because a CR at the end is dropped. A line without an end is too long as soon
            // as it passes the limit.
            return (self.searched > self.limit + 1).then_some(Err(TooLong));
        };
        let end = self.searched + end;
        self.searched = 0;
        let line = self.cut(end);
        self.unfinished.advance(1);
        Some(self.checked(line))
    }

    /// Returns the last line, if the output ended without LF.
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
