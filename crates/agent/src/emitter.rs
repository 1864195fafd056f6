//! Sends events to the hooks of a session and then to its listeners.
//!
//! Without hooks, emitting is a function call. With hooks, the events of a run wait in a queue until the hooks have
//! handled each of them; the run continues meanwhile, unless it calls [`Emitter::drained`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::hooks::{Hooks, Moment};
use crate::{Event, Listener};

/// Limit on the events that wait for hooks; above it the run waits too.
const HOOK_QUEUE_LIMIT: usize = 256;

/// Numbers events and sends them to the listeners.
pub(crate) struct Emitter {
    /// The number of the last event; holding it orders events from several threads.
    ordinal: Mutex<u64>,
    listeners: Vec<Arc<dyn Listener>>,
    queue: Option<HookQueue>,
}

/// Events that wait for the hooks.
struct HookQueue {
    hooks: Arc<dyn Hooks>,
    sender: UnboundedSender<Event>,
    /// The number of waiting events.
    length: watch::Sender<usize>,
    /// Cancelled when the current prompt is aborted.
    cancel: Mutex<CancellationToken>,
}

/// Time for the hooks to finish an event after the run was aborted.
pub(crate) const ABORT_GRACE: Duration = Duration::from_secs(3);

impl HookQueue {
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

/// The receiving end of the hook queue.
pub(crate) type HookQueueReceiver = UnboundedReceiver<Event>;

impl Emitter {
    pub fn new(
        listeners: Vec<Arc<dyn Listener>>,
        hooks: Option<Arc<dyn Hooks>>,
    ) -> (Self, Option<HookQueueReceiver>) {
        let (queue, end) = match hooks {
            None => (None, None),
            Some(hooks) => {
                #[allow(
                    clippy::disallowed_methods,
                    reason = "the run waits for room before progress and drains the queue between turns"
                )]
                let (sender, end) = unbounded_channel();
                let length = watch::Sender::new(0);
                let queue = HookQueue {
                    hooks,
                    sender,
                    length,
                    cancel: Mutex::default(),
                };
                (Some(queue), Some(end))
            }
        };
        let emitter = Self {
            ordinal: Mutex::new(0),
            listeners,
            queue,
        };
        (emitter, end)
    }

    /// Sends an event to the hooks, if they want it, and then to the listeners. Waits for nothing.
    pub fn emit(&self, event: Event) {
        let mut ordinal = self.ordinal();
        if let Some(queue) = &self.queue
            && !overtakes(&event)
        {
            let wanted = moment(&event).is_some_and(|moment| queue.hooks.wants(moment));
            if wanted || *queue.length.borrow() > 0 {
                queue.length.send_modify(|length| *length += 1);
                // The receiver lives as long as the session.
                let _ = queue.sender.send(event);
                return;
            }
        }
        self.deliver(&mut ordinal, &event);
    }

    /// Sends an event to the listeners only, without waiting for queued events.
    pub fn emit_to_listeners(&self, event: &Event) {
        self.deliver(&mut self.ordinal(), event);
    }

    fn ordinal(&self) -> MutexGuard<'_, u64> {
        self.ordinal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, ordinal: &mut u64, event: &Event) {
        *ordinal += 1;
        for listener in &self.listeners {
            listener.notice(*ordinal, event);
        }
    }

    /// Sends each queued event to the hooks and, when they have handled it, to the listeners. Once `stop` is cancelled,
    /// only the listeners receive events. Ends when `over` is cancelled.
    pub async fn serve_hook_queue(
        &self,
        mut end: HookQueueReceiver,
        stop: CancellationToken,
        over: CancellationToken,
    ) {
        let Some(queue) = &self.queue else { return };
        loop {
            let event = tokio::select! {
                biased;
                event = end.recv() => event,
                () = over.cancelled() => None,
            };
            let Some(event) = event else { return };
            if moment(&event).is_some_and(|moment| queue.hooks.wants(moment)) {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = queue.observe(&event) => {}
                }
            }
            let mut ordinal = self.ordinal();
            self.deliver(&mut ordinal, &event);
            queue.length.send_modify(|length| *length -= 1);
        }
    }

    /// Sets the token that aborts the handling of further events.
    pub fn set_cancel(&self, cancel: CancellationToken) {
        if let Some(queue) = &self.queue {
            *queue.cancel() = cancel;
        }
    }

    /// Waits until the hook queue is empty, or until `cancel` is cancelled.
    pub async fn drained(&self, cancel: &CancellationToken) {
        self.at_most(0, cancel).await;
    }

    /// Reports whether every listener and the hook queue have room for more progress.
    pub fn has_room(&self) -> bool {
        let queue = self.queue.as_ref();
        self.listeners.iter().all(|listener| listener.has_room())
            && queue.is_none_or(|queue| *queue.length.borrow() <= HOOK_QUEUE_LIMIT)
    }

    /// Waits until every listener and the hook queue have room for more progress, or until `cancel` is cancelled.
    pub async fn room(&self, cancel: &CancellationToken) {
        for listener in &self.listeners {
            if !listener.has_room() {
                tokio::select! {
                    () = listener.room() => {}
                    () = cancel.cancelled() => return,
                }
            }
        }
        self.at_most(HOOK_QUEUE_LIMIT, cancel).await;
    }

    fn at_most<'a>(&'a self, limit: usize, cancel: &'a CancellationToken) -> BoxFuture<'a, ()> {
        let Some(queue) = &self.queue else {
            return Box::pin(std::future::ready(()));
        };
        if *queue.length.borrow() <= limit {
            return Box::pin(std::future::ready(()));
        }
        let mut length = queue.length.subscribe();
        Box::pin(async move {
            tokio::select! {
                _ = length.wait_for(|length| *length <= limit) => {}
                () = cancel.cancelled() => {}
            }
        })
    }
}

/// Returns the moment of an event that hooks can observe.
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
        Event::Settled { .. } => Moment::Settled,
        _ => return None,
    })
}

/// Reports whether an event skips the hook queue, because a client's command caused it and not the run.
fn overtakes(event: &Event) -> bool {
    matches!(
        event,
        Event::ThinkingLevelChanged(_) | Event::SessionInfoChanged(_) | Event::Fault { .. }
    )
}
