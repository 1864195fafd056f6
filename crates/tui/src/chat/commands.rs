//! Commands of the chat itself, which begin with `/`.

use pinion_agent::{Answer, Command, Origin};
use pinion_message::ThinkingLevel;
use serde_json::Value;

use super::state::{Effect, State};
use crate::Abilities;
use crate::completion::CommandEntry;
use crate::overlay::CommandHelp;
use crate::transcript::NoticeKind;

/// A command of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Help,
    Model,
    Thinking,
    New,
    Resume,
    Tree,
    Fork,
    Clone,
    Name,
    Compact,
    Export,
    Copy,
    Session,
    Quit,
}

/// The hosts that support a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    All,
    Sessions,
}

/// Name, command, hosts, arguments, description.
const OWN: &[(&str, Own, For, &str, &str)] = {
    use For::{All, Sessions};
    &[
        ("help", Own::Help, All, "", "keys and commands"),
        (
            "model",
            Own::Model,
            Sessions,
            "[name]",
            "choose who answers",
        ),
        (
            "thinking",
            Own::Thinking,
            Sessions,
            "[level]",
            "how hard it thinks",
        ),
        ("new", Own::New, Sessions, "", "begin a new session"),
        (
            "resume",
            Own::Resume,
            Sessions,
            "",
            "go on with another session",
        ),
        (
            "tree",
            Own::Tree,
            Sessions,
            "",
            "go elsewhere in this session",
        ),
        (
            "fork",
            Own::Fork,
            Sessions,
            "",
            "a new session from a place in this one",
        ),
        (
            "clone",
            Own::Clone,
            Sessions,
            "",
            "go on in a copy of this session",
        ),
        ("name", Own::Name, Sessions, "[name]", "name the session"),
        (
            "compact",
            Own::Compact,
            Sessions,
            "[what matters]",
            "summarise what was said",
        ),
        (
            "export",
            Own::Export,
            Sessions,
            "[file]",
            "write the session as a web page",
        ),
        ("copy", Own::Copy, All, "", "copy the last answer"),
        ("session", Own::Session, All, "", "counts, tokens and cost"),
        ("quit", Own::Quit, All, "", "leave"),
    ]
};

/// Other names of some commands.
const ALIASES: [&str; 2] = ["exit", "hotkeys"];

/// The commands of the chat itself.
pub(super) fn own_commands(abilities: Abilities) -> impl Iterator<Item = CommandEntry> {
    OWN.iter()
        .filter(move |(_, _, who, ..)| *who == For::All || abilities == Abilities::Session)
        .map(|(name, _, _, arguments, does)| CommandEntry {
            name: (*name).to_owned(),
            description: (*does).to_owned(),
            arguments: (*arguments).to_owned(),
            source: String::new(),
        })
}

impl State {
    /// Requests the commands of templates, skills and extensions.
    pub(super) fn ask_commands(&mut self) {
        let own = own_commands(self.abilities()).collect();
        self.completion.set_commands(own);
        self.ask(Command::GetCommands, |state, result| {
            let Ok(Answer::Commands(Value::Array(commands))) = result else {
                return;
            };
            let others: Vec<CommandEntry> = commands.iter().filter_map(entry).collect();
            state.other_commands = Some(others.iter().map(help).collect());
            let own = own_commands(state.abilities());
            state.completion.set_commands(own.chain(others).collect());
        });
    }

