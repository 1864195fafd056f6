//! The actor: one task that owns a session, takes commands and does one thing at a time.
//!
//! Whatever can be answered at once is answered at once, also while a run is active: the run is a
//! future polled beside the inbox. Commands that need the session to themselves (a new session,
//! a manual compaction) stop the run, wait for it to settle, and go on.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use pinion_message::{Block, Message, ThinkingLevel, UserMessage};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::compaction;
use crate::core::Core;
use crate::error::QUEUE_LIMIT;
use crate::state::Phase;
use crate::{
    Answer, Command, CompactionReason, Config, Delivery, Disposition, EngineError, Event,
    Navigation, Reply,
};

/// How many commands may wait in the inbox.
const INBOX: usize = 256;

/// One agent session.
#[derive(Debug)]
pub struct Session;

/// How to reach a running session. Dropping every handle ends it once its work is done.
#[derive(Debug, Clone)]
pub struct Handle {
    inbox: mpsc::Sender<(Command, Reply)>,
    stop: CancellationToken,
}

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
        let actor = Actor {
            stop: stop.clone(),
            core: Arc::new(Core::new(config)),
            work: None,
            bash: FuturesUnordered::new(),
            bash_cancel: CancellationToken::new(),
            waiting: VecDeque::new(),
            aborts: Vec::new(),
        };
        (Handle { inbox, stop }, tokio::spawn(actor.run(commands)))
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
    /// Shell commands of the user; they run beside everything else.
    bash: FuturesUnordered<Job>,
    /// Stops the newest shell command.
    bash_cancel: CancellationToken,
    /// What waits until the session is free.
    waiting: VecDeque<Waiting>,
    /// Aborts to be answered when the work has settled.
    aborts: Vec<Reply>,
}

struct Work {
    job: Job,
    cancel: CancellationToken,
}

/// Something that needs the session to itself.
enum Waiting {
    Prompt(Vec<Block>, Reply),
    Compact(Option<String>, Reply),
    Navigate(Navigation, Reply),
    /// A change of session.
    Replace(Command, Reply),
}

