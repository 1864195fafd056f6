//! The command line of pi, which pinion accepts too.

mod approvals;
mod unknown;
mod words;

use std::collections::VecDeque;
use std::io::IsTerminal;

use pinion_cli::Place;
use pinion_message::ThinkingLevel;
use pinion_pi::Dialect;
use pinion_text::nearest;

pub(crate) use self::approvals::ApprovalFlags;
use crate::clip_tools::ClipFlags;
use crate::commands::{self, Command};
use crate::failure::Failure;
use crate::pinocchio::Verb;
use crate::program::Program;
use crate::verb::Entry;

/// The action that the command line requests.
#[derive(Debug)]
pub(crate) enum Action {
    Help(Place),
    Version,
    Command(Command),
    /// A command, and the arguments after its first word.
    Entry(Entry, Vec<String>),
    /// `run --format`: one conversation in opencode's lines.
    Opencode(Vec<String>),
    Pinocchio(Verb),
    Run(Box<Flags>),
}

/// The protocol of a run on standard input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    #[default]
    Text,
    Json,
    Rpc,
}

/// The reaction to the end of the input while a run is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnEof {
    /// Finish the run.
    #[default]
    Drain,
    /// Stop the run.
    Stop,
}

/// The flags of a run.
#[derive(Debug, Default, Clone)]
pub(crate) struct Flags {
    pub mode: Mode,
    /// `-p`: print only the answer, without a chat even on a terminal.
    pub print: bool,
    /// The built-in model may answer if no model is configured, because a user sees the note about it.
    pub demo: bool,
    /// Run the chat in plain lines.
    pub plain: bool,
    /// `dark` or `light`.
    pub theme: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub api_key: Option<String>,
    pub system_prompt: Option<String>,
    pub append_system_prompt: Vec<String>,
    pub continue_last: bool,
    /// Let the user pick the session from a list.
    pub resume: bool,
    pub session: Option<String>,
    pub session_id: Option<String>,
    pub fork: Option<String>,
    pub session_dir: Option<String>,
    pub no_session: bool,
    pub name: Option<String>,
    pub models: Option<Vec<String>>,
    pub no_tools: bool,
    /// Turn off the built-in tools, but not those of extensions.
    pub no_builtin_tools: bool,
    pub tools: Option<Vec<String>>,
    pub exclude_tools: Vec<String>,
    pub thinking: Option<ThinkingLevel>,
    /// `-e`: files, directories, `npm:` and `git:` packages.
    pub extensions: Vec<String>,
    pub no_extensions: bool,
    /// Flags that pinion does not have, without their dashes: extensions may register them.
    pub unknown: Vec<(String, Option<String>)>,
    /// Values of unknown flags that become messages if no extension is loaded, with their positions among the messages.
    taken: Vec<(usize, String)>,
    pub skills: Vec<String>,
    pub no_skills: bool,
    pub prompt_templates: Vec<String>,
    pub no_prompt_templates: bool,
    pub no_context_files: bool,
    pub trust: Option<bool>,
    pub approvals: ApprovalFlags,
    pub clips: ClipFlags,
    pub offline: bool,
    pub verbose: bool,
    pub on_eof: OnEof,
    pub dialect: Option<Dialect>,
    pub no_coalesce: bool,
    /// RPC: the client opens and closes sessions.
    pub multi_session: bool,
    pub files: Vec<String>,
    pub messages: Vec<String>,
    /// The index of the first message after `--`.
    literal_from: Option<usize>,
    /// The first argument is a word, as in a command line that names a command.
    begins_with_word: bool,
    /// `-`: read the prompt from standard input, even from a terminal.
    pub stdin: bool,
    /// Printed on stderr when the run begins.
    pub warnings: Vec<String>,
}

