//! The flags of a run, from the table of the program.

use std::io::IsTerminal;

use pinion_cli::PromptLine;
use pinion_message::ThinkingLevel;
use pinion_pi::{DialectName, OnEof};
use pinion_sandbox::SandboxSettings;
use pinion_text::nearest;

use super::approvals::ApprovalFlags;
use crate::clip_tools::ClipFlags;
use crate::failure::Failure;
use crate::log::LogFlags;
use crate::program::Program;

/// The protocol of a run on standard input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    #[default]
    Text,
    Json,
    Rpc,
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
    /// Connect to no MCP servers.
    pub no_mcp: bool,
    pub thinking: Option<ThinkingLevel>,
    /// `-e`: files, directories, `npm:` and `git:` packages.
    pub extensions: Vec<String>,
    pub no_extensions: bool,
    pub skills: Vec<String>,
    pub no_skills: bool,
    pub prompt_templates: Vec<String>,
    pub no_prompt_templates: bool,
    pub no_context_files: bool,
    pub trust: Option<bool>,
    pub approvals: ApprovalFlags,
    /// `--sandbox` and the flags that begin with it.
    pub sandbox: SandboxSettings,
    pub clips: ClipFlags,
    pub offline: bool,
    pub verbose: bool,
    pub on_eof: OnEof,
    pub dialect: Option<DialectName>,
    pub no_coalesce: bool,
    /// RPC: the client opens and closes sessions.
    pub multi_session: bool,
    pub log: LogFlags,
    /// Messages and files, and flags that extensions may register.
    pub prompt: PromptLine,
    /// Printed on stderr when the run begins.
    pub warnings: Vec<String>,
    /// The first unknown flag that a warning is about.
    pub ignored_flag: Option<String>,
}

impl Flags {
    /// Reads the flags of a line. Flags that request something else than a run have no effect here.
    pub fn read(program: Program, line: PromptLine) -> Result<Self, Failure> {
        let mut flags = Self::default();
        for (name, value) in line.flags() {
            flags.set(program, name, value)?;
        }
        for flag in line
            .unknown
            .iter()
            .filter(|flag| flag.long_name().is_none())
        {
            super::unknown::refuse(program, &line, &flag.written, &mut flags)?;
        }
        super::approvals::check_unknown(&line)?;
        // Under the name `pi` unknown flags belong to extensions, and one that confines must not be lost.
        let mut unknown = line.unknown.iter();
        if let Some(flag) = unknown.find(|flag| flag.written.starts_with("--sandbox"))
            && program == Program::Pi
        {
            let written = &flag.written;
            return Err(Failure::usage(format!("unknown option {written}."))
                .hint("The name pi has no sandbox; use pinion."));
        }
        if flags.session_id.is_some() && flags.session.is_some() {
            let failure =
                Failure::usage("--session-id and --session both name a session. Use one of them.");
            return Err(failure.for_program(program));
        }
        flags.prompt = line;
        Ok(flags)
    }

