//! The options of every command in a YAML file, as `run-command` and `commands run` accept them beside the fields of
//! the file.
//!
//! The crate `commands` parses them, because their grammar and their sources are Pinocchio's: files, environment and
//! profiles set them too. Help, completions, manuals and flag tables come from here.

use crate::table::{Flag, Kind, Section, Value};

/// The type of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionType {
    /// True or false.
    Bool,
    Text,
    /// Text that is never printed.
    Secret,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// Texts.
    Texts,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Pairs of names and texts.
    Pairs,
}

/// An option of every command file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOption {
    /// The option on a command line. A single-letter form is among its other spellings.
    pub flag: Flag,
    pub kind: OptionType,
    /// The default, as it would be written on a command line.
    pub default: Option<&'static str>,
    /// The section of the help page.
    pub group: Group,
    /// The option uses standard input, so that no field may read it.
    pub claims_stdin: bool,
}

/// The sections of a help page. The names are those of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Execution and output of the command.
    Helpers,
    /// Options that only pinion has.
    Pinion,
    /// The model and its answers.
    AiChat,
    /// Connections.
    AiClient,
    /// Servers with OpenAI's protocols.
    OpenAi,
    /// Anthropic's servers.
    Claude,
    /// Google's servers.
    Gemini,
    /// Settings that override those of `ai-chat`.
    Inference,
    /// Embeddings; accepted and ignored by chats.
    Embeddings,
    /// Reranking of results; accepted and ignored by chats.
    Rerank,
    /// The choice of a profile.
    Profile,
    /// Information about a command instead of running it.
    Command,
    /// Creation of command files; in repositories only.
    Create,
    /// Logging and help.
    Root,
}

impl Group {
    /// Returns the name on help pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Helpers => "geppetto-helpers",
            Self::Pinion => "pinion",
            Self::AiChat => "ai-chat",
            Self::AiClient => "ai-client",
            Self::OpenAi => "openai-chat",
            Self::Claude => "claude-chat",
            Self::Gemini => "gemini-chat",
            Self::Inference => "ai-inference",
            Self::Embeddings => "embeddings",
            Self::Rerank => "rerank",
            Self::Profile => "profile-settings",
            Self::Command => "command-settings",
            Self::Create => "create-command-settings",
            Self::Root => "global",
        }
    }

    /// Reports whether `--help` shows the section; `--long-help` shows all.
    pub const fn is_common(self) -> bool {
        matches!(self, Self::Helpers | Self::Pinion)
    }
}

impl FileOption {
    const fn new(
        group: Group,
        name: &'static str,
        kind: OptionType,
        default: Option<&'static str>,
        help: &'static str,
    ) -> Self {
        let flag = Flag::valued(name, "TEXT", help);
        let flag = match kind {
            OptionType::Bool => Flag::bare(name, help),
            OptionType::Text | OptionType::Secret => flag,
            OptionType::Int | OptionType::Float => Flag::valued(name, "NUMBER", help),
            OptionType::Texts => Flag::valued(name, "LIST", help),
            OptionType::Choice(choices) => {
                // An empty word stands for the default and is not offered.
                let named = if choices[0].is_empty() {
                    choices.split_at(1).1
                } else {
                    choices
                };
                Flag::valued(name, "CHOICE", help).of(Kind::OneOf(named))
            }
            OptionType::Pairs => Flag::valued(name, "NAME:TEXT", help),
        };
        Self {
            flag,
            kind,
            default,
            group,
            claims_stdin: false,
        }
    }

    const fn or(mut self, others: &'static [&'static str]) -> Self {
        self.flag = self.flag.or(others);
        self
    }

    const fn of(mut self, value: &'static str, kind: Kind) -> Self {
        self.flag.value = Value::Required(value, kind);
        self
    }

    const fn claiming_stdin(mut self) -> Self {
        self.claims_stdin = true;
        self
    }

    const fn with(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }
}

const fn flag(group: Group, name: &'static str, help: &'static str) -> FileOption {
    FileOption::new(group, name, OptionType::Bool, Some("false"), help)
}