impl Actor {
    async fn run(mut self, mut commands: mpsc::Receiver<(Command, Reply)>) {
        let mut open = true;
        while open || self.work.is_some() || !self.bash.is_empty() {
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if open => {
                    open = false;
                    self.refuse_waiting();
                }
                command = commands.recv(), if open => match command {
                    Some((command, reply)) => self.handle(command, reply),
                    None => open = false,
                },
                () = working(&mut self.work), if self.work.is_some() => self.work_is_over(),
                Some(()) = self.bash.next(), if !self.bash.is_empty() => {}
            }
        }
        // What is not saved by now is told by the store's own error at the next start.
        let _ = self.core.state().store.flush_and_sync();
    }

    fn work_is_over(&mut self) {
        self.work = None;
        self.core.set_phase(Phase::Idle);
        for reply in self.aborts.drain(..) {
            reply.done();
        }
        while self.work.is_none() {
            match self.waiting.pop_front() {
                None => break,
                Some(Waiting::Prompt(blocks, reply)) => self.start_prompt(blocks, reply),
                Some(Waiting::Compact(instructions, reply)) => {
                    self.start_compaction(instructions, reply);
                }
                Some(Waiting::Navigate(navigation, reply)) => {
                    self.start_navigation(navigation, reply);
                }
                Some(Waiting::Replace(command, reply)) => self.replace(command, reply),
            }
        }
    }

    fn handle(&mut self, command: Command, reply: Reply) {
        let core = &self.core;
        match command {
            Command::Prompt {
                text,
                images,
                when_busy,
            } => {
                self.prompt(&text, images, when_busy, reply);
            }
            Command::Queue {
                text,
                images,
                delivery,
            } => {
                let blocks = self.expand(&text, images);
                self.queue(blocks, delivery, reply);
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
            } => {
                self.start_bash(command, exclude_from_context, reply);
            }
            Command::GetState => reply.send(Ok(Answer::State(Box::new(core.state_view())))),
            Command::GetMessages => reply.send(Ok(Answer::Messages(core.messages_view()))),
            Command::GetStats => reply.send(Ok(Answer::Stats(Box::new(core.stats())))),
            Command::GetLastAssistantText => {
                reply.send(Ok(Answer::Text(core.last_assistant_text())));
            }
            Command::SetModel { provider, id } => reply.send(core.set_model(&provider, &id)),
            Command::CycleModel => reply.send(core.cycle_model()),
            Command::GetAvailableModels => {
                reply.send(Ok(Answer::Models(core.models.available())));
            }
            Command::SetThinkingLevel(level) => {
                core.set_thinking_level(level.unwrap_or(ThinkingLevel::Off));
                reply.done();
            }
            Command::CycleThinkingLevel => {
                reply.send(Ok(Answer::Level(core.cycle_thinking_level())));
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
                core.state().auto_compaction = enabled;
                self.remember("compaction.enabled", Some(enabled.into()), reply);
            }
            Command::SetAutoRetry(enabled) => {
                core.state().auto_retry = enabled;
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
            Command::ExportHtml { path } => reply.send(core.export_html(path)),
            Command::GetCommands => reply.send(Ok(Answer::Commands(core.expander.commands()))),
            Command::Nothing => reply.done(),
            command @ (Command::NewSession { .. }
            | Command::SwitchSession { .. }
            | Command::Fork { .. }
            | Command::CloneSession) => match core.can_replace(&command) {
                Ok(()) => self.exclusively(Waiting::Replace(command, reply)),
                Err(error) => reply.send(Err(error)),
            },
        }
    }

    fn remember(&self, path: &'static str, value: Option<serde_json::Value>, reply: Reply) {
        self.core.preferences.remember(vec![(path, value)]);
        reply.done();
    }

    fn expand(&self, text: &str, images: Vec<Block>) -> Vec<Block> {
        let expanded = self.core.expander.expand(text);
        if let Some((source, error)) = expanded.fault {
            self.core.emit(Event::Fault {
                source,
                during: "skill_expansion",
                error,
            });
        }
        let mut blocks = vec![Block::text(expanded.text)];
        blocks.extend(images);
        self.core.mask.blocks(&mut blocks);
        blocks
    }

    fn prompt(
        &mut self,
        text: &str,
        images: Vec<Block>,
        when_busy: Option<Delivery>,
        reply: Reply,
    ) {
        let blocks = self.expand(text, images);
        let phase = self.core.state().phase.clone();
        match (&phase, when_busy) {
            (Phase::Running, Some(delivery)) => return self.queue(blocks, delivery, reply),
            (Phase::Running, None) => return reply.send(Err(EngineError::Busy)),
            (Phase::Compacting, _) => return reply.send(Err(EngineError::Compacting)),
            (Phase::RetryWait(_) | Phase::Between | Phase::AutoCompacting | Phase::Idle, _) => {}
        }
        if let Err(error) = self.core.ready_to_ask() {
            return reply.send(Err(error));
        }
        if let Phase::RetryWait(wait) = phase {
            // The prompt takes the place of the retry, which ends first.
            wait.cancel();
        }
        if self.work.is_some() {
            self.waiting.push_back(Waiting::Prompt(blocks, reply));
        } else {
            self.start_prompt(blocks, reply);
        }
    }

    fn start_prompt(&mut self, blocks: Vec<Block>, reply: Reply) {
        self.core.release_held_bash();
        reply.send(Ok(Answer::Taken(Disposition::Started)));
        let message = Arc::new(Message::User(UserMessage::now(blocks)));
        // From here on a second prompt is told that the agent is busy.
        self.core.set_phase(Phase::Running);
        let core = Arc::clone(&self.core);
        self.start_work(|cancel| async move { core.live(vec![message], cancel).await });
    }

    fn queue(&mut self, blocks: Vec<Block>, delivery: Delivery, reply: Reply) {
        let message = Arc::new(Message::User(UserMessage::now(blocks)));
        {
            let mut state = self.core.state();
            let queue = match delivery {
                Delivery::Steer => &mut state.steering,
                Delivery::FollowUp => &mut state.follow_up,
            };
            if queue.len() >= QUEUE_LIMIT {
                return reply.send(Err(EngineError::QueueFull));
            }
            queue.push_back(message);
        }
        self.core.emit_queues();
        reply.send(Ok(Answer::Taken(Disposition::Queued)));
    }

    fn clear_queue(&mut self, reply: Reply) {
        let mut state = self.core.state();
        let steering = state.queued_texts(Delivery::Steer);
        let follow_up = state.queued_texts(Delivery::FollowUp);
        state.steering.clear();
        state.follow_up.clear();
        drop(state);
        if !steering.is_empty() || !follow_up.is_empty() {
            self.core.emit_queues();
        }
        reply.send(Ok(Answer::Queues {
            steering,
            follow_up,
        }));
    }

    fn abort(&mut self, reply: Reply) {
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

    fn start_bash(&mut self, command: String, exclude_from_context: bool, reply: Reply) {
        self.bash_cancel = self.stop.child_token();
        let core = Arc::clone(&self.core);
        let cancel = self.bash_cancel.clone();
        self.bash.push(Box::pin(async move {
            core.run_bash(command, exclude_from_context, cancel, reply)
                .await;
        }));
    }

    /// Stops what is going on and does `what` once it has settled.
    fn exclusively(&mut self, what: Waiting) {
        match &self.work {
            Some(work) => {
                work.cancel.cancel();
                self.refuse_waiting();
                self.waiting.push_back(what);
            }
            None => {
                self.waiting.push_front(what);
                self.work_is_over();
            }
        }
    }

    fn replace(&mut self, command: Command, reply: Reply) {
        let core = &self.core;
        reply.send(match command {
            Command::NewSession { parent } => core.new_session(parent),
            Command::SwitchSession { path } => core.switch_session(&path),
            Command::Fork { entry_id } => core.fork(&entry_id),
            _ => core.clone_session(),
        });
    }

    fn start_compaction(&mut self, instructions: Option<String>, reply: Reply) {
        self.core.set_phase(Phase::Compacting);
        let core = Arc::clone(&self.core);
        self.start_work(|cancel| async move {
            let reason = CompactionReason::Manual;
            core.emit(Event::CompactionStart { reason });
            let result = core
                .compact(instructions.as_deref(), &cancel)
                .await
                .map(Arc::new);
            core.set_phase(Phase::Between);
            core.emit(Event::CompactionEnd {
                reason,
                result: result.as_ref().ok().cloned(),
                aborted: cancel.is_cancelled() && result.is_err(),
                will_retry: false,
                error: result.as_ref().err().map(ToString::to_string),
            });
            reply.send(match result {
                Ok(result) => Ok(Answer::Compacted(result)),
                Err(failure) => Err(EngineError::Compaction(failure.to_string())),
            });
        });
    }

    fn start_navigation(&mut self, navigation: Navigation, reply: Reply) {
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

    fn start_work<F>(&mut self, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let cancel = self.stop.child_token();
        let work = AssertUnwindSafe(work(cancel.clone())).catch_unwind();
        let core = Arc::clone(&self.core);
        let job = Box::pin(async move {
            if work.await.is_err() {
                core.close_broken_run();
            }
        });
        self.work = Some(Work { job, cancel });
    }
}

/// Polls the work, if there is any.
async fn working(work: &mut Option<Work>) {
    match work {
        Some(work) => (&mut work.job).await,
        None => std::future::pending().await,
    }
}
