//! Supervises the process of a clip, from the call that needs it until its calls are settled.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pinion_process::{Child, ChildEvent, EndingLimits, EndingStep, Exit};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::launch::{self, Started};
use super::outbox::{self, Outbox};
use super::reader::Reader;
use super::requests::Requests;
use super::stderr::{self, LastLines};
use crate::clip::{Issued, Status};
use crate::logs::Level;
use crate::shared::{ProcessEnd, SharedClip, Shutdown};
use crate::{ClipError, Code};

/// Time that the pipes of a process that has exited may stay open: a descendant may hold them, and the last lines must
/// arrive.
const PIPE_GRACE: Duration = Duration::from_secs(2);
/// The shortest interval between checks of whether a busy process has become idle.
const IDLE_CHECK_MIN: Duration = Duration::from_secs(2);

/// Starts processes for as long as calls need them.
pub(crate) async fn supervise(shared: Arc<SharedClip>) {
    while shared.is_wanted() {
        let start = shared.state().crashes.next_start(&shared.limits);
        if let Some(start) = start.filter(|start| Instant::now() < *start) {
            let next = shared.expire(Instant::now());
            let until = next.map_or(start, |next| next.min(start));
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = shared.work.notified() => {}
            }
            continue;
        }
        match launch::start(&shared).await {
            Ok(started) => {
                let end = Supervisor::new(shared.clone(), started).run().await;
                if end == ProcessEnd::Crashed {
                    let window = shared.limits.crash_window;
                    shared.state().crashes.add(Instant::now(), window);
                }
            }
            Err(error) => {
                shared.log.system(Level::Error, &error.message);
                shared.set_status(Status::error(error.message.to_string()));
                shared.settle(ProcessEnd::Crashed, &error);
            }
        }
    }
}

/// The reason for which the supervisor ends a process, in increasing strength.
#[derive(Debug, Clone)]
enum EndReason {
    None,
    /// The process closed its stdout while it was running.
    StdoutClosed(ClipError),
    /// The owner asked for the end, or the process was idle; the process is not at fault.
    Stopped,
    Fatal(ClipError),
}

impl EndReason {
    /// Replaces the reason by a stronger one. Of two equally strong reasons the first stays.
    fn raise(&mut self, reason: Self) {
        if reason.strength() > self.strength() {
            *self = reason;
        }
    }

    fn strength(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::StdoutClosed(_) => 1,
            Self::Stopped => 2,
            Self::Fatal(_) => 3,
        }
    }
}

/// One process with its pipes and tasks.
struct Supervisor {
    shared: Arc<SharedClip>,
    child: Child,
    outbox: Arc<Outbox>,
    reader: JoinHandle<()>,
    /// The end of its stdout was reached.
    stdout_ended: bool,
    writer: JoinHandle<()>,
    stderr: JoinHandle<()>,
    last_lines: LastLines,
    gone: CancellationToken,
    /// Holds the lease of its token.
    _token: Option<Issued>,
    started: Instant,
    /// The reason for which the supervisor ends the process.
    reason: EndReason,
}

impl Supervisor {
    fn new(shared: Arc<SharedClip>, started: Started) -> Self {
        let outbox = Arc::new(Outbox::default());
        let gone = CancellationToken::new();
        shared.state().stage.started(outbox.clone());
        debug!(
            alias = shared.alias(),
            pid = started.running.pid(),
            "clip started"
        );
        let message = format!("started, process {}", started.running.pid());
        shared.log.system(Level::Debug, &message);
        let requests = Requests::new(shared.clone(), outbox.clone(), gone.clone());
        let pipes = started.pipes;
        let reader = Reader::new(shared.clone(), requests).read(pipes.stdout);
        let writer = outbox::write(shared.clone(), outbox.clone(), pipes.stdin);
        let last_lines = LastLines::new();
        let stderr = stderr::drain(shared.log.clone(), pipes.stderr, last_lines.clone());
        let shutdown_time = shared.limits.shutdown_time;
        let limits = EndingLimits {
            input_closed: shutdown_time,
            terminated: shutdown_time,
            killed: shutdown_time,
            exited: PIPE_GRACE,
        };
        Self {
            child: Child::new(started.running, limits),
            reader: tokio::spawn(reader),
            stdout_ended: false,
            writer: tokio::spawn(writer),
            stderr: tokio::spawn(stderr),
            last_lines,
            shared,
            outbox,
            gone,
            _token: started.token,
            started: Instant::now(),
            reason: EndReason::None,
        }
    }

