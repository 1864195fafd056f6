//! Collects records and writes them: one write when idle, batched when busy, never torn.

use std::fs::File;
use std::io::{self, IoSlice, Write};

/// Small records are gathered up to this many bytes before they are written.
const BATCH: usize = 64 * 1024;
/// A record of at least this size is written from its slices without being copied. Copying a smaller
/// one costs less than a write of its own.
const DIRECT: usize = BATCH;

/// The outgoing side of a stream of records.
#[derive(Debug)]
pub struct Records {
    descriptor: File,
    batch: Vec<u8>,
    /// The first error; from then on everything is dropped.
    failed: Option<io::Error>,
}

impl Records {
    /// Records for `descriptor`.
    pub fn new(descriptor: File) -> Self {
        Self {
            descriptor,
            batch: Vec::with_capacity(BATCH),
            failed: None,
        }
    }

    /// Adds one record made of `slices`. The caller includes the final LF.
    pub fn push(&mut self, slices: &[&[u8]]) {
        if self.failed.is_some() {
            return;
        }
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
        if length >= DIRECT {
            self.flush();
            self.write_direct(slices);
            return;
        }
        if self.batch.len() + length > BATCH {
            self.flush();
        }
        for slice in slices {
            self.batch.extend_from_slice(slice);
        }
    }

    /// Writes what has been gathered; says whether the stream is still good.
    pub fn flush(&mut self) -> bool {
        if self.failed.is_none() && !self.batch.is_empty() {
            if let Err(error) = self.descriptor.write_all(&self.batch) {
                self.failed = Some(error);
            }
            self.batch.clear();
        }
        self.failed.is_none()
    }

    /// Why writing stopped, if it did.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    fn write_direct(&mut self, slices: &[&[u8]]) {
        let mut vectors: Vec<IoSlice<'_>> =
            slices.iter().map(|slice| IoSlice::new(slice)).collect();
        let mut rest = &mut vectors[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match self.descriptor.write_vectored(rest) {
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
