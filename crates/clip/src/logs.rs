//! The log of a clip: lines of its stderr, log messages, stray lines of its stdout, and the hub's messages about it.
//!
//! The last lines are stored in memory for readers and followers. All lines are written to a file, which is rotated
//! once and read when a reader asks for more than memory holds. Followers never delay the clip and use no memory for
//! lines: a follower that falls behind receives the number of lines it missed.

mod file;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tracing::{debug, error, info, warn};

use file::{LogFile, parse, read_back};

/// The most lines in memory.
const KEPT_LINES: usize = 1000;
/// The most bytes of lines in memory.
const KEPT_BYTES: usize = 1024 * 1024;
/// The most secrets that are masked in a log.
const MAX_SECRETS: usize = 16;
/// The greatest age of a line that is added with a time of its own.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The longest line, in bytes. A longer line is cut.
pub const MAX_LINE: usize = 64 * 1024;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the author of the clip.
    Debug,
    /// For the record.
    Info,
    /// Something is unusual.
    Warn,
    /// Something failed.
    Error,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// Parses a level in any case; an unknown one is [`Level::Info`].
    pub fn parse(name: &str) -> Self {
        Self::named(name).unwrap_or(Self::Info)
    }

    /// Parses a level in any case; `None` if it is unknown.
    pub fn named(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "trace" | "debug" => Some(Self::Debug),
            "info" | "notice" => Some(Self::Info),
            "warn" | "warning" => Some(Self::Warn),
            "error" | "err" | "fatal" | "critical" => Some(Self::Error),
            _ => None,
        }
    }

    /// Parses the value of a flag, `info` by default. The error is for the user.
    pub fn of_flag(flag: &str, name: Option<&str>) -> Result<Self, String> {
        match name {
            None | Some("info") => Ok(Self::Info),
            Some("debug") => Ok(Self::Debug),
            Some("warn" | "warning") => Ok(Self::Warn),
            Some("error") => Ok(Self::Error),
            Some(other) => Err(format!(
                "{flag} is debug, info, warn or error, not {other:?}"
            )),
        }
    }

    /// Returns the level that a line of plain text starts with, [`Level::Info`] if it starts with none.
    fn of_line(line: &str) -> Self {
        let line = line.trim_start().trim_start_matches('[');
        let end = line
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(line.len());
        Self::named(&line[..end]).unwrap_or(Self::Info)
    }
}

/// The origin of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The clip's stderr.
    Stderr,
    /// A line of its stdout that is not part of the protocol.
    Stdout,
    /// A log message of the protocol.
    Ipc,
    /// A log message of a remote provider.
    Provider,
    /// The hub.
    System,
}

const ORIGINS: [Origin; 5] = [
    Origin::Stderr,
    Origin::Stdout,
    Origin::Ipc,
    Origin::Provider,
    Origin::System,
];

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Self::Stderr => "stderr",
            Self::Stdout => "stdout",
            Self::Ipc => "ipc",
            Self::Provider => "provider",
            Self::System => "system",
        }
    }
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The position among all lines since the log was opened, including those read back from its file then; 0 for
    /// older lines.
    pub sequence: u64,
    pub time: Timestamp,
    pub level: Level,
    pub origin: Origin,
    pub message: Arc<str>,
}

/// The log of one clip.
#[derive(Debug)]
pub struct ClipLog {
    inner: Mutex<Inner>,
    changed: Notify,
    /// The hub's messages go to the diagnostic log of the program too.
    is_of_hub: bool,
}

#[derive(Debug)]
struct Inner {
    lines: VecDeque<LogEntry>,
    bytes: usize,
    next: u64,
    file: LogFile,
    /// Masked in every line.
    secrets: Vec<String>,
    closed: bool,
}

