//! Shell commands of the user. They run in parallel to the agent, and their output becomes part of the context.

use std::sync::Arc;

use pinion_message::{BashExecutionMessage, Message, now_millis};
use pinion_session::EntryId;
use pinion_tools::{BashOutcome, Follower, ToolError, user_bash};
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::hooks::{Moment, UserBash, UserBashOutcome};
use crate::{Answer, EngineError, Reply};

/// A shell command of the user.
pub(crate) struct UserCommand {
    pub command: String,
    pub exclude_from_context: bool,
    /// Receives the output while the command runs.
    pub follower: Option<Arc<dyn Follower>>,
}

impl Core {
    /// Runs a command, stores it in the session, and answers.
    pub async fn run_bash(&self, asked: UserCommand, cancel: CancellationToken, reply: Reply) {
        let UserCommand {
            mut command,
            exclude_from_context,
            follower,
        } = asked;
        let ran = match self
            .ask_about_bash(&command, exclude_from_context, &cancel)
            .await
        {
            UserBashOutcome::Run => {
                user_bash(&command, &self.cwd, &self.shell, follower, &cancel).await
            }
            UserBashOutcome::Done(outcome) => Ok(outcome),
            UserBashOutcome::Refused(reason) => Err(ToolError(reason)),
        };
        match ran {
            Ok(mut outcome) => {
                self.mask.string(&mut outcome.output);
                self.mask.string(&mut command);
                self.remember_bash(command, exclude_from_context, &outcome, &cancel)
                    .await;
                reply.send(Ok(Answer::Bash(outcome)));
            }
            Err(error) => reply.send(Err(EngineError::Bash(error.0))),
        }
    }

    /// Asks the hooks about a command. An abort ends the question, and the command does not run.
    async fn ask_about_bash(
        &self,
        command: &str,
        exclude_from_context: bool,
        cancel: &CancellationToken,
    ) -> UserBashOutcome {
        let Some(hooks) = self.hook(Moment::UserBash) else {
            return UserBashOutcome::Run;
        };
        let asked = UserBash {
            command: command.to_owned(),
            exclude_from_context,
            cwd: (*self.cwd).clone(),
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => UserBashOutcome::Done(BashOutcome {
                output: String::new(),
                exit_code: None,
                cancelled: true,
                truncated: false,
                full_output_path: None,
            }),
            outcome = hooks.user_bash(asked) => outcome,
        }
    }

    async fn remember_bash(
        &self,
        command: String,
        exclude: bool,
        outcome: &BashOutcome,
        cancel: &CancellationToken,
    ) {
        let message = Arc::new(Message::BashExecution(BashExecutionMessage {
            command,
            output: outcome.output.clone(),
            exit_code: outcome.exit_code,
            cancelled: outcome.cancelled,
            truncated: outcome.truncated,
            full_output_path: outcome.full_output_path.clone(),
            timestamp: now_millis(),
            exclude_from_context: exclude.then_some(true),
        }));
        {
            let mut state = self.state();
            if state.is_streaming() {
                // A command between a tool call and its result would break the conversation.
                state.held_bash.push(message);
                return;
            }
        }
        let id = self.push_message(&message);
        self.save(id, cancel).await;
    }

    /// Puts the results that waited for the end of a run into the conversation. Returns the id of the last one's entry.
    pub fn release_held_bash(&self) -> Option<EntryId> {
        let held = std::mem::take(&mut self.state().held_bash);
        let ids = held.iter().map(|message| self.push_message(message));
        ids.last().flatten()
    }
}