/// All flags, for suggestions.
pub(crate) const FLAGS: &[&str] = &[
    "--mode",
    "--provider",
    "--model",
    "--api-key",
    "--system-prompt",
    "--append-system-prompt",
    "--continue",
    "--resume",
    "--session",
    "--session-id",
    "--fork",
    "--session-dir",
    "--no-session",
    "--name",
    "--models",
    "--no-tools",
    "--no-builtin-tools",
    "--tools",
    "--exclude-tools",
    "--thinking",
    "--print",
    "--plain",
    "--export",
    "--extension",
    "--no-extensions",
    "--skill",
    "--no-skills",
    "--prompt-template",
    "--no-prompt-templates",
    "--theme",
    "--no-themes",
    "--no-context-files",
    "--list-models",
    "--approve",
    "--trust",
    "--no-trust",
    "--allow",
    "--deny",
    "--approve-timeout",
    "--clips",
    "--hub",
    "--verbose",
    "--offline",
    "--exit-on-eof",
    "--rpc-dialect",
    "--no-coalesce",
    "--multi-session",
    "--help",
    "--version",
];

/// Parses the command line.
pub(crate) fn parse(program: Program, arguments: Vec<String>) -> Result<Action, Failure> {
    if let Some(command) = commands::parse(program, &arguments) {
        return Ok(command);
    }
    let leading = arguments.first();
    let mut parser = Parser {
        program,
        flags: Flags {
            begins_with_word: leading.is_some_and(|word| !word.starts_with(['-', '@'])),
            ..Flags::default()
        },
        rest: arguments.into(),
        attached: false,
        action: None,
    };
    while let Some(argument) = parser.rest.pop_front() {
        parser
            .take(&argument)
            .map_err(|failure| failure.for_program(program))?;
    }
    Ok(parser.action.unwrap_or(Action::Run(Box::new(parser.flags))))
}

/// Returns the failure for `--resume` without a terminal to show the list on.
pub(crate) fn nothing_to_pick_from(program: Program) -> Failure {
    Failure::usage(
        "--resume needs a terminal to pick from. Use --continue, or --session with an id from `pinion sessions list`.",
    )
    .for_program(program)
}

impl Flags {
    /// Reports whether this run is a chat: input and output are terminals, and no flag requests another mode of input
    /// or output.
    pub fn wants_chat(&self) -> bool {
        !self.print
            && !self.stdin
            && std::io::stdin().is_terminal()
            && std::io::stdout().is_terminal()
    }
}

struct Parser {
    program: Program,
    rest: VecDeque<String>,
    flags: Flags,
    /// The next argument was joined to its flag with `=`.
    attached: bool,
    /// An action that replaces the run, such as help.
    action: Option<Action>,
}

impl Parser {
    fn take(&mut self, argument: &str) -> Result<(), Failure> {
        if argument == "-" {
            self.flags.stdin = true;
            return Ok(());
        }
        if argument == "--" {
            self.flags.literal_from = Some(self.flags.messages.len());
            self.flags.messages.extend(self.rest.drain(..));
            return Ok(());
        }
        if let Some(file) = argument.strip_prefix('@') {
            self.flags.files.push(file.to_owned());
            return Ok(());
        }
        if !argument.starts_with('-') {
            self.flags.messages.push(argument.to_owned());
            return Ok(());
        }
        if let Some((flag, value)) = argument.split_once('=')
            && flag.starts_with("--")
        {
            let left = self.rest.len();
            self.rest.push_front(value.to_owned());
            self.attached = true;
            self.flag(flag)?;
            // A value that the flag did not consume must not become a prompt.
            return if self.rest.len() > left {
                Err(Failure::usage(format!(
                    "Error: {flag} takes no value, but got \"{value}\"."
                )))
            } else {
                Ok(())
            };
        }
        self.attached = false;
        self.flag(argument)
    }

