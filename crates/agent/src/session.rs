//! The actor: one task that owns a session, receives commands and does one piece of work at a time.
//!
//! The run is a future that the task polls together with its inbox, so most commands are answered at once, also while a
//! run is active. Commands that need the session for themselves (a new session, a manual compaction) stop the run and
//! wait for its end.

mod admission;
mod exclusive;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use pinion_message::{Model, ThinkingLevel};
use pinion_session::Store;
use pinion_tools::run_blocking;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info};

use self::admission::{HookDecision, HookedCommand, RunInput};
use crate::bash::UserCommand;
use crate::compaction;
use crate::core::Core;
use crate::hooks::{Moment, SelectionSource};
use crate::models::is_same_model;
use crate::state::Phase;
use crate::views;
use crate::{Answer, Command, Config, Delivery, EngineError, Navigation, Reply, SessionApi};

/// Time for the current work to end when the session is stopped; then it is dropped.
const STOP_GRACE: Duration = Duration::from_millis(600);
/// Time for the last flush of the session file to its disk. Its entries were written before; only power loss could take
/// them.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit on the commands in the inbox; senders wait above it.
const INBOX_LIMIT: usize = 256;

/// Starts agent sessions.
#[derive(Debug)]
pub struct Session;

/// Sends commands to a running session. The session ends when every handle is dropped and its work is done.
#[derive(Debug, Clone)]
pub struct Handle {
    inbox: mpsc::Sender<PendingCommand>,
    stop: CancellationToken,
}

/// A command and its reply.
pub(crate) type PendingCommand = (Command, Reply);

/// Stops a running session. Unlike a [`Handle`], it does not prevent the session's end.
#[derive(Debug, Clone)]
pub struct Stopper(CancellationToken);

impl Stopper {
    /// Aborts all work. Commands still in the inbox are answered with an error, and the session ends when its work has.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

impl Session {
    /// Starts a session. The task ends when every handle is dropped and its work is done.
    pub fn spawn(config: Config) -> (Handle, JoinHandle<()>) {
        Self::spawn_within(config, CancellationToken::new())
    }

    /// Starts a session that `stop` stops, like [`Stopper::stop`].
    pub(crate) fn spawn_within(
        config: Config,
        stop: CancellationToken,
    ) -> (Handle, JoinHandle<()>) {
        let (inbox, commands) = mpsc::channel(INBOX_LIMIT);
        let (core, hook_queue) = Core::new(config, stop.clone());
        let core = Arc::new(core);
        let over = CancellationToken::new();
        if let Some(events) = hook_queue {
            let emitter = Arc::clone(&core.emitter);
            let (stop, over) = (stop.clone(), over.clone());
            tokio::spawn(async move { emitter.serve_hook_queue(events, stop, over).await });
        }
        if let Some(hooks) = &core.hooks {
            hooks.attach(SessionApi::new(&core, inbox.downgrade()));
        }
        if let Some(supply) = &core.tool_supply {
            supply.attach(SessionApi::new(&core, inbox.downgrade()));
        }
        let actor = Actor {
            read_cancel: stop.child_token(),
            stop: stop.clone(),
            core,
            work: None,
            background: FuturesUnordered::new(),
            bash_cancel: CancellationToken::new(),
            hooked_commands: VecDeque::new(),
            hook_decision: None,
            waiting: VecDeque::new(),
            aborts: Vec::new(),
            idle: Vec::new(),
            hold_until: None,
        };
        let over = over.drop_guard();
        let span = actor.core.span.clone();
        let living = async move {
            actor.run(commands).await;
            drop(over);
        };
        let task = tokio::spawn(living.instrument(span));
        (Handle { inbox, stop }, task)
    }
}

impl Handle {
    /// Sends a command. The reply is answered exactly once, also after the session has ended.
    pub async fn send(&self, command: Command, reply: Reply) {
        // A session that has ended drops the reply, which answers it.
        let _ = self.inbox.send((command, reply)).await;
    }

