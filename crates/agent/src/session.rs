//! The actor: one task that owns a session, takes commands and does one thing at a time.
//!
//! Whatever can be answered at once is answered at once, also while a run is active: the run is a
//! future polled beside the inbox. Commands that need the session to themselves (a new session,
//! a manual compaction) stop the run, wait for it to settle, and go on.

mod admission;
mod exclusive;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use pinion_message::{Model, ThinkingLevel};
use pinion_tools::run_blocking;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::admission::{Admitted, Arrival, Start};
use crate::bash::UserCommand;
use crate::compaction;
use crate::core::Core;
use crate::hooks::{Moment, SelectionSource};
use crate::models::same;
use crate::state::Phase;
use crate::{Answer, Command, Config, Delivery, Desk, EngineError, Navigation, Reply};

/// How long what goes on may take to end when the session is stopped for good.
const STOP_GRACE: Duration = Duration::from_millis(600);
/// Time for the last flush of the session file to its disk. Its entries were written before; only power loss could take them.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);
/// How many commands may wait in the inbox.
const INBOX: usize = 256;

/// One agent session.
#[derive(Debug)]
pub struct Session;

/// How to reach a running session. Dropping every handle ends it once its work is done.
#[derive(Debug, Clone)]
pub struct Handle {
    inbox: mpsc::Sender<Order>,
    stop: CancellationToken,
}

/// A command and the duty to answer it.
pub(crate) type Order = (Command, Reply);

/// How to stop a running session. Unlike a handle, it does not keep the session waiting for commands.
#[derive(Debug, Clone)]
pub struct Stopper(CancellationToken);

impl Stopper {
    /// Aborts everything. Commands that were not taken yet are answered with an error, and the
    /// session ends when it has settled.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

impl Session {
    /// Starts a session. The task ends when every handle is gone and its work has settled.
    pub fn spawn(config: Config) -> (Handle, JoinHandle<()>) {
        let (inbox, commands) = mpsc::channel(INBOX);
        let stop = CancellationToken::new();
        let (core, line) = Core::new(config, stop.clone());
        let core = Arc::new(core);
        let over = CancellationToken::new();
        if let Some(line) = line {
            let outlet = Arc::clone(&core.outlet);
            let (stop, over) = (stop.clone(), over.clone());
            tokio::spawn(async move { outlet.serve_line(line, stop, over).await });
        }
        if let Some(hooks) = &core.hooks {
            hooks.attach(Desk::new(&core, inbox.downgrade()));
        }
        let actor = Actor {
            stop: stop.clone(),
            core,
            work: None,
            beside: FuturesUnordered::new(),
            bash_cancel: CancellationToken::new(),
            arrivals: VecDeque::new(),
            arriving: None,
            waiting: VecDeque::new(),
            aborts: Vec::new(),
            idle: Vec::new(),
            hold_until: None,
        };
        let over = over.drop_guard();
        let task = tokio::spawn(async move {
            actor.run(commands).await;
            drop(over);
        });
        (Handle { inbox, stop }, task)
    }
}

impl Handle {
    /// Asks something; the reply is answered exactly once, also when the session is gone.
    pub async fn send(&self, command: Command, reply: Reply) {
        // A session that is gone drops the reply, which answers it.
        let _ = self.inbox.send((command, reply)).await;
    }

