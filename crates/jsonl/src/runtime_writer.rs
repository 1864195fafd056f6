//! The task that writes to a pipe or a socket on the runtime's own thread, and lends the output to a thread while there is
//! much to print or the reader is slow.
//!
//! Order, merging and back-pressure are those of the queue, in both cases.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::sync::Notify;

use crate::Queue;
use crate::nowait::StreamKind;
use crate::output::{Borrowed, Handover, Step, spawn_writer};
use crate::writer::Project;

/// Writes until the queue is closed and empty, writing fails, or another thread takes the output to finish it.
pub(crate) async fn write_on_runtime<P: Project>(
    handover: Arc<Handover<P>>,
    queue: Queue<P::Item>,
    kind: StreamKind,
) {
    let mut thread = None;
    loop {
        queue.filled().await;
        let Some(mut borrowed) = handover.take() else {
            return;
        };
        let step = borrowed
            .output()
            .map_or(Step::Ended, |output| output.write_light(kind));
        match step {
            Step::Idle => {}
            Step::Ended => return borrowed.finish(),
            Step::Heavy => {
                let helper = match thread.take() {
                    Some(helper) => helper,
                    None => match Helper::start() {
                        Some(helper) => helper,
                        // Without a thread the output cannot wait for its reader.
                        None => return borrowed.run_to_end(),
                    },
                };
                if !helper.catch_up(borrowed).await {
                    return;
                }
                thread = Some(helper);
            }
        }
    }
}

/// The thread that writes while it would delay the runtime.
struct Helper<P: Project> {
    work: SyncSender<Borrowed<P>>,
    returned: Arc<Notify>,
}

impl<P: Project> Helper<P> {
    fn start() -> Option<Self> {
        // One output exists, so one can wait.
        let (work, lent) = sync_channel::<Borrowed<P>>(1);
        let returned = Arc::new(Notify::new());
        let notify = Arc::clone(&returned);
        let started = spawn_writer(move || {
            // Notifies the task when it is dropped, even by a panic of the printer.
            struct Return(Arc<Notify>);
            impl Drop for Return {
                fn drop(&mut self) {
                    self.0.notify_one();
                }
            }
            while let Ok(mut borrowed) = lent.recv() {
                let _returned = Return(Arc::clone(&notify));
                let step = borrowed
                    .output()
                    .map_or(Step::Ended, |output| output.catch_up());
                if step == Step::Ended {
                    borrowed.finish();
                } else {
                    drop(borrowed);
                }
            }
        });
        started.is_ok().then_some(Self { work, returned })
    }

    /// Lends the output until nothing is waiting. Returns false if the thread is gone.
    async fn catch_up(&self, borrowed: Borrowed<P>) -> bool {
        if self.work.send(borrowed).is_err() {
            return false;
        }
        self.returned.notified().await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coalesce, Outgoing, Records, Writer, WriterEnd};
    use std::fs::File;
    use std::io::{self, Read};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Mutex;
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    struct Text(String);

    impl Outgoing for Text {
        fn absorb(&mut self, next: Self) -> Result<(), Self> {
            Err(next)
        }
        fn weight(&self) -> usize {
            self.0.len()
        }
    }

    /// Prints texts and notes the threads it runs on.
    struct Print(Arc<Mutex<Vec<ThreadId>>>);

    impl Project for Print {
        type Item = Text;
        fn project(&mut self, item: Text, records: &mut Records) {
            assert_ne!(item.0, "panic", "requested");
            self.0.lock().unwrap().push(thread::current().id());
            records.push(&[item.0.as_bytes(), b"\n"]);
        }
    }

    struct Stage {
        queue: Queue<Text>,
        threads: Arc<Mutex<Vec<ThreadId>>>,
        writer: Writer,
    }

    fn start(descriptor: impl Into<OwnedFd>) -> Stage {
        let queue = Queue::new(Coalesce::Never);
        let threads = Arc::default();
        let print = Print(Arc::clone(&threads));
        let file = File::from(descriptor.into());
        let writer = Writer::spawn_on_runtime(file, print, queue.clone()).unwrap();
        Stage {
            queue,
            threads,
            writer,
        }
    }

