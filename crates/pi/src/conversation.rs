//! One conversation from its prompts to its last answer, for the modes without a client that sends further prompts.

use pinion_agent::{Companions, Config, EngineError, Session};

use crate::serving::stop_session;
use crate::single_shot::{Prompts, Settled, ask_all};

/// The outcome of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The model was asked and everything has settled.
    Answered,
    /// Extensions handled every prompt; the model was not asked.
    NothingAsked,
    /// The conversation was ended with this exit code: by a signal, by a companion, or because the reader is gone.
    Ended(u8),
}

/// Runs the conversation until its last answer, or until a companion or the completion of `interrupted` ends it.
/// `interrupted` completes with an exit code.
pub async fn converse(
    config: Config,
    companions: &dyn Companions,
    prompts: Prompts,
    mut settled: Settled,
    interrupted: impl Future<Output = u8>,
) -> Result<Outcome, EngineError> {
    let (session, task) = Session::spawn(config);
    let conversation = async {
        if let Some(begin) = companions.begin() {
            begin.await;
        }
        ask_all(&session, prompts, &mut settled).await
    };
    let outcome = tokio::select! {
        asked = conversation => asked.map(|runs| match runs {
            0 => Outcome::NothingAsked,
            _ => Outcome::Answered,
        }),
        code = interrupted => Ok(Outcome::Ended(code)),
        code = companions.exited() => Ok(Outcome::Ended(code)),
    };
    companions.end().await;
    // After an answer no run is active; otherwise it is stopped here, so that the session file is complete.
    stop_session(&session.stopper(), task).await;
    outcome
}