const fn on(group: Group, name: &'static str, help: &'static str) -> FileOption {
    FileOption::new(group, name, OptionType::Bool, Some("true"), help)
}

const fn text(group: Group, name: &'static str, help: &'static str) -> FileOption {
    FileOption::new(group, name, OptionType::Text, None, help)
}

const fn secret(group: Group, name: &'static str, help: &'static str) -> FileOption {
    FileOption::new(group, name, OptionType::Secret, None, help)
}

const fn int(group: Group, name: &'static str, help: &'static str) -> FileOption {
    FileOption::new(group, name, OptionType::Int, None, help)
}

const fn float(group: Group, name: &'static str, help: &'static str) -> FileOption {
    FileOption::new(group, name, OptionType::Float, None, help)
}

const fn texts(group: Group, name: &'static str, help: &'static str) -> FileOption {
    FileOption::new(group, name, OptionType::Texts, None, help)
}

const fn pairs(group: Group, name: &'static str, help: &'static str) -> FileOption {
    FileOption::new(group, name, OptionType::Pairs, None, help)
}

const fn choice(
    group: Group,
    name: &'static str,
    choices: &'static [&'static str],
    default: Option<&'static str>,
    help: &'static str,
) -> FileOption {
    FileOption::new(group, name, OptionType::Choice(choices), default, help)
}

const BACKENDS: &[&str] = &["", "disabled", "memory", "sqlite", "postgres"];
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

use Group::{
    AiChat, AiClient, Claude, Command, Create, Embeddings, Gemini, Helpers, Inference, OpenAi,
    Pinion, Profile, Rerank, Root,
};

/// The number of options.
const COUNT: usize = 112;