    fn flag(&mut self, flag: &str) -> Result<(), Failure> {
        match flag {
            "--mode" => self.mode()?,
            "--provider" => self.flags.provider = Some(self.value(flag)?),
            "--model" => self.flags.model = Some(self.value(flag)?),
            "--api-key" => self.flags.api_key = Some(self.value(flag)?),
            "--system-prompt" => self.flags.system_prompt = Some(self.value(flag)?),
            "--append-system-prompt" => {
                let text = self.value(flag)?;
                self.flags.append_system_prompt.push(text);
            }
            "--continue" | "-c" => self.flags.continue_last = true,
            "--resume" | "-r" => self.flags.resume = true,
            "--session" => self.flags.session = Some(self.value(flag)?),
            "--session-id" => self.flags.session_id = Some(self.value(flag)?),
            "--fork" => self.flags.fork = Some(self.value(flag)?),
            "--session-dir" => self.flags.session_dir = Some(self.value(flag)?),
            "--no-session" => self.flags.no_session = true,
            "--name" | "-n" => self.flags.name = Some(self.value(flag)?),
            "--models" => self.flags.models = Some(list(&self.value(flag)?)),
            "--no-tools" | "-nt" => self.flags.no_tools = true,
            "--no-builtin-tools" | "-nbt" => self.flags.no_builtin_tools = true,
            "--tools" | "-t" => self.flags.tools = Some(list(&self.value(flag)?)),
            "--exclude-tools" | "-xt" => self.flags.exclude_tools = list(&self.value(flag)?),
            "--thinking" => self.thinking(flag)?,
            "--print" | "-p" => self.flags.print = true,
            "--plain" if self.program == Program::Pinion => self.flags.plain = true,
            "--export" => self.export(flag)?,
            "--extension" | "-e" => {
                let source = self.value(flag)?;
                self.flags.extensions.push(source);
            }
            "--no-extensions" | "-ne" => self.flags.no_extensions = true,
            "--theme" => self.theme(flag)?,
            "--no-themes" => {}
            "--skill" => {
                let path = self.value(flag)?;
                self.flags.skills.push(path);
            }
            "--no-skills" | "-ns" => self.flags.no_skills = true,
            "--prompt-template" => {
                let path = self.value(flag)?;
                self.flags.prompt_templates.push(path);
            }
            "--no-prompt-templates" | "-np" => self.flags.no_prompt_templates = true,
            "--no-context-files" | "-nc" => self.flags.no_context_files = true,
            "--list-models" => {
                let search = self.optional_value();
                self.action = Some(Action::Command(Command::ListModels { search }));
            }
            "--approve" => self.approve()?,
            "--allow" | "--deny" | "--approve-timeout" if self.program == Program::Pinion => {
                self.approvals(flag)?;
            }
            "--clips" if self.program == Program::Pinion => {
                self.flags.clips.clips = Some(self.clips(flag)?);
            }
            "--hub" if self.program == Program::Pinion => {
                self.flags.clips.hub = Some(self.value(flag)?);
            }
            "--no-approve" => self.no_approve()?,
            "--trust" if self.program == Program::Pinion => self.flags.trust = Some(true),
            "--no-trust" if self.program == Program::Pinion => self.flags.trust = Some(false),
            "--verbose" => self.flags.verbose = true,
            "--offline" => self.flags.offline = true,
            "--exit-on-eof" => self.flags.on_eof = OnEof::Stop,
            "--rpc-dialect" => self.dialect(flag)?,
            "--no-coalesce" => self.flags.no_coalesce = true,
            "--multi-session" => self.flags.multi_session = true,
            "--help" | "-h" => self.action = Some(Action::Help(Place::root(self.program.table()))),
            "--version" | "-v" => self.action = Some(Action::Version),
            _ => return self.unknown(flag),
        }
        Ok(())
    }

    fn theme(&mut self, flag: &str) -> Result<(), Failure> {
        let value = self.value(flag)?;
        match value.as_str() {
            "dark" | "light" => self.flags.theme = Some(value),
            _ if self.program == Program::Pi => self.warn(format!(
                "Warning: {flag} {value} is ignored: only dark and light exist."
            )),
            _ => return Err(unknown_value(flag, &value, &["dark", "light"])),
        }
        Ok(())
    }

    fn warn(&mut self, warning: String) {
        self.flags.warnings.push(warning);
    }

    fn value(&mut self, flag: &str) -> Result<String, Failure> {
        let value = self
            .rest
            .pop_front()
            .ok_or_else(|| Failure::usage(format!("Error: {flag} needs a value after it.")))?;
        let is_flag = !self.attached && FLAGS.contains(&value.as_str());
        if is_flag && self.program == Program::Pinion {
            return Err(Failure::usage(format!(
                "Error: {flag} needs a value, but {value} follows it. If {value} is the value, write {flag}={value}."
            )));
        }
        Ok(value)
    }

    fn optional_value(&mut self) -> Option<String> {
        let is_value = self
            .rest
            .front()
            .is_some_and(|next| !next.starts_with(['-', '@']));
        if is_value {
            self.rest.pop_front()
        } else {
            None
        }
    }

