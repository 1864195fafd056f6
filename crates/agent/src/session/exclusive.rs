//! Work that needs the session for itself: a replacement, a compaction, a navigation.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Actor, WaitingWork, Work};
use crate::core::Core;
use crate::hooks::{Hooks, Origin};
use crate::save::COMMAND_HOLD;
use crate::state::Phase;
use crate::{Answer, Command, CompactionReason, EngineError, Event, Navigation, Reply};

impl Actor {
    /// Stops the current work and does `next` when it has ended.
    pub(super) fn run_exclusively(&mut self, next: WaitingWork) {
        match &self.work {
            Some(work) => {
                work.cancel.cancel();
                self.refuse_waiting();
                self.waiting.push_back(next);
            }
            None => {
                self.waiting.push_front(next);
                self.finish_work();
            }
        }
    }

    pub(super) fn replace(&mut self, command: Command, reply: Reply) {
        let core = Arc::clone(&self.core);
        if let Some(hooks) = self.core.hooks.clone() {
            self.start_work(|cancel| async move {
                let result = core.replace_with_hooks(command, &*hooks, &cancel).await;
                reply.send(result);
            });
        } else {
            // Commands sent after it apply to the new session.
            self.hold_until = Some(Instant::now() + COMMAND_HOLD);
            self.start_work(|cancel| async move {
                reply.send(core.replace(command, &cancel).await);
            });
        }
    }

    pub(super) fn start_compaction(&mut self, instructions: Option<String>, reply: Reply) {
        self.core.set_phase(Phase::Compacting);
        let core = Arc::clone(&self.core);
        self.start_work(|cancel| async move {
            let reason = CompactionReason::Manual;
            core.emit(Event::CompactionStart { reason });
            if let Some(hooks) = &core.hooks {
                // A hook that requested the compaction receives its answer before the compaction ends.
                hooks.caught_up().await;
            }
            let result = core
                .compact(reason, instructions.as_deref(), &cancel)
                .await
                .map(Arc::new);
            core.set_phase(Phase::Between);
            let cancelled = matches!(result, Err(crate::compaction::CompactionFailure::Cancelled));
            core.emit(Event::CompactionEnd {
                reason,
                result: result.as_ref().ok().cloned(),
                aborted: cancelled || (cancel.is_cancelled() && result.is_err()),
                will_retry: false,
                error: result.as_ref().err().map(ToString::to_string),
            });
            reply.send(match result {
                Ok(result) => Ok(Answer::Compacted(result)),
                Err(failure) => Err(EngineError::Compaction(failure.to_string())),
            });
        });
    }

    pub(super) fn start_navigation(&mut self, navigation: Navigation, reply: Reply) {
        if navigation.summary.is_some() {
            self.core.set_phase(Phase::Compacting);
        }
        let core = Arc::clone(&self.core);
        self.start_work(|cancel| async move {
            let result = core.navigate(navigation, &cancel).await;
            core.set_phase(Phase::Between);
            reply.send(result);
        });
    }

    pub(super) fn start_work<F>(&mut self, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let cancel = self.stop.child_token();
        let work = AssertUnwindSafe(work(cancel.clone())).catch_unwind();
        let core = Arc::clone(&self.core);
        let job = Box::pin(async move {
            if work.await.is_err() {
                core.close_broken_run("the run failed unexpectedly; the session continues");
            }
        });
        self.work = Some(Work { job, cancel });
    }
}

impl Core {
    async fn replace(
        &self,
        command: Command,
        cancel: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let next = self.next_session(command, cancel).await?;
        self.switch_to(next, cancel).await
    }

    /// Replaces the session and informs the hooks before and after.
    async fn replace_with_hooks(
        &self,
        mut command: Command,
        hooks: &dyn Hooks,
        cancel: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let Some(change) = self.replacement(&command) else {
            return self.replace(command, cancel).await;
        };
        let (origin, prepare) = match &mut command {
            Command::NewSession {
                origin, prepare, ..
            } => (*origin, prepare.take()),
            Command::SwitchSession { origin, .. } | Command::Fork { origin, .. } => (*origin, None),
            _ => (Origin::Client, None),
        };
        let next = self.next_session(command, cancel).await?;
        let previous = self.state().store.file().map(Into::into);
        hooks.leaving(&change, next.file()).await;
        let answer = self.switch_to(next, cancel).await?;
        if let Some(prepare) = prepare {
            prepare.run().await;
        }
        hooks.entered(&change, previous, origin).await;
        Ok(answer)
    }
}