    /// The name of the command that this line calls, if it does not exist.
    pub(super) fn unknown_command<'a>(&self, text: &'a str) -> Option<&'a str> {
        let others = self.other_commands.as_ref()?;
        let name = called(text)?;
        let is_own = OWN.iter().any(|(known, ..)| *known == name) || ALIASES.contains(&name);
        let is_other = others
            .iter()
            .any(|command| called(&command.name) == Some(name));
        (!is_own && !is_other).then_some(name)
    }

    /// Runs `text` if it is a command of the chat. Returns whether it was.
    pub(super) fn own_command(&mut self, text: &str) -> bool {
        let (name, rest) = text[1..]
            .split_once(char::is_whitespace)
            .unwrap_or((&text[1..], ""));
        let name = match name {
            "exit" => "quit",
            "hotkeys" => "help",
            name => name,
        };
        let Some((_, own, who, ..)) = OWN.iter().find(|(known, ..)| *known == name) else {
            return false;
        };
        if *who == For::Sessions && self.abilities() == Abilities::Turns {
            self.refuse(*own)
        } else {
            self.obey(*own, rest.trim())
        }
        true
    }

    /// Sends a command that the host does not support; the host's error explains what to do
    /// instead.
    fn refuse(&self, own: Own) {
        match own {
            Own::Model => self.tell(Command::CycleModel),
            Own::Thinking => self.tell(Command::CycleThinkingLevel),
            Own::Compact => self.tell(Command::Compact { instructions: None }),
            Own::Export => self.tell(Command::ExportHtml { path: None }),
            _ => self.tell(Command::GetTree),
        }
    }

    fn obey(&mut self, own: Own, rest: &str) {
        match own {
            Own::Help => self.show_help(),
            Own::Model => self.pick_model(rest),
            Own::Thinking => self.thinking(rest),
            Own::New => self.replace(Command::NewSession {
                parent: None,
                prepare: None,
                origin: Origin::Client,
            }),
            Own::Resume => self.pick_session(),
            Own::Tree | Own::Fork => self.pick_place(),
            Own::Clone => self.replace(Command::CloneSession),
            Own::Name => self.name(rest),
            Own::Compact => self.compact(rest),
            Own::Export => self.export(rest),
            Own::Copy => self.copy_answer(),
            Own::Session => self.show_stats(),
            Own::Quit => self.end(0),
        }
    }

    fn thinking(&mut self, rest: &str) {
        match rest.parse::<ThinkingLevel>() {
            _ if rest.is_empty() => self.pick_thinking(),
            Ok(level) => self.set_thinking(level),
            Err(_) => {
                let known: Vec<&str> = ThinkingLevel::ALL
                    .iter()
                    .map(|level| level.as_str())
                    .collect();
                let words = format!(
                    "There is no level \"{rest}\". There are {}.",
                    known.join(", ")
                );
                self.notice(NoticeKind::Error, &words);
            }
        }
    }

    fn name(&mut self, rest: &str) {
        match (rest, &self.session.name) {
            ("", Some(name)) => {
                let words = format!("This session is named \"{name}\".");
                self.notice(NoticeKind::Information, &words);
            }
            ("", None) => self.notice(
                NoticeKind::Information,
                "This session has no name. /name NAME gives it one.",
            ),
            (name, _) => self.tell(Command::SetName(name.to_owned())),
        }
    }

    fn compact(&mut self, rest: &str) {
        let instructions = Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        // Events report the progress, including failures.
        let seen = self.compactions;
        self.ask(Command::Compact { instructions }, move |state, result| {
            if let Err(error) = result
                && state.compactions == seen
            {
                state.failed(&error);
            }
        });
    }

    fn export(&mut self, rest: &str) {
        let path = Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        self.ask(Command::ExportHtml { path }, |state, result| match result {
            Ok(Answer::Exported(path)) => {
                state.notice(NoticeKind::Information, &format!("Written to {path}"));
            }
            Ok(_) => {}
            Err(error) => state.failed(&error),
        });
    }

    pub(super) fn copy_answer(&mut self) {
        match self.transcript.last_answer() {
            Some(answer) => self.effects.push(Effect::Copy(answer)),
            None => self.hint("There is no answer to copy yet."),
        }
    }

    pub(super) fn copy_code(&mut self) {
        let code = self.transcript.last_code();
        if code.is_empty() {
            self.hint("There is no code in the last answer.")
        } else {
            self.effects.push(Effect::Copy(code.join("\n")))
        }
    }

    /// Switches to another session.
    pub(super) fn replace(&mut self, command: Command) {
        self.ask(command, |state, result| match result {
            Ok(Answer::Forked {
                text,
                cancelled: false,
            }) => {
                state.another_session();
                state.hint("This is a new session. The one it began in stays as it was.");
                if let Some(text) = text {
                    state.editor.set_text(&text);
                }
            }
            Ok(Answer::Cancelled(false)) => state.another_session(),
            Ok(_) => state.hint("An extension did not want that."),
            Err(error) => state.failed(&error),
        });
    }

    fn another_session(&mut self) {
        self.dialogs.clear();
        self.running = None;
        self.context_tokens = None;
        self.reload();
        self.ask_commands();
    }
}

/// The command that a line calls, if it looks like a call and not like a path.
pub(crate) fn called(text: &str) -> Option<&str> {
    let name = text.strip_prefix('/')?.split(char::is_whitespace).next()?;
    let is_name = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | ':' | '.');
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// The entry of a command on the help page.
pub(super) fn help(command: &CommandEntry) -> CommandHelp {
    let CommandEntry {
        name, arguments, ..
    } = command;
    CommandHelp {
        name: format!("/{name} {arguments}").trim_end().to_owned(),
        does: command.description.clone(),
    }
}

fn entry(command: &Value) -> Option<CommandEntry> {
    let member = |name: &str| command.get(name).and_then(Value::as_str);
    Some(CommandEntry {
        name: member("name")?.to_owned(),
        description: member("description").unwrap_or_default().to_owned(),
        arguments: String::new(),
        source: member("source").unwrap_or_default().to_owned(),
    })
}
