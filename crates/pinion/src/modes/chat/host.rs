//! The session as the chat sees it, also before it is there.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Event, Listener, Reply};
use pinion_pi::Participant;
use pinion_session::SessionInfo;
use pinion_tui::{Abilities, Feed, Host, Incoming, Scope};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::cli::Flags;
use crate::engine::{Basis, session_directory};

/// A command and the duty to answer it.
pub(super) type Order = (Command, Reply);

/// Takes what the chat asks to the session, which may still be being put together.
pub(crate) struct SessionHost {
    orders: mpsc::UnboundedSender<Order>,
    inbox: std::sync::Mutex<Option<mpsc::UnboundedReceiver<Order>>>,
    participants: Arc<OnceLock<Vec<Arc<dyn Participant>>>>,
    feed: Feed,
    /// The sessions of this directory.
    project: Option<PathBuf>,
    /// Where the directories of all of them are.
    everywhere: PathBuf,
}

impl SessionHost {
    pub fn new(basis: &Basis, flags: &Flags, feed: Feed) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        Self {
            orders,
            inbox: std::sync::Mutex::new(Some(inbox)),
            participants: Arc::default(),
            feed,
            project: session_directory(&basis.dirs, flags, &basis.settings),
            everywhere: basis.dirs.agent_dir.join("sessions"),
        }
    }

    /// What the chat asks; for the one who serves it.
    pub fn take_inbox(&self) -> Option<mpsc::UnboundedReceiver<Order>> {
        let mut inbox = self
            .inbox
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        inbox.take()
    }

    /// Names who asks the user things.
    pub fn set_participants(&self, participants: Vec<Arc<dyn Participant>>) {
        // Set once, when the session has been put together.
        let _ = self.participants.set(participants);
    }

    /// The user will choose nothing any more.
    pub fn hang_up(&self) {
        for participant in self.participants.get().into_iter().flatten() {
            participant.hang_up();
        }
    }

    fn end_if_wanted(&self) {
        end_if_wanted(&self.participants, &self.feed);
    }
}

fn end_if_wanted(participants: &OnceLock<Vec<Arc<dyn Participant>>>, feed: &Feed) {
    let mut participants = participants.get().into_iter().flatten();
    if participants.any(|one| one.wants_to_end()) {
        feed.tell(Incoming::End(0));
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
        // A session that is gone drops the reply, which answers it.
        let _ = self.orders.send((command, reply));
    }

    fn answer(&self, id: &str, response: Map<String, Value>) {
        for participant in self.participants.get().into_iter().flatten() {
            participant.choice(id, &response);
        }
    }

    fn sessions(&self, scope: Scope) -> BoxFuture<'static, Result<Vec<SessionInfo>, String>> {
        let project = self.project.clone();
        let everywhere = self.everywhere.clone();
        let list = move || match scope {
            Scope::Project => project.map_or_else(Vec::new, |place| pinion_session::list(&place)),
            Scope::Everywhere => crate::commands::all_sessions(&everywhere),
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

/// Ends the chat when somebody who takes part wants it and nothing goes on any more.
pub(super) struct EndWatch(pub Arc<SessionHost>);

impl Listener for EndWatch {
    fn notice(&self, _ordinal: u64, event: &Event) {
        if matches!(event, Event::Settled { .. }) {
            self.0.end_if_wanted();
        }
    }
}
