//! The log of a child: its output byte by byte, written to disk in batches.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// The number of lines that completes a batch.
const BATCH_LINES: usize = 100;
/// The age at which an incomplete batch is written.
const BATCH_TIME: Duration = Duration::from_millis(50);
/// The number of bytes that completes a batch, so that long lines do not accumulate in memory.
const BATCH_BYTES: usize = 256 * 1024;

/// Appends to a file in batches. Times count from a start that the caller chooses.
#[derive(Debug)]
pub struct BatchLog {
    file: File,
    buffer: Vec<u8>,
    lines: usize,
    /// The time of the oldest byte in the buffer.
    since: Option<Duration>,
    /// The first write error; bytes after it are discarded.
    failed: Option<io::Error>,
}

impl BatchLog {
    /// Opens a log, and creates its file if necessary.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = pinion_files::open_with(options.create(true).append(true), path)?;
        Ok(Self {
            file,
            buffer: Vec::new(),
            lines: 0,
            since: None,
            failed: None,
        })
    }

    /// Adds bytes that complete `lines` lines.
    pub fn push(&mut self, bytes: &[u8], lines: usize, now: Duration) {
        if self.failed.is_none() {
            self.buffer.extend_from_slice(bytes);
            self.lines += lines;
            self.since.get_or_insert(now);
        }
    }

    /// Writes the batch if it is complete or old enough.
    pub fn flush_if_due(&mut self, now: Duration) {
        let full = self.lines >= BATCH_LINES || self.buffer.len() >= BATCH_BYTES;
        if full || self.due().is_some_and(|due| due <= now) {
            self.flush();
        }
    }

    /// Returns the time at which the batch has to be written.
    pub fn due(&self) -> Option<Duration> {
        self.since.map(|since| since + BATCH_TIME)
    }

    /// Writes the batch now.
    pub fn flush(&mut self) {
        if !self.buffer.is_empty()
            && let Err(error) = self.file.write_all(&self.buffer)
        {
            self.failed = Some(error);
        }
        self.buffer.clear();
        if self.buffer.capacity() > 2 * BATCH_BYTES {
            self.buffer.shrink_to(BATCH_BYTES);
        }
        self.lines = 0;
        self.since = None;
    }

    /// Returns the error after which the file is incomplete.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }
}

impl Drop for BatchLog {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_hundred_lines_or_fifty_milliseconds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.jsonl");
        let on_disk = || std::fs::read(&path).unwrap().len();
        let mut log = BatchLog::create(&path).unwrap();
        for index in 0..99 {
            log.push(b"x\n", 1, MS(index / 10));
            log.flush_if_due(MS(index / 10));
        }
        assert_eq!(on_disk(), 0);
        assert_eq!(log.due(), Some(MS(50)));
        log.push(b"x\n", 1, MS(10));
        log.flush_if_due(MS(10));
        assert_eq!((on_disk(), log.due()), (200, None));
        log.push(b"y", 0, MS(100));
        log.flush_if_due(MS(149));
        assert_eq!(on_disk(), 200);
        log.flush_if_due(MS(150));
        assert_eq!(on_disk(), 201);
        log.push(b"z", 0, MS(200));
        drop(log);
        assert_eq!(std::fs::read(&path).unwrap().last(), Some(&b'z'));
    }
}
