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
enum BuiltIn {
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
enum SupportedBy {
    All,
    Sessions,
}

/// Name, command, hosts, arguments, description.
const BUILT_INS: &[(&str, BuiltIn, SupportedBy, &str, &str)] = {
    use SupportedBy::{All, Sessions};
    &[
        ("help", BuiltIn::Help, All, "", "keys and commands"),
        (
            "model",
            BuiltIn::Model,
            Sessions,
            "[name]",
            "choose a model",
        ),
        (
            "thinking",
            BuiltIn::Thinking,
            Sessions,
            "[level]",
            "choose the level of thinking",
        ),
        ("new", BuiltIn::New, Sessions, "", "start a new session"),
        (
            "resume",
            BuiltIn::Resume,
            Sessions,
            "",
            "resume another session",
        ),
        ("tree", BuiltIn::Tree, Sessions, "", "show the session tree"),
        (
            "fork",
            BuiltIn::Fork,
            Sessions,
            "",
            "start a new session from an earlier message",
        ),
        ("clone", BuiltIn::Clone, Sessions, "", "continue in a copy"),
        (
            "name",
            BuiltIn::Name,
            Sessions,
            "[name]",
            "name the session",
        ),
        (
            "compact",
            BuiltIn::Compact,
            Sessions,
            "[instructions]",
            "summarise the conversation",
        ),
        (
            "export",
            BuiltIn::Export,
            Sessions,
            "[file]",
            "write the session as a web page",
        ),
        ("copy", BuiltIn::Copy, All, "", "copy the last answer"),
        (
            "session",
            BuiltIn::Session,
            All,
            "",
            "counts, tokens and cost",
        ),
        ("quit", BuiltIn::Quit, All, "", "quit"),
    ]
};

/// Other names of some commands.
const ALIASES: [&str; 2] = ["exit", "hotkeys"];

/// The commands of the chat itself.
pub(super) fn built_in_commands(abilities: Abilities) -> impl Iterator<Item = CommandEntry> {
    BUILT_INS
        .iter()
        .filter(move |(_, _, supported_by, ..)| {
            *supported_by == SupportedBy::All || abilities == Abilities::Session
        })
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
        let command = built_in_commands(self.abilities()).collect();
        self.completion.set_commands(command);
        self.ask(Command::GetCommands, |state, result| {
            let Ok(Answer::Commands(Value::Array(commands))) = result else {
                return;
            };
            let others: Vec<CommandEntry> = commands.iter().filter_map(entry).collect();
            state.other_commands = Some(others.iter().map(help).collect());
            let command = built_in_commands(state.abilities());
            state
                .completion
                .set_commands(command.chain(others).collect());
        });
    }

    /// The name of the command that this line calls, if it does not exist.
    pub(super) fn unknown_command<'a>(&self, text: &'a str) -> Option<&'a str> {
        let others = self.other_commands.as_ref()?;
        let name = called(text)?;
        let is_own = BUILT_INS.iter().any(|(known, ..)| *known == name) || ALIASES.contains(&name);
        let is_other = others
            .iter()
            .any(|command| called(&command.name) == Some(name));
        (!is_own && !is_other).then_some(name)
    }

    /// Runs `text` if it is a command of the chat. Returns whether it was.
    pub(super) fn run_built_in(&mut self, text: &str) -> bool {
        let (name, rest) = text[1..]
            .split_once(char::is_whitespace)
            .unwrap_or((&text[1..], ""));
        let name = match name {
            "exit" => "quit",
            "hotkeys" => "help",
            name => name,
        };
        let Some((_, command, supported_by, ..)) =
            BUILT_INS.iter().find(|(known, ..)| *known == name)
        else {
            return false;
        };
        if *supported_by == SupportedBy::Sessions && self.abilities() == Abilities::Turns {
            self.refuse(*command)
        } else {
            self.run(*command, rest.trim())
        }
        true
    }

    /// Sends a command that the host does not support; the host's error explains what to do
    /// instead.
    fn refuse(&self, command: BuiltIn) {
        match command {
            BuiltIn::Model => self.send(Command::CycleModel),
            BuiltIn::Thinking => self.send(Command::CycleThinkingLevel),
            BuiltIn::Compact => self.send(Command::Compact { instructions: None }),
            BuiltIn::Export => self.send(Command::ExportHtml { path: None }),
            _ => self.send(Command::GetTree),
        }
    }

    fn run(&mut self, command: BuiltIn, rest: &str) {
        match command {
            BuiltIn::Help => self.show_help(),
            BuiltIn::Model => self.pick_model(rest),
            BuiltIn::Thinking => self.thinking(rest),
            BuiltIn::New => self.replace(Command::NewSession {
                parent: None,
                prepare: None,
                origin: Origin::Client,
            }),
            BuiltIn::Resume => self.pick_session(),
            BuiltIn::Tree | BuiltIn::Fork => self.open_tree(),
            BuiltIn::Clone => self.replace(Command::CloneSession),
            BuiltIn::Name => self.name(rest),
            BuiltIn::Compact => self.compact(rest),
            BuiltIn::Export => self.export(rest),
            BuiltIn::Copy => self.copy_answer(),
            BuiltIn::Session => self.show_stats(),
            BuiltIn::Quit => self.end(0),
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
                    "Unknown thinking level \"{rest}\". Use {}.",
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
                "This session has no name. Use /name NAME to name it.",
            ),
            (name, _) => self.send(Command::SetName(name.to_owned())),
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
                state.hint("This is a new session. The original session is unchanged.");
                if let Some(text) = text {
                    state.editor.set_text(&text);
                }
            }
            Ok(Answer::Cancelled(false)) => state.another_session(),
            Ok(_) => state.hint("An extension cancelled it."),
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
