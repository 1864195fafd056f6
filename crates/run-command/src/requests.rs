//! Requests on standard input, one conversation: `--stdin-rpc`.
//!
//! A request that must wait for the active run (a snapshot, the shutdown) is deferred, and so is every request after
//! it; only a cancel is never deferred, because the others may wait for it.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_jsonl::{Input, InputLine, Queue};
use pinion_pinocchio::{
    Activity, Address, Binding, Closing, Control, DoneStatus, ErrorCode, LINE_TOO_LONG, Out,
    Refusal, Request, RequestKind, RunEnd, Terminal, decode,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::End;
use crate::conversation::Conversation;
use crate::engine::Engine;

/// The largest number of deferred requests; at this number pinion stops reading more.
const MAX_DEFERRED: usize = 256;

/// Serves requests until the input ends.
pub(crate) struct Requests<'a> {
    binding: Binding,
    queue: Queue<Out>,
    /// The engine, or the reason why there is none.
    engine: &'a Result<Engine, String>,
    /// The conversation, while no run uses it.
    idle: Option<Conversation>,
    active: Option<Active<'a>>,
    deferred: VecDeque<Request>,
}

/// A submit that is being served.
struct Active<'a> {
    stop: CancellationToken,
    run: BoxFuture<'a, (Conversation, RunEnd)>,
}

impl<'a> Requests<'a> {
    pub fn new(
        binding: Binding,
        queue: Queue<Out>,
        engine: &'a Result<Engine, String>,
        conversation: Conversation,
    ) -> Self {
        Self {
            binding,
            queue,
            engine,
            idle: Some(conversation),
            active: None,
            deferred: VecDeque::new(),
        }
    }

