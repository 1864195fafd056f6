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
    flag(
        Helpers,
        "print-prompt",
        "Print the rendered prompt and exit",
    ),
    flag(
        Helpers,
        "print-inference-settings",
        "Print the inference settings and exit",
    ),
    flag(
        Helpers,
        "interactive",
        "Ask after the answer whether to continue in a chat",
    ),
    flag(Helpers, "chat", "Chat with the model on the terminal"),
    flag(
        Helpers,
        "force-interactive",
        "Ask even when standard output is not a terminal",
    ),
    flag(
        Helpers,
        "non-interactive",
        "Never ask whether to continue in a chat",
    ),
    choice(
        Helpers,
        "output",
        &["text", "json", "yaml", "jsonl"],
        Some("text"),
        "The format of the output",
    ),
    flag(
        Helpers,
        "rpc",
        "Print one JSON frame per line, as --output jsonl does",
    ),
    flag(
        Helpers,
        "stdin-rpc",
        "Read requests from standard input, one JSON object per line",
    )
    .claiming_stdin(),
    text(
        Helpers,
        "session-id",
        "The session under which turns and timeline are stored",
    ),
    flag(
        Helpers,
        "resume",
        "Continue from the last finished turn of --session-id",
    ),
    flag(Helpers, "with-metadata", "Print metadata with the answer"),
    flag(Helpers, "full-output", "Print all metadata of the answer"),
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
        "The kind of database for turns",
    ),
    text(Helpers, "turns-db", "Store turns in this SQLite file"),
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
        "The kind of database for the timeline",
    ),
    text(
        Helpers,
        "timeline-db",
        "Store the timeline in this SQLite file",
    ),
    text(
        Helpers,
        "timeline-dsn",
        "Keep the timeline in this database: file:… for SQLite, postgres://user@host/database for PostgreSQL",
    ),
    texts(Helpers, "images", "Local images to send with the prompt"),
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
        "Send in text frames the whole text so far, or only the addition",
    ),
    flag(
        Pinion,
        "no-coalesce",
        "Never merge text frames, even for a slow reader",
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
        "The hub of the clips; without --clips, all of its clips",
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
        float(
            AiChat,
            "ai-top-p",
            "Sampling: cumulative probability of candidate tokens",
        ),
        "1.0",
    ),
    with(
        float(AiChat, "ai-temperature", "Sampling: temperature"),
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
        "The size of the answer cache, in bytes",
    ),
    int(
        AiChat,
        "ai-cache-max-entries",
        "The number of cached answers",
    ),
    text(
        AiChat,
        "ai-cache-directory",
        "The directory of the answer cache",
    ),
    choice(
        AiChat,
        "ai-structured-output-mode",
        &["off", "json_schema"],
        Some("off"),
        "Ask for JSON that matches a schema",
    ),
    text(
        AiChat,
        "ai-structured-output-name",
        "The name of the schema",
    ),
    text(
        AiChat,
        "ai-structured-output-description",
        "The purpose of the schema",
    ),
    text(
        AiChat,
        "ai-structured-output-schema",
        "The form, as a JSON schema",
    ),
    on(
        AiChat,
        "ai-structured-output-strict",
        "Ask the server to enforce the schema",
    ),
    flag(
        AiChat,
        "ai-structured-output-require-valid",
        "Fail if the answer does not match the schema",
    ),
    with(
        int(AiClient, "timeout", "Seconds until a request times out"),
        "60",
    ),
    text(AiClient, "organization", "The organization to bill"),
    text(AiClient, "user-agent", "The user agent of requests"),
    text(AiClient, "proxy-url", "A proxy for requests"),
    on(
        AiClient,
        "proxy-from-environment",
        "Use the proxy in HTTPS_PROXY and similar variables",
    ),
    secret(OpenAi, "openai-api-key", "The key"),
    with(
        text(OpenAi, "openai-base-url", "The server"),
        "https://api.openai.com/v1",
    ),
    with(
        int(OpenAi, "openai-n", "The number of answers to request"),
        "1",
    ),
    float(
        OpenAi,
        "openai-presence-penalty",
        "Sampling: penalty for tokens that occurred before",
    ),
    float(
        OpenAi,
        "openai-frequency-penalty",
        "Sampling: penalty for tokens that occurred often",
    ),
    BuiltIn::new(
        OpenAi,
        "openai-logit-bias",
        FieldType::KeyValue,
        None,
        "Sampling: bias of single tokens",
    ),
    choice(
        OpenAi,
        "openai-reasoning-effort",
        EFFORTS,
        Some("medium"),
        "The thinking effort of the model",
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
        "The thinking effort in the completions protocol",
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
            "Summaries of the model's thinking",
        ),
        "auto",
    ),
    flag(
        OpenAi,
        "openai-include-reasoning-encrypted",
        "Ask for encrypted thinking",
    ),
    on(
        OpenAi,
        "openai-stream-include-usage",
        "Ask for token counts",
    ),
    secret(Claude, "claude-api-key", "The key"),
    with(
        text(Claude, "claude-base-url", "The server"),
        "https://api.anthropic.com",
    ),
    with(
        int(
            Claude,
            "claude-top-k",
            "Sampling: number of candidate tokens",
        ),
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
        "Ask for the model's thinking",
    ),
    int(
        Gemini,
        "gemini-thinking-budget",
        "The most tokens for thinking",
    ),
    text(
        Gemini,
        "gemini-thinking-level",
        "The thinking effort of the model",
    ),
    int(
        Inference,
        "inference-thinking-budget",
        "The most tokens for thinking",
    ),
    text(
        Inference,
        "inference-reasoning-effort",
        "The thinking effort of the model",
    ),
    text(Inference, "inference-thinking-type", "The kind of thinking"),
    text(
        Inference,
        "inference-reasoning-summary",
        "Summaries of the model's thinking",
    ),
    float(Inference, "inference-temperature", "Sampling: temperature"),
    float(
        Inference,
        "inference-top-p",
        "Sampling: cumulative probability of candidate tokens",
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
        "A seed for reproducible sampling, if the server supports it",
    ),
    text(
        Embeddings,
        "embeddings-type",
        "Accepted and ignored by chats",
    ),
    text(
        Embeddings,
        "embeddings-engine",
        "Accepted and ignored by chats",
    ),
    int(
        Embeddings,
        "embeddings-dimensions",
        "Accepted and ignored by chats",
    ),
    text(
        Embeddings,
        "embeddings-cache-type",
        "Accepted and ignored by chats",
    ),
    int(
        Embeddings,
        "embeddings-cache-max-size",
        "Accepted and ignored by chats",
    ),
    int(
        Embeddings,
        "embeddings-cache-max-entries",
        "Accepted and ignored by chats",
    ),
    text(
        Embeddings,
        "embeddings-cache-directory",
        "Accepted and ignored by chats",
    ),
    text(Rerank, "rerank-type", "Accepted and ignored by chats"),
    text(Rerank, "rerank-engine", "Accepted and ignored by chats"),
    text(Profile, "profile", "The profile to use"),
    texts(
        Profile,
        "profile-registries",
        "The profile registries: yaml:PATH, sqlite:PATH or a path",
    ),
    flag(Command, "print-yaml", "Print the command file and exit"),
    flag(
        Command,
        "print-parsed-fields",
        "Print the value and source of every field and exit",
    ),
    flag(
        Command,
        "print-schema",
        "Print a JSON schema of the command's fields and exit",
    ),
    text(
        Command,
        "config-file",
        "An additional configuration file, read after all others",
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
        "The least severe level to log",
    ),
    choice(
        Root,
        "log-format",
        &["text", "json"],
        Some("text"),
        "The format of the log",
    ),
    text(Root, "log-file", "Log to this file only"),
    flag(
        Root,
        "log-to-stdout",
        "Log to standard output; not with --rpc",
    ),
    flag(Root, "with-caller", "Log the source position of each line"),
    text(Root, "log-config", "A file of log settings"),
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