    fn read_to_end(mut input: impl Read + Send + 'static) -> thread::JoinHandle<String> {
        thread::spawn(move || {
            let mut text = String::new();
            input.read_to_string(&mut text).unwrap();
            text
        })
    }

    async fn in_order(input: impl Read + Send + 'static, output: impl Into<OwnedFd>) {
        let Stage { queue, writer, .. } = start(output);
        let read = read_to_end(input);
        let mut expected = String::new();
        for index in 0..3000 {
            let line = format!("{index}:{}", "x".repeat(index * 7 % 90_000));
            expected.push_str(&line);
            expected.push('\n');
            queue.push(Text(line));
            if index % 5 == 0 {
                queue.room().await;
                tokio::task::yield_now().await;
            }
        }
        queue.close();
        let end = writer.join_unless(std::future::pending::<()>()).await;
        assert!(matches!(end, Ok(WriterEnd::Complete)));
        assert_eq!(read.join().unwrap(), expected);
    }

    #[tokio::test]
    async fn everything_arrives_in_order_through_a_pipe() {
        let (input, output) = io::pipe().unwrap();
        in_order(input, output).await;
    }

    #[tokio::test]
    async fn everything_arrives_in_order_through_a_socket() {
        let (input, output) = UnixStream::pair().unwrap();
        in_order(input, output).await;
    }

    #[tokio::test]
    async fn little_is_written_by_the_runtime_and_much_by_a_thread() {
        let (mut input, output) = io::pipe().unwrap();
        let stage = start(output);
        let mut line = [0; 6];
        for _ in 0..10 {
            stage.queue.push(Text("small".into()));
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            input.read_exact(&mut line).unwrap();
        }
        let here = thread::current().id();
        assert!(stage.threads.lock().unwrap().iter().all(|one| *one == here));
        stage.queue.push(Text("x".repeat(1 << 20)));
        stage.queue.push(Text("small".into()));
        let read = read_to_end(input);
        stage.queue.close();
        let end = stage.writer.join_unless(std::future::pending::<()>()).await;
        assert!(matches!(end, Ok(WriterEnd::Complete)));
        assert_eq!(read.join().unwrap().len(), (1 << 20) + 1 + 6);
        assert!(stage.threads.lock().unwrap().iter().any(|one| *one != here));
    }

    #[test]
    fn what_is_left_when_the_runtime_stops_is_written_by_a_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let (input, output) = io::pipe().unwrap();
        let stage = runtime.block_on(async { start(output) });
        stage.queue.push(Text("late".into()));
        stage.queue.close();
        // The task does not run any more.
        let read = read_to_end(input);
        assert!(matches!(stage.writer.join(), WriterEnd::Complete));
        assert_eq!(read.join().unwrap(), "late\n");
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_delays_neither_the_runtime_nor_a_bounded_wait() {
        let (input, output) = io::pipe().unwrap();
        let stage = start(output);
        for _ in 0..100 {
            stage.queue.push(Text("x".repeat(10_000)));
            tokio::task::yield_now().await;
        }
        stage.queue.close();
        let writer = stage.writer;
        let waited = tokio::task::spawn_blocking(|| writer.join_within(Duration::from_millis(50)));
        assert!(waited.await.unwrap().is_none());
        drop(input);
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_and_a_printer_that_panics_end_the_writer() {
        let (input, output) = io::pipe().unwrap();
        drop(input);
        let stage = start(output);
        stage.queue.push(Text("x".into()));
        stage.queue.broken().await;
        let end = stage.writer.join_unless(std::future::pending::<()>()).await;
        assert!(
            matches!(end, Ok(WriterEnd::Broken(error)) if error.kind() == io::ErrorKind::BrokenPipe)
        );
        for size in [0, 1 << 20] {
            let (_input, output) = io::pipe().unwrap();
            let stage = start(output);
            stage.queue.push(Text("panic".into()));
            stage.queue.push(Text("x".repeat(size)));
            stage.queue.close();
            let end = stage.writer.join_unless(std::future::pending::<()>()).await;
            assert!(matches!(end, Ok(WriterEnd::Broken(_))));
        }
    }
}
