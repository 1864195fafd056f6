//! One run with its engine, from the claim of its topic to its last output.

use std::sync::Arc;
use std::time::Duration;

use pinion_access::Principal;
use pinion_agent::{
    Answer, Command, Config, Delivery, EngineError, Handle, Prompt, Reply, Session,
};
use pinion_hub::Answers;
use pinion_message::{Message, StopReason};
use pinion_status::{Code, Failure};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::AgentClip;
use super::feed::{Feed, fault};
use super::record_file::now;
use super::request::{AddedMessage, Chat};
use super::runs::{LiveRun, PendingRun};
use super::topics::{Run, Status, Topic, title_of};

/// Time that a stopped session may take to become idle.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

impl AgentClip {
    /// Starts a run for a message. The answer streams the run's events.
    pub(super) fn chat(
        self: Arc<Self>,
        caller: Principal,
        chat: Chat,
        deadline: Option<Instant>,
    ) -> Answers {
        let stop = CancellationToken::new();
        let (feed, answers) = Feed::new(deadline, stop.clone(), chat.detach);
        tokio::spawn(async move {
            let end = self.talk(&caller, chat, &feed, stop).await;
            feed.end(end);
        });
        answers
    }

    async fn talk(
        self: Arc<Self>,
        caller: &Principal,
        chat: Chat,
        feed: &Arc<Feed>,
        stop: CancellationToken,
    ) -> Result<Value, Failure> {
        let Chat {
            agent_id,
            topic_id,
            message,
            ..
        } = chat;
        let (clip, asker, words) = (Arc::clone(&self), caller.clone(), title_of(&message));
        let topic = blocking(move || match topic_id {
            Some(id) => clip.topics.get(&asker, &id),
            None => {
                let agent = clip.agents.get(agent_id.as_deref())?;
                clip.topics.create(&asker, &agent.id, Some(&words))
            }
        });
        let topic = topic.await?;
        let run = Run::in_topic(&topic.id);
        self.run_in(caller, &topic, message, PendingRun::new(run, stop), feed)
            .await
    }

    /// Runs a message in a topic, and records the run at its start and its end.
    pub(super) async fn run_in(
        self: &Arc<Self>,
        caller: &Principal,
        topic: &Topic,
        message: String,
        turn: PendingRun,
        feed: &Arc<Feed>,
    ) -> Result<Value, Failure> {
        let claim = self.runs.begin(turn).await?;
        let live = &claim.live;
        feed.say(&json!({
            "type": "start",
            "topic_id": topic.id,
            "run_id": live.run.id,
            "agent_id": topic.agent_id,
        }));
        self.record(&topic.id, &live.run, Some(title_of(&message)))
            .await;
        let end = self.answer_with(caller, topic, message, feed, live).await;
        let mut run = live.run.clone();
        run.finished_at = Some(now());
        let result = match end {
            Ok(()) => {
                run.status = Status::Done;
                feed.say(&json!({"type": "done"}));
                Ok(json!({
                    "status": "done",
                    "topic_id": topic.id,
                    "run_id": run.id,
                    "agent_id": topic.agent_id,
                }))
            }
            Err(failure) => {
                run.status = match failure.code {
                    Code::Canceled => Status::Cancelled,
                    _ => Status::Error,
                };
                run.error = Some(failure.message.to_string());
                feed.say(&json!({"type": "error", "error": &*failure.message}));
                Err(failure)
            }
        };
        // Recorded before the claim is dropped: a caller that waits for the end reads the final state.
        self.record(&topic.id, &run, None).await;
        drop(claim);
        result
    }

    /// Records the state of a run in its topic. A failure is only logged, because the run itself continues.
    async fn record(self: &Arc<Self>, topic: &str, run: &Run, title: Option<String>) {
        let (clip, id, run) = (Arc::clone(self), topic.to_owned(), run.clone());
        let recorded = blocking(move || {
            let change = |topic: &mut Topic| {
                if topic.title.is_empty() {
                    topic.title = title.unwrap_or_default();
                }
                topic.updated_at = now();
                topic.run = Some(run);
            };
            clip.topics.change(&Principal::Super, &id, change)
        });
        if let Err(failure) = recorded.await
            && failure.code != Code::NotFound
        {
            self.warn(&format!("topic {topic}: {failure}"));
        }
    }