    /// Returns a stopper, which works also when every handle is dropped.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }
}

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Actor {
    core: Arc<Core>,
    /// Stops the whole session; the parent of all other tokens.
    stop: CancellationToken,
    /// The run, compaction, navigation or replacement in progress.
    work: Option<Work>,
    /// Work that runs in parallel: the user's shell commands, commands of hooks, exports.
    background: FuturesUnordered<Job>,
    /// Stops the newest shell command.
    bash_cancel: CancellationToken,
    /// Ends the wait of commands for the session file.
    read_cancel: CancellationToken,
    /// Prompts and session changes waiting for hooks, in arrival order.
    hooked_commands: VecDeque<HookedCommand>,
    /// The hooks' pending decision about the first of them.
    hook_decision: Option<BoxFuture<'static, HookDecision>>,
    /// Work that waits for the end of the current work.
    waiting: VecDeque<WaitingWork>,
    /// Replies of aborts, answered when the current work has ended.
    aborts: Vec<Reply>,
    /// Replies of [`Command::WaitForIdle`].
    idle: Vec<Reply>,
    /// Time until which further commands wait for a replacement of the session.
    hold_until: Option<Instant>,
}

struct Work {
    job: Job,
    cancel: CancellationToken,
}

/// Work that needs the session for itself.
enum WaitingWork {
    Prompt(RunInput, Reply),
    Compact(Option<String>, Reply),
    Navigate(Navigation, Reply),
    Replace(Command, Reply),
}

impl Actor {
    async fn run(mut self, mut commands: mpsc::Receiver<(Command, Reply)>) {
        info!(
            messages = self.core.state().messages.len(),
            "session opened"
        );
        let mut open = true;
        let overdue = self.overdue();
        tokio::pin!(overdue);
        while open || self.is_busy() {
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if open => {
                    open = false;
                    self.refuse_waiting();
                }
                // Dropping unfinished work answers its commands.
                () = &mut overdue => break,
                () = sleep_until(self.hold_until), if self.hold_until.is_some() => {
                    self.hold_until = None;
                }
                command = next_command(&self.core, &mut commands), if open && self.hold_until.is_none() => match command {
                    Some((command, reply)) => self.handle(command, reply),
                    None => open = false,
                },
                () = working(&self.core, &mut self.work), if self.work.is_some() => self.finish_work(),
                admitted = deciding(&mut self.hook_decision), if self.hook_decision.is_some() => {
                    self.admit(admitted);
                }
                Some(()) = self.background.next(), if !self.background.is_empty() => {}
            }
        }
        if self.work.take().is_some() {
            self.core
                .close_broken_run("the run did not end in time and was dropped");
        }
        // The next start reports entries that are not saved by now.
        let mut store = self.core.take_store();
        let never = CancellationToken::new();
        let removes = self
            .core
            .settings
            .behaviour
            .remove_sessions_without_messages;
        let closing = run_blocking(&never, move || {
            if removes && store.remove_without_messages() {
                return Ok(());
            }
            store.flush_and_sync()
        });
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, closing).await;
        info!("session closed");
    }

    /// Returns when a stopped session has had its grace period.
    fn overdue(&self) -> impl Future<Output = ()> + use<> {
        let stop = self.stop.clone();
        async move {
            stop.cancelled().await;
            tokio::time::sleep(STOP_GRACE).await;
        }
    }

    fn is_busy(&self) -> bool {
        self.work.is_some() || self.hook_decision.is_some() || !self.background.is_empty()
    }

    fn finish_work(&mut self) {
        self.work = None;
        self.hold_until = None;
        self.core.set_phase(Phase::Idle);
        for reply in self.aborts.drain(..) {
            reply.done();
        }
        while self.work.is_none() {
            match self.waiting.pop_front() {
                None => break,
                Some(WaitingWork::Prompt(start, reply)) => self.start_prompt(start, reply),
                Some(WaitingWork::Compact(instructions, reply)) => {
                    self.start_compaction(instructions, reply);
                }
                Some(WaitingWork::Navigate(navigation, reply)) => {
                    self.start_navigation(navigation, reply);
                }
                Some(WaitingWork::Replace(command, reply)) => self.replace(command, reply),
            }
        }
        if self.work.is_none() {
            for reply in self.idle.drain(..) {
                reply.done();
            }
        }
    }

    fn handle(&mut self, command: Command, reply: Reply) {
        let core = &self.core;
        match command {
            Command::Prompt(prompt) => self.prompt(prompt, reply),
            Command::Queue {
                text,
                images,
                delivery,
            } => self.queue_text(&text, images, delivery, reply),
            Command::CustomPrompt(message) => self.run_custom_message(message, reply),
            Command::WaitForIdle => {
                if self.work.is_none() {
                    reply.done();
                } else {
                    self.idle.push(reply);
                }
            }
            Command::Abort => self.abort(reply),
            Command::AbortRetry => self.abort_retry(reply),
            Command::AbortBash => {
                self.bash_cancel.cancel();
                reply.done();
            }
            Command::ClearQueue => self.clear_queue(reply),
            Command::Compact { instructions } => {
                self.run_exclusively(WaitingWork::Compact(instructions, reply));
            }
            Command::Bash {
                command,
                exclude_from_context,
                follower,
            } => self.start_bash(
                UserCommand {
                    command,
                    exclude_from_context,
                    follower,
                },
                reply,
            ),
            Command::GetState => reply.send(Ok(Answer::State(Box::new(core.state_view())))),
            Command::GetMessages => reply.send(Ok(Answer::Messages(core.messages_view()))),
            Command::GetStats => {
                let (core, cancel) = (Arc::clone(core), self.read_cancel.clone());
                self.begin(async move {
                    let stats = async {
                        let stats = core.with_child_usage(core.stats(&cancel).await?);
                        Ok(Answer::Stats(Box::new(stats)))
                    };
                    core.answer_with(stats, reply).await;
                });
            }
            Command::GetLastAssistantText => {
                reply.send(Ok(Answer::Text(core.last_assistant_text())));
            }
            Command::SetModel { provider, id } => {
                let core = Arc::clone(core);
                self.begin(async move {
                    let before = core.state().model.clone();
                    let answer = core.set_model(&provider, &id).await;
                    core.after_selection(before, SelectionSource::Set, answer, reply)
                        .await;
                });
            }
            Command::CycleModel => {
                let core = Arc::clone(core);
                self.begin(async move {
                    let before = core.state().model.clone();
                    let answer = core.cycle_model().await;
                    core.after_selection(before, SelectionSource::Cycle, answer, reply)
                        .await;
                });
            }
            Command::GetAvailableModels => {
                reply.send(Ok(Answer::Models(core.models.available())));
            }
            Command::SetThinkingLevel(level) => {
                let core = Arc::clone(core);
                self.begin(async move {
                    core.set_thinking_level(level.unwrap_or(ThinkingLevel::Off))
                        .await;
                    core.after_level(Answer::Done, reply).await;
                });
            }
            Command::CycleThinkingLevel => {
                let core = Arc::clone(core);
                self.begin(async move {
                    let level = core.cycle_thinking_level().await;
                    core.after_level(Answer::Level(level), reply).await;
                });
            }
            Command::GetThinkingLevels => {
                let levels = core
                    .state()
                    .model
                    .as_ref()
                    .map(|model| model.thinking_levels());
                reply.send(Ok(Answer::Levels(levels.unwrap_or_default())));
            }
            Command::SetSteeringMode(mode) => {
                core.state().steering_mode.clone_from(&mode);
                self.remember("steeringMode", mode.map(Into::into), reply);
            }
            Command::SetFollowUpMode(mode) => {
                core.state().follow_up_mode.clone_from(&mode);
                self.remember("followUpMode", mode.map(Into::into), reply);
            }
            Command::SetAutoCompaction(enabled) => {
                let decided = core.settings.project_switches.auto_compaction;
                core.state().auto_compaction = decided.unwrap_or(enabled);
                self.remember("compaction.enabled", Some(enabled.into()), reply);
            }
            Command::SetAutoRetry(enabled) => {
                let decided = core.settings.project_switches.auto_retry;
                core.state().auto_retry = decided.unwrap_or(enabled);
                self.remember("retry.enabled", Some(enabled.into()), reply);
            }
            Command::SetName(name) => {
                let core = Arc::clone(core);
                self.begin(async move { reply.send(core.set_name(&name).await) });
            }
            Command::GetForkMessages => {
                self.answer_from_session(reply, |store| Ok(views::fork_messages(store)));
            }
            Command::Navigate(navigation) => match core.entry_exists(&navigation.target_id) {
                Ok(()) => self.run_exclusively(WaitingWork::Navigate(navigation, reply)),
                Err(error) => reply.send(Err(error)),
            },
            Command::SetLabel { entry_id, label } => {
                let core = Arc::clone(core);
                self.begin(async move { reply.send(core.set_label(entry_id, label).await) });
            }
            Command::GetEntries { since } => {
                self.answer_from_session(reply, move |store| {
                    views::entries(store, since.as_deref())
                });
            }
            Command::GetTree => self.answer_from_session(reply, |store| Ok(views::tree(store))),
            Command::ExportHtml { path } => {
                let (core, cancel) = (Arc::clone(core), self.read_cancel.clone());
                self.background.push(Box::pin(async move {
                    reply.send(core.export(path, &cancel).await);
                }));
            }
            Command::GetCommands => reply.send(Ok(Answer::Commands(core.expander.commands()))),
            Command::Noop => reply.done(),
            command @ (Command::NewSession { .. }
            | Command::SwitchSession { .. }
            | Command::Fork { .. }
            | Command::CloneSession) => self.ask_to_replace_first(command, reply),
        }
    }

    /// Runs `job` up to its first wait, so that its changes precede the next command, and the rest in the background.
    fn begin(&mut self, job: impl Future<Output = ()> + Send + 'static) {
        let mut job: Job = Box::pin(job);
        if (&mut job).now_or_never().is_none() {
            self.background.push(job);
        }
    }

    /// Answers a command with what `read` makes of the session.
    fn answer_from_session(
        &mut self,
        reply: Reply,
        read: impl FnOnce(&Store) -> Result<Answer, EngineError> + Send + 'static,
    ) {
        let (core, cancel) = (Arc::clone(&self.core), self.read_cancel.clone());
        self.begin(async move {
            let answer = async { core.read_session(&cancel, read).await? };
            core.answer_with(answer, reply).await;
        });
    }

    /// Answers the commands of finished background work before other work begins.
    fn finish_background(&mut self) {
        while let Some(Some(())) = self.background.next().now_or_never() {}
    }

    fn remember(&self, path: &'static str, value: Option<serde_json::Value>, reply: Reply) {
        self.core.preferences.remember(vec![(path, value)]);
        reply.done();
    }

    fn clear_queue(&mut self, reply: Reply) {
        let mut state = self.core.state();
        let steering = state.queued_texts(Delivery::Steer, &[]);
        let follow_up = state.queued_texts(Delivery::FollowUp, &[]);
        state.steering.clear();
        state.follow_up.clear();
        drop(state);
        let was_empty = steering.is_empty() && follow_up.is_empty();
        if !was_empty || self.core.settings.behaviour.announce_every_cleared_queue {
            self.core.emit_queues();
        }
        reply.send(Ok(Answer::Queues {
            steering,
            follow_up,
        }));
    }

    fn abort(&mut self, reply: Reply) {
        self.core.abandon_slow_save();
        std::mem::replace(&mut self.read_cancel, self.stop.child_token()).cancel();
        self.finish_background();
        match &self.work {
            None => reply.done(),
            Some(work) => {
                work.cancel.cancel();
                self.aborts.push(reply);
                self.refuse_waiting();
            }
        }
    }

    /// Answers waiting prompts, compactions and navigations with an error: an abort stops them as well as the current
    /// work.
    fn refuse_waiting(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                WaitingWork::Prompt(_, reply) => reply.send(Err(EngineError::AbortedEarly)),
                WaitingWork::Compact(_, reply) | WaitingWork::Navigate(_, reply) => {
                    let cancelled = compaction::CompactionFailure::Cancelled.to_string();
                    reply.send(Err(EngineError::Compaction(cancelled)));
                }
                other @ WaitingWork::Replace(..) => self.waiting.push_back(other),
            }
        }
    }

    fn abort_retry(&mut self, reply: Reply) {
        let phase = self.core.state().phase.clone();
        match phase {
            Phase::RetryWait(wait) => {
                if self.core.settings.behaviour.answer_retry_abort_at_once {
                    self.core.state().retry_aborts.push(reply);
                } else {
                    self.aborts.push(reply);
                }
                wait.cancel();
            }
            _ => reply.done(),
        }
    }

    fn start_bash(&mut self, command: UserCommand, reply: Reply) {
        self.bash_cancel = self.stop.child_token();
        let core = Arc::clone(&self.core);
        let cancel = self.bash_cancel.clone();
        self.background.push(Box::pin(async move {
            core.run_bash(command, cancel, reply).await;
        }));
    }
}

