//! The calls of one clip and the state of its process, under one lock.
//!
//! A call waits until a process can accept it, is pending once its line is queued for the process, and ends once: with
//! an answer, at its deadline, when the caller cancels it, or with its process. Nothing in this module blocks or reads;
//! `process` does.

mod deadlines;
mod shutdown;
mod stage;
mod timed_out_calls;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use crate::call::{CallError, ClipCall, Push};
use crate::clip::{ClipConfig, ClipState, Snapshot, Status};
use crate::codec::{DetectedDialect, Failure};
use crate::cross_calls::CrossCalls;
use crate::limits::Limits;
use crate::logs::ClipLog;
use crate::manifest::{Identity, Manifest};
use crate::{ClipError, Code};

pub(crate) use shutdown::{Crashes, ProcessEnd};
use stage::ClipProcess;
pub(crate) use stage::{FatalError, ProcessStage, Shutdown, Start};

#[derive(Debug)]
pub(crate) struct SharedClip {
    pub(crate) config: ClipConfig,
    pub(crate) limits: Arc<Limits>,
    /// Unread bytes of all answers.
    pub(crate) unread: Arc<AtomicUsize>,
    pub(crate) log: Arc<ClipLog>,
    pub(crate) cross_calls: Arc<dyn CrossCalls>,
    pub(crate) snapshot: watch::Sender<Snapshot>,
    /// Wakes the supervisor of the process.
    pub(crate) work: Notify,
    /// Wakes the reader when a call that had no room may have some, or is no longer alone.
    pub(crate) room: Notify,
    /// Notified when a process has ended, and when its supervisor stops.
    pub(crate) over: Notify,
    /// The reader waits for a caller to read.
    pub(crate) paused: AtomicBool,
    state: Mutex<SharedState>,
    last_id: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) stage: ProcessStage,
    pub(crate) waiting: VecDeque<Arc<ClipCall>>,
    pub(crate) pending: HashMap<Box<str>, Arc<ClipCall>>,
    pub(crate) detected_dialect: Option<DetectedDialect>,
    pub(crate) crashes: Crashes,
    /// The manifest that the clip registered. It stays when the process has exited.
    running: Option<Manifest>,
    /// Set once the clip accepts no more calls.
    retired: Option<Retired>,
    /// Receivers that wait for the process to be ready.
    pub(crate) probes: Vec<oneshot::Sender<Result<(), ClipError>>>,
    /// The next deadline that the supervisor will wake up for.
    armed: Option<Instant>,
    /// Requests of the clip that are not answered yet.
    pub(crate) requests: usize,
    pub(crate) request_bytes: usize,
    pub(crate) idle_since: Instant,
}

/// The end of a clip that accepts no more calls.
#[derive(Debug)]
struct Retired {
    /// The error of calls that arrive later.
    error: ClipError,
    /// The request to end a process that is still running or being started.
    shutdown: Shutdown,
}

/// The end of an answer.
#[derive(Debug)]
pub(crate) enum CallOutcome {
    Result(Option<Bytes>),
    Failed(Failure),
}