impl ClipLog {
    /// Opens a log in the file `path`, with the rotated file `path.1`. The last lines of an earlier process are read
    /// back.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self::new(LogFile::Unopened(path.into()))
    }

    /// Opens the log of the hub itself. Its messages go to the diagnostic log of the program too; the two remain
    /// separate, because readers of this one follow it by sequence and a process may have several hubs.
    pub fn of_hub(path: impl Into<PathBuf>) -> Self {
        Self {
            is_of_hub: true,
            ..Self::at(path)
        }
    }

    /// Creates a log without a file.
    pub fn in_memory() -> Self {
        Self::new(LogFile::None)
    }

    fn new(file: LogFile) -> Self {
        Self {
            inner: Mutex::new(Inner {
                lines: VecDeque::new(),
                bytes: 0,
                next: 0,
                file,
                secrets: Vec::new(),
                closed: false,
            }),
            changed: Notify::new(),
            is_of_hub: false,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Masks a secret in this log from now on, until 16 others were added after it. Secrets of fewer than
    /// four bytes are ignored.
    pub fn mask(&self, secret: &str) {
        if secret.len() < 4 {
            return;
        }
        let mut inner = self.inner();
        if inner.secrets.len() == MAX_SECRETS {
            inner.secrets.remove(0);
        }
        inner.secrets.push(secret.to_owned());
    }

    /// Adds a line with the current time.
    pub fn push(&self, level: Level, origin: Origin, message: &str) {
        if self.is_of_hub && origin == Origin::System {
            match level {
                Level::Debug => debug!(target: "pinion_hub", "{message}"),
                Level::Info => info!(target: "pinion_hub", "{message}"),
                Level::Warn => warn!(target: "pinion_hub", "{message}"),
                Level::Error => error!(target: "pinion_hub", "{message}"),
            }
        }
        self.inner().push(level, origin, message);
        self.changed.notify_waiters();
    }

    /// Adds a line with the time at which it was written elsewhere. A time in the future or more than seven days ago is
    /// replaced by the current time.
    pub fn push_with_time(&self, time: Timestamp, level: Level, origin: Origin, message: &str) {
        let now = Timestamp::now();
        let known = time <= now && now.duration_since(time) <= MAX_AGE;
        let time = if known { time } else { now };
        self.inner().push_at(time, level, origin, message);
        self.changed.notify_waiters();
    }

    /// Adds a line of the clip's stderr.
    pub fn stderr(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        self.push(Level::of_line(&line), Origin::Stderr, &line);
    }

    /// Adds a message of the hub about the clip.
    pub(crate) fn system(&self, level: Level, message: &str) {
        self.push(level, Origin::System, message);
    }

    /// Returns the last `count` lines in memory, oldest first.
    pub fn tail(&self, count: usize) -> Vec<LogEntry> {
        let mut inner = self.inner();
        inner.open();
        let skip = inner.lines.len().saturating_sub(count);
        inner.lines.iter().skip(skip).cloned().collect()
    }

    /// Follows the log: the last `count` lines, then each new line.
    pub fn follow(self: &Arc<Self>, count: usize) -> Follower {
        let mut inner = self.inner();
        inner.open();
        let next = inner.next - inner.lines.len().min(count) as u64;
        drop(inner);
        Follower {
            log: self.clone(),
            next,
        }
    }

    /// Returns the last `count` lines for which `wanted` is true, oldest first, and a follower of the lines after them.
    /// Files are read if memory does not hold enough lines.
    pub fn recall(
        self: &Arc<Self>,
        count: usize,
        wanted: impl Fn(&LogEntry) -> bool,
    ) -> (Vec<LogEntry>, Follower) {
        let mut inner = self.inner();
        inner.open();
        let follower = Follower {
            log: self.clone(),
            next: inner.next,
        };
        let kept = inner.lines.iter().rev().filter(|line| wanted(line));
        let mut found: Vec<LogEntry> = kept.take(count).cloned().collect();
        if found.len() < count {
            let known = inner.lines.len();
            let texts = inner.file.texts();
            // Writers must not wait while the files are parsed.
            drop(inner);
            let older = texts.iter().rev().flat_map(|text| text.lines().rev());
            let older = older.filter_map(parse).skip(known).map(LogEntry::earlier);
            let missing = count - found.len();
            found.extend(older.filter(wanted).take(missing));
        }
        found.reverse();
        (found, follower)
    }

    /// Closes the log: followers end after the last line.
    pub fn close(&self) {
        self.inner().closed = true;
        self.changed.notify_waiters();
    }

    /// Opens the log again after [`ClipLog::close`].
    pub fn reopen(&self) {
        self.inner().closed = false;
    }
}

impl LogEntry {
    /// Creates an entry for a line that was read from a file.
    fn earlier((time, level, origin, message): (Timestamp, Level, Origin, &str)) -> Self {
        Self {
            sequence: 0,
            time,
            level,
            origin,
            message: message.into(),
        }
    }
}

impl Inner {
    fn push(&mut self, level: Level, origin: Origin, message: &str) {
        self.push_at(Timestamp::now(), level, origin, message);
    }

    fn push_at(&mut self, time: Timestamp, level: Level, origin: Origin, message: &str) {
        self.open();
        let mut message = cut(message).to_owned();
        for secret in &self.secrets {
            if message.contains(secret.as_str()) {
                message = message.replace(secret.as_str(), "***");
            }
        }
        self.file.write(time, level, origin, &message);
        self.keep(time, level, origin, message.into());
    }

    fn keep(&mut self, time: Timestamp, level: Level, origin: Origin, message: Arc<str>) {
        self.bytes += message.len();
        self.lines.push_back(LogEntry {
            sequence: self.next,
            time,
            level,
            origin,
            message,
        });
        self.next += 1;
        while self.lines.len() > KEPT_LINES || self.bytes > KEPT_BYTES {
            let dropped = self.lines.pop_front();
            self.bytes -= dropped.map_or(0, |line| line.message.len());
        }
    }

    /// Opens the file when it is first needed, and reads its last lines.
    fn open(&mut self) {
        let LogFile::Unopened(path) = &self.file else {
            return;
        };
        let path = path.clone();
        let earlier = read_back(&path).unwrap_or_default();
        for line in earlier.lines().filter_map(parse) {
            let (time, level, origin, message) = line;
            self.keep(time, level, origin, message.into());
        }
        self.file = LogFile::open(path);
    }
}

/// A reader that waits for new lines.
#[derive(Debug)]
pub struct Follower {
    log: Arc<ClipLog>,
    next: u64,
}

/// An item of a [`Follower`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// The next line.
    Line(LogEntry),
    /// The number of lines that left memory before they were read.
    Missed(u64),
}

impl Follower {
    /// Waits for the next line; `None` when the log is closed. The future may be dropped at any time without losing
    /// lines.
    pub async fn next(&mut self) -> Option<Followed> {
        loop {
            let changed = self.log.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let inner = self.log.inner();
                let first = inner.next - inner.lines.len() as u64;
                if self.next < first {
                    let missed = first - self.next;
                    self.next = first;
                    return Some(Followed::Missed(missed));
                }
                if let Some(line) = inner.lines.get((self.next - first) as usize) {
                    self.next += 1;
                    return Some(Followed::Line(line.clone()));
                }
                if inner.closed {
                    return None;
                }
            }
            changed.await;
        }
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_LINE)]
}
