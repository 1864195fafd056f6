//! What a clip says beside its answers: lines of its error output, log messages, stray lines, and what we say about it.
//!
//! The last lines are kept in memory, for those who ask and those who follow; all go to a file that is rotated once and read
//! again for those who ask for more.
//! Nobody who follows can hold up the clip or make it cost memory: who falls behind is told how much was missed.

mod file;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use file::{LogFile, parse, read_back};

/// The most lines kept in memory.
const KEPT_LINES: usize = 1000;
/// The most bytes of lines kept in memory.
const KEPT_BYTES: usize = 1024 * 1024;
/// So many texts are kept out of a log.
const MAX_SECRETS: usize = 16;
/// How long after it was said a line may come.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(7 * 24);
/// A longer line is cut.
pub const MAX_LINE: usize = 64 * 1024;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For its author.
    Debug,
    /// For the record.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
}

impl Level {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// Reads a level in any case; what is unknown is information.
    pub fn parse(name: &str) -> Self {
        Self::named(name).unwrap_or(Self::Info)
    }

    /// The level of this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "trace" | "debug" => Some(Self::Debug),
            "info" | "notice" => Some(Self::Info),
            "warn" | "warning" => Some(Self::Warn),
            "error" | "err" | "fatal" | "critical" => Some(Self::Error),
            _ => None,
        }
    }

    /// The level of a line of plain text: that of the word it starts with, if it is one.
    fn of_line(line: &str) -> Self {
        let line = line.trim_start().trim_start_matches('[');
        let end = line
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(line.len());
        Self::named(&line[..end]).unwrap_or(Self::Info)
    }
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The clip's error output.
    Stderr,
    /// A line of its output that is not part of the protocol.
    Stdout,
    /// A log message of the protocol.
    Ipc,
    /// A log message of a remote provider.
    Provider,
    /// Ourselves.
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
    /// Its name.
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

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its place among all lines of this log since we started; 0 for those before.
    pub sequence: u64,
    /// When it came.
    pub time: Timestamp,
    /// How much it matters.
    pub level: Level,
    /// Where it came from.
    pub origin: Origin,
    /// The line.
    pub message: Arc<str>,
}

/// The log of one clip.
#[derive(Debug)]
pub struct ClipLog {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug)]
struct Inner {
    lines: VecDeque<LogEntry>,
    bytes: usize,
    next: u64,
    file: LogFile,
    /// Never written down.
    secrets: Vec<String>,
    closed: bool,
}

impl ClipLog {
    /// A log in `path`, and in `path` with `.1` behind it. What an earlier process wrote is remembered.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self::new(LogFile::Unopened(path.into()))
    }

    /// A log without a file.
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
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a text out of this log from now on, until many others have come after it.
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

    /// Adds a line.
    pub fn push(&self, level: Level, origin: Origin, message: &str) {
        self.inner().push(level, origin, message);
        self.changed.notify_waiters();
    }

    /// Adds a line that was said at another time, if that can be true: not later than now, and in the last seven days.
    pub fn push_with_time(&self, time: Timestamp, level: Level, origin: Origin, message: &str) {
        let now = Timestamp::now();
        let known = time <= now && now.duration_since(time) <= MAX_AGE;
        let time = if known { time } else { now };
        self.inner().push_at(time, level, origin, message);
        self.changed.notify_waiters();
    }

    /// Adds a line of the clip's error output.
    pub fn stderr(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        self.push(Level::of_line(&line), Origin::Stderr, &line);
    }

    /// Adds what we have to say about the clip.
    pub(crate) fn system(&self, level: Level, message: &str) {
        self.push(level, Origin::System, message);
    }

    /// The last `count` lines of those in memory, oldest first.
    pub fn tail(&self, count: usize) -> Vec<LogEntry> {
        let mut inner = self.inner();
        inner.open();
        let skip = inner.lines.len().saturating_sub(count);
        inner.lines.iter().skip(skip).cloned().collect()
    }

    /// Follows the log: the last `count` lines, then each as it comes.
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

    /// The last `count` lines that are `wanted`, oldest first, and who reads along from there. Files are read if there are not
    /// enough in memory.
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
            // Nobody who has something to say waits while it is understood.
            drop(inner);
            let older = texts.iter().rev().flat_map(|text| text.lines().rev());
            let older = older.filter_map(parse).skip(known).map(LogEntry::earlier);
            let missing = count - found.len();
            found.extend(older.filter(wanted).take(missing));
        }
        found.reverse();
        (found, follower)
    }

    /// Nothing more will come: those who follow are told.
    pub fn close(&self) {
        self.inner().closed = true;
        self.changed.notify_waiters();
    }

    /// More will come after all.
    pub fn reopen(&self) {
        self.inner().closed = false;
    }
}

impl LogEntry {
    /// A line that is no longer in memory.
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

    /// Opens the file when it is first needed, and remembers what is in it.
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

/// Someone who reads along.
#[derive(Debug)]
pub struct Follower {
    log: Arc<ClipLog>,
    next: u64,
}

/// What someone who reads along gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// The next line.
    Line(LogEntry),
    /// So many lines came faster than they were read and are gone.
    Missed(u64),
}

impl Follower {
    /// Waits for the next line; `None` when the log is closed. May be dropped at any time.
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
