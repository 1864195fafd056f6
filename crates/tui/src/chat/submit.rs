//! Sends the text of the editor: to the session, to the shell, or to the chat itself.

use std::time::Instant;

use pinion_agent::{Answer, Command, Delivery, Disposition, Prompt};

use super::attach;
use super::state::{Saying, State};
use crate::Abilities;
use crate::transcript::{NoticeKind, Scroll};

impl State {
    /// Submits the text of the editor; `delivery` applies while a run is active.
    pub(super) fn submit(&mut self, delivery: Delivery) {
        let text = self.editor.text();
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let text = text.to_owned();
        if self.abilities() == Abilities::Turns && self.is_busy() && !text.starts_with('/') {
            self.hint("The model is still answering. Wait, or press Esc to stop it.");
            return;
        }
        if let Some(name) = self.unknown_command(&text)
            && self.unknown_line.as_ref() != Some(&text)
        {
            self.hint(&format!(
                "Unknown command \"/{name}\". Press Enter again to send the line."
            ));
            self.unknown_line = Some(text);
            return;
        }
        self.unknown_line = None;
        let files = self.editor.references(&self.cwd);
        self.editor.take();
        self.written = None;
        self.editor.remember(text.clone());
        self.completion.update(&self.editor);
        self.transcript.scroll(Scroll::End);
        if let Some(command) = text.strip_prefix("!!") {
            return self.shell(command, true);
        }
        if let Some(command) = text.strip_prefix('!') {
            return self.shell(command, false);
        }
        if text.starts_with('/') && self.run_built_in(&text) {
            return;
        }
        let images = attach::images(&files);
        let prompt = Saying { text, images };
        if self.is_loaded {
            self.send_prompt(prompt, delivery)
        } else {
            self.pending_prompts.push_back(prompt)
        }
    }

    fn shell(&mut self, command: &str, is_private: bool) {
        let command = command.trim();
        if self.abilities() == Abilities::Turns {
            self.notice(
                NoticeKind::Warning,
                "Shell commands need a session; the chat of a Pinocchio command has none.",
            );
        } else if !command.is_empty() {
            self.run_shell(command, is_private);
        }
    }

    /// Sends the next prompt that waits for the run to end.
    pub(super) fn send_next_prompt(&mut self) {
        if self.is_busy() || !self.is_loaded {
            return;
        }
        if let Some(prompt) = self.pending_prompts.pop_front() {
            self.send_prompt(prompt, Delivery::FollowUp);
        }
    }

    fn send_prompt(&mut self, prompt: Saying, delivery: Delivery) {
        let Saying { text, images } = prompt;
        let when_busy = match self.abilities() {
            Abilities::Session => Some(delivery),
            Abilities::Turns => None,
        };
        let original = text.clone();
        let prompt = Prompt {
            images,
            when_busy,
            ..Prompt::new(text)
        };
        self.waits_since = Some(Instant::now());
        self.ask(Command::Prompt(prompt), move |state, result| {
            state.waits_since = None;
            match result {
                Ok(Answer::Taken(Disposition::Handled)) => {
                    state.refresh_after_command();
                    state.send_next_prompt();
                }
                Ok(_) => {}
                Err(error) => {
                    state.failed(&error);
                    let mut texts = state.take_pending_prompts();
                    if state.editor.is_empty() {
                        texts.insert(0, original);
                    }
                    state.write_before_draft(texts);
                }
            }
        });
    }

    /// Checks whether a command of an extension switched to another session or branch.
    fn refresh_after_command(&mut self) {
        let (id, messages) = (self.session.id.clone(), self.session.messages);
        self.ask(Command::GetState, move |state, result| {
            if let Ok(Answer::State(view)) = result
                && (view.session_id != id || view.message_count < messages)
            {
                state.reload();
            }
        });
        self.ask_state();
        self.ask_commands();
    }

    /// Stops the run; queued messages return to the editor.
    pub(super) fn stop(&mut self) {
        if self.shells.is_running() && !self.is_busy() {
            return self.send(Command::AbortBash);
        }
        if self.has_queued() {
            self.take_back();
        }
        self.hint("Stopping …");
        self.ask(Command::Abort, |state, result| {
            state.hint = None;
            if let Err(error) = result {
                state.failed(&error);
            }
        });
    }

    pub(super) fn has_queued(&self) -> bool {
        !(self.steering.is_empty() && self.follow_up.is_empty() && self.pending_prompts.is_empty())
    }

    /// Returns queued messages to the editor.
    pub(super) fn take_back(&mut self) {
        // Taken at once, so that the end of a run does not send the next of them meanwhile.
        let pending_prompts = self.take_pending_prompts();
        self.ask(Command::ClearQueue, |state, result| {
            let mut texts = match result {
                Ok(Answer::Queues {
                    steering,
                    follow_up,
                }) => steering.into_iter().chain(follow_up).collect(),
                Ok(_) => Vec::new(),
                Err(error) => {
                    state.failed(&error);
                    Vec::new()
                }
            };
            texts.extend(pending_prompts);
            state.write_before_draft(texts);
        });
    }

    fn take_pending_prompts(&mut self) -> Vec<String> {
        self.pending_prompts
            .drain(..)
            .map(|prompt| prompt.text)
            .collect()
    }

    fn write_before_draft(&mut self, mut texts: Vec<String>) {
        if texts.is_empty() {
            return;
        }
        let draft = self.editor.text();
        if !draft.is_empty() {
            texts.push(draft);
        }
        self.editor.set_text(&texts.join("\n\n"));
    }
}