/// The options of every command, in the order of help pages.
pub static OPTIONS: [FileOption; COUNT] = [
    flag(
        Helpers,
        "--print-prompt",
        "Print the rendered prompt and exit",
    ),
    flag(
        Helpers,
        "--print-inference-settings",
        "Print the inference settings and exit",
    ),
    flag(
        Helpers,
        "--interactive",
        "Ask after the answer whether to continue in a chat",
    ),
    flag(Helpers, "--chat", "Chat with the model on the terminal"),
    flag(
        Helpers,
        "--force-interactive",
        "Ask even when standard output is not a terminal",
    ),
    flag(
        Helpers,
        "--non-interactive",
        "Never ask whether to continue in a chat",
    ),
    choice(
        Helpers,
        "--output",
        &["text", "json", "yaml", "jsonl"],
        Some("text"),
        "The format of the output",
    ),
    flag(
        Helpers,
        "--rpc",
        "Print one JSON frame per line, as --output jsonl does",
    ),
    flag(
        Helpers,
        "--stdin-rpc",
        "Read requests from standard input, one JSON object per line",
    )
    .claiming_stdin(),
    text(
        Helpers,
        "--session-id",
        "The session under which turns and timeline are stored",
    ).of("ID", Kind::Text),
    flag(
        Helpers,
        "--resume",
        "Continue from the last finished turn of --session-id",
    ),
    flag(Helpers, "--with-metadata", "Print metadata with the answer"),
    flag(Helpers, "--full-output", "Print all metadata of the answer"),
    text(
        Helpers,
        "--debug-events-jsonl",
        "Also write every frame to this file",
    ).of("FILE", Kind::File),
    choice(
        Helpers,
        "--turns-backend",
        BACKENDS,
        Some(""),
        "The kind of database for turns",
    ),
    text(Helpers, "--turns-db", "Store turns in this SQLite file").of("FILE", Kind::File),
    text(
        Helpers,
        "--turns-dsn",
        "Keep turns in this database: file:… for SQLite, postgres://user@host/database for PostgreSQL",
    ).of("DSN", Kind::Text),
    choice(
        Helpers,
        "--timeline-backend",
        BACKENDS,
        Some(""),
        "The kind of database for the timeline",
    ),
    text(
        Helpers,
        "--timeline-db",
        "Store the timeline in this SQLite file",
    ).of("FILE", Kind::File),
    text(
        Helpers,
        "--timeline-dsn",
        "Keep the timeline in this database: file:… for SQLite, postgres://user@host/database for PostgreSQL",
    ).of("DSN", Kind::Text),
    texts(Helpers, "--images", "Local images to send with the prompt").of("LIST", Kind::File),
    text(Helpers, "--system", "Accepted, without effect"),
    text(Helpers, "--message-file", "Accepted, without effect"),
    text(Helpers, "--append-message-file", "Accepted, without effect"),
    pairs(Helpers, "--autosave", "Accepted, without effect"),
    choice(
        Pinion,
        "--patch-mode",
        &["snapshot", "append"],
        Some("snapshot"),
        "Send in text frames the whole text so far, or only the addition",
    ),
    flag(
        Pinion,
        "--no-coalesce",
        "Never merge text frames, even for a slow reader",
    ),
    texts(
        Pinion,
        "--tools",
        "Tools the model may use, such as read,grep,bash; none by default",
    ),
    texts(
        Pinion,
        "--clips",
        "Clips of a hub whose commands the model may use, such as todo,browser",
    ).of("LIST", Kind::Clip),
    text(
        Pinion,
        "--hub",
        "The hub of the clips; without --clips, all of its clips",
    ).of("URL", Kind::Text),
    text(AiChat, "--ai-engine", "The model").of("NAME", Kind::Model).with("gpt-4"),
    choice(
        AiChat,
        "--ai-api-type",
        &[
            "openai",
            "open-responses",
            "openai-responses",
            "claude",
            "gemini",
        ],
        Some("openai"),
        "The protocol of the model's server",
    ),
    int(
        AiChat,
        "--ai-max-response-tokens",
        "The longest answer, in tokens",
    ),
    float(
            AiChat,
            "--ai-top-p",
            "Sampling: cumulative probability of candidate tokens",
        ).with("1.0"),
    float(AiChat, "--ai-temperature", "Sampling: temperature").with("0.7"),
    texts(AiChat, "--ai-stop", "Texts that end the answer"),
    choice(
        AiChat,
        "--ai-cache-type",
        &["none", "memory", "disk"],
        Some("none"),
        "Keep answers",
    ),
    int(
        AiChat,
        "--ai-cache-max-size",
        "The size of the answer cache, in bytes",
    ),
    int(
        AiChat,
        "--ai-cache-max-entries",
        "The number of cached answers",
    ),
    text(
        AiChat,
        "--ai-cache-directory",
        "The directory of the answer cache",
    ).of("DIR", Kind::Directory),
    choice(
        AiChat,
        "--ai-structured-output-mode",
        &["off", "json_schema"],
        Some("off"),
        "Ask for JSON that matches a schema",
    ),
    text(
        AiChat,
        "--ai-structured-output-name",
        "The name of the schema",
    ),
    text(
        AiChat,
        "--ai-structured-output-description",
        "The purpose of the schema",
    ),
    text(
        AiChat,
        "--ai-structured-output-schema",
        "The form, as a JSON schema",
    ),
    on(
        AiChat,
        "--ai-structured-output-strict",
        "Ask the server to enforce the schema",
    ),
    flag(
        AiChat,
        "--ai-structured-output-require-valid",
        "Fail if the answer does not match the schema",
    ),
    int(AiClient, "--timeout", "Seconds until a request times out").with("60"),
    text(AiClient, "--organization", "The organization to bill"),
    text(AiClient, "--user-agent", "The user agent of requests"),
    text(AiClient, "--proxy-url", "A proxy for requests"),
    on(
        AiClient,
        "--proxy-from-environment",
        "Use the proxy in HTTPS_PROXY and similar variables",
    ),
    secret(OpenAi, "--openai-api-key", "The key"),
    text(OpenAi, "--openai-base-url", "The server").with("https://api.openai.com/v1"),
    int(OpenAi, "--openai-n", "The number of answers to request").with("1"),
    float(
        OpenAi,
        "--openai-presence-penalty",
        "Sampling: penalty for tokens that occurred before",
    ),
    float(
        OpenAi,
        "--openai-frequency-penalty",
        "Sampling: penalty for tokens that occurred often",
    ),
    pairs(OpenAi, "--openai-logit-bias", "Sampling: bias of single tokens"),
    choice(
        OpenAi,
        "--openai-reasoning-effort",
        EFFORTS,
        Some("medium"),
        "The thinking effort of the model",
    ),
    text(
        OpenAi,
        "--openai-thinking-type",
        "The kind of thinking, for servers that have several",
    ),
    choice(
        OpenAi,
        "--openai-chat-reasoning-effort",
        EFFORTS,
        None,
        "The thinking effort in the completions protocol",
    ),
    flag(
        OpenAi,
        "--openai-parallel-tool-calls",
        "Let the model call several tools at once",
    ),
    text(
            OpenAi,
            "--openai-reasoning-summary",
            "Summaries of the model's thinking",
        ).with("auto"),
    flag(
        OpenAi,
        "--openai-include-reasoning-encrypted",
        "Ask for encrypted thinking",
    ),
    on(
        OpenAi,
        "--openai-stream-include-usage",
        "Ask for token counts",
    ),
    secret(Claude, "--claude-api-key", "The key"),
    text(Claude, "--claude-base-url", "The server").with("https://api.anthropic.com"),
    int(
            Claude,
            "--claude-top-k",
            "Sampling: number of candidate tokens",
        ).with("1"),
    text(Claude, "--claude-user-id", "Who asks"),
    secret(Gemini, "--gemini-api-key", "The key"),
    text(Gemini, "--gemini-base-url", "The server"),
    text(Gemini, "--gemini-api-version", "The version of the protocol").with("v1beta"),
    flag(
        Gemini,
        "--gemini-include-thoughts",
        "Ask for the model's thinking",
    ),
    int(
        Gemini,
        "--gemini-thinking-budget",
        "The most tokens for thinking",
    ),
    text(
        Gemini,
        "--gemini-thinking-level",
        "The thinking effort of the model",
    ),
    int(
        Inference,
        "--inference-thinking-budget",
        "The most tokens for thinking",
    ),
    text(
        Inference,
        "--inference-reasoning-effort",
        "The thinking effort of the model",
    ),
    text(Inference, "--inference-thinking-type", "The kind of thinking"),
    text(
        Inference,
        "--inference-reasoning-summary",
        "Summaries of the model's thinking",
    ),
    float(Inference, "--inference-temperature", "Sampling: temperature"),
    float(
        Inference,
        "--inference-top-p",
        "Sampling: cumulative probability of candidate tokens",
    ),
    int(
        Inference,
        "--inference-max-response-tokens",
        "The longest answer, in tokens",
    ),
    texts(Inference, "--inference-stop", "Texts that end the answer"),
    int(
        Inference,
        "--inference-seed",
        "A seed for reproducible sampling, if the server supports it",
    ),
    text(
        Embeddings,
        "--embeddings-type",
        "Accepted and ignored by chats",
    ),
    text(
        Embeddings,
        "--embeddings-engine",
        "Accepted and ignored by chats",
    ),
    int(
        Embeddings,
        "--embeddings-dimensions",
        "Accepted and ignored by chats",
    ),
    text(
        Embeddings,
        "--embeddings-cache-type",
        "Accepted and ignored by chats",
    ),
    int(
        Embeddings,
        "--embeddings-cache-max-size",
        "Accepted and ignored by chats",
    ),
    int(
        Embeddings,
        "--embeddings-cache-max-entries",
        "Accepted and ignored by chats",
    ),
    text(
        Embeddings,
        "--embeddings-cache-directory",
        "Accepted and ignored by chats",
    ),
    text(Rerank, "--rerank-type", "Accepted and ignored by chats"),
    text(Rerank, "--rerank-engine", "Accepted and ignored by chats"),
    text(Profile, "--profile", "The profile to use").of("NAME", Kind::Text),
    texts(
        Profile,
        "--profile-registries",
        "The profile registries: yaml:PATH, sqlite:PATH or a path",
    ),
    flag(Command, "--print-yaml", "Print the command file and exit"),
    flag(
        Command,
        "--print-parsed-fields",
        "Print the value and source of every field and exit",
    ),
    flag(
        Command,
        "--print-schema",
        "Print a JSON schema of the command's fields and exit",
    ),
    text(
        Command,
        "--config-file",
        "An additional configuration file, read after all others",
    ).of("FILE", Kind::File),
    text(
        Create,
        "--create-command",
        "Print a new command file of this name, with the given values as defaults",
    ),
    text(
        Create,
        "--create-alias",
        "Print an alias file of this name, with the given values",
    ),
    text(Create, "--create-cliopatra", "Accepted, without effect"),
    choice(
        Root,
        "--log-level",
        &["trace", "debug", "info", "warn", "error", "fatal"],
        Some("info"),
        "The least severe level to log",
    ),
    choice(
        Root,
        "--log-format",
        &["text", "json"],
        Some("text"),
        "The format of the log",
    ),
    text(Root, "--log-file", "Log to this file only").of("FILE", Kind::File),
    flag(
        Root,
        "--log-to-stdout",
        "Log to standard output; not with --rpc",
    ),
    flag(Root, "--with-caller", "Log the source position of each line"),
    text(Root, "--log-config", "A file of log settings").of("FILE", Kind::File),
    texts(
        Root,
        "--log-area",
        "Log levels of single areas, as area=level",
    ),
    flag(Root, "--strict-log-areas", "Fail on unknown areas"),
    flag(Root, "--help", "Show this page").or(&["-h"]),
    flag(Root, "--long-help", "Show all options"),
    flag(Root, "--version", "Show the version"),
];