    /// How to stop the session, also when every handle is gone.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }
}

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Actor {
    core: Arc<Core>,
    /// Stops everything for good: the parent of all other tokens.
    stop: CancellationToken,
    /// What the session is busy with.
    work: Option<Work>,
    /// What runs beside everything else: shell commands of the user, commands of who takes part.
    beside: FuturesUnordered<Job>,
    /// Stops the newest shell command.
    bash_cancel: CancellationToken,
    /// What who takes part must see before it is done, in order.
    arrivals: VecDeque<Arrival>,
    /// The first of them, being seen.
    arriving: Option<BoxFuture<'static, Admitted>>,
    /// What waits until the session is free.
    waiting: VecDeque<Waiting>,
    /// Aborts to be answered when the work has settled.
    aborts: Vec<Reply>,
    /// Who waits until nothing goes on.
    idle: Vec<Reply>,
    /// Further commands wait until then, or until the change of session is over.
    hold_until: Option<Instant>,
}

struct Work {
    job: Job,
    cancel: CancellationToken,
}

/// Something that needs the session to itself.
enum Waiting {
    Prompt(Start, Reply),
    Compact(Option<String>, Reply),
    Navigate(Navigation, Reply),
    /// A change of session.
    Replace(Command, Reply),
}

impl Actor {
    async fn run(mut self, mut commands: mpsc::Receiver<(Command, Reply)>) {
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
                // What does not end is dropped; its commands are answered by that.
                () = &mut overdue => break,
                () = sleep_until(self.hold_until), if self.hold_until.is_some() => {
                    self.hold_until = None;
                }
                command = commands.recv(), if open && self.hold_until.is_none() => match command {
                    Some((command, reply)) => self.handle(command, reply),
                    None => open = false,
                },
                () = working(&mut self.work), if self.work.is_some() => self.work_is_over(),
                admitted = arriving(&mut self.arriving), if self.arriving.is_some() => {
                    self.admit(admitted);
                }
                Some(()) = self.beside.next(), if !self.beside.is_empty() => {}
            }
        }
        if self.work.take().is_some() {
            self.core
                .close_broken_run("the run did not end in time and was dropped");
        }
        // The next start reports entries that are not saved by now.
        let core = Arc::clone(&self.core);
        let never = CancellationToken::new();
        let flushing = run_blocking(&never, move || core.state().store.flush_and_sync());
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, flushing).await;
    }

    /// Ends when a session that was stopped has had its time.
    fn overdue(&self) -> impl Future<Output = ()> + use<> {
        let stop = self.stop.clone();
        async move {
            stop.cancelled().await;
            tokio::time::sleep(STOP_GRACE).await;
        }
    }

    fn is_busy(&self) -> bool {
        self.work.is_some() || self.arriving.is_some() || !self.beside.is_empty()
    }

    fn work_is_over(&mut self) {
        self.work = None;
        self.hold_until = None;
        self.core.set_phase(Phase::Idle);
        for reply in self.aborts.drain(..) {
            reply.done();
        }
        while self.work.is_none() {
            match self.waiting.pop_front() {
                None => break,
                Some(Waiting::Prompt(start, reply)) => self.start_prompt(start, reply),
                Some(Waiting::Compact(instructions, reply)) => {
                    self.start_compaction(instructions, reply);
                }
                Some(Waiting::Navigate(navigation, reply)) => {
                    self.start_navigation(navigation, reply);
                }
                Some(Waiting::Replace(command, reply)) => self.replace(command, reply),
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
            Command::Say(message) => self.say_and_run(message, reply),
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
                self.exclusively(Waiting::Compact(instructions, reply));
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
            Command::GetStats => reply.send(Ok(Answer::Stats(Box::new(core.stats())))),
            Command::GetLastAssistantText => {
                reply.send(Ok(Answer::Text(core.last_assistant_text())));
            }
            Command::SetModel { provider, id } => {
                let before = core.state().model.clone();
                let answer = core.set_model(&provider, &id);
                self.after_selection(before, SelectionSource::Set, answer, reply);
            }
            Command::CycleModel => {
                let before = core.state().model.clone();
                let answer = core.cycle_model();
                self.after_selection(before, SelectionSource::Cycle, answer, reply);
            }
            Command::GetAvailableModels => {
                reply.send(Ok(Answer::Models(core.models.available())));
            }
            Command::SetThinkingLevel(level) => {
                core.set_thinking_level(level.unwrap_or(ThinkingLevel::Off));
                self.after_level(Answer::Done, reply);
            }
            Command::CycleThinkingLevel => {
                let level = core.cycle_thinking_level();
                self.after_level(Answer::Level(level), reply);
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
                let decided = core.settings.decided.auto_compaction;
                core.state().auto_compaction = decided.unwrap_or(enabled);
                self.remember("compaction.enabled", Some(enabled.into()), reply);
            }
            Command::SetAutoRetry(enabled) => {
                let decided = core.settings.decided.auto_retry;
                core.state().auto_retry = decided.unwrap_or(enabled);
                self.remember("retry.enabled", Some(enabled.into()), reply);
            }
            Command::SetName(name) => reply.send(core.set_name(&name)),
            Command::GetForkMessages => {
                let messages = core.state().store.user_messages();
                let messages = messages
                    .into_iter()
                    .map(|(id, text)| (id.to_string(), text));
                reply.send(Ok(Answer::ForkMessages(messages.collect())));
            }
            Command::Navigate(navigation) => match core.entry_exists(&navigation.target_id) {
                Ok(()) => self.exclusively(Waiting::Navigate(navigation, reply)),
                Err(error) => reply.send(Err(error)),
            },
            Command::SetLabel { entry_id, label } => reply.send(core.set_label(entry_id, label)),
            Command::GetEntries { since } => reply.send(core.entries_view(since.as_deref())),
            Command::GetTree => reply.send(Ok(core.tree_view())),
            Command::ExportHtml { path } => match core.export(path) {
                Err(error) => reply.send(Err(error)),
                Ok(export) => {
                    let (core, cancel) = (Arc::clone(core), self.stop.child_token());
                    self.beside.push(Box::pin(async move {
                        reply.send(core.write_export(export, &cancel).await);
                    }));
                }
            },
            Command::GetCommands => reply.send(Ok(Answer::Commands(core.expander.commands()))),
            Command::Nothing => reply.done(),
            command @ (Command::NewSession { .. }
            | Command::SwitchSession { .. }
            | Command::Fork { .. }
            | Command::CloneSession) => self.replace_if_permitted(command, reply),
        }
    }

    /// Answers once who takes part has heard which level was chosen.
    fn after_level(&mut self, answer: Answer, reply: Reply) {
        match self.core.hook(Moment::LevelSelected).cloned() {
            None => reply.send(Ok(answer)),
            Some(hooks) => self.beside.push(Box::pin(async move {
                hooks.caught_up().await;
                reply.send(Ok(answer));
            })),
        }
    }

    /// Lets what is over be answered before something else begins.
    fn answer_what_is_over(&mut self) {
        while let Some(Some(())) = self.beside.next().now_or_never() {}
    }

    /// Answers once who takes part knows which model was chosen.
    fn after_selection(
        &mut self,
        before: Option<Arc<Model>>,
        source: SelectionSource,
        answer: Result<Answer, EngineError>,
        reply: Reply,
    ) {
        let hooks = self.core.hook(Moment::ModelSelected).cloned();
        let chosen = match &answer {
            Ok(Answer::Model(model)) => Some(Arc::clone(model)),
            Ok(Answer::Cycled(Some(cycled))) => Some(Arc::clone(&cycled.model)),
            _ => None,
        };
        let (Some(hooks), Some(chosen)) = (hooks, chosen) else {
            return reply.send(answer);
        };
        if before.as_ref().is_some_and(|before| same(before, &chosen)) {
            return reply.send(answer);
        }
        self.beside.push(Box::pin(async move {
            hooks.model_selected(chosen, before, source).await;
            reply.send(answer);
        }));
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
        if !steering.is_empty() || !follow_up.is_empty() {
            self.core.tell_queues();
        }
        reply.send(Ok(Answer::Queues {
            steering,
            follow_up,
        }));
    }

    fn abort(&mut self, reply: Reply) {
        self.answer_what_is_over();
        match &self.work {
            None => reply.done(),
            Some(work) => {
                work.cancel.cancel();
                self.aborts.push(reply);
                self.refuse_waiting();
            }
        }
    }

    /// What stops the work also stops what waits for its turn and would take as long.
    fn refuse_waiting(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                Waiting::Prompt(_, reply) => reply.send(Err(EngineError::AbortedEarly)),
                Waiting::Compact(_, reply) | Waiting::Navigate(_, reply) => {
                    let cancelled = compaction::Failure::Cancelled.to_string();
                    reply.send(Err(EngineError::Compaction(cancelled)));
                }
                other @ Waiting::Replace(..) => self.waiting.push_back(other),
            }
        }
    }

    fn abort_retry(&mut self, reply: Reply) {
        let phase = self.core.state().phase.clone();
        match phase {
            Phase::RetryWait(wait) => {
                wait.cancel();
                self.aborts.push(reply);
            }
            _ => reply.done(),
        }
    }

    fn start_bash(&mut self, command: UserCommand, reply: Reply) {
        self.bash_cancel = self.stop.child_token();
        let core = Arc::clone(&self.core);
        let cancel = self.bash_cancel.clone();
        self.beside.push(Box::pin(async move {
            core.run_bash(command, cancel, reply).await;
        }));
    }
}

/// Waits for `moment`; without one it never ends.
async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Polls the work, if there is any.
async fn working(work: &mut Option<Work>) {
    match work {
        Some(work) => (&mut work.job).await,
        None => std::future::pending().await,
    }
}

/// Polls what arrives, if anything does.
async fn arriving(arrival: &mut Option<BoxFuture<'static, Admitted>>) -> Admitted {
    match arrival {
        Some(arrival) => arrival.await,
        None => std::future::pending().await,
    }
}