    fn mode(&mut self) -> Result<(), Failure> {
        let mode = self.value("--mode")?;
        self.flags.print = true;
        self.flags.mode = match (mode.as_str(), self.program) {
            ("text", _) => Mode::Text,
            ("json", _) => Mode::Json,
            ("rpc", _) => Mode::Rpc,
            (_, Program::Pi) => self.flags.mode,
            (other, Program::Pinion | Program::Pinocchio) => {
                return Err(unknown_value("--mode", other, &["rpc", "json", "text"]));
            }
        };
        Ok(())
    }

    fn clips(&mut self, flag: &str) -> Result<Vec<String>, Failure> {
        let names = list(&self.value(flag)?);
        match names.is_empty() {
            true => Err(Failure::usage(format!(
                "Error: {flag} needs the names of clips after it, such as todo,browser."
            ))),
            false => Ok(names),
        }
    }

    fn thinking(&mut self, flag: &str) -> Result<(), Failure> {
        let text = self.value(flag)?;
        let valid = ThinkingLevel::ALL.map(|level| level.as_str());
        match text.parse() {
            Ok(level) => self.flags.thinking = Some(level),
            Err(_) if self.program == Program::Pi => {
                let valid = valid.join(", ");
                self.warn(format!(
                    "Warning: Invalid thinking level \"{text}\". Valid values: {valid}"
                ));
            }
            Err(_) => return Err(unknown_value(flag, &text, &valid)),
        }
        Ok(())
    }

    fn dialect(&mut self, flag: &str) -> Result<(), Failure> {
        let dialect = self.value(flag)?.parse();
        let dialect =
            dialect.map_err(|error| Failure::usage(format!("Error: {flag}: {error}.")))?;
        self.flags.dialect = Some(dialect);
        Ok(())
    }

    fn export(&mut self, flag: &str) -> Result<(), Failure> {
        let input = self.value(flag)?;
        let output = self.optional_value();
        self.action = Some(Action::Command(Command::Export { input, output }));
        Ok(())
    }
}

/// Returns the failure for a flag whose value is not in `valid`.
fn unknown_value(flag: &str, value: &str, valid: &[&str]) -> Failure {
    let hint = match nearest(value, valid.iter().copied()) {
        Some(nearest) => format!("Did you mean {nearest}?"),
        None => format!("Use {}.", one_of(valid)),
    };
    Failure::usage(format!(
        "Error: unknown value \"{value}\" for {flag}. {hint}"
    ))
}

/// Joins values as in `ask, auto or deny`.
fn one_of(values: &[&str]) -> String {
    match values {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => values.concat(),
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',')
        .map(|item| item.trim().to_owned())
        .filter(|item| !item.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(program: Program, arguments: &[&str]) -> Flags {
        match parse(program, arguments.iter().map(ToString::to_string).collect()).unwrap() {
            Action::Run(flags) => *flags,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_files_and_flags_may_be_mixed() {
        let flags = flags(
            Program::Pinion,
            &["-p", "one", "@a.txt", "--model=x/y", "two", "--", "--three"],
        );
        assert_eq!(flags.messages, ["one", "two", "--three"]);
        assert_eq!(flags.files, ["a.txt"]);
        assert_eq!(flags.model.as_deref(), Some("x/y"));
    }

    #[test]
    fn unknown_flags_are_kept_for_extensions() {
        for program in [Program::Pinion, Program::Pi] {
            let flags = flags(
                program,
                &[
                    "one",
                    "--plan",
                    "two",
                    "--level=-3",
                    "--dry",
                    "--who",
                    "@a",
                    "-e",
                    "x.ts",
                    "three",
                    "--on",
                ],
            );
            let some = |text: &str| Some(text.to_owned());
            assert_eq!(
                flags.unknown,
                [
                    ("plan".to_owned(), some("two")),
                    ("level".to_owned(), some("-3")),
                    ("dry".to_owned(), None),
                    ("who".to_owned(), None),
                    ("on".to_owned(), None),
                ]
            );
            assert_eq!(flags.messages, ["one", "three"]);
            assert_eq!(flags.files, ["a"]);
        }
    }

    #[test]
    fn an_unknown_short_flag_names_the_nearest_one() {
        let failure = parse(Program::Pinion, vec!["-model".into()]).unwrap_err();
        assert!(
            format!("{failure:?}").contains("Did you mean --model?"),
            "{failure:?}"
        );
    }
}
