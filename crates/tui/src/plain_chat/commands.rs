//! Commands of the plain chat itself.

use std::fmt::Write;

use pinion_agent::{Answer, Command, Origin};
use pinion_message::ThinkingLevel;

use super::PlainChat;
use crate::Abilities;
use crate::transcript::NoticeKind;

const HELP: &str = "\
/model [provider/id]   who answers; without a name: the models there are
/thinking LEVEL        how hard it thinks
/name NAME             name the session
/new                   begin a new session
/compact [WORDS]       summarise what was said
/export [FILE]         write the session as a web page
/stop                  stop what goes on; Ctrl-C does too
/quit                  leave; Ctrl-D does too
!COMMAND               run a shell command and tell the model; !! does not tell
Anything else that begins with / goes to templates, skills and extensions.
";

impl PlainChat {
    /// Does what `text` asks if it is a command of the chat; whether it was.
    pub(super) fn own_command(&mut self, text: &str) -> bool {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let some = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        match name {
            "/help" | "/hotkeys" => {
                self.print(HELP);
                self.show_prompt();
            }
            "/quit" | "/exit" => self.ending = Some(0),
            "/stop" => {
                self.waiting.clear();
                self.tell(Command::Abort);
            }
            _ if self.host.abilities() == Abilities::Turns => return false,
            "/model" => self.model(rest),
            "/thinking" => self.thinking(rest),
            "/name" => self.done(Command::SetName(rest.to_owned()), "Named."),
            "/compact" => self.tell(Command::Compact {
                instructions: some(),
            }),
            "/export" => self.export(some()),
            "/new" => self.done(
                Command::NewSession {
                    parent: None,
                    prepare: None,
                    origin: Origin::Client,
                },
                "A new session begins.",
            ),
            _ => return false,
        }
        true
    }

    fn done(&self, command: Command, words: &'static str) {
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
            Ok(level) => self.done(Command::SetThinkingLevel(Some(level)), "Set."),
            Err(_) => {
                let known: Vec<&str> = ThinkingLevel::ALL
                    .iter()
                    .map(|level| level.as_str())
                    .collect();
                let words = format!("The levels are {}.", known.join(", "));
                self.notice(NoticeKind::Error, &words);
                self.show_prompt();
            }
        }
    }

    fn model(&mut self, rest: &str) {
        if let Some((provider, id)) = rest.split_once('/') {
            let (provider, id) = (provider.to_owned(), id.to_owned());
            return self.done(
                Command::SetModel { provider, id },
                "It answers from now on.",
            );
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