    async fn run(mut self) -> ProcessEnd {
        while !self.is_over() {
            let wake = self.check(Instant::now());
            let wake = wake.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
            tokio::select! {
                event = self.child.next() => self.child_event(event),
                _ = &mut self.reader, if !self.stdout_ended => self.stdout_closed(),
                () = self.shared.work.notified() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
        self.close().await
    }

    /// Reports whether the process has exited and its output was read, or whether it survived being killed.
    fn is_over(&self) -> bool {
        self.child.exit().is_some() && self.stdout_ended || self.child.step() == EndingStep::GivenUp
    }

    fn child_event(&mut self, event: ChildEvent) {
        match event {
            ChildEvent::Exited(exit) => {
                debug!(alias = self.shared.alias(), ?exit, "clip exited");
                if let Some(process) = self.shared.state().stage.process_mut() {
                    process.exit();
                }
                // Descendants may hold its pipes, and must not outlive it.
                self.child.kill_descendants();
                self.outbox.close();
            }
            // A slow caller may still be reading the last lines. Otherwise, only other processes hold the output open.
            ChildEvent::Step(EndingStep::GivenUp) if self.child.exit().is_some() => {
                if !self.shared.paused.load(Ordering::Relaxed) {
                    self.reader.abort();
                }
            }
            ChildEvent::Step(_) => self.outbox.close(),
        }
    }

    /// Handles the end of stdout: no answer can arrive any more.
    fn stdout_closed(&mut self) {
        self.stdout_ended = true;
        if !self.child.is_ending() && !self.has_failed() {
            let message = format!("clip \"{}\" closed its output", self.shared.alias());
            self.reason.raise(EndReason::StdoutClosed(ClipError::new(
                Code::Unavailable,
                message,
            )));
            self.begin_shutdown();
        }
    }

    fn has_failed(&self) -> bool {
        let state = self.shared.state();
        state
            .stage
            .process()
            .is_some_and(|process| process.has_failed())
    }

    fn begin_shutdown(&mut self) {
        self.shared.state().stage.shut_down();
        self.outbox.close();
        self.shared.room.notify_one();
        self.child.input_closed();
    }

    /// Handles passed deadlines, errors and requests to end. Returns the time of the next check.
    fn check(&mut self, now: Instant) -> Option<Instant> {
        let mut wake = self.shared.expire(now);
        let mut earlier = |other: Option<Instant>| {
            wake = wake.into_iter().chain(other).min();
        };
        earlier(self.shared.check_start(self.started, now));
        let shutdown_requested = self.shared.shutdown_requested();
        let (fatal, stdin_closed) = match self.shared.state().stage.process_mut() {
            Some(process) => (process.take_fatal(), process.is_stdin_closed()),
            None => (None, false),
        };
        if let Some(fatal) = fatal {
            self.shared.log.system(Level::Error, &fatal.error.message);
            self.shared.fail_all(&fatal.error);
            self.reason.raise(EndReason::Fatal(fatal.error));
            match fatal.shutdown {
                Shutdown::Immediate => self.kill(),
                Shutdown::Graceful => self.terminate(),
            }
        }
        match shutdown_requested {
            Some(Shutdown::Immediate) if self.child.step() < EndingStep::Killed => {
                self.reason.raise(EndReason::Stopped);
                let error = self.stopped();
                self.shared.fail_all(&error);
                self.kill();
            }
            Some(Shutdown::Graceful) if !self.child.is_ending() => {
                self.reason.raise(EndReason::Stopped);
                self.begin_shutdown();
            }
            _ => {}
        }
        if stdin_closed && !self.child.is_ending() {
            self.begin_shutdown();
        }
        earlier(self.check_idle(now));
        wake
    }

    fn check_idle(&mut self, now: Instant) -> Option<Instant> {
        let state = self.shared.state();
        let limit = if state.is_stale() {
            Duration::ZERO
        } else {
            self.shared.limits.idle?
        };
        if state.stage.accepting().is_none() || !state.is_idle() {
            // The supervisor is not woken when the last call ends, so it must check again.
            return Some(now + limit.max(IDLE_CHECK_MIN));
        }
        let until = state.idle_since + limit;
        drop(state);
        if until > now {
            return Some(until);
        }
        self.reason.raise(EndReason::Stopped);
        self.begin_shutdown();
        None
    }

    fn terminate(&mut self) {
        self.outbox.close();
        self.child.terminate();
    }

    fn kill(&mut self) {
        self.outbox.close();
        self.child.kill();
    }

    fn stopped(&self) -> ClipError {
        let message = format!("clip \"{}\" was stopped", self.shared.alias());
        ClipError::new(Code::Unavailable, message)
    }

    /// Settles the remaining calls and publishes the new status.
    async fn close(mut self) -> ProcessEnd {
        self.gone.cancel();
        self.reader.abort();
        self.writer.abort();
        let _ = tokio::time::timeout(PIPE_GRACE, &mut self.stderr).await;
        self.stderr.abort();
        let alias = self.shared.alias();
        let (end, error, status) = match (&self.reason, self.child.exit()) {
            (EndReason::Fatal(fatal), _) => (
                ProcessEnd::Crashed,
                fatal.clone(),
                Status::error(fatal.message.to_string()),
            ),
            (_, Some(Exit::Code(0))) => {
                let message = format!("clip \"{alias}\" ended without answering");
                let error = ClipError::new(Code::Unavailable, message);
                (ProcessEnd::Clean, error, Status::sleeping())
            }
            // The process was ended by a signal of the supervisor. An exit code other than 0 is a fault of the process.
            (EndReason::Stopped, None | Some(Exit::Signal(_) | Exit::Unknown)) => {
                (ProcessEnd::Stopped, self.stopped(), Status::sleeping())
            }
            // The supervisor sent the signal.
            (EndReason::StdoutClosed(error), Some(Exit::Signal(_))) => {
                let status = Status::error(error.message.to_string());
                (ProcessEnd::Crashed, error.clone(), status)
            }
            (_, exit) => {
                let message = format!("clip process crashed: {}", exit.unwrap_or(Exit::Unknown));
                self.shared.log.system(Level::Error, &message);
                // The last lines usually show the cause of the crash.
                let described = format!("{message}{}", self.last_lines.text());
                let error = ClipError::new(Code::Unavailable, described);
                (ProcessEnd::Crashed, error, Status::error(message))
            }
        };
        self.shared.set_status(status);
        self.shared.settle(end, &error);
        end
    }
}
