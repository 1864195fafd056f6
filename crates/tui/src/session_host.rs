//! The session as the chat sees it, also before it has been built.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use pinion_agent::{Command, EngineError, Event, Listener, Participant, Reply};
use pinion_session::SessionInfo;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::feed::Feed;
use crate::host::{Abilities, Host, Incoming, SessionScope};

/// Commands that may wait for the session. Further ones are refused; the user can try again.
pub(crate) const WAITING_ORDERS: usize = 256;
/// Slots among them that are reserved for aborts.
const ABORT_ORDERS: usize = 16;

/// A command and the reply that must answer it.
pub(crate) type Order = (Command, Reply);

/// Forwards commands of the chat to the session, which may still be under construction.
pub struct SessionHost {
    orders: mpsc::Sender<Order>,
    inbox: std::sync::Mutex<Option<mpsc::Receiver<Order>>>,
    participants: Arc<OnceLock<Vec<Arc<dyn Participant>>>>,
    feed: Feed,
    /// The directory of this project's sessions; `None` if sessions are not stored.
    project: Option<PathBuf>,
    /// The directory that contains the session directories of all projects.
    everywhere: PathBuf,
}

impl SessionHost {
    /// Creates the host of a chat that reads `feed`. `project` is the directory of this project's sessions, `everywhere`
    /// the one with the session directories of all projects.
    pub fn new(project: Option<PathBuf>, everywhere: PathBuf, feed: Feed) -> Self {
        let (orders, inbox) = mpsc::channel(WAITING_ORDERS);
        Self {
            orders,
            inbox: std::sync::Mutex::new(Some(inbox)),
            participants: Arc::default(),
            feed,
            project,
            everywhere,
        }
    }

    /// Returns the queue of commands on the first call, `None` later.
    pub(crate) fn take_inbox(&self) -> Option<mpsc::Receiver<Order>> {
        let mut inbox = self
            .inbox
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        inbox.take()
    }

    /// Sets the participants that may ask the user questions.
    pub(crate) fn set_participants(&self, participants: Vec<Arc<dyn Participant>>) {
        // Set once, when the session has been built.
        let _ = self.participants.set(participants);
    }

    /// Informs the participants that the user will answer no further question.
    pub(crate) fn hang_up(&self) {
        for participant in self.participants.get().into_iter().flatten() {
            participant.hang_up();
        }
    }

    /// Returns the listeners that the session of this chat needs.
    pub fn listeners(self: &Arc<Self>) -> Vec<Arc<dyn Listener>> {
        let watch = EndWatch(Arc::clone(self));
        vec![Arc::new(self.feed.clone()), Arc::new(watch)]
    }

    fn end_if_wanted(&self) {
        end_if_wanted(&self.participants, &self.feed);
    }
}

fn end_if_wanted(participants: &OnceLock<Vec<Arc<dyn Participant>>>, feed: &Feed) {
    let mut participants = participants.get().into_iter().flatten();
    if participants.any(|one| one.wants_to_end()) {
        feed.send(Incoming::End(0));
    }
}

impl Host for SessionHost {
    fn send(&self, command: Command, reply: Reply) {
        let participants = Arc::clone(&self.participants);
        let feed = self.feed.clone();
        let reply = Reply::new(move |result| {
            reply.send(result);
            end_if_wanted(&participants, &feed);
        });
        put(&self.orders, command, reply);
    }

    fn answer(&self, id: &str, response: Map<String, Value>) {
        for participant in self.participants.get().into_iter().flatten() {
            participant.choice(id, &response);
        }
    }

    fn sessions(
        &self,
        scope: SessionScope,
    ) -> BoxFuture<'static, Result<Vec<SessionInfo>, String>> {
        let project = self.project.clone();
        let everywhere = self.everywhere.clone();
        let list = move || match scope {
            SessionScope::Project => {
                project.map_or_else(Vec::new, |place| pinion_session::list(&place))
            }
            SessionScope::Everywhere => pinion_session::list_all(&everywhere),
        };
        Box::pin(async move {
            tokio::task::spawn_blocking(list)
                .await
                .map_err(|error| error.to_string())
        })
    }

    fn abilities(&self) -> Abilities {
        Abilities::Session
    }
}

impl std::fmt::Debug for SessionHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionHost")
    }
}

/// Queues a command for the session, or refuses it.
fn put(orders: &mpsc::Sender<Order>, command: Command, reply: Reply) {
    let refuse = |reply: Reply| {
        let busy = "The session is busy and too many commands wait for it. Try again later.";
        reply.send(Err(EngineError::Unsupported(busy.to_owned())));
    };
    let is_abort = matches!(
        command,
        Command::Abort | Command::AbortBash | Command::AbortRetry
    );
    if !is_abort && orders.capacity() <= ABORT_ORDERS && !orders.is_closed() {
        return refuse(reply);
    }
    if let Err(mpsc::error::TrySendError::Full((_, reply))) = orders.try_send((command, reply)) {
        refuse(reply);
    }
    // If the session is gone, the reply is dropped, which answers the command.
}

/// Ends the chat when a participant requested it and the run has settled.
pub(crate) struct EndWatch(pub Arc<SessionHost>);

impl Listener for EndWatch {
    fn notice(&self, _ordinal: u64, event: &Event) {
        if matches!(event, Event::Settled { .. }) {
            self.0.end_if_wanted();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues a command. The returned cell holds its answer once there is one.
    fn putting(orders: &mpsc::Sender<Order>, command: Command) -> Arc<OnceLock<String>> {
        let answer = Arc::new(OnceLock::new());
        let cell = Arc::clone(&answer);
        let reply = Reply::new(move |result| {
            let words = result.map_or_else(|error| error.to_string(), |_| "done".to_owned());
            cell.set(words).expect("one answer");
        });
        put(orders, command, reply);
        answer
    }

    #[test]
    fn a_session_that_takes_nothing_refuses_the_rest_and_can_still_be_aborted() {
        let (orders, mut inbox) = mpsc::channel(WAITING_ORDERS);
        let all: Vec<_> = (0..2 * WAITING_ORDERS)
            .map(|_| putting(&orders, Command::GetState))
            .collect();
        assert_eq!(inbox.len(), WAITING_ORDERS - ABORT_ORDERS);
        let abort = putting(&orders, Command::Abort);
        assert_eq!(abort.get(), None, "it waits");
        let mut taken = Vec::new();
        while let Ok((command, reply)) = inbox.try_recv() {
            taken.push(command);
            reply.done();
        }
        assert!(matches!(taken.last(), Some(Command::Abort)));
        assert_eq!(abort.get().unwrap(), "done");
        let answers: Vec<&str> = all
            .iter()
            .map(|answer| answer.get().unwrap().as_str())
            .collect();
        let done = answers.iter().filter(|answer| **answer == "done").count();
        let busy = answers
            .iter()
            .filter(|answer| answer.contains("busy"))
            .count();
        assert_eq!((done, busy), (taken.len() - 1, all.len() + 1 - taken.len()));
        drop(inbox);
        let gone = putting(&orders, Command::GetState);
        assert_eq!(gone.get().unwrap(), &EngineError::Dropped.to_string());
    }
}
