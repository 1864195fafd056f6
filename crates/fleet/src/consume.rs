//! Consumes the output of a child: every byte goes to its log, every line to its adapter as it arrives.
//!
//! A line is held in memory only while its kind is unknown or if it has to be parsed in full. Of other lines only the kind
//! is stored, however long they are. A line over the limit is cut in the log and interpreted by its kind alone. No output
//! of a child is an error.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::adapter::{Adapter, Reading};
use crate::{BatchLog, ChildEvent, peek, repair};

/// The longest line that is logged in full: 64 MiB.
pub const LINE_LIMIT: usize = pinion_jsonl::DEFAULT_LINE_LIMIT;
/// The number of bytes of an unfinished line in which its kind is searched.
const KIND_SEARCH_BYTES: usize = 4096;

/// Counts of the lines that a child printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// All lines, including a last line without a newline.
    pub lines: u64,
    /// All bytes, newlines included.
    pub bytes: u64,
    /// Lines that the adapter understood.
    pub events: u64,
    /// Lines that are not JSON.
    pub noise: u64,
    /// Last lines without a newline.
    pub truncated: u64,
    /// Lines over the limit, which were cut.
    pub cut: u64,
}

/// The part of an unfinished line that is held in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Everything so far: the kind is not known yet.
    Undecided,
    /// Everything: the line will be parsed in full.
    Whole,
    /// The kind, which is enough; nothing if the line is not an object.
    Kind,
}

/// Reads the output of one attempt.
#[derive(Debug)]
pub struct Consumer {
    adapter: Box<dyn Adapter>,
    log: BatchLog,
    limit: usize,
    /// The held part of the unfinished line.
    pending: Vec<u8>,
    held: Held,
    /// The length of the unfinished line in bytes.
    length: usize,
    /// Its last byte that is not whitespace.
    last: u8,
    counts: Counts,
}

impl Consumer {
    /// Creates a consumer that writes all output to `log`.
    pub fn new(adapter: Box<dyn Adapter>, log: BatchLog) -> Self {
        Self::with_limit(adapter, log, LINE_LIMIT)
    }

    /// Creates a consumer with another limit for the length of a line, in bytes.
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

    /// Consumes the next bytes and adds their events to `events`.
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
                self.add_to_line(line, now);
                self.log.push(b"\n", 1, now);
                self.end_line(events);
            }
            start = end + 1;
        }
        if start < bytes.len() {
            self.add_to_line(&bytes[start..], now);
        }
        self.log.flush_if_due(now);
    }

    /// Handles the end of the output, and a last line without a newline.
    pub fn finish(&mut self, events: &mut Vec<ChildEvent>) {
        if self.length > 0 {
            self.counts.truncated += 1;
            let noise = self.counts.noise;
            self.end_line(events);
            // A truncated line is not counted as noise as well.
            self.counts.noise = noise;
        }
        self.log.flush();
    }

    /// Returns the time at which the log has to be written although there is no new output.
    pub fn due(&self) -> Option<Duration> {
        self.log.due()
    }

    /// Writes the log if it is due.
    pub fn flush_if_due(&mut self, now: Duration) {
        self.log.flush_if_due(now);
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Reports whether exit code 0 would now mean that the child is done.
    pub fn clean_exit_means_done(&self) -> bool {
        self.adapter.clean_exit_means_done()
    }

    /// Returns the error after which the log is incomplete.
    pub fn log_failure(&self) -> Option<&std::io::Error> {
        self.log.failure()
    }

    /// Adds bytes to the unfinished line.
    fn add_to_line(&mut self, bytes: &[u8], now: Duration) {
        let room = self.limit.saturating_sub(self.length).min(bytes.len());
        self.log.push(&bytes[..room], 0, now);
        self.length += bytes.len();
        if let Some(last) = bytes.iter().rev().find(|byte| !byte.is_ascii_whitespace()) {
            self.last = *last;
        }
        if self.held != Held::Kind {
            self.pending.extend_from_slice(&bytes[..room]);
            if self.length > self.limit {
                // The kind may be in the part that arrived.
                let kind = peek::member(&self.pending, self.adapter.member());
                self.pending = kind.map(<[u8]>::to_vec).unwrap_or_default();
                self.held = Held::Kind;
            }
        }
        if self.held == Held::Undecided && self.pending.len() >= KIND_SEARCH_BYTES {
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
            // The kind may be at the end of the line.
            None | Some(_) => Held::Whole,
        }
    }

    /// Ends the line that arrived in pieces.
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
                if !is_object {
                    self.counts.noise += u64::from(!is_cut);
                } else if self.adapter.needs_whole(&pending) {
                    self.read_kind_only(&pending, events);
                } else {
                    let reading = self.adapter.read(&pending, b"", events);
                    self.count(reading);
                }
            }
        }
    }

    fn whole_line(&mut self, line: &[u8], events: &mut Vec<ChildEvent>) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if !peek::is_object(line) {
            // Numbers, strings and lists are JSON, but no agent prints them as events.
            let other = line.len() < KIND_SEARCH_BYTES && is_json(line);
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

    /// Reads a line in full. An invalid line is repaired if possible; otherwise only its kind counts.
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
        if reading == Reading::Invalid
            && let Some(repaired) = repair::repair(line)
        {
            reading = read(repaired.as_bytes(), events);
        }
        if reading != Reading::Invalid {
            return self.count(reading);
        }
        events.truncate(before);
        match (is_json(line), kind) {
            (true, Some(kind)) => self.read_kind_only(kind, events),
            (true, None) => {}
            (false, _) => self.counts.noise += 1,
        }
    }

    /// Handles a line of which only the kind is known.
    fn read_kind_only(&mut self, kind: &[u8], events: &mut Vec<ChildEvent>) {
        let before = events.len();
        self.adapter.read_kind_only(kind, events);
        self.counts.events += u64::from(events.len() > before);
    }

    fn count(&mut self, reading: Reading) {
        match reading {
            Reading::Event => self.counts.events += 1,
            Reading::Ignored => {}
            Reading::Invalid => self.counts.noise += 1,
        }
    }
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

#[cfg(test)]
mod tests;
