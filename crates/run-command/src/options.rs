//! The values of the options that every command has.

use std::io::IsTerminal;
use std::path::PathBuf;

use pinion_commands::{BUILT_INS, BuiltIn, BuiltInValues, Command, YIELDING_BUILT_INS};
use pinion_history::StoreChoice;
use pinion_jsonl::Coalesce;
use pinion_pinocchio::{Metadata, PatchMode, TextFormat};

use crate::RunError;

/// Returns the options that this command has in addition to its own.
pub fn built_ins(command: &Command) -> Vec<BuiltIn> {
    let is_own = |option: &BuiltIn| command.fields().any(|field| field.option() == option.name);
    let yielding = YIELDING_BUILT_INS.iter().copied();
    let yielding = yielding.filter(|option| !is_own(option));
    BUILT_INS.iter().copied().chain(yielding).collect()
}

/// Returns the options that may precede the words of a command.
pub fn leading() -> Vec<BuiltIn> {
    [BUILT_INS, YIELDING_BUILT_INS].concat()
}

/// The part of a command that is run or shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The prompt, without a request to a model.
    PrintPrompt,
    /// The settings, without a request to a model.
    PrintSettings,
    /// The command.
    Run(RunMode),
}

/// The kind of output of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    /// Frames, with requests on standard input.
    Requests,
    /// Frames of one run.
    OneShot,
    /// A conversation on the terminal.
    Chat,
    /// The answer, or every event, for people and scripts.
    Text(TextFormat),
}

impl Mode {
    /// Reports whether the built-in model may answer if no model is configured: the client of a conversation reads
    /// the note about it, but a script would treat its answer as a real one.
    pub(crate) fn allows_demo(self) -> bool {
        match self {
            Self::Run(RunMode::Requests | RunMode::Chat) => true,
            Self::Run(RunMode::Text(_)) => std::io::stdout().is_terminal(),
            Self::Run(RunMode::OneShot) | Self::PrintPrompt | Self::PrintSettings => false,
        }
    }
}

/// The condition for asking the user, after the answer, whether to continue in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContinueInChat {
    Never,
    /// Only if the answer is printed on a terminal.
    AskOnTerminal,
    Ask,
}

/// A store as the options name it; an option that was not given is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedStore {
    pub backend: String,
    pub dsn: String,
    pub db: String,
}

impl NamedStore {
    pub(crate) fn choice(&self) -> StoreChoice<'_> {
        StoreChoice {
            backend: &self.backend,
            dsn: &self.dsn,
            db: &self.db,
        }
    }

    /// Reports whether any of its options was given.
    pub(crate) fn is_named(&self) -> bool {
        [&self.backend, &self.dsn, &self.db]
            .iter()
            .any(|option| !option.is_empty())
    }

    /// Reports whether the store still has its data after the program exits.
    pub(crate) fn is_persistent(&self) -> bool {
        self.is_named() && !["disabled", "memory"].contains(&self.backend.as_str())
    }
}

/// The values of the options that every command has.
#[derive(Debug)]
pub struct Options {
    pub mode: Mode,
    pub continue_in_chat: ContinueInChat,
    pub patch_mode: PatchMode,
    pub coalesce: Coalesce,
    /// `--model`.
    pub model: Option<String>,
    pub session_id: Option<String>,
    pub resume: bool,
    /// The chat prints lines instead of a screen, on any terminal.
    pub plain: bool,
    pub turns: NamedStore,
    pub timeline: NamedStore,
    pub debug_events: Option<PathBuf>,
    pub images: Vec<String>,
    /// The built-in tools the model may call.
    pub tools: Vec<String>,
    /// The clips whose commands the model may call as well; if empty, all clips of `hub`, if that is set.
    pub clips: Vec<String>,
    /// The address of the hub of these clips.
    pub hub: Option<String>,
    /// The metadata that is printed after a text.
    pub metadata: Metadata,
}

impl Options {
    /// Reads the parsed values. Fails for values that exclude each other or name nothing.
    pub fn read(values: &BuiltInValues) -> Result<Self, RunError> {
        let mode = mode(values);
        let writes_frames = matches!(mode, Mode::Run(RunMode::Requests | RunMode::OneShot));
        if values.flag("log-to-stdout") && writes_frames {
            return Err(RunError::Usage(
                "--log-to-stdout would mix words into the frames on standard output. Use --log-file, or leave it out: words go to standard error.".to_owned(),
            ));
        }
        let patch_mode = match values.text("patch-mode") {
            "append" => PatchMode::Append,
            _ => PatchMode::Snapshot,
        };
        let store = |name: &str| {
            let part = |part: &str| values.text(&format!("{name}-{part}")).trim().to_owned();
            NamedStore {
                backend: part("backend"),
                dsn: part("dsn"),
                db: part("db"),
            }
        };
        let turns = store("turns");
        let text = |name: &str| Some(values.text(name).trim()).filter(|text| !text.is_empty());
        let session_id = text("session-id").map(str::to_owned);
        let resume = values.flag("resume");
        if resume && session_id.is_none() {
            return Err(RunError::Usage("--resume requires --session-id".to_owned()));
        }
        if resume && !turns.is_persistent() {
            return Err(RunError::Usage(
                "resume requires --turns-db or --turns-dsn".to_owned(),
            ));
        }
        Ok(Self {
            mode,
            continue_in_chat: continue_in_chat(values),
            patch_mode,
            coalesce: if values.flag("no-coalesce") {
                Coalesce::Never
            } else {
                Coalesce::WhenBehind
            },
            model: text("model").map(str::to_owned),
            session_id,
            resume,
            plain: values.flag("plain"),
            turns,
            timeline: store("timeline"),
            debug_events: text("debug-events-jsonl").map(PathBuf::from),
            images: values.list("images"),
            tools: tools(values)?,
            clips: values.list("clips"),
            hub: text("hub").map(str::to_owned),
            metadata: if values.flag("full-output") {
                Metadata::Full
            } else if values.flag("with-metadata") {
                Metadata::Short
            } else {
                Metadata::None
            },
        })
    }
}

fn mode(values: &BuiltInValues) -> Mode {
    let output = values.text("output").to_lowercase();
    if values.flag("print-prompt") {
        Mode::PrintPrompt
    } else if values.flag("print-inference-settings") {
        Mode::PrintSettings
    } else if values.flag("stdin-rpc") {
        Mode::Run(RunMode::Requests)
    } else if values.flag("rpc") || output == "jsonl" {
        Mode::Run(RunMode::OneShot)
    } else if values.flag("chat") {
        Mode::Run(RunMode::Chat)
    } else {
        Mode::Run(RunMode::Text(match output.as_str() {
            "json" => TextFormat::Json,
            "yaml" => TextFormat::Yaml,
            _ => TextFormat::Text,
        }))
    }
}

fn continue_in_chat(values: &BuiltInValues) -> ContinueInChat {
    if values.flag("force-interactive") {
        ContinueInChat::Ask
    } else if values.flag("non-interactive") {
        ContinueInChat::Never
    } else {
        ContinueInChat::AskOnTerminal
    }
}

fn tools(values: &BuiltInValues) -> Result<Vec<String>, RunError> {
    let names = values.list("tools");
    let known = pinion_tools::all_names();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(names),
        Some(name) => Err(RunError::Usage(format!(
            "--tools: there is no tool \"{name}\"; use {}",
            known.join(", ")
        ))),
    }
}
