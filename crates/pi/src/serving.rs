//! The lifetime of one session that serves a client, from its start to the end of its companions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pinion_agent::{Command, Companions, Config, Handle, Reply, Session, Stopper};
use pinion_jsonl::Input;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::dialect::Dialect;
use crate::outgoing::Sink;
use crate::rpc::{Rpc, RpcEnd};

/// Longest wait, when a session must end, for its run to settle.
pub const SETTLE_TIMEOUT: Duration = Duration::from_millis(800);

/// The reaction to the end of the input while a run is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnEof {
    /// Finish the run.
    #[default]
    Drain,
    /// Stop the run.
    Stop,
}

/// The reason why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServingEnd {
    /// The client closed its end.
    Input,
    /// A companion or the client requested the end.
    Requested,
    /// The reader of the output is gone.
    Output,
    /// A signal; its exit code.
    Signal(u8),
    /// A companion ended the program, with this exit code.
    Exit(u8),
}

impl ServingEnd {
    /// Returns the exit code of a program that ends for this reason.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Input | Self::Requested => 0,
            Self::Output => 1,
            Self::Signal(code) | Self::Exit(code) => code,
        }
    }
}

/// A session that was started, and the client's connection to it.
pub struct Serving<S: Sink> {
    rpc: Rpc<S>,
    task: JoinHandle<()>,
    stopper: Stopper,
    companions: Arc<dyn Companions>,
}

impl<S: Sink> fmt::Debug for Serving<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Serving")
    }
}

impl<S: Sink> Serving<S> {
    /// Starts the session. Must be called inside the runtime.
    pub fn start(
        config: Config,
        companions: Arc<dyn Companions>,
        dialect: Dialect,
        out: S,
    ) -> Self {
        let resizes_images = config.settings.resize_prompt_images;
        let (session, task) = Session::spawn(config);
        let stopper = session.stopper();
        let rpc = Rpc {
            dialect,
            resizes_images,
            session,
            out,
            participants: companions.participants(),
            startup: companions.begin(),
        };
        Self {
            rpc,
            task,
            stopper,
            companions,
        }
    }

    pub fn session(&self) -> Handle {
        self.rpc.session.clone()
    }

    /// Serves until the input ends or something interrupts it, and ends the session.
    pub async fn serve(
        self,
        mut input: mpsc::Receiver<Input>,
        on_eof: OnEof,
        interrupted: impl Future<Output = ServingEnd>,
    ) -> ServingEnd {
        let Self {
            mut rpc,
            mut task,
            stopper,
            companions,
        } = self;
        tokio::pin!(interrupted);
        let mut end = tokio::select! {
            end = rpc.serve(&mut input) => match end {
                RpcEnd::EndOfInput => ServingEnd::Input,
                RpcEnd::OutputClosed => ServingEnd::Output,
                RpcEnd::Requested => ServingEnd::Requested,
            },
            end = &mut interrupted => end,
            code = companions.exited() => ServingEnd::Exit(code),
        };
        rpc.refuse(&mut input).await;
        for participant in &rpc.participants {
            participant.hang_up();
        }
        let held = companions.read_session().then(|| rpc.session.clone());
        drop(rpc);
        if end == ServingEnd::Input && on_eof == OnEof::Drain {
            // Without a handle the session ends when its run has ended.
            end = tokio::select! {
                () = drained(&mut task, held.as_ref()) => ServingEnd::Input,
                end = interrupted => end,
                code = companions.exited() => ServingEnd::Exit(code),
            };
        }
        companions.end().await;
        drop(held);
        if !task.is_finished() {
            stop_session(&stopper, task).await;
        }
        end
    }
}

/// Stops the current run and waits up to [`SETTLE_TIMEOUT`], so that the session file is complete.
pub async fn stop_session(stopper: &Stopper, task: JoinHandle<()>) {
    stopper.stop();
    // A session that does not settle in time is abandoned; its file is valid at any moment.
    let _ = tokio::time::timeout(SETTLE_TIMEOUT, task).await;
}

/// Waits until the session is idle or, if no handle is held, until it has ended.
async fn drained(task: &mut JoinHandle<()>, held: Option<&Handle>) {
    match held {
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
