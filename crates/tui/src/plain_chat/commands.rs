//! Commands of the plain chat.

use std::fmt::Write;

use pinion_agent::{Answer, Command, Origin};
use pinion_message::ThinkingLevel;
use pinion_session::Stats;
use serde_json::Value;

use super::PlainChat;
use crate::Abilities;
use crate::chat::{about_model, called};
use crate::transcript::NoticeKind;

const HELP: &str = "\
/model [provider/id]   choose a model; without a name: list the models
/thinking LEVEL        set the level of thinking
/name NAME             name the session
/new                   start a new session
/clone                 continue in a copy of this session
/compact [WORDS]       summarise the conversation
/export [FILE]         write the session as a web page
/session               counts, tokens and cost
/stop                  stop the run or shell command; Ctrl-C does too
/quit                  quit; Ctrl-D does too
!COMMAND               run a shell command and send its output to the model
!!COMMAND              run a shell command that the model does not see
Other lines that begin with / call templates, skills and extensions.
";

const HELP_WITH_TURNS: &str = "\
/session               counts and tokens
/stop                  stop the answer; Ctrl-C does too
/quit                  quit; Ctrl-D does too
";

impl PlainChat {
    /// Runs `text` if it is a command of the chat. Returns whether it was.
    pub(super) fn run_built_in(&mut self, text: &str) -> bool {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let some = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        match name {
            "/help" | "/hotkeys" => {
                self.print(match self.host.abilities() {
                    Abilities::Session => HELP,
                    Abilities::Turns => HELP_WITH_TURNS,
                });
                self.show_prompt();
            }
            "/quit" | "/exit" => self.ending = Some(0),
            "/stop" => self.stop(),
            "/session" => self.stats(),
            _ if self.host.abilities() == Abilities::Turns => match refused(name) {
                Some(command) => self.done(command, "Done."),
                None => return false,
            },
            "/model" => self.model(rest),
            "/thinking" => self.thinking(rest),
            "/name" => self.done(Command::SetName(rest.to_owned()), "Session renamed."),
            "/compact" => self.send(Command::Compact {
                instructions: some(),
            }),
            "/export" => self.export(some()),
            "/new" => self.done(
                Command::NewSession {
                    parent: None,
                    prepare: None,
                    origin: Origin::Client,
                },
                "Started a new session.",
            ),
            "/clone" => self.done(Command::CloneSession, "Now in a copy of the session."),
            _ => match alternative(name) {
                Some(words) => {
                    self.notice(NoticeKind::Information, words);
                    self.show_prompt();
                }
                None => return false,
            },
        }
        true
    }

    fn stats(&mut self) {
        self.ask(Command::GetStats, |chat, result| {
            match result {
                Ok(Answer::Stats(stats)) => {
                    let words = counted(&stats);
                    chat.print(&words);
                }
                Ok(_) => {}
                Err(error) => chat.failed(&error),
            }
            chat.show_prompt();
        });
    }

    /// Requests the commands of templates, skills and extensions.
    pub(super) fn ask_commands(&mut self) {
        self.ask(Command::GetCommands, |chat, result| {
            if let Ok(Answer::Commands(Value::Array(commands))) = result {
                let names = commands
                    .iter()
                    .filter_map(|command| command["name"].as_str());
                chat.commands = Some(names.map(str::to_owned).collect());
            }
        });
    }

    /// Reports whether a line calls an unknown command and is typed for the first time.
    pub(super) fn is_unknown_command(&mut self, text: &str) -> bool {
        let before = self.unknown_line.take();
        let (Some(commands), Some(name)) = (&self.commands, called(text)) else {
            return false;
        };
        if commands.iter().any(|known| known == name) || before.as_deref() == Some(text) {
            return false;
        }
        let words = format!("Unknown command \"/{name}\". Type the line again to send it.");
        self.notice(NoticeKind::Information, &words);
        self.unknown_line = Some(text.to_owned());
        true
    }