    /// Serves lines until the input ends, a client requests the shutdown, or `interrupted` completes.
    pub async fn serve(
        mut self,
        mut lines: mpsc::Receiver<Input>,
        interrupted: impl Future<Output = End>,
    ) -> End {
        tokio::pin!(interrupted);
        loop {
            let has_room = self.deferred.len() < MAX_DEFERRED;
            let flow = tokio::select! {
                end = &mut interrupted => ControlFlow::Break(end),
                (conversation, _) = ended(&mut self.active) => {
                    self.active = None;
                    self.idle = Some(conversation);
                    self.catch_up()
                }
                line = lines.recv(), if has_room => match line {
                    Some(Input::Line(InputLine::Complete(line))) => self.line(&line),
                    Some(Input::Line(InputLine::TooLong { .. })) => {
                        return self.end_after_long_line(&mut interrupted).await;
                    }
                    Some(Input::End) | None => return self.finish(&mut interrupted).await,
                },
            };
            if let ControlFlow::Break(end) = flow {
                return self.stop(end).await;
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> ControlFlow<End> {
        let request = match decode(line) {
            Ok(None) => return ControlFlow::Continue(()),
            Ok(Some(request)) => request,
            Err(refusal) => {
                self.refuse(refusal, &self.binding.default_address());
                return ControlFlow::Continue(());
            }
        };
        let is_urgent = request.kind == RequestKind::Cancel && self.active.is_some();
        if self.deferred.is_empty() || is_urgent {
            self.request(request)
        } else {
            self.deferred.push_back(request);
            ControlFlow::Continue(())
        }
    }

    /// Serves the deferred requests, until one must wait again.
    fn catch_up(&mut self) -> ControlFlow<End> {
        while self.active.is_none() {
            let Some(request) = self.deferred.pop_front() else {
                break;
            };
            self.request(request)?;
        }
        ControlFlow::Continue(())
    }

    fn request(&mut self, request: Request) -> ControlFlow<End> {
        let activity = if self.active.is_some() {
            Activity::Busy
        } else {
            Activity::Idle
        };
        let address = match self.binding.check(&request, activity) {
            Ok(address) => address,
            Err((address, refusal)) => {
                self.refuse(refusal, &address);
                return ControlFlow::Continue(());
            }
        };
        let must_wait = match request.kind {
            RequestKind::Submit(_) | RequestKind::Cancel => false,
            RequestKind::Snapshot
            | RequestKind::Shutdown
            | RequestKind::Unknown(_)
            | RequestKind::Empty => activity == Activity::Busy,
        };
        if must_wait {
            self.deferred.push_front(request);
            return ControlFlow::Continue(());
        }
        match request.kind {
            RequestKind::Submit(prompt) => self.submit(&prompt, address),
            RequestKind::Cancel => {
                if let Some(active) = &self.active {
                    active.stop.cancel();
                }
                self.frame(&address, Control::Done(DoneStatus::Ok));
            }
            RequestKind::Snapshot => {
                self.frame(&address, Control::Snapshot);
                self.frame(&address, Control::Done(DoneStatus::Ok));
            }
            RequestKind::Unknown(name) => self.refuse(Refusal::unknown_request(&name), &address),
            RequestKind::Empty => self.refuse(Refusal::empty_request(), &address),
            RequestKind::Shutdown => {
                self.frame(&address, Control::Done(DoneStatus::Shutdown));
                return ControlFlow::Break(End::Done);
            }
        }
        ControlFlow::Continue(())
    }

    fn submit(&mut self, prompt: &str, address: Address) {
        let engine = match self.engine {
            Ok(engine) => engine,
            Err(error) => {
                return self.refuse(
                    Refusal::failed(ErrorCode::EngineInitFailed, error),
                    &address,
                );
            }
        };
        let Some(mut conversation) = self.idle.take() else {
            return;
        };
        conversation.session_id = address.session_id;
        let turn = conversation.turn_for(prompt);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let run = async move {
            let closing = Closing::Request {
                terminal: Terminal::No,
            };
            let end = conversation
                .run(engine, turn, address.request_id, closing, stopped)
                .await;
            (conversation, end)
        };
        let mut run: BoxFuture<'a, _> = Box::pin(run);
        // The run's first frames must precede the answer to anything after its acceptance, such as a cancel.
        match run.as_mut().now_or_never() {
            None => self.active = Some(Active { stop, run }),
            Some((conversation, _)) => self.idle = Some(conversation),
        }
    }

    /// Finishes the active run and serves the deferred requests, after the input has ended.
    async fn finish(mut self, interrupted: impl Future<Output = End>) -> End {
        tokio::pin!(interrupted);
        while self.active.is_some() {
            tokio::select! {
                end = &mut interrupted => return self.stop(end).await,
                (conversation, _) = ended(&mut self.active) => {
                    self.active = None;
                    self.idle = Some(conversation);
                }
            }
            if let ControlFlow::Break(end) = self.catch_up() {
                return end;
            }
        }
        End::Done
    }

    /// Ends after a line that is too long: the bytes after it cannot be trusted to start a new line.
    async fn end_after_long_line(mut self, interrupted: impl Future<Output = End>) -> End {
        let address = self.binding.default_address();
        let queue = self.queue.clone();
        self.deferred
            .retain(|request| request.kind != RequestKind::Shutdown);
        let end = self.finish(interrupted).await;
        if end != End::Done {
            return end;
        }
        let frame = |control| {
            queue.push(Out::Control {
                address: address.clone(),
                control,
            });
        };
        frame(Control::Error {
            code: ErrorCode::StdinReadFailed,
            message: LINE_TOO_LONG.to_owned(),
            terminal: Terminal::Yes,
        });
        frame(Control::Done(DoneStatus::Failed));
        End::Failed
    }

    /// Stops the active run and refuses the deferred requests.
    async fn stop(mut self, end: End) -> End {
        if let Some(active) = self.active.take() {
            active.stop.cancel();
            active.run.await;
        }
        for request in std::mem::take(&mut self.deferred) {
            let reason = "the process ends before this request could be served";
            match self.binding.check(&request, Activity::Idle) {
                Ok(address) => {
                    self.refuse(Refusal::failed(ErrorCode::WaitFailed, reason), &address)
                }
                Err((address, refusal)) => self.refuse(refusal, &address),
            }
        }
        end
    }

    fn refuse(&self, refusal: Refusal, address: &Address) {
        for frame in refusal.frames(address) {
            self.queue.push(frame);
        }
    }

    fn frame(&self, address: &Address, control: Control) {
        self.queue.push(Out::Control {
            address: address.clone(),
            control,
        });
    }
}

/// Waits for the end of the active run; never completes if there is none.
async fn ended(active: &mut Option<Active<'_>>) -> (Conversation, RunEnd) {
    match active {
        Some(active) => active.run.as_mut().await,
        None => std::future::pending().await,
    }
}
