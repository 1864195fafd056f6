//! The thread that owns the protocol's descriptor.

use std::fs::File;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Outgoing, Queue, Records};

/// Turns items into records. Runs on the writer's thread, at the moment of writing, so that what
/// waits in the queue is small whatever its printed size.
pub trait Project: Send + 'static {
    /// What it prints.
    type Item: Outgoing;

    /// Adds the records of `item` to `records`.
    fn project(&mut self, item: Self::Item, records: &mut Records);

    /// Runs when everything there was has been added and is about to be written. What must be kept
    /// before a reader may see it is kept here; whoever adds much at a time also asks
    /// [`Records::would_write`].
    fn before_flush(&mut self, _records: &mut Records) {}
}

/// How the writer's thread ended.
#[derive(Debug)]
pub enum WriterEnd {
    /// The queue was closed and everything has been written.
    Complete,
    /// The reader is gone or the descriptor failed; output is over.
    Broken(io::Error),
}

/// The running writer thread.
#[derive(Debug)]
pub struct Writer {
    thread: Option<JoinHandle<WriterEnd>>,
}

impl Writer {
    /// Starts writing what arrives on `queue` to `descriptor`.
    pub fn spawn<P: Project>(
        descriptor: File,
        mut project: P,
        queue: Queue<P::Item>,
    ) -> io::Result<Self> {
        let write = move || {
            let mut records = Records::new(descriptor);
            while let Some(item) = queue.pop(|| {
                project.before_flush(&mut records);
                records.flush()
            }) {
                project.project(item, &mut records);
                if records.failure().is_some() {
                    break;
                }
            }
            project.before_flush(&mut records);
            records.flush();
            match records.failure() {
                Some(error) => {
                    queue.break_off();
                    WriterEnd::Broken(io::Error::new(error.kind(), error.to_string()))
                }
                None => WriterEnd::Complete,
            }
        };
        let thread = thread::Builder::new()
            .name("writer".into())
            .stack_size(256 * 1024)
            .spawn(write)?;
        Ok(Self {
            thread: Some(thread),
        })
    }

    /// Waits as [`Writer::join`] does, but no longer than `patience`; `None` if the writer is not done by then.
    pub fn join_within(self, patience: Duration) -> Option<WriterEnd> {
        let deadline = Instant::now() + patience;
        while self
            .thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(2));
        }
        Some(self.join())
    }

    /// Waits until everything has been written, or cannot be. The queue must have been closed.
    pub fn join(mut self) -> WriterEnd {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(end)) => end,
            _ => WriterEnd::Broken(io::Error::other("the writer stopped unexpectedly")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Coalesce;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    struct Text(String);

    impl Outgoing for Text {
        fn absorb(&mut self, next: Self) -> Result<(), Self> {
            Err(next)
        }
        fn weight(&self) -> usize {
            self.0.len()
        }
    }

    struct Print;

    impl Project for Print {
        type Item = Text;
        fn project(&mut self, item: Text, records: &mut Records) {
            records.push(&[item.0.as_bytes(), b"\n"]);
        }
    }

    fn pipe() -> (io::PipeReader, File) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, File::from(OwnedFd::from(writer)))
    }

    #[test]
    fn everything_arrives_in_order() {
        let (mut reader, writer) = pipe();
        let queue = Queue::new(Coalesce::WhenBehind);
        let thread = Writer::spawn(writer, Print, queue.clone()).unwrap();
        let collect = thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        let mut expected = String::new();
        for index in 0..2000 {
            let line = format!("{index}:{}", "x".repeat(index * 7 % 40_000));
            expected.push_str(&line);
            expected.push('\n');
            queue.push(Text(line));
        }
        queue.close();
        assert!(matches!(thread.join(), WriterEnd::Complete));
        assert_eq!(collect.join().unwrap(), expected);
    }

    #[test]
    fn a_closed_reader_ends_the_writer() {
        let (reader, writer) = pipe();
        drop(reader);
        let queue = Queue::new(Coalesce::WhenBehind);
        let thread = Writer::spawn(writer, Print, queue.clone()).unwrap();
        queue.push(Text("x".into()));
        assert!(
            matches!(thread.join(), WriterEnd::Broken(error) if error.kind() == io::ErrorKind::BrokenPipe)
        );
        queue.push(Text("y".into()));
        assert!(queue.has_room());
    }
}
