//! Reads what a child prints: every byte into its log, every line to its adapter as it arrives.
//!
//! A line is only held in memory while its kind is unknown or it has to be read in full; of others the kind is enough, however
//! long they are. A line past the limit is cut in the log and means what its kind says. Nothing that a child prints is an error.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::adapter::{Adapter, Reading};
use crate::{BatchLog, ChildEvent, mend, peek};

/// The longest line that is kept: 64 MiB.
pub const LINE_LIMIT: usize = pinion_jsonl::DEFAULT_LINE_LIMIT;
/// What of an unfinished line is looked at for its kind.
const HEAD: usize = 4096;

/// What was printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Lines, the last one too if it has no end.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
    /// Lines that meant something.
    pub events: u64,
    /// Lines that were no JSON.
    pub noise: u64,
    /// Lines at the end without an end.
    pub truncated: u64,
    /// Lines past the limit.
    pub cut: u64,
}

/// How much of an unfinished line is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// All so far: its kind is not known yet.
    Undecided,
    /// All of it will be read.
    Whole,
    /// Its kind, which says enough; nothing for a line that is no object.
    Kind,
}

/// The reader of one attempt.
#[derive(Debug)]
pub struct Consumer {
    adapter: Box<dyn Adapter>,
    log: BatchLog,
    limit: usize,
    /// What is held of the unfinished line.
    pending: Vec<u8>,
    held: Held,
    /// How long the unfinished line is.
    length: usize,
    /// The last byte of it that is no space.
    last: u8,
    counts: Counts,
}

impl Consumer {
    /// A reader that keeps everything in `log`.
    pub fn new(adapter: Box<dyn Adapter>, log: BatchLog) -> Self {
        Self::with_limit(adapter, log, LINE_LIMIT)
    }

    /// The same with another limit for lines.
    pub fn with_limit(adapter: Box<dyn Adapter>, log: BatchLog, limit: usize) -> Self {
        Self {
            adapter,
            log,
            limit,
            pending: Vec::new(),
            held: Held::Undecided,
            length: 0,
            last: 0,
            counts: Counts::default(),
        }
    }

