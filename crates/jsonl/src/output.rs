//! The output of a protocol, and the place where its writers pass it to each other.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use tokio::sync::Notify;

use crate::nowait::StreamKind;
use crate::queue::Taken;
use crate::records::Flushed;
use crate::writer::{Project, WriterEnd};
use crate::{Queue, Records};

/// Bytes up to which the runtime prints and writes itself; more would delay the other work of its thread.
const LIGHT: usize = 16 * 1024;

/// A descriptor with its printer and its queue. One thread or task at a time has it.
pub(crate) struct Output<P: Project> {
    records: Records,
    project: P,
    queue: Queue<P::Item>,
}

/// The result of one step of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Everything that was waiting is written.
    Idle,
    /// There is too much for the runtime's thread, or the descriptor takes no more for now.
    Heavy,
    /// The queue is closed and everything is written, or writing has failed.
    Ended,
}

impl<P: Project> Output<P> {
    pub(crate) fn new(descriptor: File, project: P, queue: Queue<P::Item>) -> Self {
        Self {
            records: Records::new(descriptor),
            project,
            queue,
        }
    }

    /// Prints and writes until the queue is closed and empty, or writing fails. Blocks.
    fn run_to_end(&mut self) {
        let Self {
            records,
            project,
            queue,
        } = self;
        while let Some(item) = queue.pop(|| {
            project.before_flush(records);
            records.flush()
        }) {
            project.project(item, records);
            if records.failure().is_some() {
                break;
            }
        }
        project.before_flush(records);
        records.flush();
    }

    /// Prints and writes until nothing is waiting. Blocks.
    pub(crate) fn catch_up(&mut self) -> Step {
        let mut flushed = false;
        loop {
            match self.queue.take() {
                Taken::Item(item) => {
                    self.project.project(item, &mut self.records);
                    flushed = false;
                }
                Taken::Empty | Taken::Closed if !flushed => {
                    self.project.before_flush(&mut self.records);
                    self.records.flush();
                    flushed = true;
                }
                Taken::Empty => return Step::Idle,
                Taken::Closed => return Step::Ended,
            }
            if self.records.failure().is_some() {
                return Step::Ended;
            }
        }
    }

    /// Prints and writes what is waiting if it is little and the descriptor takes it at once. Never blocks.
    pub(crate) fn write_light(&mut self, kind: StreamKind) -> Step {
        if self.queue.weight() > LIGHT || self.records.collected() > LIGHT {
            return Step::Heavy;
        }
        let Self {
            records,
            project,
            queue,
        } = self;
        let mut closed = false;
        records.holding(|records| {
            while records.collected() <= LIGHT {
                match queue.take() {
                    Taken::Item(item) => project.project(item, records),
                    Taken::Empty => break,
                    Taken::Closed => {
                        closed = true;
                        break;
                    }
                }
            }
        });
        if records.collected() > LIGHT {
            return Step::Heavy;
        }
        project.before_flush(records);
        match records.flush_without_wait(kind) {
            Flushed::Part => Step::Heavy,
            Flushed::All if closed || records.failure().is_some() => Step::Ended,
            Flushed::All => Step::Idle,
        }
    }

    /// Ends the queue if writing has failed, and returns the result.
    fn end(self) -> WriterEnd {
        match self.records.failure() {
            Some(error) => {
                self.queue.mark_broken();
                WriterEnd::Broken(io::Error::new(error.kind(), error.to_string()))
            }
            None => WriterEnd::Complete,
        }
    }
}

/// The place of an [`Output`] while no task and no thread uses it, and of the result in the end.
pub(crate) struct Handover<P: Project> {
    state: Mutex<HandoverState<P>>,
    changed: Condvar,
    ended: Notify,
}

struct HandoverState<P: Project> {
    output: Option<Output<P>>,
    end: Option<WriterEnd>,
}

impl<P: Project> Handover<P> {
    pub(crate) fn new(output: Output<P>) -> Arc<Self> {
        let state = HandoverState {
            output: Some(output),
            end: None,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            ended: Notify::new(),
        })
    }

    /// Takes the output. `None` if another thread has it or it has ended.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Borrowed<P>> {
        let output = self.lock().output.take()?;
        Some(Borrowed {
            home: Arc::clone(self),
            output: Some(output),
        })
    }

    /// Waits for the end until `deadline`. If nothing else uses the output, a thread of its own writes what is left.
    pub(crate) fn end_by(self: &Arc<Self>, deadline: Option<Instant>) -> Option<WriterEnd> {
        let mut state = self.lock();
        loop {
            if let Some(end) = state.end.take() {
                return Some(end);
            }
            if state.output.is_some() {
                drop(state);
                self.finish_on_thread();
                state = self.lock();
                continue;
            }
            let Some(deadline) = deadline else {
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the end, which a task or a thread brings about.
    pub(crate) async fn end(&self) -> WriterEnd {
        loop {
            let ended = self.ended.notified();
            if let Some(end) = self.lock().end.take() {
                return end;
            }
            ended.await;
        }
    }

    /// Writes to the end on a new thread, or on this one if no thread can start.
    fn finish_on_thread(self: &Arc<Self>) {
        let Some(output) = self.take() else { return };
        // An output whose thread did not start has returned.
        if spawn_writer(move || output.run_to_end()).is_err()
            && let Some(output) = self.take()
        {
            output.run_to_end();
        }
    }

    fn put(&self, output: Output<P>) {
        self.lock().output = Some(output);
        self.changed.notify_all();
    }

    fn set_end(&self, end: WriterEnd) {
        self.lock().end = Some(end);
        self.changed.notify_all();
        self.ended.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, HandoverState<P>> {
        // The state is two options; a panic elsewhere cannot leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An output in use. It returns to its [`Handover`] when it is dropped; after a panic of its printer it has ended.
pub(crate) struct Borrowed<P: Project> {
    home: Arc<Handover<P>>,
    output: Option<Output<P>>,
}

impl<P: Project> Borrowed<P> {
    pub(crate) fn output(&mut self) -> Option<&mut Output<P>> {
        self.output.as_mut()
    }

    /// Reports the end of the output.
    pub(crate) fn finish(mut self) {
        if let Some(output) = self.output.take() {
            self.home.set_end(output.end());
        }
    }

    /// Writes to the end and reports it. Blocks.
    pub(crate) fn run_to_end(mut self) {
        if let Some(output) = &mut self.output {
            output.run_to_end();
        }
        self.finish();
    }
}

impl<P: Project> Drop for Borrowed<P> {
    fn drop(&mut self) {
        if let Some(output) = self.output.take() {
            if thread::panicking() {
                output.queue.mark_broken();
                self.home.set_end(WriterEnd::Broken(io::Error::other(
                    "the writer stopped unexpectedly",
                )));
            } else {
                self.home.put(output);
            }
        }
    }
}

/// Starts a thread for a writer.
pub(crate) fn spawn_writer(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = thread::Builder::new().name("writer".into());
    builder.stack_size(256 * 1024).spawn(work).map(drop)
}
