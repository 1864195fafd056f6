//! The thread that owns the protocol's descriptor.

use std::fs::File;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Outgoing, Queue, Records};

/// Prints items as records. It runs on the writer's thread at the moment of writing, so that items
/// in the queue stay small whatever their printed size.
pub trait Project: Send + 'static {
    /// The type of the items.
    type Item: Outgoing;

    /// Adds the records of `item` to `records`.
    fn project(&mut self, item: Self::Item, records: &mut Records);

    /// Runs when every waiting item has been added and the records are about to be written. State
    /// that must be stored before a reader may see the records is stored here; an implementation
    /// that adds much at a time also checks [`Records::would_write`].
    fn before_flush(&mut self, _records: &mut Records) {}
}

/// The result of the writer's thread.
#[derive(Debug)]
pub enum WriterEnd {
    /// The queue was closed and everything has been written.
    Complete,
    /// The reader closed its end or the descriptor failed; nothing more is written.
    Broken(io::Error),
}

/// The running writer thread.
#[derive(Debug)]
pub struct Writer {
    thread: Option<JoinHandle<WriterEnd>>,
}

impl Writer {
    /// Starts writing the items of `queue` to `descriptor`.
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
                    queue.mark_broken();
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

    /// Waits like [`Writer::join`], but at most `timeout`; `None` if the writer has not finished by
    /// then.
    pub fn join_within(self, timeout: Duration) -> Option<WriterEnd> {
        let deadline = Instant::now() + timeout;
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

    /// Waits like [`Writer::join`], or until `interrupted` completes, whose output is the error. Must be awaited inside
    /// the runtime.
    pub async fn join_unless<T>(
        self,
        interrupted: impl Future<Output = T>,
    ) -> Result<WriterEnd, T> {
        tokio::select! {
            end = tokio::task::spawn_blocking(move || self.join()) => {
                Ok(end.unwrap_or_else(|error| WriterEnd::Broken(error.into())))
            }
            interruption = interrupted => Err(interruption),
        }
    }

    /// Waits until everything is written or writing has failed. Close the queue first.
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
    fn an_interruption_ends_the_wait_for_a_reader_that_never_reads() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let (reader, writer) = pipe();
        let queue = Queue::new(Coalesce::WhenBehind);
        let thread = Writer::spawn(writer, Print, queue.clone()).unwrap();
        // More than a pipe holds, so that the writer waits.
        queue.push(Text("x".repeat(1 << 20)));
        queue.close();
        let interrupted = runtime.block_on(thread.join_unless(std::future::ready(143)));
        assert!(matches!(interrupted, Err(143)));
        drop(reader);

        let (reader, writer) = pipe();
        let queue = Queue::new(Coalesce::WhenBehind);
        let thread = Writer::spawn(writer, Print, queue.clone()).unwrap();
        queue.push(Text("x".into()));
        queue.close();
        let written = runtime.block_on(thread.join_unless(std::future::pending::<()>()));
        assert!(matches!(written, Ok(WriterEnd::Complete)));
        drop(reader);
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
