//! The life of one session that serves a client: its lines, its end, and what is done before it is gone.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Handle, Reply, Session, Stopper};
use pinion_extensions::Extensions;
use pinion_jsonl::Input;
use pinion_pi::{Dialect, Participant, Rpc, RpcEnd, Sink};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{End, farewell, stop_session};
use crate::approvals::ClientQuestions;
use crate::cli::OnEof;
use crate::engine::Engine;
use crate::extensions::{ProgramServices, Talker};

/// A session that was started, and the client's connection to it.
pub(super) struct Serving<S: Sink> {
    rpc: Rpc<S>,
    task: JoinHandle<()>,
    stopper: Stopper,
    extensions: Option<Extensions>,
    services: Arc<ProgramServices>,
}

impl<S: Sink> Serving<S> {
    /// Starts the session; to be called inside the runtime.
    pub fn start(engine: Engine, dialect: Dialect, out: S) -> Self {
        let Engine {
            config,
            extensions,
            approvals,
            services,
            ..
        } = engine;
        let (session, task) = Session::spawn(config);
        let stopper = session.stopper();
        let rpc = Rpc {
            dialect,
            session,
            out,
            participants: participants(extensions.as_ref(), approvals.as_ref()),
            startup: extensions.clone().map(begin),
        };
        Self {
            rpc,
            task,
            stopper,
            extensions,
            services,
        }
    }

    /// How to reach the session.
    pub fn session(&self) -> Handle {
        self.rpc.session.clone()
    }

    /// Serves until the input ends or something interrupts it, and ends the session.
    pub async fn live(
        self,
        mut input: mpsc::Receiver<Input>,
        on_eof: OnEof,
        interrupted: impl Future<Output = End>,
    ) -> End {
        let Self {
            mut rpc,
            mut task,
            stopper,
            extensions,
            services,
        } = self;
        tokio::pin!(interrupted);
        let mut end = tokio::select! {
            end = rpc.serve(&mut input) => match end {
                RpcEnd::EndOfInput => End::Input,
                RpcEnd::OutputClosed => End::Output,
                RpcEnd::Requested => End::Asked,
            },
            end = &mut interrupted => end,
            code = services.exited() => End::Exit(code),
        };
        rpc.refuse(&mut input).await;
        for participant in &rpc.participants {
            participant.hang_up();
        }
        // Extensions look at the session until they have said farewell.
        let kept = extensions.as_ref().map(|_| rpc.session.clone());
        drop(rpc);
        if end == End::Input && on_eof == OnEof::Drain {
            // Without a handle the session ends when its work has.
            end = tokio::select! {
                () = drained(&mut task, kept.as_ref()) => End::Input,
                end = interrupted => end,
                code = services.exited() => End::Exit(code),
            };
        }
        if let Some(extensions) = &extensions {
            farewell(extensions).await;
        }
        drop(kept);
        if !task.is_finished() {
            stop_session(&stopper, task).await;
        }
        end
    }
}

/// Who asks the user things.
pub(super) fn participants(
    extensions: Option<&Extensions>,
    approvals: Option<&Arc<ClientQuestions>>,
) -> Vec<Arc<dyn Participant>> {
    let extensions = extensions.map(|extensions| Arc::new(Talker(extensions.clone())) as _);
    let approvals = approvals.map(|approvals| Arc::clone(approvals) as _);
    extensions.into_iter().chain(approvals).collect()
}

/// Tells extensions that the session begins.
pub(super) fn begin(extensions: Extensions) -> BoxFuture<'static, ()> {
    Box::pin(async move { extensions.begin().await })
}

/// Waits until what goes on in a session is over: the session itself where nobody keeps it.
async fn drained(task: &mut JoinHandle<()>, kept: Option<&Handle>) {
    match kept {
        None => {
            // How it ended does not matter any more.
            let _ = task.await;
        }
        Some(session) => {
            let (sender, idle) = oneshot::channel();
            let reply = Reply::new(move |_| {
                // The asker is waiting right below.
                let _ = sender.send(());
            });
            session.send(Command::WaitForIdle, reply).await;
            // A session that is gone is idle.
            let _ = idle.await;
        }
    }
}
