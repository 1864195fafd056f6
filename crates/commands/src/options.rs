//! The table of built-in options.

use crate::built_in::{BuiltIn, Group};
use crate::field::FieldType;

const fn flag(group: Group, name: &'static str, help: &'static str) -> BuiltIn {
    BuiltIn::new(group, name, FieldType::Bool, Some("false"), help)
}

const fn on(group: Group, name: &'static str, help: &'static str) -> BuiltIn {
    BuiltIn::new(group, name, FieldType::Bool, Some("true"), help)
}

const fn text(group: Group, name: &'static str, help: &'static str) -> BuiltIn {
    BuiltIn::new(group, name, FieldType::String, None, help)
}

const fn secret(group: Group, name: &'static str, help: &'static str) -> BuiltIn {
    BuiltIn::new(group, name, FieldType::Secret, None, help)
}

const fn int(group: Group, name: &'static str, help: &'static str) -> BuiltIn {
    BuiltIn::new(group, name, FieldType::Int, None, help)
}

const fn float(group: Group, name: &'static str, help: &'static str) -> BuiltIn {
    BuiltIn::new(group, name, FieldType::Float, None, help)
}

const fn texts(group: Group, name: &'static str, help: &'static str) -> BuiltIn {
    BuiltIn::new(group, name, FieldType::StringList, None, help)
}

const fn choice(
    group: Group,
    name: &'static str,
    choices: &'static [&'static str],
    default: Option<&'static str>,
    help: &'static str,
) -> BuiltIn {
    BuiltIn::new(group, name, FieldType::Choice, default, help).of(choices)
}

const fn with(mut option: BuiltIn, default: &'static str) -> BuiltIn {
    option.default = Some(default);
    option
}

const BACKENDS: &[&str] = &["", "disabled", "memory", "sqlite", "postgres"];
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

use Group::{
    AiChat, AiClient, Claude, Command, Create, Embeddings, Gemini, Helpers, Inference, OpenAi,
    Pinion, Profile, Rerank, Root,
};

