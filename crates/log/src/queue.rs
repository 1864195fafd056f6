//! The queue between the threads that log and the thread that writes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tracing::Level;

use crate::format::{Format, write_line};
use crate::mask::LogMask;
use crate::record::{Fields, Record, Value};

/// The most bytes of records that wait to be written. It is enough for several thousand records, and little beside the
/// rest of the program.
const LIMIT: usize = 2 * 1024 * 1024;

/// The destination of the lines.
#[derive(Debug)]
pub(crate) enum Sink {
    Stderr,
    File(File),
    #[cfg(test)]
    Test(tests::TestSink),
}

impl Sink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stderr => io::stderr().write_all(bytes),
            Self::File(file) => file.write_all(bytes),
            #[cfg(test)]
            Self::Test(sink) => sink.write_all(bytes),
        }
    }
}

/// Records that wait to be written.
#[derive(Debug)]
pub(crate) struct Queue {
    format: Format,
    state: Mutex<State>,
    /// Records or a count of dropped ones wait.
    filled: Condvar,
    /// The writer has written everything.
    emptied: Condvar,
}

#[derive(Debug)]
struct State {
    records: VecDeque<Record>,
    /// The size of `records`.
    bytes: usize,
    /// Records that found the queue full since the last one that was written.
    dropped: u64,
    /// The destination until the writer starts.
    unused_sink: Option<Sink>,
    is_writing: bool,
}

impl Queue {
    pub fn new(format: Format, sink: Sink) -> Arc<Self> {
        Arc::new(Self {
            format,
            state: Mutex::new(State {
                records: VecDeque::new(),
                bytes: 0,
                dropped: 0,
                unused_sink: Some(sink),
                is_writing: false,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before the lock is released.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record, or counts it as dropped if the queue is full. Never waits for the writer to write.
    pub fn push(self: &Arc<Self>, record: Record) {
        let size = record.size();
        let mut state = self.state();
        if state.bytes + size > LIMIT {
            state.dropped += 1;
        } else {
            state.bytes += size;
            state.records.push_back(record);
        }
        let sink = state.unused_sink.take();
        drop(state);
        self.filled.notify_one();
        if let Some(sink) = sink {
            let queue = Arc::clone(self);
            let thread = std::thread::Builder::new().name("log".to_owned());
            // Without a thread the queue fills up, and further records are dropped.
            let _ = thread.spawn(move || queue.write_on(sink));
        }
    }

    /// Waits until everything is written, at most for `timeout`.
    pub fn finish(&self, timeout: Duration) {
        let is_pending = |state: &mut State| {
            // If no writer was started, no record was logged.
            let has_writer = state.unused_sink.is_none();
            has_writer && (state.is_writing || state.dropped > 0 || !state.records.is_empty())
        };
        let state = self.state();
        drop(self.emptied.wait_timeout_while(state, timeout, is_pending));
    }

    /// Writes records as they come. Runs on the writer's thread until the process ends.
    fn write_on(&self, mut sink: Sink) {
        let mask = LogMask::new();
        let mut text = String::new();
        let mut lost = 0;
        loop {
            let (records, dropped) = self.next();
            text.clear();
            for record in &records {
                write_line(&mut text, record, self.format, &mask);
            }
            if dropped + lost > 0 {
                let record = dropped_record(dropped + lost);
                write_line(&mut text, &record, self.format, &mask);
            }
            lost = match sink.write_all(text.as_bytes()) {
                Ok(()) => 0,
                // The next line that can be written reports how many could not.
                Err(_) => lost + dropped + records.len() as u64,
            };
        }
    }

    /// Waits for records, and takes all of them.
    fn next(&self) -> (VecDeque<Record>, u64) {
        let mut state = self.state();
        state.is_writing = false;
        if state.records.is_empty() && state.dropped == 0 {
            self.emptied.notify_all();
        }
        let is_empty = |state: &mut State| state.records.is_empty() && state.dropped == 0;
        let mut state = self
            .filled
            .wait_while(state, is_empty)
            .unwrap_or_else(PoisonError::into_inner);
        state.is_writing = true;
        state.bytes = 0;
        let dropped = std::mem::take(&mut state.dropped);
        (std::mem::take(&mut state.records), dropped)
    }
}

fn dropped_record(count: u64) -> Record {
    Record {
        time: SystemTime::now(),
        level: Level::WARN,
        target: "pinion_log",
        fields: Fields {
            message: "records were dropped because the log was written too slowly".to_owned(),
            values: vec![("count", Value::Unsigned(count))],
        },
        spans: Vec::new(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    const TIMEOUT: Duration = Duration::from_secs(60);

    /// A sink that shows what is written, and waits until the test takes it.
    #[derive(Debug)]
    pub(crate) struct TestSink(pub SyncSender<String>);

    impl TestSink {
        pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.0.send(text).map_err(io::Error::other)
        }
    }

    /// Returns a queue whose writer waits until its output is received.
    pub(crate) fn queue(format: Format) -> (Arc<Queue>, Receiver<String>) {
        let (sender, written) = sync_channel(0);
        (Queue::new(format, Sink::Test(TestSink(sender))), written)
    }

    fn record(text: &str) -> Record {
        Record {
            time: SystemTime::now(),
            level: Level::INFO,
            target: "pinion_test",
            fields: Fields {
                message: text.to_owned(),
                values: Vec::new(),
            },
            spans: Vec::new(),
        }
    }

    #[test]
    fn a_writer_that_waits_drops_records_and_counts_them() {
        let (queue, written) = queue(Format::Text);
        queue.push(record("first"));
        while !queue.state().is_writing {
            std::thread::yield_now();
        }
        let long = "x".repeat(4000);
        for _ in 0..2 * LIMIT / 4000 {
            queue.push(record(&long));
        }
        assert!(queue.state().bytes <= LIMIT);
        let mut lines = Vec::new();
        while !lines.iter().any(|line: &String| line.contains("dropped")) {
            let text = written.recv_timeout(TIMEOUT).unwrap();
            lines.extend(text.lines().map(str::to_owned));
        }
        assert!(lines[0].ends_with("pinion_test: first"), "{}", lines[0]);
        let report = lines.last().unwrap();
        let count = report.rsplit_once("count=").unwrap().1;
        let count: usize = count.parse().unwrap();
        assert_eq!(lines.len() - 2 + count, 2 * LIMIT / 4000);
        assert!(count > 0);
    }

    #[test]
    fn the_end_waits_until_everything_is_written() {
        let (queue, written) = queue(Format::Text);
        queue.finish(TIMEOUT);
        queue.push(record("last"));
        let taker = std::thread::spawn(move || written.recv_timeout(TIMEOUT).unwrap());
        queue.finish(TIMEOUT);
        let state = queue.state();
        assert!(state.records.is_empty() && !state.is_writing);
        drop(state);
        assert!(taker.join().unwrap().contains("last"));
        // A reader that does not read delays the end only until the timeout.
        let (stuck, _written) = self::queue(Format::Text);
        stuck.push(record("never"));
        stuck.finish(Duration::from_millis(10));
    }
}
