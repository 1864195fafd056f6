//! The tables of whole command lines: `pinion`, and the names `pi` and `pinocchio`.

use super::{
    LOG, SETUP, THINKING, acp, auth, clip, cluster, commands, databases, fleet, hub, mcp, packages,
    prompts, sandbox,
};
use crate::table::{Argument, Command, Flag, Kind, Section};

const ARGUMENTS: &[Argument] = &[
    Argument::any("@FILE", Kind::File),
    Argument::any("MESSAGE", Kind::Text),
];

const MODEL_NAME: Flag = Flag::valued(
    "--model",
    "PATTERN",
    "id, provider/id or part of it; :LEVEL sets the thinking level",
)
.of(Kind::Model);
const PROVIDER: Flag = Flag::valued(
    "--provider",
    "NAME",
    "look for the model at this provider only",
);
const MODELS: Flag = Flag::valued(
    "--models",
    "LIST",
    "the models that cycle_model visits; globs are allowed",
)
.of(Kind::Model);
const THINKING_LEVEL: Flag = Flag::valued(
    "--thinking",
    "LEVEL",
    "off, minimal, low, medium, high, xhigh, max",
)
.of(THINKING);
const API_KEY: Flag = Flag::valued(
    "--api-key",
    "KEY",
    "for this run; visible to other users of the machine: prefer the environment",
);

static MODEL: Section = Section {
    title: "Model",
    flags: &[
        MODEL_NAME,
        PROVIDER,
        MODELS,
        THINKING_LEVEL,
        API_KEY,
        Flag::valued("--list-models", "SEARCH", "list the models and exit").optional(),
    ],
};

/// The flags of [`MODEL`] for a command that always runs a prompt; `-m` is opencode's.
pub(super) static MODEL_OF_RUN: Section = Section {
    title: "Model",
    flags: &[
        MODEL_NAME.or(&["-m"]),
        PROVIDER,
        MODELS,
        THINKING_LEVEL,
        API_KEY,
    ],
};

const CONTINUE: Flag = Flag::bare(
    "--continue",
    "continue the newest session of this directory",
)
.or(&["-c"]);
const SESSION_FILE: Flag =
    Flag::valued("--session", "PATH|ID", "continue this session").of(Kind::Session);
const SESSION_ID: Flag = Flag::valued(
    "--session-id",
    "ID",
    "continue the session with exactly this id, or create it",
)
.of(Kind::Session);
const FORK: Flag =
    Flag::valued("--fork", "PATH|ID", "continue a copy of this session").of(Kind::Session);
const SESSION_DIR: Flag =
    Flag::valued("--session-dir", "DIR", "the directory of the session files").of(Kind::Directory);
const NO_SESSION: Flag = Flag::bare("--no-session", "store nothing on disk");
const NAME: Flag = Flag::valued("--name", "NAME", "name the session").or(&["-n"]);

static SESSION: Section = Section {
    title: "Session",
    flags: &[
        CONTINUE,
        Flag::bare("--resume", "pick a session to continue").or(&["-r"]),
        SESSION_FILE,
        SESSION_ID,
        FORK,
        SESSION_DIR,
        NO_SESSION,
        NAME,
        Flag::valued(
            "--export",
            "FILE [OUT]",
            "write a session file as a web page and exit",
        )
        .of(Kind::File),
    ],
};

/// The flags of [`SESSION`] for a command that always runs a prompt; `--title` is opencode's.
pub(super) static SESSION_OF_RUN: Section = Section {
    title: "Session",
    flags: &[
        CONTINUE,
        SESSION_FILE,
        SESSION_ID,
        FORK,
        SESSION_DIR,
        NO_SESSION,
        NAME.or(&["-n", "--title"]),
    ],
};

static OUTPUT: Section = Section {
    title: "Output",
    flags: &[
        Flag::bare(
            "--print",
            "print the answer and exit; implied without a terminal",
        )
        .or(&["-p"]),
        Flag::valued(
            "--mode",
            "MODE",
            "text, json or rpc: the protocol on stdin and stdout",
        )
        .of(Kind::OneOf(&["text", "json", "rpc"])),
    ],
};

pub(super) static PROMPT: Section = Section {
    title: "Prompt",
    flags: &[
        Flag::valued(
            "--system-prompt",
            "TEXT|FILE",
            "replace the built-in system prompt",
        )
        .of(Kind::File),
        Flag::valued(
            "--append-system-prompt",
            "TEXT|FILE",
            "add to the system prompt",
        )
        .of(Kind::File)
        .repeated(),
        Flag::valued("--skill", "PATH", "add a skill")
            .of(Kind::File)
            .repeated(),
        Flag::bare("--no-skills", "use only the skills of --skill").or(&["-ns"]),
        Flag::valued("--prompt-template", "PATH", "add a prompt template")
            .of(Kind::File)
            .repeated(),
        Flag::bare(
            "--no-prompt-templates",
            "use only the templates of --prompt-template",
        )
        .or(&["-np"]),
        Flag::bare("--no-context-files", "ignore AGENTS.md and CLAUDE.md").or(&["-nc"]),
    ],
};