    async fn answer_with(
        self: &Arc<Self>,
        caller: &Principal,
        topic: &Topic,
        message: String,
        feed: &Arc<Feed>,
        live: &Arc<LiveRun>,
    ) -> Result<(), Failure> {
        let config = self.session(caller, topic, feed).await?;
        if live.stop.is_cancelled() {
            return Err(cancelled());
        }
        let (session, mut task) = Session::spawn(config);
        live.session.send_replace(Some(session.clone()));
        let drive = drive(&session, message, live);
        let driven = drive.await;
        session.stopper().stop();
        live.session.send_replace(None);
        // A session that does not settle in time is abandoned; its file is complete at any time.
        if tokio::time::timeout(SETTLE_TIMEOUT, &mut task)
            .await
            .is_err()
        {
            task.abort();
        }
        let family = topic.id.clone();
        // A process that cannot be killed now ends with the program.
        let _ = tokio::task::spawn_blocking(move || pinion_process::kill_family(&family)).await;
        driven?;
        if live.stop.is_cancelled() {
            return Err(cancelled());
        }
        match feed.last().as_deref() {
            Some(Message::Assistant(answer)) if answer.stop_reason == StopReason::Aborted => {
                Err(cancelled())
            }
            Some(Message::Assistant(answer)) if answer.stop_reason == StopReason::Error => {
                Err(Failure::new(Code::Internal, fault(answer)))
            }
            Some(_) => Ok(()),
            None => Err(Failure::new(Code::Internal, "the model gave no answer")),
        }
    }

    /// Builds a session on a blocking thread, because that reads files.
    async fn session(
        self: &Arc<Self>,
        caller: &Principal,
        topic: &Topic,
        feed: &Arc<Feed>,
    ) -> Result<Config, Failure> {
        let (clip, caller, topic, feed) = (
            Arc::clone(self),
            caller.clone(),
            topic.clone(),
            Arc::clone(feed),
        );
        blocking(move || clip.build(&caller, &topic, feed)).await
    }

    /// Adds a message to the run in progress.
    pub(super) async fn add_message(
        &self,
        topic: &Topic,
        said: AddedMessage,
        delivery: Delivery,
    ) -> Result<Value, Failure> {
        let idle = || {
            let message = format!("nothing is going on in topic {}; use chat", topic.id);
            Failure::new(Code::FailedPrecondition, message)
        };
        let live = self.runs.of(&topic.id).ok_or_else(idle)?;
        let session = live.engine().await.ok_or_else(idle)?;
        let closed = live.closed.lock().await;
        if *closed {
            return Err(idle());
        }
        let prompt = Prompt {
            when_busy: Some(delivery),
            ..Prompt::new(said.message)
        };
        ask(&session, Command::Prompt(prompt))
            .await
            .map_err(refused)?;
        Ok(json!({"topic_id": topic.id, "run_id": live.run.id, "status": "queued"}))
    }
}

/// Sends the prompt and waits until the engine is idle or the run is stopped.
async fn drive(session: &Handle, message: String, live: &LiveRun) -> Result<(), Failure> {
    let prompt = ask(session, Command::Prompt(Prompt::new(message)));
    prompt.await.map_err(refused)?;
    loop {
        tokio::select! {
            biased;
            () = live.stop.cancelled() => {
                // The engine stops even if it does not answer in time.
                let _ = tokio::time::timeout(SETTLE_TIMEOUT, ask(session, Command::Abort)).await;
                return Ok(());
            }
            _ = ask(session, Command::WaitForIdle) => {}
        }
        let mut closed = live.closed.lock().await;
        // A message may have arrived in the meantime; then the run continues.
        match ask(session, Command::GetState).await {
            Ok(Answer::State(state)) if state.is_streaming || state.is_compacting => {}
            _ => {
                *closed = true;
                return Ok(());
            }
        }
    }
}

/// Sends a command to an engine and returns its answer.
pub(super) async fn ask(session: &Handle, command: Command) -> Result<Answer, EngineError> {
    let (sender, answer) = oneshot::channel();
    let reply = Reply::new(move |result| {
        // The receiver may be gone; then the answer is not needed.
        let _ = sender.send(result);
    });
    session.send(command, reply).await;
    answer.await.unwrap_or(Err(EngineError::Dropped))
}

/// Runs work that reads files on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        let message = format!("this failed unexpectedly: {error}");
        Err(Failure::new(Code::Internal, message))
    })
}

fn refused(error: EngineError) -> Failure {
    let code = match &error {
        EngineError::NoModel
        | EngineError::Credentials(_)
        | EngineError::NoKeyForModel { .. }
        | EngineError::ModelNotFound { .. } => Code::FailedPrecondition,
        EngineError::QueueFull => Code::ResourceExhausted,
        EngineError::Dropped => Code::Unavailable,
        _ => Code::Internal,
    };
    Failure::new(code, error.to_string())
}

fn cancelled() -> Failure {
    Failure::new(Code::Canceled, "the run was cancelled")
}
