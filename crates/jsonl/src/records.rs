//! A writer of records: it writes at once when idle, in batches when busy, and never part of a
//! record.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::AsFd;

use crate::nowait::StreamKind;

/// Small records are collected up to this many bytes before they are written.
const BATCH: usize = 64 * 1024;
/// A record of at least this many bytes is written from its slices without a copy. Copying a
/// smaller record takes less time than a write of its own.
const DIRECT: usize = BATCH;

/// The output side of a stream of records.
#[derive(Debug)]
pub struct Records {
    /// The output; without one, records are collected for [`Records::drain`].
    descriptor: Option<File>,
    batch: Vec<u8>,
    /// Bytes that replace the `{` of every record; empty for none.
    opening: Vec<u8>,
    /// Adding a record never writes, whatever its size.
    held: bool,
    /// The first write error; all later records are dropped.
    failed: Option<io::Error>,
}

/// The result of writing without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Everything that was collected, or writing has failed.
    All,
    /// The descriptor takes no more for now.
    Part,
}

impl Records {
    /// Creates records that are written to `descriptor`.
    pub fn new(descriptor: File) -> Self {
        Self {
            descriptor: Some(descriptor),
            batch: Vec::with_capacity(BATCH),
            opening: Vec::new(),
            held: false,
            failed: None,
        }
    }

    /// Creates records that are only collected, for a reader in the same process.
    pub fn in_memory() -> Self {
        Self {
            descriptor: None,
            batch: Vec::new(),
            opening: Vec::new(),
            held: false,
            failed: None,
        }
    }

    /// Moves the collected bytes to the end of `into`.
    pub fn drain(&mut self, into: &mut Vec<u8>) {
        into.append(&mut self.batch);
    }

    /// Adds one record made of `slices`. The caller includes the final LF.
    pub fn push(&mut self, slices: &[&[u8]]) {
        if self.failed.is_some() {
            return;
        }
        if !self.opening.is_empty() {
            self.push_opened(slices);
            return;
        }
        self.push_whole(slices);
    }

    /// Makes every record that `add` pushes begin with `opening`, which ends where the first member
    /// of the record follows: `{"session":"a",`. Such records are objects with at least one member.
    pub fn with_opening(&mut self, opening: &[u8], add: impl FnOnce(&mut Self)) {
        self.opening.extend_from_slice(opening);
        add(self);
        self.opening.clear();
    }

    fn push_opened(&mut self, slices: &[&[u8]]) {
        let opening = std::mem::take(&mut self.opening);
        let mut opened: Vec<&[u8]> = Vec::with_capacity(slices.len() + 1);
        opened.push(&opening);
        if let [first, rest @ ..] = slices {
            opened.push(first.strip_prefix(b"{").unwrap_or(first));
            opened.extend_from_slice(rest);
        }
        self.push_whole(&opened);
        self.opening = opening;
    }

    fn push_whole(&mut self, slices: &[&[u8]]) {
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
        if length >= DIRECT && self.descriptor.is_some() && !self.held {
            self.flush();
            self.write_direct(slices);
            return;
        }
        if self.would_write(length) && !self.held {
            self.flush();
        }
        for slice in slices {
            self.batch.extend_from_slice(slice);
        }
    }

    /// Reports whether adding a record of `length` bytes would cause a write.
    pub fn would_write(&self, length: usize) -> bool {
        length >= DIRECT || self.batch.len() + length > BATCH
    }

    /// Writes the collected bytes. Returns false if this or an earlier write failed.
    pub fn flush(&mut self) -> bool {
        if let Some(descriptor) = &mut self.descriptor
            && self.failed.is_none()
            && !self.batch.is_empty()
        {
            if let Err(error) = descriptor.write_all(&self.batch) {
                self.failed = Some(error);
            }
            self.batch.clear();
        }
        self.failed.is_none()
    }

    /// Collects the records that `add` pushes, without a write.
    pub(crate) fn holding(&mut self, add: impl FnOnce(&mut Self)) {
        self.held = true;
        add(self);
        self.held = false;
    }

    /// Returns the number of collected bytes.
    pub(crate) fn collected(&self) -> usize {
        self.batch.len()
    }

    /// Writes the collected bytes as far as the descriptor takes them at once.
    pub(crate) fn flush_without_wait(&mut self, kind: StreamKind) -> Flushed {
        let Some(descriptor) = &self.descriptor else {
            return Flushed::All;
        };
        let mut written = 0;
        while self.failed.is_none() && written < self.batch.len() {
            match kind.write(descriptor.as_fd(), &self.batch[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.batch.drain(..written);
                    return Flushed::Part;
                }
                Err(error) => self.failed = Some(error),
            }
        }
        self.batch.clear();
        Flushed::All
    }

    /// Returns the error that stopped writing.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    fn write_direct(&mut self, slices: &[&[u8]]) {
        let Some(descriptor) = &mut self.descriptor else {
            return;
        };
        let mut vectors: Vec<IoSlice<'_>> =
            slices.iter().map(|slice| IoSlice::new(slice)).collect();
        let mut rest = &mut vectors[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match descriptor.write_vectored(rest) {
                Ok(0) => {
                    self.failed = Some(io::ErrorKind::WriteZero.into());
                    return;
                }
                Ok(count) => IoSlice::advance_slices(&mut rest, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = Some(error);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn an_opening_takes_the_place_of_the_brace() {
        let mut file = tempfile();
        let mut records = Records::new(file.try_clone().unwrap());
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(DIRECT));
        records.push(&[b"{\"a\":1}\n"]);
        records.with_opening(br#"{"s":"1","#, |records| {
            records.push(&[b"{\"a\"", b":2}\n"]);
            records.push(&[long.as_bytes(), b"\n"]);
        });
        records.push(&[b"{\"a\":3}\n"]);
        assert!(records.flush());
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        let opened = format!("{{\"s\":\"1\",{}", &long[1..]);
        let expected = [
            "{\"a\":1}",
            "{\"s\":\"1\",\"a\":2}",
            &opened,
            "{\"a\":3}",
            "",
        ];
        assert!(text.split('\n').eq(expected), "{}", &text[..100]);
    }

    #[test]
    fn records_in_memory_are_gathered_in_order() {
        let mut records = Records::in_memory();
        let long = vec![b'x'; 2 * DIRECT];
        records.push(&[b"{\"a\":1}\n"]);
        records.push(&[&long, b"\n"]);
        assert!(records.flush());
        let mut gathered = b"0\n".to_vec();
        records.drain(&mut gathered);
        assert_eq!(gathered.len(), 2 + 8 + long.len() + 1);
        assert!(gathered.starts_with(b"0\n{\"a\":1}\nxxx"));
        records.drain(&mut gathered);
        assert_eq!(gathered.len(), 2 + 8 + long.len() + 1);
    }

    fn tempfile() -> File {
        let name = format!("pinion-records-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }
}