pub(super) static EXTENSIONS: Section = Section {
    title: "Extensions",
    flags: &[
        Flag::valued(
            "--extension",
            "SOURCE",
            "load a file, a directory, npm:NAME or git:HOST/PATH",
        )
        .or(&["-e"])
        .of(Kind::File)
        .repeated(),
        Flag::bare("--no-extensions", "load only the sources of -e").or(&["-ne"]),
    ],
};

pub(super) static TOOLS: Section = Section {
    title: "Tools",
    flags: &[
        Flag::valued(
            "--tools",
            "LIST",
            "of read, bash, edit, write, grep, find, ls; the first four are on; +NAME and -NAME change them",
        )
        .or(&["-t"]),
        Flag::valued("--exclude-tools", "LIST", "turn these off").or(&["-xt"]),
        Flag::bare("--no-tools", "turn off all tools").or(&["-nt"]),
        Flag::bare("--no-builtin-tools", "use only the tools of extensions").or(&["-nbt"]),
        Flag::bare("--no-mcp", "connect to no MCP servers of mcp.json"),
    ],
};

pub(super) static APPROVALS: Section = Section {
    title: "Approvals",
    flags: &[
        Flag::valued(
            "--approve",
            "MODE",
            "ask about tool calls, run all but denied ones (auto), or only allowed ones (deny)",
        )
        .of(Kind::OneOf(&["ask", "auto", "deny"])),
        Flag::valued(
            "--allow",
            "RULE",
            "a tool, bash(COMMAND) or write(PATH); * is a wildcard",
        )
        .repeated(),
        Flag::valued("--deny", "RULE", "the same, and overrides --allow").repeated(),
        Flag::valued(
            "--approve-timeout",
            "SECONDS",
            "the longest wait for an answer; 300",
        ),
        Flag::valued(
            "--clips",
            "LIST",
            "offer the commands of these clips of a hub as tools",
        )
        .of(Kind::Clip),
        Flag::valued(
            "--hub",
            "URL",
            "the hub of the clips; without --clips, all of its clips",
        ),
        Flag::bare("--trust", "trust this project's settings for this run"),
        Flag::bare(
            "--no-trust",
            "distrust this project's settings for this run",
        ),
    ],
};

/// `--approve` and `--no-approve` as pi has them: about trust. A mode after `=` is pinion's `--approve`.
static TRUST_OF_PI: Section = Section {
    title: "Trust",
    flags: &[
        Flag::valued(
            "--approve",
            "MODE",
            "trust this project's settings for this run",
        )
        .joined(),
        Flag::bare(
            "--no-approve",
            "distrust this project's settings for this run",
        ),
    ],
};

const THEME: Flag = Flag::valued(
    "--theme",
    "NAME",
    "dark or light: the background, instead of asking the terminal",
)
.of(Kind::OneOf(&["dark", "light"]));
const NO_THEMES: Flag = Flag::bare("--no-themes", "accepted for compatibility");

static CHAT: Section = Section {
    title: "Chat",
    flags: &[
        Flag::bare(
            "--plain",
            "print plain lines instead of a screen: for screen readers and simple terminals",
        ),
        THEME,
        NO_THEMES,
    ],
};

static CHAT_OF_PI: Section = Section {
    title: "Chat",
    flags: &[THEME, NO_THEMES],
};

const OFFLINE: Flag = Flag::bare("--offline", "fetch nothing while installing packages");
const VERBOSE: Flag = Flag::bare("--verbose", "accepted for compatibility");

/// The flags of [`BEHAVIOUR`] for a command that always runs one prompt.
pub(super) static BEHAVIOUR_OF_RUN: Section = Section {
    title: "Behaviour",
    flags: &[OFFLINE, VERBOSE],
};

