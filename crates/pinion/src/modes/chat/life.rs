//! The lifetime of the session behind a chat.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Handle, Listener, Session, Stopper};
use pinion_extensions::{Extensions, InputSource};
use pinion_tui::{CapturedOutput, ChatEnding, Feed, Incoming};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::host::{EndWatch, Order, SessionHost, WAITING_ORDERS};
use crate::cli::Flags;
use crate::engine::{self, Basis, Company, Conversation, Engine, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::modes::serving::{begin, participants};
use crate::modes::{farewell, stop_session};
use crate::program::Program;
use crate::signals::Ending;

/// The inputs from which the session is built.
pub(super) struct Life<'a> {
    pub program: Program,
    pub flags: &'a Flags,
    pub basis: Basis,
    pub shared: &'a Shared,
    pub host: Arc<SessionHost>,
    pub feed: Feed,
}

struct Living {
    session: Handle,
    task: JoinHandle<()>,
    stopper: Stopper,
    extensions: Option<Extensions>,
}

impl Life<'_> {
    /// Shows the chat, builds the session meanwhile, and ends both.
    pub async fn lead(
        self,
        shown: impl Future<Output = io::Result<ChatEnding>>,
        printed: Option<CapturedOutput>,
        signals: &mut Ending,
    ) -> Result<ChatEnding, Failure> {
        let host = Arc::clone(&self.host);
        let feed = self.feed.clone();
        let mut living = None;
        let ended = {
            let mut shown = pin!(shown);
            let mut lived = pin!(self.live(&mut living));
            loop {
                tokio::select! {
                    biased;
                    ended = &mut shown => break ended.map_err(Failure::from),
                    failure = &mut lived => break Err(failure),
                    code = signals.signalled() => { feed.send(Incoming::End(code)); }
                }
            }
        };
        drop(printed);
        host.hang_up();
        if let Some(living) = living {
            tokio::select! {
                () = living.end() => {}
                // A user who sends a second signal does not want to wait.
                _ = signals.signalled() => {}
            }
        }
        ended
    }

    /// Builds the session and serves the chat. Returns only if building fails.
    async fn live(self, living: &mut Option<Living>) -> Failure {
        let (host, feed) = (Arc::clone(&self.host), self.feed.clone());
        let engine = match self.build().await {
            Ok(engine) => engine,
            Err(failure) => return failure,
        };
        let Engine {
            config,
            extensions,
            approvals,
            services,
            ..
        } = engine;
        let (session, task) = Session::spawn(config);
        host.set_participants(participants(extensions.as_ref(), approvals.as_ref()));
        let beginning = extensions.clone().map(begin);
        *living = Some(Living {
            session: session.clone(),
            task,
            stopper: session.stopper(),
            extensions,
        });
        let Some(inbox) = host.take_inbox() else {
            return Failure::quiet();
        };
        tokio::select! {
            () = serve(session, inbox, beginning) => {}
            code = services.exited() => { feed.send(Incoming::End(code)); }
        }
        std::future::pending().await
    }

    async fn build(self) -> Result<Engine, Failure> {
        let conversation = Conversation::open(self.flags, &self.basis)?;
        let records = self.feed.clone();
        let audience = Audience {
            records: Arc::new(move |record| {
                records.send(Incoming::Record(record));
            }),
            // The chat itself reads the records.
            has_room: Arc::new(|| true),
            has_ui: true,
            source: InputSource::Interactive,
        };
        let listeners: Vec<Arc<dyn Listener>> =
            vec![Arc::new(self.feed), Arc::new(EndWatch(self.host))];
        engine::build(
            self.program,
            self.flags,
            self.basis,
            conversation,
            Company::new(listeners, audience),
            self.shared,
        )
        .await
    }
}

impl Living {
    async fn end(self) {
        if let Some(extensions) = &self.extensions {
            farewell(extensions).await;
        }
        drop(self.session);
        stop_session(&self.stopper, self.task).await;
    }
}

/// Forwards commands to the session. Commands that change something wait until extensions have handled the start of the
/// session.
async fn serve(
    session: Handle,
    mut inbox: mpsc::Receiver<Order>,
    mut beginning: Option<BoxFuture<'static, ()>>,
) {
    let mut held: VecDeque<Order> = VecDeque::new();
    loop {
        tokio::select! {
            biased;
            () = begun(&mut beginning), if beginning.is_some() => {
                beginning = None;
                for (command, reply) in held.drain(..) {
                    session.send(command, reply).await;
                }
            }
            order = inbox.recv(), if held.len() < WAITING_ORDERS => match order {
                Some((command, reply)) if beginning.is_some() && !only_looks(&command) => {
                    held.push_back((command, reply));
                }
                Some((command, reply)) => session.send(command, reply).await,
                None => return,
            }
        }
    }
}

fn only_looks(command: &Command) -> bool {
    matches!(
        command,
        Command::GetState | Command::GetMessages | Command::GetStats | Command::GetAvailableModels
    )
}

async fn begun(beginning: &mut Option<BoxFuture<'static, ()>>) {
    match beginning {
        Some(beginning) => beginning.await,
        None => std::future::pending().await,
    }
}
