//! A log of both directions for bug reports, with times and without known keys.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use pinion_message::Mask;
use pinion_sync::lock;

/// The direction of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction {
    Received,
    Sent,
    /// A warning that other modes print to standard error.
    Warning,
}

/// An open log.
#[derive(Debug)]
pub struct TrafficLog {
    file: Mutex<File>,
    mask: Mask,
}

impl TrafficLog {
    /// Opens the log at `path`, a regular file, and appends to it.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let mut options = std::fs::OpenOptions::new();
        options.append(true).create(true);
        let file = pinion_files::open_with(&mut options, path)?;
        Ok(Self {
            file: Mutex::new(file),
            mask: Mask::of_process(),
        })
    }

    /// Appends a warning.
    pub fn warn(&self, text: &str) {
        self.record(Direction::Warning, text.as_bytes());
    }

    pub(crate) fn record(&self, direction: Direction, line: &[u8]) {
        let sign = match direction {
            Direction::Received => '>',
            Direction::Sent => '<',
            Direction::Warning => '!',
        };
        let line = String::from_utf8_lossy(line);
        let line = self.mask.text(line.trim_end_matches('\n'));
        // A log that cannot be written must not stop the session.
        let _ = writeln!(lock(&self.file), "{} {sign} {line}", crate::time::now());
    }
}
