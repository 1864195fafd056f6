//! The values of the options that every command has.

use std::io::IsTerminal;
use std::path::PathBuf;

use pinion_commands::{BUILT_INS, BuiltIn, BuiltInValues, Command, FieldType, Group};
use pinion_jsonl::Coalesce;
use pinion_pinocchio::PatchMode;

use crate::clip_tools::ClipFlags;
use crate::failure::Failure;

/// Options of this program for which a command's own field of the same name takes precedence.
const YIELDING: [BuiltIn; 2] = [
    BuiltIn {
        name: "model",
        short: None,
        kind: FieldType::String,
        choices: &[],
        default: None,
        group: Group::Pinion,
        help: "The model, as in `pinion --model`; overrides --ai-engine and profiles",
        claims_stdin: false,
    },
    BuiltIn {
        name: "plain",
        short: None,
        kind: FieldType::Bool,
        choices: &[],
        default: Some("false"),
        group: Group::Pinion,
        help: "Chat in lines instead of on a screen",
        claims_stdin: false,
    },
];

/// Returns the options that this command has in addition to its own.
pub(super) fn built_ins(command: &Command) -> Vec<BuiltIn> {
    let is_own = |option: &BuiltIn| command.fields().any(|field| field.option() == option.name);
    let yielding = YIELDING.into_iter().filter(|option| !is_own(option));
    BUILT_INS.iter().copied().chain(yielding).collect()
}

/// Returns the options that may precede the words of a command.
pub(super) fn leading() -> Vec<BuiltIn> {
    BUILT_INS.iter().copied().chain(YIELDING).collect()
}

/// The kind of output of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The prompt, without a request to a model.
    PrintPrompt,
    /// The settings, without a request to a model.
    PrintSettings,
    /// Frames, with requests on standard input.
    Requests,
    /// Frames of one run.
    OneShot,
    /// A conversation on the terminal.
    Chat,
    /// The answer, or every event, for people and scripts.
    Text(Output),
}

impl Mode {
    /// Reports whether the built-in model may answer if no model is configured: the client of a conversation reads
    /// the note about it, but a script would treat its answer as a real one.
    pub fn allows_demo(self) -> bool {
        match self {
            Self::Requests | Self::Chat => true,
            Self::Text(_) => std::io::stdout().is_terminal(),
            Self::PrintPrompt | Self::PrintSettings | Self::OneShot => false,
        }
    }
}

/// The condition for asking the user, after the answer, whether to continue in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    Never,
    /// Only if the answer is printed on a terminal.
    OnTerminal,
    Always,
}

/// The format of a run for people and scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Text,
    Json,
    Yaml,
}

/// The amount of detail of a run for people and scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The answer without metadata.
    Plain,
    /// The answer with short metadata.
    Metadata,
    /// The answer with all metadata.
    Full,
}

/// A store as the options name it; an option that was not given is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedStore {
    pub backend: String,
    pub dsn: String,
    pub db: String,
}

impl NamedStore {
    /// Reports whether any of its options was given.
    pub fn is_named(&self) -> bool {
        [&self.backend, &self.dsn, &self.db]
            .iter()
            .any(|option| !option.is_empty())
    }

    /// Reports whether the store still has its data after the program exits.
    pub fn outlasts_the_program(&self) -> bool {
        self.is_named() && !["disabled", "memory"].contains(&self.backend.as_str())
    }
}

/// The values of the options that every command has.
pub(super) struct Options {
    pub mode: Mode,
    pub asking: Asking,
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
    /// The clips whose commands the model may call as well.
    pub clips: ClipFlags,
    pub detail: Detail,
}

impl Options {
    pub fn read(values: &BuiltInValues) -> Result<Self, Failure> {
        let mode = mode(values);
        if values.flag("log-to-stdout") && matches!(mode, Mode::Requests | Mode::OneShot) {
            return Err(Failure::usage(
                "Error: --log-to-stdout would mix words into the frames on standard output. Use --log-file, or leave it out: words go to standard error.",
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
            return Err(Failure::usage("Error: --resume requires --session-id"));
        }
        if resume && !turns.outlasts_the_program() {
            return Err(Failure::usage(
                "Error: resume requires --turns-db or --turns-dsn",
            ));
        }
        Ok(Self {
            mode,
            asking: asking(values),
            patch_mode,
            coalesce: match values.flag("no-coalesce") {
                true => Coalesce::Never,
                false => Coalesce::WhenBehind,
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
            clips: ClipFlags {
                clips: Some(values.list("clips")).filter(|names| !names.is_empty()),
                hub: text("hub").map(str::to_owned),
            },
            detail: if values.flag("full-output") {
                Detail::Full
            } else if values.flag("with-metadata") {
                Detail::Metadata
            } else {
                Detail::Plain
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
        Mode::Requests
    } else if values.flag("rpc") || output == "jsonl" {
        Mode::OneShot
    } else if values.flag("chat") {
        Mode::Chat
    } else {
        Mode::Text(match output.as_str() {
            "json" => Output::Json,
            "yaml" => Output::Yaml,
            _ => Output::Text,
        })
    }
}

fn asking(values: &BuiltInValues) -> Asking {
    if values.flag("force-interactive") {
        Asking::Always
    } else if values.flag("non-interactive") {
        Asking::Never
    } else {
        Asking::OnTerminal
    }
}

fn tools(values: &BuiltInValues) -> Result<Vec<String>, Failure> {
    let names = values.list("tools");
    let known = pinion_tools::all_names();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(names),
        Some(name) => Err(Failure::usage(format!(
            "Error: --tools: there is no tool \"{name}\"; use {}",
            known.join(", ")
        ))),
    }
}