impl SharedClip {
    pub(crate) fn new(
        config: ClipConfig,
        log: Arc<ClipLog>,
        cross_calls: Arc<dyn CrossCalls>,
    ) -> Arc<Self> {
        let limits = Arc::new(config.limits.clone());
        let state = SharedState {
            stage: ProcessStage::default(),
            waiting: VecDeque::new(),
            pending: HashMap::new(),
            detected_dialect: config.detected_dialect,
            crashes: Crashes::default(),
            running: config.manifest.clone(),
            retired: None,
            probes: Vec::new(),
            armed: None,
            requests: 0,
            request_bytes: 0,
            idle_since: Instant::now(),
        };
        let manifest = assemble(&config, state.running.as_ref());
        let (snapshot, _) = watch::channel(Snapshot {
            status: Status::sleeping(),
            manifest: Arc::new(manifest),
        });
        Arc::new(Self {
            config,
            limits,
            unread: Arc::default(),
            log,
            cross_calls,
            snapshot,
            work: Notify::new(),
            room: Notify::new(),
            over: Notify::new(),
            paused: AtomicBool::new(false),
            state: Mutex::new(state),
            last_id: AtomicU64::new(0),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn alias(&self) -> &str {
        &self.config.alias
    }

    pub(crate) fn next_id(&self) -> Box<str> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        id.to_string().into()
    }

    pub(crate) fn set_status(&self, status: Status) {
        self.snapshot.send_if_modified(|snapshot| {
            let changed = snapshot.status != status;
            snapshot.status = status;
            changed
        });
    }

    /// Stores the manifest that the clip registered.
    pub(crate) fn set_manifest(&self, running: Manifest) {
        let manifest = Arc::new(assemble(&self.config, Some(&running)));
        self.state().running = Some(running);
        self.snapshot.send_if_modified(|snapshot| {
            let changed = snapshot.manifest != manifest;
            snapshot.manifest = manifest;
            changed
        });
    }

    /// Accepts a call. If it returns [`Start::Needed`], the caller must start a supervisor.
    pub(crate) fn submit(&self, call: Arc<ClipCall>) -> Result<Start, ClipError> {
        let mut state = self.state();
        if let Some(retired) = &state.retired {
            return Err(retired.error.clone());
        }
        if state.waiting.len() >= self.limits.waiting {
            let message = format!(
                "clip \"{}\" has {} calls waiting; try again later",
                self.alias(),
                state.waiting.len()
            );
            return Err(ClipError::new(Code::ResourceExhausted, message));
        }
        let earlier = call
            .deadline
            .is_some_and(|deadline| state.armed.is_none_or(|armed| deadline < armed));
        state.waiting.push_back(call);
        self.pump(&mut state);
        let start = state.stage.supervise();
        let starting = !state.stage.is_ready();
        drop(state);
        if earlier || starting {
            self.work.notify_one();
        }
        self.room.notify_one();
        Ok(start)
    }

    /// Asks for a process without a call. The receiver completes when the process is ready.
    pub(crate) fn probe(
        &self,
    ) -> Result<(oneshot::Receiver<Result<(), ClipError>>, Start), ClipError> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(retired) = &state.retired {
            return Err(retired.error.clone());
        }
        if state.stage.is_ready() {
            let _ = sender.send(Ok(()));
            return Ok((receiver, Start::NotNeeded));
        }
        state.probes.push(sender);
        let start = state.stage.supervise();
        drop(state);
        self.work.notify_one();
        Ok((receiver, start))
    }

    /// Hands waiting calls to the process as long as it can accept them.
    pub(crate) fn pump(&self, state: &mut SharedState) {
        let Some(process) = state.stage.accepting() else {
            return;
        };
        let outbox = process.outbox.clone();
        while state.pending.len() < self.limits.pending && outbox.bytes() < self.limits.outgoing {
            let Some(call) = state.waiting.pop_front() else {
                return;
            };
            if !call.is_over() {
                outbox.push(call.line.clone());
                state.pending.insert(call.id.clone(), call);
            }
        }
    }

    /// Ends a call that its caller has cancelled or dropped.
    pub(crate) fn abandon(&self, call: &ClipCall, error: ClipError) {
        if !call.is_over() {
            self.give_up(&mut self.state(), call, None, error);
            self.work.notify_one();
            self.room.notify_one();
        }
    }

    /// Cancels a call whose answer is not read while other calls wait.
    pub(crate) fn overflow(&self, call: &ClipCall) {
        let message = format!(
            "the answer of clip \"{}\" was not read fast enough while other calls waited; read it faster, or call again",
            self.alias(),
        );
        let error = ClipError::new(Code::ResourceExhausted, message);
        self.give_up(&mut self.state(), call, None, error);
    }

    /// Adds a part to an answer. Returns the part if there is no room for it.
    pub(crate) fn chunk(&self, id: &str, chunk: Bytes) -> Option<(Arc<ClipCall>, Bytes)> {
        let mut state = self.state();
        let call = state.pending.get(id).cloned()?;
        state.progressed();
        let is_alone = state.is_alone(&call);
        drop(state);
        match call.push(chunk, is_alone) {
            Push::Full(chunk) => Some((call, chunk)),
            Push::Taken | Push::Over => None,
        }
    }

    /// Reports whether this is the only call that waits for the process, so that its caller may slow the process down.
    pub(crate) fn is_alone(&self, call: &ClipCall) -> bool {
        self.state().is_alone(call)
    }

    /// Ends the call with this id, when the end of its answer has arrived.
    pub(crate) fn ended(&self, id: &str, ending: CallOutcome) {
        let mut state = self.state();
        let Some(call) = state.pending.remove(id) else {
            if let Some(process) = state.stage.process_mut() {
                process.timed_out_calls.answered(id);
            }
            return;
        };
        state.progressed();
        match ending {
            CallOutcome::Result(Some(output)) => call.push_last(output),
            CallOutcome::Result(None) => call.finish(Ok(())),
            CallOutcome::Failed(failure) => {
                let after_chunks = call.touched();
                let error = failure.into_error(after_chunks);
                call.finish(Err(CallError::Answered(error)));
            }
        }
        self.pump(&mut state);
        if state.pending.is_empty() {
            state.idle_since = Instant::now();
            if state.is_stale() {
                self.work.notify_one();
            }
        }
    }
}

impl SharedState {
    /// Notes that the process did something, so that it does not count as hung.
    fn progressed(&mut self) {
        if let Some(process) = self.stage.process_mut() {
            process.progress = Instant::now();
        }
    }

    /// Reports whether the process must end once it has no work.
    pub(crate) fn is_stale(&self) -> bool {
        self.stage.process().is_some_and(ClipProcess::is_stale)
    }

    fn is_alone(&self, call: &ClipCall) -> bool {
        self.pending.len() == 1
            && self.pending.contains_key(&call.id)
            && self.waiting.is_empty()
            && (self.stage.is_ready() || self.stage.is_starting())
    }

    pub(crate) fn fail_probes(&mut self, error: &ClipError) {
        for probe in self.probes.drain(..) {
            let _ = probe.send(Err(error.clone()));
        }
    }

    /// Reports whether there is neither a call, nor a request of the clip, nor a waiting [`SharedClip::probe`].
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty()
            && self.waiting.is_empty()
            && self.requests == 0
            && self.probes.is_empty()
    }
}

fn assemble(config: &ClipConfig, running: Option<&Manifest>) -> Manifest {
    let identity = Identity {
        alias: &config.alias,
        package: &config.package_name,
        version: &config.version,
    };
    Manifest::assemble(identity, &config.package.manifest, running)
}

impl Snapshot {
    pub(crate) fn is_running(&self) -> bool {
        self.status.state == ClipState::Running
    }
}
