//! A conversation: turns that follow each other, each run by a fresh engine on the state of the last answered one.

use std::sync::Arc;

use pinion_agent::{Command, Listener};
use pinion_history::{Turn, TurnSave, TurnStore};
use pinion_jsonl::Queue;
use pinion_message::{Block, Message};
use pinion_pinocchio::{
    ActiveRun, ChatListener, Closing, Out, PatchMode, Produced, RunEnd, RunEndListener, RunStart,
    Text, context, displayed_prompt, final_turn, with_prompt,
};
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, EngineRun, History, send};

/// The phase of a turn that was answered; `--resume` continues from it.
pub(crate) const FINAL: &str = "final";
/// The phase of a turn that failed, stored with the blocks it had until then.
const FAILED: &str = "failed";

pub(crate) struct Conversation {
    pub session_id: Text,
    /// The last answered turn, or the seed; with `Unanswered::Remembered` also the prompts since.
    pub base: Turn,
    /// The store of the turns; `None` stores none.
    pub turns: Option<Box<dyn TurnStore>>,
    /// The queues that receive the frames of every run.
    pub queues: Vec<Queue<Out>>,
    pub patch_mode: PatchMode,
    /// More listeners of the engine's events.
    pub listeners: Vec<Arc<dyn Listener>>,
    pub unanswered: Unanswered,
}

/// The treatment of a prompt whose run was stopped or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The next turn does not contain it.
    Forgotten,
    /// The next turn contains it, because the user still sees it on the screen.
    Remembered,
}

impl Conversation {
    /// Returns the turn for a submitted prompt: everything before it, and the prompt.
    pub fn turn_for(&self, prompt: &str) -> Turn {
        with_prompt(&self.base, prompt)
    }

    /// Runs one turn, whose last block is the new prompt, to its end. The queues receive the end exactly once, after
    /// the turn is stored.
    pub async fn run(
        &mut self,
        engine: &Engine,
        turn: Turn,
        request_id: Text,
        closing: Closing,
        stop: CancellationToken,
    ) -> RunEnd {
        let inference_id = pinion_pinocchio::new_id();
        let start = RunStart {
            session_id: self.session_id.clone(),
            root: pinion_pinocchio::new_root().into(),
            inference_id: inference_id.clone().into(),
            turn_id: turn.id.clone().into(),
            prompt: displayed_prompt(&turn).into(),
        };
        let begin = |queue: &Queue<Out>| {
            ActiveRun::begin(queue, start.clone(), request_id.clone(), closing)
        };
        let active: Vec<ActiveRun> = self.queues.iter().map(begin).collect();
        let run_end = Arc::new(RunEndListener::default());
        let mut listeners = self.listeners.clone();
        listeners.push(Arc::clone(&run_end) as Arc<dyn Listener>);
        for queue in &self.queues {
            listeners.push(Arc::new(ChatListener::new(queue.clone(), self.patch_mode)));
        }
        let (messages, end) = run(engine, &turn, listeners, &run_end, stop).await;
        let produced = final_turn(
            &turn,
            &Produced {
                session_id: &self.session_id,
                inference_id: &inference_id,
                messages: &messages,
            },
        );
        let end = self.store(turn, produced, inference_id, end).await;
        for active in active {
            active.end(end.clone());
        }
        end
    }

    /// Stores the turn under the phase of its end. A turn that was answered but cannot be stored has failed.
    async fn store(
        &mut self,
        asked: Turn,
        produced: Turn,
        inference_id: String,
        end: RunEnd,
    ) -> RunEnd {
        let phase = match &end {
            RunEnd::Finished => FINAL,
            RunEnd::Failed(_) => FAILED,
            RunEnd::Stopped => {
                self.remember_unanswered(asked);
                return end;
            }
        };
        let saved = self.save(produced, phase, inference_id).await;
        match (end, saved) {
            (RunEnd::Failed(reason), saved) => {
                self.remember_unanswered(asked);
                RunEnd::Failed(match saved {
                    Ok(_) => reason,
                    Err(error) => format!("{reason} (and the failed turn is not kept: {error})"),
                })
            }
            (end, Ok(produced)) => {
                self.base = produced;
                end
            }
            (_, Err(error)) => RunEnd::Failed(format!("the answer could not be kept: {error}")),
        }
    }

    fn remember_unanswered(&mut self, asked: Turn) {
        if self.unanswered == Unanswered::Remembered {
            self.base = asked;
        }
    }

    /// Saves a turn, if there is a store, and returns it; the error is the reason why it is not saved.
    async fn save(
        &mut self,
        turn: Turn,
        phase: &'static str,
        inference_id: String,
    ) -> Result<Turn, String> {
        let Some(mut store) = self.turns.take() else {
            return Ok(turn);
        };
        let session_id = self.session_id.to_string();
        let saved = tokio::task::spawn_blocking(move || {
            let save = TurnSave {
                conversation: &session_id,
                session: &session_id,
                turn: &turn,
                phase,
                at_ms: pinion_message::now_millis(),
                runtime_key: if phase == FAILED { "default" } else { "" },
                inference_id: &inference_id,
            };
            let result = store.save(&save);
            (store, result.map(|()| turn))
        })
        .await;
        let (store, result) = saved.map_err(|error| error.to_string())?;
        self.turns = Some(store);
        result.map_err(|error| error.to_string())
    }
}

/// Runs the engine on the last prompt of the turn; returns the new messages and the end of the run.
async fn run(
    engine: &Engine,
    turn: &Turn,
    listeners: Vec<Arc<dyn Listener>>,
    run_end: &RunEndListener,
    stop: CancellationToken,
) -> (Vec<Arc<Message>>, RunEnd) {
    if turn.blocks.is_empty() {
        let reason = format!("{} has no prompt", engine.command);
        return (Vec::new(), RunEnd::Failed(reason));
    }
    let context = context(turn);
    let history = History {
        system_prompt: context.system_prompt,
        messages: context.history.into_iter().map(Arc::new).collect(),
    };
    let run = match engine.start(history, listeners) {
        Ok(run) => run,
        Err(error) => return (Vec::new(), RunEnd::Failed(error)),
    };
    let accepted = match context.prompt {
        Some(prompt) => submit(&run, prompt).await,
        // A system prompt alone, or a turn that ends with an answer: the model receives it without a new prompt.
        None => run.submit_nothing().await,
    };
    if let Err(error) = accepted {
        return (Vec::new(), RunEnd::Failed(error));
    }
    let messages = finish(run, run_end, stop).await;
    (messages, run_end.end())
}

/// Sends the texts and images of a prompt to the engine.
async fn submit(run: &EngineRun, prompt: Vec<Block>) -> Result<(), String> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for block in prompt {
        match block {
            Block::Text(text) => texts.push(text.text),
            other => images.push(other),
        }
    }
    run.submit(texts.join("\n"), images).await
}

/// Waits for the end of the run; `stop` aborts it. Returns the messages of the run.
async fn finish(
    run: EngineRun,
    run_end: &RunEndListener,
    stop: CancellationToken,
) -> Vec<Arc<Message>> {
    let session = run.session();
    let stopping = async {
        stop.cancelled().await;
        run_end.cancel();
        // The engine settles even if it does not answer.
        let _ = send(&session, Command::Abort).await;
        drop(session);
        std::future::pending::<()>().await;
    };
    let finish = run.finish();
    tokio::pin!(finish);
    tokio::select! {
        messages = &mut finish => return messages,
        () = stopping => {}
    }
    finish.await
}
