//! The lifetime of the session behind a chat: the chat is shown while the session is built.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Companions, Config, Handle, Session, Stopper};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::chat::ChatEnding;
use crate::feed::Feed;
use crate::host::Incoming;
use crate::session_host::{Order, SessionHost, WAITING_ORDERS};
use crate::terminal::CapturedOutput;

/// Longest wait, when the chat ends, for a run to settle.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(800);

struct RunningSession {
    session: Handle,
    task: JoinHandle<()>,
    stopper: Stopper,
    companions: Arc<dyn Companions>,
}

/// Shows a chat, builds its session meanwhile, and ends both.
///
/// `shown` is the chat, `build` makes the session, and `signalled` waits for a signal and returns its exit code.
/// `printed` protects the screen until the chat has ended.
pub async fn run_chat_session<E: From<io::Error>>(
    host: Arc<SessionHost>,
    feed: Feed,
    shown: impl Future<Output = io::Result<ChatEnding>>,
    build: impl Future<Output = Result<(Config, Arc<dyn Companions>), E>>,
    printed: Option<CapturedOutput>,
    mut signalled: impl AsyncFnMut() -> u8,
) -> Result<ChatEnding, E> {
    let mut running = None;
    let ended = {
        let mut shown = pin!(shown);
        let mut lived = pin!(live(&host, &feed, build, &mut running));
        loop {
            tokio::select! {
                biased;
                ended = &mut shown => break ended.map_err(E::from),
                failure = &mut lived => break Err(failure),
                code = signalled() => { feed.send(Incoming::End(code)); }
            }
        }
    };
    drop(printed);
    host.hang_up();
    if let Some(running) = running {
        tokio::select! {
            () = running.end() => {}
            // A user who sends a second signal does not want to wait.
            _ = signalled() => {}
        }
    }
    ended
}

/// Builds the session and serves the chat. Returns only if building fails.
async fn live<E>(
    host: &SessionHost,
    feed: &Feed,
    build: impl Future<Output = Result<(Config, Arc<dyn Companions>), E>>,
    running: &mut Option<RunningSession>,
) -> E {
    let (config, companions) = match build.await {
        Ok(built) => built,
        Err(failure) => return failure,
    };
    let (session, task) = Session::spawn(config);
    host.set_participants(companions.participants());
    let beginning = companions.begin();
    *running = Some(RunningSession {
        session: session.clone(),
        task,
        stopper: session.stopper(),
        companions: Arc::clone(&companions),
    });
    if let Some(inbox) = host.take_inbox() {
        tokio::select! {
            () = serve(session, inbox, beginning) => {}
            code = companions.exited() => { feed.send(Incoming::End(code)); }
        }
    }
    std::future::pending().await
}

impl RunningSession {
    async fn end(self) {
        self.companions.end().await;
        drop(self.session);
        self.stopper.stop();
        // A session that does not settle in time is abandoned; its file is valid at any moment.
        let _ = tokio::time::timeout(SETTLE_TIMEOUT, self.task).await;
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
