//! Tells what happens: first to who takes part in the session, then to everyone who listens.
//!
//! Without anyone who takes part, telling is a function call. Otherwise the events of a run wait
//! in line until those who take part have dealt with each; the run goes on meanwhile, unless it
//! asks to wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::hooks::{Hooks, Moment};
use crate::{Event, Listener};

/// How many events may wait in line before the run waits too.
const LINE_LIMIT: usize = 256;

/// Numbers events and gives them to the listeners.
pub(crate) struct Outlet {
    /// The number of the last event; holding it orders events from several threads.
    ordinal: Mutex<u64>,
    listeners: Vec<Arc<dyn Listener>>,
    line: Option<Line>,
}

/// Events that wait until those who take part have dealt with them.
struct Line {
    hooks: Arc<dyn Hooks>,
    sender: UnboundedSender<Event>,
    /// How many events wait.
    length: watch::Sender<usize>,
    /// Cancelled when what the agent does is aborted.
    cancel: Mutex<CancellationToken>,
}

/// How long who takes part may go on with an event after the run was aborted.
const ABORT_GRACE: Duration = Duration::from_secs(3);

impl Line {
    fn cancel(&self) -> MutexGuard<'_, CancellationToken> {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn observe(&self, event: &Event) {
        let cancel = self.cancel().clone();
        let overdue = async {
            cancel.cancelled().await;
            tokio::time::sleep(ABORT_GRACE).await;
        };
        tokio::select! {
            () = self.hooks.observe(event) => {}
            () = overdue => {}
        }
    }
}

/// Takes the events of the line one by one.
pub(crate) type LineEnd = UnboundedReceiver<Event>;

impl Outlet {
    pub fn new(
        listeners: Vec<Arc<dyn Listener>>,
        hooks: Option<Arc<dyn Hooks>>,
    ) -> (Self, Option<LineEnd>) {
        let (line, end) = match hooks {
            None => (None, None),
            Some(hooks) => {
                #[allow(
                    clippy::disallowed_methods,
                    reason = "the run waits for room before progress and drains the line between turns"
                )]
                let (sender, end) = unbounded_channel();
                let length = watch::Sender::new(0);
                let line = Line {
                    hooks,
                    sender,
                    length,
                    cancel: Mutex::default(),
                };
                (Some(line), Some(end))
            }
        };
        let outlet = Self {
            ordinal: Mutex::new(0),
            listeners,
            line,
        };
        (outlet, end)
    }

    /// Tells what happened, in its turn.
    pub fn emit(&self, event: Event) {
        let mut ordinal = self.ordinal();
        if let Some(line) = &self.line
            && !overtakes(&event)
        {
            let wanted = moment(&event).is_some_and(|moment| line.hooks.wants(moment));
            if wanted || *line.length.borrow() > 0 {
                line.length.send_modify(|length| *length += 1);
                // The receiver lives as long as the session.
                let _ = line.sender.send(event);
                return;
            }
        }
        self.tell(&mut ordinal, &event);
    }

    /// Tells the listeners alone: those who take part know already.
    pub fn tell_listeners(&self, event: &Event) {
        self.tell(&mut self.ordinal(), event);
    }

    fn ordinal(&self) -> MutexGuard<'_, u64> {
        self.ordinal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, ordinal: &mut u64, event: &Event) {
        *ordinal += 1;
        for listener in &self.listeners {
            listener.notice(*ordinal, event);
        }
    }

    /// Lets those who take part deal with each event, then tells the listeners. Once the session is
    /// stopped for good, only the listeners are told. Ends when the session is `over`.
    pub async fn serve_line(
        &self,
        mut end: LineEnd,
        stop: CancellationToken,
        over: CancellationToken,
    ) {
        let Some(line) = &self.line else { return };
        loop {
            let event = tokio::select! {
                biased;
                event = end.recv() => event,
                () = over.cancelled() => None,
            };
            let Some(event) = event else { return };
            if moment(&event).is_some_and(|moment| line.hooks.wants(moment)) {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = line.observe(&event) => {}
                }
            }
            let mut ordinal = self.ordinal();
            self.tell(&mut ordinal, &event);
            line.length.send_modify(|length| *length -= 1);
        }
    }

    /// What follows is aborted by `cancel`.
    pub fn guard(&self, cancel: CancellationToken) {
        if let Some(line) = &self.line {
            *line.cancel() = cancel;
        }
    }

    /// Waits until nothing is left in line, or the work is stopped.
    pub async fn drained(&self, cancel: &CancellationToken) {
        self.at_most(0, cancel).await;
    }

    /// Returns true if every listener has room for more progress.
    pub fn has_room(&self) -> bool {
        let line = self.line.as_ref();
        self.listeners.iter().all(|listener| listener.has_room())
            && line.is_none_or(|line| *line.length.borrow() <= LINE_LIMIT)
    }

    /// Waits until every listener can take more progress, or the work is stopped.
    pub async fn room(&self, cancel: &CancellationToken) {
        for listener in &self.listeners {
            if !listener.has_room() {
                tokio::select! {
                    () = listener.room() => {}
                    () = cancel.cancelled() => return,
                }
            }
        }
        self.at_most(LINE_LIMIT, cancel).await;
    }

    fn at_most<'a>(&'a self, limit: usize, cancel: &'a CancellationToken) -> BoxFuture<'a, ()> {
        let Some(line) = &self.line else {
            return Box::pin(std::future::ready(()));
        };
        if *line.length.borrow() <= limit {
            return Box::pin(std::future::ready(()));
        }
        let mut length = line.length.subscribe();
        Box::pin(async move {
            tokio::select! {
                _ = length.wait_for(|length| *length <= limit) => {}
                () = cancel.cancelled() => {}
            }
        })
    }
}

/// Which moment an event of a run is.
fn moment(event: &Event) -> Option<Moment> {
    Some(match event {
        Event::AgentStart => Moment::AgentStart,
        Event::AgentEnd { .. } => Moment::AgentEnd,
        Event::TurnStart => Moment::TurnStart,
        Event::TurnEnd { .. } => Moment::TurnEnd,
        Event::MessageStart(_) => Moment::MessageStart,
        Event::BlockStart { .. } | Event::BlockDelta { .. } | Event::BlockEnd { .. } => {
            Moment::MessageUpdate
        }
        Event::ToolStart(_) => Moment::ToolStart,
        Event::ToolUpdate { .. } => Moment::ToolUpdate,
        Event::ToolEnd { .. } => Moment::ToolEnd,
        _ => return None,
    })
}

/// Whether an event answers something a client did, and so does not wait for a run.
fn overtakes(event: &Event) -> bool {
    matches!(
        event,
        Event::ThinkingLevelChanged(_) | Event::SessionInfoChanged(_) | Event::Fault { .. }
    )
}