/// The options of every command, in the order of help pages.
pub const BUILT_INS: &[BuiltIn] = &[
    flag(Helpers, "print-prompt", "Print the rendered prompt and end"),
    flag(
        Helpers,
        "print-inference-settings",
        "Print the settings the model would get and end",
    ),
    flag(
        Helpers,
        "interactive",
        "Ask after the answer whether to go on in a chat",
    ),
    flag(Helpers, "chat", "Talk with the model on the terminal"),
    flag(
        Helpers,
        "force-interactive",
        "Ask even when standard output is not a terminal",
    ),
    flag(
        Helpers,
        "non-interactive",
        "Never ask whether to go on in a chat",
    ),
    choice(
        Helpers,
        "output",
        &["text", "json", "yaml", "jsonl"],
        Some("text"),
        "How the answer is printed",
    ),
    flag(
        Helpers,
        "rpc",
        "Print one JSON frame per line, as --output jsonl does",
    ),
    flag(
        Helpers,
        "stdin-rpc",
        "Take requests from standard input, one JSON object per line",
    )
    .claiming_stdin(),
    text(
        Helpers,
        "session-id",
        "The session to keep turns and timeline under",
    ),
    flag(
        Helpers,
        "resume",
        "Go on from the last finished turn of --session-id",
    ),
    flag(Helpers, "with-metadata", "Print metadata with the answer"),
    flag(
        Helpers,
        "full-output",
        "Print everything that is known about the answer",
    ),
    text(
        Helpers,
        "debug-events-jsonl",
        "Also write every frame to this file",
    ),
    choice(
        Helpers,
        "turns-backend",
        BACKENDS,
        Some(""),
        "Where turns are kept",
    ),
    text(Helpers, "turns-db", "Keep turns in this SQLite file"),
    text(
        Helpers,
        "turns-dsn",
        "Keep turns in this database: file:… for SQLite, postgres://user@host/database for PostgreSQL",
    ),
    choice(
        Helpers,
        "timeline-backend",
        BACKENDS,
        Some(""),
        "Where the timeline is kept",
    ),
    text(
        Helpers,
        "timeline-db",
        "Keep the timeline in this SQLite file",
    ),
    text(
        Helpers,
        "timeline-dsn",
        "Keep the timeline in this database: file:… for SQLite, postgres://user@host/database for PostgreSQL",
    ),
    texts(Helpers, "images", "Local pictures to send with the prompt"),
    text(Helpers, "system", "Accepted, without effect"),
    text(Helpers, "message-file", "Accepted, without effect"),
    text(Helpers, "append-message-file", "Accepted, without effect"),
    BuiltIn::new(
        Helpers,
        "autosave",
        FieldType::KeyValue,
        None,
        "Accepted, without effect",
    ),
    choice(
        Pinion,
        "patch-mode",
        &["snapshot", "append"],
        Some("snapshot"),
        "Whether text frames carry all of the text so far or only what is new",
    ),
    flag(
        Pinion,
        "no-coalesce",
        "Keep every text frame apart, however slowly they are read",
    ),
    texts(
        Pinion,
        "tools",
        "Tools the model may use, such as read,grep,bash; none by default",
    ),
    texts(
        Pinion,
        "clips",
        "Clips of a hub whose commands the model may use, such as todo,browser",
    ),
    text(
        Pinion,
        "hub",
        "The hub the clips are on; without --clips, all of its clips",
    ),
    with(text(AiChat, "ai-engine", "The model"), "gpt-4"),
    choice(
        AiChat,
        "ai-api-type",
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
        "ai-max-response-tokens",
        "The longest answer, in tokens",
    ),
    with(
        float(AiChat, "ai-top-p", "Sampling: share of likely tokens"),
        "1.0",
    ),
    with(
        float(
            AiChat,
            "ai-temperature",
            "Sampling: how much is left to chance",
        ),
        "0.7",
    ),
    texts(AiChat, "ai-stop", "Texts that end the answer"),
    choice(
        AiChat,
        "ai-cache-type",
        &["none", "memory", "disk"],
        Some("none"),
        "Keep answers",
    ),
    int(
        AiChat,
        "ai-cache-max-size",
        "The size of kept answers, in bytes",
    ),
    int(AiChat, "ai-cache-max-entries", "The number of kept answers"),
    text(AiChat, "ai-cache-directory", "Where answers are kept"),
    choice(
        AiChat,
        "ai-structured-output-mode",
        &["off", "json_schema"],
        Some("off"),
        "Ask for JSON of a given form",
    ),
    text(AiChat, "ai-structured-output-name", "A name for the form"),
    text(
        AiChat,
        "ai-structured-output-description",
        "What the form is for",
    ),
    text(
        AiChat,
        "ai-structured-output-schema",
        "The form, as a JSON schema",
    ),
    on(
        AiChat,
        "ai-structured-output-strict",
        "Ask the server to hold the model to the form",
    ),
    flag(
        AiChat,
        "ai-structured-output-require-valid",
        "Fail when the answer has another form",
    ),
    with(
        int(AiClient, "timeout", "Seconds until a request is given up"),
        "60",
    ),
    text(AiClient, "organization", "The organization that pays"),
    text(
        AiClient,
        "user-agent",
        "What the server is told about the client",
    ),
    text(AiClient, "proxy-url", "A proxy for requests"),
    on(
        AiClient,
        "proxy-from-environment",
        "Take the proxy from HTTPS_PROXY and its like",
    ),
    secret(OpenAi, "openai-api-key", "The key"),
    with(
        text(OpenAi, "openai-base-url", "The server"),
        "https://api.openai.com/v1",
    ),
    with(
        int(OpenAi, "openai-n", "How many answers are asked for"),
        "1",
    ),
    float(
        OpenAi,
        "openai-presence-penalty",
        "Sampling: against what was said before",
    ),
    float(
        OpenAi,
        "openai-frequency-penalty",
        "Sampling: against what was said often",
    ),
    BuiltIn::new(
        OpenAi,
        "openai-logit-bias",
        FieldType::KeyValue,
        None,
        "Sampling: for or against single tokens",
    ),
    choice(
        OpenAi,
        "openai-reasoning-effort",
        EFFORTS,
        Some("medium"),
        "How much the model thinks",
    ),
    text(
        OpenAi,
        "openai-thinking-type",
        "The kind of thinking, for servers that have several",
    ),
    choice(
        OpenAi,
        "openai-chat-reasoning-effort",
        EFFORTS,
        None,
        "The same for the completions protocol",
    ),
    flag(
        OpenAi,
        "openai-parallel-tool-calls",
        "Let the model call several tools at once",
    ),
    with(
        text(
            OpenAi,
            "openai-reasoning-summary",
            "Summaries of what the model thinks",
        ),
        "auto",
    ),
    flag(
        OpenAi,
        "openai-include-reasoning-encrypted",
        "Ask for what the model thinks in encrypted form",
    ),
    on(
        OpenAi,
        "openai-stream-include-usage",
        "Ask for the number of tokens",
    ),
    secret(Claude, "claude-api-key", "The key"),
    with(
        text(Claude, "claude-base-url", "The server"),
        "https://api.anthropic.com",
    ),
    with(
        int(Claude, "claude-top-k", "Sampling: number of likely tokens"),
        "1",
    ),
    text(Claude, "claude-user-id", "Who asks"),
    secret(Gemini, "gemini-api-key", "The key"),
    text(Gemini, "gemini-base-url", "The server"),
    with(
        text(Gemini, "gemini-api-version", "The version of the protocol"),
        "v1beta",
    ),
    flag(
        Gemini,
        "gemini-include-thoughts",
        "Ask for what the model thinks",
    ),
    int(
        Gemini,
        "gemini-thinking-budget",
        "How many tokens the model may think",
    ),
    text(Gemini, "gemini-thinking-level", "How much the model thinks"),
    int(
        Inference,
        "inference-thinking-budget",
        "How many tokens the model may think",
    ),
    text(
        Inference,
        "inference-reasoning-effort",
        "How much the model thinks",
    ),
    text(Inference, "inference-thinking-type", "The kind of thinking"),
    text(
        Inference,
        "inference-reasoning-summary",
        "Summaries of what the model thinks",
    ),
    float(
        Inference,
        "inference-temperature",
        "Sampling: how much is left to chance",
    ),
    float(
        Inference,
        "inference-top-p",
        "Sampling: share of likely tokens",
    ),
    int(
        Inference,
        "inference-max-response-tokens",
        "The longest answer, in tokens",
    ),
    texts(Inference, "inference-stop", "Texts that end the answer"),
    int(
        Inference,
        "inference-seed",
        "Makes sampling repeat itself, where the server can",
    ),
    text(
        Embeddings,
        "embeddings-type",
        "Accepted, of no use to chats",
    ),
    text(
        Embeddings,
        "embeddings-engine",
        "Accepted, of no use to chats",
    ),
    int(
        Embeddings,
        "embeddings-dimensions",
        "Accepted, of no use to chats",
    ),
    text(
        Embeddings,
        "embeddings-cache-type",
        "Accepted, of no use to chats",
    ),
    int(
        Embeddings,
        "embeddings-cache-max-size",
        "Accepted, of no use to chats",
    ),
    int(
        Embeddings,
        "embeddings-cache-max-entries",
        "Accepted, of no use to chats",
    ),
    text(
        Embeddings,
        "embeddings-cache-directory",
        "Accepted, of no use to chats",
    ),
    text(Rerank, "rerank-type", "Accepted, of no use to chats"),
    text(Rerank, "rerank-engine", "Accepted, of no use to chats"),
    text(Profile, "profile", "The profile to use"),
    texts(
        Profile,
        "profile-registries",
        "Where profiles are looked for: yaml:PATH, sqlite:PATH or a path",
    ),
    flag(Command, "print-yaml", "Print the command file and end"),
    flag(
        Command,
        "print-parsed-fields",
        "Print what every field is and where it comes from, and end",
    ),
    flag(
        Command,
        "print-schema",
        "Print a JSON schema of the command's fields and end",
    ),
    text(
        Command,
        "config-file",
        "One more configuration file, after all others",
    ),
    text(
        Create,
        "create-command",
        "Print a new command file of this name, with the given values as defaults",
    ),
    text(
        Create,
        "create-alias",
        "Print an alias file of this name, with the given values",
    ),
    text(Create, "create-cliopatra", "Accepted, without effect"),
    choice(
        Root,
        "log-level",
        &["trace", "debug", "info", "warn", "error", "fatal"],
        Some("info"),
        "What is logged",
    ),
    choice(
        Root,
        "log-format",
        &["text", "json"],
        Some("text"),
        "How it is logged",
    ),
    text(Root, "log-file", "Log to this file only"),
    flag(
        Root,
        "log-to-stdout",
        "Log to standard output; not with --rpc",
    ),
    flag(
        Root,
        "with-caller",
        "Log where in the source a line comes from",
    ),
    text(Root, "log-config", "A file that says what is logged"),
    texts(
        Root,
        "log-area",
        "Log levels of single areas, as area=level",
    ),
    flag(Root, "strict-log-areas", "Fail on unknown areas"),
    flag(Root, "help", "Show this page").short('h'),
    flag(Root, "long-help", "Show all options"),
    flag(Root, "version", "Show the version"),
];