/// The number of options for which a command's own field of the same name takes precedence.
const YIELDING_COUNT: usize = 2;

/// Options for which a command's own field of the same name takes precedence.
pub const YIELDING: [FileOption; YIELDING_COUNT] = [
    text(
        Pinion,
        "--model",
        "The model, as in `pinion --model`; overrides --ai-engine and profiles",
    )
    .of("NAME", Kind::Model),
    flag(Pinion, "--plain", "Chat in lines instead of on a screen"),
];

/// Returns the number of options in the section of `group`.
const fn count(group: Group) -> usize {
    let (mut index, mut count) = (0, 0);
    while index < COUNT {
        if OPTIONS[index].group as u8 == group as u8 {
            count += 1;
        }
        index += 1;
    }
    count
}

/// Returns the flags in the section of `group`.
const fn flags<const LENGTH: usize>(group: Group) -> [Flag; LENGTH] {
    let mut flags = [OPTIONS[0].flag; LENGTH];
    let (mut index, mut next) = (0, 0);
    while index < COUNT {
        if OPTIONS[index].group as u8 == group as u8 {
            flags[next] = OPTIONS[index].flag;
            next += 1;
        }
        index += 1;
    }
    flags
}

macro_rules! sections {
    ($($section:ident: $group:ident $title:literal,)*) => {
        $(
            static $section: Section = Section {
                title: $title,
                flags: &{
                    const FLAGS: [Flag; count(Group::$group)] = flags(Group::$group);
                    FLAGS
                },
            };
        )*
    };
}

sections! {
    RUN: Helpers "Run",
    PINION: Pinion "Tools and frames",
    PROFILE: Profile "Profile",
    COMMAND: Command "Command file",
    CREATE: Create "New files",
    GLOBAL: Root "Log and help",
    AI_CHAT: AiChat "Model",
    AI_CLIENT: AiClient "Connections",
    OPENAI: OpenAi "OpenAI",
    CLAUDE: Claude "Claude",
    GEMINI: Gemini "Gemini",
    INFERENCE: Inference "Inference",
    EMBEDDINGS: Embeddings "Embeddings",
    RERANK: Rerank "Reranking",
}

static MODEL: Section = Section {
    title: "Unless the file has a field of this name",
    flags: &[YIELDING[0].flag, YIELDING[1].flag],
};

/// All sections: those that `--help` shows first.
pub(super) static SECTIONS: [&Section; 15] = [
    &RUN,
    &PINION,
    &MODEL,
    &PROFILE,
    &COMMAND,
    &CREATE,
    &GLOBAL,
    &AI_CHAT,
    &AI_CLIENT,
    &OPENAI,
    &CLAUDE,
    &GEMINI,
    &INFERENCE,
    &EMBEDDINGS,
    &RERANK,
];