    fn set(&mut self, program: Program, name: &str, value: Option<&str>) -> Result<(), Failure> {
        // The lexer has checked that a flag with a required value has one.
        let text = value.unwrap_or_default();
        let owned = || Some(text.to_owned());
        match name {
            "--mode" => self.set_mode(program, text)?,
            "--provider" => self.provider = owned(),
            "--model" => self.model = owned(),
            "--api-key" => self.api_key = owned(),
            "--system-prompt" => self.system_prompt = owned(),
            "--append-system-prompt" => self.append_system_prompt.extend(owned()),
            "--continue" => self.continue_last = true,
            "--resume" => self.resume = true,
            "--session" => self.session = owned(),
            "--session-id" => {
                check_session_id(text).map_err(|failure| failure.for_program(program))?;
                self.session_id = owned();
            }
            "--fork" => self.fork = owned(),
            "--session-dir" => self.session_dir = owned(),
            "--no-session" => self.no_session = true,
            "--name" => self.name = owned(),
            "--models" => self.models = Some(list(text)),
            "--no-tools" => self.no_tools = true,
            "--no-builtin-tools" => self.no_builtin_tools = true,
            "--tools" => self.tools = Some(list(text)),
            "--exclude-tools" => self.exclude_tools = list(text),
            "--no-mcp" => self.no_mcp = true,
            "--thinking" => self.set_thinking(program, text)?,
            "--print" => self.print = true,
            "--plain" => self.plain = true,
            "--extension" => self.extensions.extend(owned()),
            "--no-extensions" => self.no_extensions = true,
            "--theme" => self.set_theme(program, text)?,
            "--skill" => self.skills.extend(owned()),
            "--no-skills" => self.no_skills = true,
            "--prompt-template" => self.prompt_templates.extend(owned()),
            "--no-prompt-templates" => self.no_prompt_templates = true,
            "--no-context-files" => self.no_context_files = true,
            "--clips" => self.clips.clips = Some(clips(text)?),
            "--hub" => self.clips.hub = owned(),
            "--trust" => self.trust = Some(true),
            "--no-trust" | "--no-approve" => self.trust = Some(false),
            "--approve" if value.is_none() => self.trust = Some(true),
            "--approve" | "--allow" | "--deny" | "--approve-timeout" => {
                self.approvals.set(name, text)?;
            }
            _ if name.starts_with("--sandbox") => {
                crate::sandbox::set_flag(&mut self.sandbox, name, text)?;
            }
            "--verbose" => self.verbose = true,
            "--offline" => self.offline = true,
            "--exit-on-eof" => self.on_eof = OnEof::Stop,
            "--rpc-dialect" => {
                let dialect = text.parse();
                let wrong = |error| Failure::usage(format!("{name}: {error}."));
                self.dialect = Some(dialect.map_err(wrong)?);
            }
            "--no-coalesce" => self.no_coalesce = true,
            "--multi-session" => self.multi_session = true,
            "--log" => self.log.filter = owned(),
            "--log-format" => self.log.format = owned(),
            "--log-file" => self.log.file = owned(),
            _ => {}
        }
        Ok(())
    }

    fn set_mode(&mut self, program: Program, text: &str) -> Result<(), Failure> {
        self.print = true;
        self.mode = match (text, program) {
            ("text", _) => Mode::Text,
            ("json", _) => Mode::Json,
            ("rpc", _) => Mode::Rpc,
            (_, Program::Pi) => self.mode,
            (other, Program::Pinion | Program::Pinocchio) => {
                return Err(unknown_value("--mode", other, &["rpc", "json", "text"]));
            }
        };
        Ok(())
    }

    fn set_theme(&mut self, program: Program, text: &str) -> Result<(), Failure> {
        match text {
            "dark" | "light" => self.theme = Some(text.to_owned()),
            _ if program == Program::Pi => self.warnings.push(format!(
                "Warning: --theme {text} is ignored: only dark and light exist."
            )),
            _ => return Err(unknown_value("--theme", text, &["dark", "light"])),
        }
        Ok(())
    }

    fn set_thinking(&mut self, program: Program, text: &str) -> Result<(), Failure> {
        let valid = ThinkingLevel::ALL.map(|level| level.as_str());
        match text.parse() {
            Ok(level) => self.thinking = Some(level),
            Err(_) if program == Program::Pi => {
                let valid = valid.join(", ");
                self.warnings.push(format!(
                    "Warning: Invalid thinking level \"{text}\". Valid values: {valid}"
                ));
            }
            Err(_) => return Err(unknown_value("--thinking", text, &valid)),
        }
        Ok(())
    }

    /// Reports whether this run is a chat: input and output are terminals, and no flag requests another mode of input
    /// or output.
    pub fn wants_chat(&self) -> bool {
        !self.print
            && !self.prompt.stdin
            && std::io::stdin().is_terminal()
            && std::io::stdout().is_terminal()
    }
}

/// Checks the id of a session, which becomes a part of a file name.
fn check_session_id(id: &str) -> Result<(), Failure> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let mut characters = id.chars();
    let ends = is_end(id.chars().next_back()) && is_end(id.chars().next());
    if characters.all(is_part) && ends {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "invalid session id \"{id}\". Use letters, digits, \"-\", \"_\" and \".\", with a letter or digit at \
         both ends."
    )))
}

fn clips(text: &str) -> Result<Vec<String>, Failure> {
    let names = list(text);
    if names.is_empty() {
        return Err(Failure::usage(
            "--clips needs the names of clips after it, such as todo,browser.",
        ));
    }
    Ok(names)
}

/// Returns the failure for a flag whose value is not in `valid`.
pub(super) fn unknown_value(flag: &str, value: &str, valid: &[&str]) -> Failure {
    let hint = match nearest(value, valid.iter().copied()) {
        Some(nearest) => format!("Did you mean {nearest}?"),
        None => format!("Use {}.", one_of(valid)),
    };
    Failure::usage(format!("unknown value \"{value}\" for {flag}.")).hint(hint)
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