static BEHAVIOUR: Section = Section {
    title: "Behaviour",
    flags: &[
        Flag::bare(
            "--exit-on-eof",
            "RPC: stop at the end of input instead of finishing the run",
        ),
        Flag::valued(
            "--rpc-dialect",
            "NAME",
            "auto, early, classic or modern: the age of pi's protocol (auto: as your pi)",
        )
        .of(Kind::OneOf(&["auto", "early", "classic", "modern"])),
        Flag::bare(
            "--multi-session",
            "RPC: the client opens, closes and lists sessions; lines carry sessionId",
        ),
        Flag::bare(
            "--no-coalesce",
            "never merge deltas, also for a slow reader",
        ),
        OFFLINE,
        VERBOSE,
        Flag::bare("--help", "print the help and exit").or(&["-h"]),
        Flag::bare("--version", "print the version and exit").or(&["-v"]),
    ],
};

/// The set-up, which an editor starts with the flag in place of its own arguments.
static SET_UP: Section = Section {
    title: "Set-up",
    flags: &[SETUP],
};

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong command line, 129/130/143 ended by SIGHUP/SIGINT/SIGTERM.";

pub static PINION: Command = Command {
    usage: &[
        "[flags] [@FILE…] [MESSAGE…]         chat, on a terminal",
        "--mode rpc [flags]                  serve a client over lines of JSON (pi's protocol)",
        "--mode json [flags] MESSAGE…        print every event as a line of JSON",
        "-p [flags] [@FILE…] MESSAGE…        print the answer; -p is implied without a terminal",
    ],
    arguments: ARGUMENTS,
    flags: &[
        &MODEL,
        &SESSION,
        &OUTPUT,
        &PROMPT,
        &EXTENSIONS,
        &TOOLS,
        &APPROVALS,
        &sandbox::SANDBOX_SECTION,
        &CHAT,
        &BEHAVIOUR,
        &SET_UP,
        &LOG,
    ],
    commands: &[
        &prompts::RUN_COMMAND,
        &prompts::COMMANDS,
        &hub::HUB,
        &cluster::CLUSTER,
        &clip::CLIP,
        &clip::INVOKE,
        &mcp::MCP,
        &acp::ACP,
        &auth::LOGIN,
        &auth::LOGOUT,
        &auth::AUTH,
        &auth::CONFIG,
        &commands::SESSIONS,
        &commands::MODELS,
        &packages::INSTALL,
        &packages::REMOVE,
        &packages::UPDATE,
        &packages::LIST,
        &commands::EXTENSIONS,
        &commands::PROFILES,
        &commands::TRUST,
        &commands::SCHEMA,
        &databases::TURNS,
        &databases::TIMELINE,
        &fleet::FLEET,
        &prompts::RUN,
        &sandbox::SANDBOX,
        &commands::DOCTOR,
        &commands::COMPLETIONS,
        &commands::MAN,
        &commands::HELP,
    ],
    notes: "The message - reads the prompt from standard input, without a time limit. --NAME [VALUE] is a flag that an\n\
            extension registers. Called through a link named `pi`, the program has pi's command line. --version --json\n\
            prints commit, target, features and protocols as JSON.\n\
            Exit codes: 0 done, 1 failed, 2 wrong command line, 129/130/143 ended by SIGHUP/SIGINT/SIGTERM.",
    examples: &[
        "pinion -p --model offline/demo \"list the files\"",
        "git diff | pinion -p - \"Review this change\"",
        "echo '{\"type\":\"prompt\",\"message\":\"hello\"}' | pinion --mode rpc --no-session",
    ],
    ..Command::new("pinion", "Run coding agents for other programs")
};

pub static PI: Command = Command {
    usage: &[
        "[flags] [@FILE…] [MESSAGE…]",
        "--mode rpc|json [flags] [MESSAGE…]",
    ],
    arguments: ARGUMENTS,
    flags: &[
        &MODEL,
        &SESSION,
        &OUTPUT,
        &PROMPT,
        &EXTENSIONS,
        &TOOLS,
        &TRUST_OF_PI,
        &CHAT_OF_PI,
        &BEHAVIOUR,
    ],
    commands: &[
        &packages::INSTALL,
        &packages::REMOVE,
        &packages::UPDATE,
        &packages::LIST,
        &mcp::MCP_OF_PI,
        &auth::AUTH,
        &auth::CONFIG,
    ],
    notes: EXIT_CODES,
    examples: &["pi -p --model offline/demo \"list the files\""],
    ..Command::new("pi", "Run a coding agent with pi's command line")
};

pub static PINOCCHIO: Command = Command {
    usage: &["WORDS… [options]"],
    commands: &[
        &prompts::RUN_COMMAND,
        &prompts::COMMANDS,
        &commands::PROFILES,
        &databases::TURNS,
        &databases::TIMELINE,
        &prompts::COMMANDS_HELP,
    ],
    examples: &[
        "pinocchio run-command greet.yaml --name Ada",
        "pinocchio commands list",
    ],
    ..Command::new("pinocchio", "Run prompts in YAML files")
};