impl Core {
    /// Answers when the hooks have received the new thinking level.
    async fn after_level(&self, answer: Answer, reply: Reply) {
        if let Some(hooks) = self.hook(Moment::LevelSelected) {
            hooks.caught_up().await;
        }
        reply.send(Ok(answer));
    }

    /// Answers when the hooks have handled the new model.
    async fn after_selection(
        &self,
        before: Option<Arc<Model>>,
        source: SelectionSource,
        answer: Result<Answer, EngineError>,
        reply: Reply,
    ) {
        let chosen = match &answer {
            Ok(Answer::Model(model)) => Some(Arc::clone(model)),
            Ok(Answer::Cycled(Some(cycled))) => Some(Arc::clone(&cycled.model)),
            _ => None,
        };
        let differs = |chosen: &Arc<Model>| {
            before
                .as_ref()
                .is_none_or(|before| !is_same_model(before, chosen))
        };
        if let Some(hooks) = self.hook(Moment::ModelSelected)
            && let Some(chosen) = chosen.filter(differs)
        {
            hooks.model_selected(chosen, before, source).await;
        }
        reply.send(answer);
    }
}

/// Receives a command when none needs to wait for a save.
fn next_command<'a>(
    core: &'a Core,
    commands: &'a mut mpsc::Receiver<PendingCommand>,
) -> impl Future<Output = Option<PendingCommand>> + 'a {
    std::future::poll_fn(|context| {
        if core.holds_commands(context.waker()) {
            Poll::Pending
        } else {
            commands.poll_recv(context)
        }
    })
}

/// Waits until `moment`; without one it never returns.
async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Polls the current work; without any it never returns.
async fn working(core: &Core, work: &mut Option<Work>) {
    std::future::poll_fn(|context| match work {
        // The command that waits for the save wakes this task.
        Some(work) if !core.holds_run() => work.job.as_mut().poll(context),
        _ => Poll::Pending,
    })
    .await;
}

/// Polls the hooks' pending decision; without one it never returns.
async fn deciding(decision: &mut Option<BoxFuture<'static, HookDecision>>) -> HookDecision {
    match decision {
        Some(decision) => decision.await,
        None => std::future::pending().await,
    }
}