    fn done(&mut self, command: Command, words: &'static str) {
        self.ask(command, move |chat, result| {
            match result {
                Ok(_) => chat.notice(NoticeKind::Information, words),
                Err(error) => chat.failed(&error),
            }
            chat.ask_state();
            chat.show_prompt();
        });
    }

    fn thinking(&mut self, rest: &str) {
        match rest.parse::<ThinkingLevel>() {
            Ok(level) => self.done(
                Command::SetThinkingLevel(Some(level)),
                "Thinking level changed.",
            ),
            Err(_) => {
                let known: Vec<&str> = ThinkingLevel::ALL
                    .iter()
                    .map(|level| level.as_str())
                    .collect();
                let words = format!(
                    "Unknown thinking level \"{rest}\". Use {}.",
                    known.join(", ")
                );
                self.notice(NoticeKind::Error, &words);
                self.show_prompt();
            }
        }
    }

    fn model(&mut self, rest: &str) {
        if let Some((provider, id)) = rest.split_once('/') {
            let (provider, id) = (provider.to_owned(), id.to_owned());
            return self.ask(Command::SetModel { provider, id }, |chat, result| {
                match result {
                    Ok(_) => chat.notice(NoticeKind::Information, "Model changed."),
                    Err(error) => chat.notice(NoticeKind::Error, &about_model(&error)),
                }
                chat.ask_state();
                chat.show_prompt();
            });
        }
        self.ask(Command::GetAvailableModels, |chat, result| {
            match result {
                Ok(Answer::Models(models)) => {
                    let mut words = String::new();
                    for model in models {
                        // Writing to a string cannot fail.
                        let _ = writeln!(words, "{}/{}", model.provider, model.id);
                    }
                    chat.print(&words);
                }
                Ok(_) => {}
                Err(error) => chat.failed(&error),
            }
            chat.show_prompt();
        });
    }

    fn export(&mut self, path: Option<String>) {
        self.ask(Command::ExportHtml { path }, |chat, result| {
            match result {
                Ok(Answer::Exported(path)) => {
                    chat.notice(NoticeKind::Information, &format!("Written to {path}"));
                }
                Ok(_) => {}
                Err(error) => chat.failed(&error),
            }
            chat.show_prompt();
        });
    }
}

/// Returns a command whose error explains why the chat of a Pinocchio command cannot do this;
/// `None` if a session cannot do it either.
fn refused(name: &str) -> Option<Command> {
    Some(match name {
        "/model" => Command::CycleModel,
        "/thinking" => Command::CycleThinkingLevel,
        "/compact" => Command::Compact { instructions: None },
        "/export" => Command::ExportHtml { path: None },
        "/name" | "/new" | "/clone" | "/resume" | "/tree" | "/fork" => Command::GetTree,
        _ => return None,
    })
}

/// Explains what to do instead of a command that needs the whole screen.
fn alternative(name: &str) -> Option<&'static str> {
    Some(match name {
        "/resume" => {
            "Quit and start with --resume, which lists the sessions of this directory, or with --session and an id from `pinion sessions list`."
        }
        "/tree" | "/fork" => {
            "Plain mode does not show the tree. /clone continues in a copy; to return to an earlier message, quit and start without --plain."
        }
        "/copy" => {
            "Plain mode does not write to the clipboard: select the text, or write it to a file with /export."
        }
        _ => return None,
    })
}

/// The statistics of a session in a few lines.
fn counted(stats: &Stats) -> String {
    let tokens = stats.tokens;
    let mut words = format!(
        "Session {}\n{} messages: {} yours, {} answers, {} tool calls\n{} tokens: {} in, {} out\n",
        stats.session_id,
        stats.total_messages,
        stats.user_messages,
        stats.assistant_messages,
        stats.tool_calls,
        tokens.total,
        tokens.input,
        tokens.output,
    );
    if let Some(percent) = stats.context_usage.and_then(|usage| usage.percent) {
        // Writing to a string cannot fail.
        let _ = writeln!(words, "Context {percent:.0}% full");
    }
    if stats.cost > 0.0 {
        let _ = writeln!(words, "Cost ${:.4}", stats.cost);
    }
    words
}
