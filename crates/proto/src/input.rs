//! The decoder of the binary form. It allocates only after it knows that the bytes are there.

use bytes::Bytes;

use crate::error::{DecodeError, Problem};
use crate::message::Fields;
use crate::text::Text;
use crate::wire::Parts;

/// The deepest nesting of messages and groups.
const DEPTH_LIMIT: usize = 100;

/// A position in a message in binary form.
#[derive(Debug)]
pub struct Input {
    bytes: Bytes,
    at: usize,
    /// The end of the current message.
    end: usize,
    depth: usize,
}

type Read<T> = Result<T, DecodeError>;

impl Input {
    pub(crate) fn new(bytes: Bytes) -> Self {
        let end = bytes.len();
        let (at, depth) = (0, 0);
        Self {
            bytes,
            at,
            end,
            depth,
        }
    }

    #[cold]
    fn wrong<T>(&self, problem: Problem) -> Read<T> {
        Err(DecodeError::new(problem, self.at))
    }

    #[cold]
    fn malformed<T>(&self, what: &'static str) -> Read<T> {
        self.wrong(Problem::Malformed(what))
    }

    /// Reads fields until the message ends.
    pub(crate) fn message<M: Parts + Fields>(&mut self, message: &mut M) -> Read<()> {
        while let Some(key) = self.key()? {
            if let Err(error) = message.take_part(key, self) {
                return Err(located(error, message.names(), key >> 3));
            }
        }
        Ok(())
    }

    /// Reads the key of the next field; `None` at the end.
    pub(crate) fn key(&mut self) -> Read<Option<u32>> {
        if self.at == self.end {
            return Ok(None);
        }
        let key = self.varint()?;
        match u32::try_from(key) {
            Ok(key) if key >= 1 << 3 => Ok(Some(key)),
            _ => self.malformed("a field has a number that does not exist"),
        }
    }

    pub(crate) fn varint(&mut self) -> Read<u64> {
        let rest = &self.bytes[self.at..self.end];
        if let Some(&byte) = rest.first()
            && byte < 0x80
        {
            self.at += 1;
            return Ok(u64::from(byte));
        }
        let mut value = 0;
        // Bits of the tenth byte beyond the 64th are dropped, as in other readers.
        for (index, &byte) in rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.at += index + 1;
                return Ok(value);
            }
        }
        if rest.len() < 10 {
            self.wrong(Problem::Truncated)
        } else {
            self.malformed("a number has more than ten bytes")
        }
    }

    /// Skips `count` bytes and returns the offset of the first.
    fn advance(&mut self, count: u64) -> Read<usize> {
        let start = self.at;
        match usize::try_from(count) {
            Ok(count) if count <= self.end - start => {
                self.at += count;
                Ok(start)
            }
            _ => self.wrong(Problem::Truncated),
        }
    }

    pub(crate) fn text(&mut self) -> Read<Text> {
        let length = self.varint()?;
        let start = self.advance(length)?;
        match std::str::from_utf8(&self.bytes[start..self.at]) {
            Ok(text) => Ok(Text::new(text)),
            Err(error) => {
                let at = start + error.valid_up_to();
                Err(DecodeError::new(Problem::NotUtf8, at))
            }
        }
    }

    pub(crate) fn payload(&mut self) -> Read<Bytes> {
        let length = self.varint()?;
        let start = self.advance(length)?;
        Ok(self.bytes.slice(start..self.at))
    }

    /// Reads a length and calls `read`, limited to that many bytes.
    pub(crate) fn inside(&mut self, read: impl FnOnce(&mut Self) -> Read<()>) -> Read<()> {
        let length = self.varint()?;
        let start = self.advance(length)?;
        let outer = std::mem::replace(&mut self.end, self.at);
        self.at = start;
        self.deeper()?;
        read(self)?;
        self.depth -= 1;
        self.end = outer;
        Ok(())
    }

    fn deeper(&mut self) -> Read<()> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            self.wrong(Problem::TooDeep)
        } else {
            Ok(())
        }
    }

    /// Skips the value after `key`.
    pub(crate) fn skip(&mut self, key: u32) -> Read<()> {
        match key & 7 {
            0 => self.varint().map(drop),
            1 => self.advance(8).map(drop),
            2 => {
                let length = self.varint()?;
                self.advance(length).map(drop)
            }
            3 => self.skip_group(key >> 3),
            4 => self.malformed("a group ends that did not begin"),
            5 => self.advance(4).map(drop),
            _ => self.malformed("a value has a form that does not exist"),
        }
    }

    fn skip_group(&mut self, number: u32) -> Read<()> {
        const END: u32 = 4;
        self.deeper()?;
        while let Some(key) = self.key()? {
            if key == number << 3 | END {
                self.depth -= 1;
                return Ok(());
            }
            self.skip(key)?;
        }
        self.wrong(Problem::Truncated)
    }
}

/// Adds the name of the field to an error.
#[cold]
fn located(error: DecodeError, names: &[crate::message::Name], number: u32) -> DecodeError {
    match names.iter().find(|it| it.number == number) {
        Some(name) => error.inside(name.json),
        None => error,
    }
}
