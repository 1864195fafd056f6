//! The thread or the task that owns the protocol's descriptor.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::nowait::StreamKind;
use crate::output::{Handover, Output, spawn_writer};
use crate::runtime_writer::write_on_runtime;
use crate::{Outgoing, Queue, Records};

/// Prints items as records. It runs in the writer at the moment of writing, so that items
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

/// The result of a writer.
#[derive(Debug)]
pub enum WriterEnd {
    /// The queue was closed and everything has been written.
    Complete,
    /// The reader closed its end or the descriptor failed; nothing more is written.
    Broken(io::Error),
}

/// A running writer: a thread, or a task of the runtime.
pub struct Writer {
    ending: Arc<dyn Ending>,
}

/// The wait for the end of a writer, whatever the type of its items.
trait Ending: Send + Sync {
    fn end_by(self: Arc<Self>, deadline: Option<Instant>) -> Option<WriterEnd>;

    fn end(&self) -> Pin<Box<dyn Future<Output = WriterEnd> + Send + '_>>;
}

impl<P: Project> Ending for Handover<P> {
    fn end_by(self: Arc<Self>, deadline: Option<Instant>) -> Option<WriterEnd> {
        Self::end_by(&self, deadline)
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = WriterEnd> + Send + '_>> {
        Box::pin(self.end())
    }
}

impl Writer {
    /// Starts a thread that writes the items of `queue` to `descriptor`.
    pub fn spawn<P: Project>(
        descriptor: File,
        project: P,
        queue: Queue<P::Item>,
    ) -> io::Result<Self> {
        let handover = Handover::new(Output::new(descriptor, project, queue));
        if let Some(output) = handover.take() {
            spawn_writer(move || output.run_to_end())?;
        }
        Ok(Self { ending: handover })
    }

    /// Starts a task that writes the items of `queue` to `descriptor` on the runtime's own thread while there is little
    /// to print and the reader is fast enough, and on a thread otherwise. An item that is pushed on the runtime then
    /// reaches the reader without waking another thread. Must be called inside the runtime.
    ///
    /// The printer must neither block nor store anything in [`Project::before_flush`]. A descriptor that is neither a
    /// pipe nor a socket has a thread, as with [`Writer::spawn`].
    pub fn spawn_on_runtime<P: Project>(
        descriptor: File,
        project: P,
        queue: Queue<P::Item>,
    ) -> io::Result<Self> {
        let Some(kind) = StreamKind::of(descriptor.as_fd()) else {
            return Self::spawn(descriptor, project, queue);
        };
        let handover = Handover::new(Output::new(descriptor, project, queue.clone()));
        tokio::spawn(write_on_runtime(Arc::clone(&handover), queue, kind));
        Ok(Self { ending: handover })
    }

    /// Waits like [`Writer::join`], but at most `timeout`; `None` if the writer has not finished by
    /// then.
    pub fn join_within(self, timeout: Duration) -> Option<WriterEnd> {
        self.ending.end_by(Some(Instant::now() + timeout))
    }

    /// Waits like [`Writer::join`], or until `interrupted` completes, whose output is the error. Must be awaited inside
    /// the runtime in which the writer was started.
    pub async fn join_unless<T>(
        self,
        interrupted: impl Future<Output = T>,
    ) -> Result<WriterEnd, T> {
        tokio::select! {
            end = self.ending.end() => Ok(end),
            interruption = interrupted => Err(interruption),
        }
    }

    /// Waits until everything is written or writing has failed. Close the queue first.
    pub fn join(self) -> WriterEnd {
        self.ending.end_by(None).unwrap_or_else(|| {
            WriterEnd::Broken(io::Error::other("the writer stopped unexpectedly"))
        })
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Coalesce;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::thread;

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