    /// Takes the next bytes; what they mean is added to `events`.
    pub fn feed(&mut self, bytes: &[u8], now: Duration, events: &mut Vec<ChildEvent>) {
        self.counts.bytes += bytes.len() as u64;
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            let line = &bytes[start..end];
            if self.length == 0 && line.len() <= self.limit {
                self.log.push(&bytes[start..=end], 1, now);
                self.counts.lines += 1;
                self.whole_line(line, events);
            } else {
                self.take(line, now);
                self.log.push(b"\n", 1, now);
                self.end_line(events);
            }
            start = end + 1;
        }
        if start < bytes.len() {
            self.take(&bytes[start..], now);
        }
        self.log.settle(now);
    }

    /// Nothing more comes.
    pub fn finish(&mut self, events: &mut Vec<ChildEvent>) {
        if self.length > 0 {
            self.counts.truncated += 1;
            let noise = self.counts.noise;
            self.end_line(events);
            // It is one thing or the other.
            self.counts.noise = noise;
        }
        self.log.flush();
    }

    /// When the log has to be written although nothing comes.
    pub fn due(&self) -> Option<Duration> {
        self.log.due()
    }

    /// Writes to the log what is due.
    pub fn settle(&mut self, now: Duration) {
        self.log.settle(now);
    }

    /// What was printed so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether a clean exit now says that the child is done.
    pub fn exit_is_enough(&self) -> bool {
        self.adapter.exit_is_enough()
    }

    /// Why the log is not complete, if it is not.
    pub fn log_failure(&self) -> Option<&std::io::Error> {
        self.log.failure()
    }

    /// More of a line that does not end here.
    fn take(&mut self, bytes: &[u8], now: Duration) {
        let room = self.limit.saturating_sub(self.length).min(bytes.len());
        self.log.push(&bytes[..room], 0, now);
        self.length += bytes.len();
        if let Some(last) = bytes.iter().rev().find(|byte| !byte.is_ascii_whitespace()) {
            self.last = *last;
        }
        if self.held != Held::Kind {
            self.pending.extend_from_slice(&bytes[..room]);
            if self.length > self.limit {
                // What it is may still be known.
                let kind = peek::member(&self.pending, self.adapter.member());
                self.pending = kind.map(<[u8]>::to_vec).unwrap_or_default();
                self.held = Held::Kind;
            }
        }
        if self.held == Held::Undecided && self.pending.len() >= HEAD {
            self.held = self.decide();
        }
    }

    fn decide(&mut self) -> Held {
        if self.pending.trim_ascii_start().first() != Some(&b'{') {
            self.pending = Vec::new();
            return Held::Kind;
        }
        match peek::member(&self.pending, self.adapter.member()) {
            Some(kind) if !self.adapter.needs_whole(kind) => {
                self.pending = kind.to_vec();
                Held::Kind
            }
            // It may stand at the end.
            None | Some(_) => Held::Whole,
        }
    }

    /// The line that was taken in pieces is over.
    fn end_line(&mut self, events: &mut Vec<ChildEvent>) {
        self.counts.lines += 1;
        let pending = std::mem::take(&mut self.pending);
        let length = std::mem::take(&mut self.length);
        let last = std::mem::take(&mut self.last);
        match std::mem::replace(&mut self.held, Held::Undecided) {
            Held::Undecided | Held::Whole => self.whole_line(&pending, events),
            Held::Kind => {
                let is_object = !pending.is_empty() && last == b'}';
                let is_cut = length > self.limit;
                self.counts.cut += u64::from(is_cut);
                match is_object {
                    true if self.adapter.needs_whole(&pending) => self.gist(&pending, events),
                    true => {
                        let reading = self.adapter.read(&pending, b"", events);
                        self.count(reading);
                    }
                    false => self.counts.noise += u64::from(!is_cut),
                }
            }
        }
    }

    fn whole_line(&mut self, line: &[u8], events: &mut Vec<ChildEvent>) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if !peek::is_object(line) {
            // Numbers, texts and lists are JSON too, only not what anybody prints as an event.
            let other = line.len() < HEAD && is_json(line);
            self.counts.noise += u64::from(!other);
            return;
        }
        match peek::member(line, self.adapter.member()) {
            Some(kind) if self.adapter.needs_whole(kind) => self.read(Some(kind), line, events),
            Some(kind) => {
                let reading = self.adapter.read(kind, b"", events);
                self.count(reading);
            }
            None => self.read(None, line, events),
        }
    }

    /// Reads a line in full. One that cannot be read is mended if it can be, and else tells what its kind tells.
    fn read(&mut self, kind: Option<&[u8]>, line: &[u8], events: &mut Vec<ChildEvent>) {
        let before = events.len();
        let mut read = |line: &[u8], events: &mut Vec<ChildEvent>| {
            events.truncate(before);
            match kind {
                Some(kind) => self.adapter.read(kind, line, events),
                None => self.adapter.read_unnamed(line, events),
            }
        };
        let mut reading = read(line, events);
        if reading == Reading::Misfit
            && let Some(mended) = mend::mended(line)
        {
            reading = read(mended.as_bytes(), events);
        }
        if reading != Reading::Misfit {
            return self.count(reading);
        }
        events.truncate(before);
        match (is_json(line), kind) {
            (true, Some(kind)) => self.gist(kind, events),
            (true, None) => {}
            (false, _) => self.counts.noise += 1,
        }
    }

    /// What a line means of which only the kind is known.
    fn gist(&mut self, kind: &[u8], events: &mut Vec<ChildEvent>) {
        let before = events.len();
        self.adapter.gist(kind, events);
        self.counts.events += u64::from(events.len() > before);
    }

    fn count(&mut self, reading: Reading) {
        match reading {
            Reading::Event => self.counts.events += 1,
            Reading::Other => {}
            Reading::Misfit => self.counts.noise += 1,
        }
    }
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

#[cfg(test)]
mod tests;
