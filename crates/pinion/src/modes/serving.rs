//! The lifetime of one session that serves a client, from its start to the shutdown of its extensions.

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
    /// Starts the session. Must be called inside the runtime.
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
        // Extensions may read the session until their shutdown hooks have returned.
        let kept = extensions.as_ref().map(|_| rpc.session.clone());
        drop(rpc);
        if end == End::Input && on_eof == OnEof::Drain {
            // Without a handle the session ends when its run has ended.
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

/// Returns the participants that may ask the user questions.
pub(super) fn participants(
    extensions: Option<&Extensions>,
    approvals: Option<&Arc<ClientQuestions>>,
) -> Vec<Arc<dyn Participant>> {
    let extensions = extensions.map(|extensions| Arc::new(Talker(extensions.clone())) as _);
    let approvals = approvals.map(|approvals| Arc::clone(approvals) as _);
    extensions.into_iter().chain(approvals).collect()
}

/// Informs extensions that the session begins.
pub(super) fn begin(extensions: Extensions) -> BoxFuture<'static, ()> {
    Box::pin(async move { extensions.begin().await })
}

/// Waits until the session is idle or, if no handle is held, until it has ended.
async fn drained(task: &mut JoinHandle<()>, kept: Option<&Handle>) {
    match kept {
        None => {
            // The result of the task does not matter any more.
            let _ = task.await;
        }
        Some(session) => {
            let (sender, idle) = oneshot::channel();
            let reply = Reply::new(move |_| {
                // The receiver waits below.
                let _ = sender.send(());
            });
            session.send(Command::WaitForIdle, reply).await;
            // A session that is gone is idle.
            let _ = idle.await;
        }
    }
}
