//! The tables of `pinion clip`, `pinion invoke` and `pinion mcp`.

use super::{CALLER, JSON, LEVELS};
use crate::table::{Argument, Command, Flag, Kind, Section};

const ALIAS: Argument = Argument::one("ALIAS", Kind::Clip);

pub static CLIP: Command = Command {
    commands: &[
        &ADD, &LIST, &SHOW, &REMOVE, &UPDATE, &LOGS, &DATA, &BIND, &UNBIND, &BINDINGS, &NEW,
    ],
    notes: "On a terminal the commands print tables, otherwise, or with --json, JSON. All but new call a hub: that of \
            PINIX_URL,\nelse the one in client.json, else the one that runs here.",
    examples: &[
        "pinion clip new hello --lang python",
        "pinion clip add ./hello",
        "pinion invoke hello count --to 3",
    ],
    ..Command::new(
        "clip",
        "Manage the clips of a hub: small programs that others call",
    )
};

pub static ADD: Command = Command {
    arguments: &[Argument::one("SOURCE", Kind::File)],
    flags: &[
        &Section {
            title: "Clip",
            flags: &[
                Flag::valued(
                    "--alias",
                    "ALIAS",
                    "the name of the clip here; else the name in its package",
                ),
                Flag::valued("--provider", "NAME", "the runtime that runs it"),
                Flag::bare(
                    "--watch",
                    "stay, and install it again whenever its directory changes",
                ),
                Flag::valued("--token", "SECRET", "a secret that callers must send")
                    .or(&["--clip-token"]),
                Flag::valued(
                    "--registry",
                    "URL",
                    "the registry of packages: PINIX_REGISTRY, else the one in client.json",
                ),
                Flag::valued("--path", "DIR", "the directory of a local/NAME source")
                    .of(Kind::Directory),
            ],
        },
        &CALLER,
    ],
    notes: "Under an alias that exists, another version replaces the clip; its data stays.\n\n\
            A SOURCE is one of\n  \
            ./DIRECTORY, ./ARCHIVE.tgz          on the machine of the hub\n  \
            @scope/name[@version]               from the configured registry, or --registry\n  \
            registry:URL#@scope/name[@version]  from this registry\n  \
            npm/NAME[@version]                  from npm\n  \
            github/USER/REPOSITORY[#branch]     from GitHub\n  \
            local/NAME --path DIRECTORY         a directory, under another name\n\
            MCP servers are clips too; mcp.json in the hub's directory names them.",
    examples: &[
        "pinion clip add ./todo --watch",
        "pinion clip add ./todo --alias work --token s3cret-for-callers",
        "pinion clip add @acme/search@1.2.0 --registry https://registry.example.org",
    ],
    ..Command::new("add", "Install a clip, or another version of one")
};

pub static LIST: Command = Command {
    flags: &[&CALLER],
    examples: &[
        "pinion clip list",
        "pinion clip list --json | jq -r '.[].name'",
    ],
    ..Command::new("list", "List the clips you may see, with their state")
};

pub static SHOW: Command = Command {
    arguments: &[ALIAS],
    flags: &[&CALLER],
    notes: "The hub starts the clip if it has not described itself yet.",
    examples: &[
        "pinion clip show todo",
        "pinion clip show todo --json | jq '.commands[].name'",
    ],
    ..Command::new("show", "Show the commands of a clip and their inputs")
};

pub static REMOVE: Command = Command {
    arguments: &[ALIAS],
    flags: &[
        &Section {
            title: "Flags",
            flags: &[Flag::bare("--purge", "delete its data too")],
        },
        &CALLER,
    ],
    examples: &["pinion clip remove todo", "pinion clip remove todo --purge"],
    ..Command::new("remove", "Remove a clip; its data stays")
};

pub static UPDATE: Command = Command {
    arguments: &[Argument::optional("ALIAS", Kind::Clip)],
    flags: &[
        &Section {
            title: "Flags",
            flags: &[
                Flag::bare("--all", "update every clip that came from a registry"),
                Flag::valued(
                    "--version",
                    "VERSION",
                    "install this version instead of the latest",
                ),
                Flag::valued("--registry", "URL", "the registry to ask"),
            ],
        },
        &CALLER,
    ],
    examples: &[
        "pinion clip update search",
        "pinion clip update search --version 1.3.0",
        "pinion clip update --all",
    ],
    ..Command::new(
        "update",
        "Install the latest version of a clip from its registry",
    )
};

pub static LOGS: Command = LOGS_TABLE;

pub(crate) const LOGS_TABLE: Command = Command {
    arguments: &[Argument::optional("ALIAS", Kind::Clip)],
    flags: &[
        &Section {
            title: "Lines",
            flags: &[
                Flag::valued("--tail", "COUNT", "print this many of the last lines: 50")
                    .or(&["-n"]),
                Flag::bare("--follow", "print new lines as they come").or(&["-f"]),
                Flag::valued(
                    "--level",
                    "LEVEL",
                    "the lowest level: debug, info, warn or error",
                )
                .of(LEVELS),
                Flag::bare("--system", "print the hub's own log"),
            ],
        },
        &CALLER,
    ],
    examples: &[
        "pinion clip logs todo -f",
        "pinion clip logs --system --tail 200 --level warn",
    ],
    ..Command::new("logs", "Print the log of a clip or of the hub")
};

pub static DATA: Command = Command {
    usage: &[
        "ALIAS list [PATH]",
        "ALIAS read PATH",
        "ALIAS write PATH [flags] < CONTENT",
        "ALIAS stat|delete PATH",
    ],
    arguments: &[
        ALIAS,
        Argument::one(
            "OPERATION",
            Kind::OneOf(&["list", "read", "write", "stat", "delete"]),
        ),
        Argument::optional("PATH", Kind::Text),
    ],
    flags: &[
        &Section {
            title: "Content of write",
            flags: &[
                Flag::valued("--content", "TEXT", "write this text"),
                Flag::valued("--file", "FILE", "write the content of this file").of(Kind::File),
                Flag::valued(
                    "--encoding",
                    "NAME",
                    "the encoding of the content: utf-8, or base64",
                )
                .of(Kind::OneOf(&["utf-8", "base64"])),
                Flag::valued("--mime", "TYPE", "the type of the content"),
            ],
        },
        &CALLER,
    ],
    notes: "The clip is not started. `read` prints the bytes; `write` reads stdin unless a flag names the content.",
    examples: &[
        "pinion clip data todo list",
        "pinion clip data todo read todo.json | jq .",
        "pinion clip data todo write notes/a.txt --content hello",
    ],
    ..Command::new("data", "List, read, write and delete the files of a clip")
};

pub static BIND: Command = Command {
    usage: &[
        "ALIAS SLOT [TARGET] [--clip-token SECRET]",
        "ALIAS SLOT TARGET --hub URL [--hub-token TOKEN]",
        "ALIAS [SLOT] --list",
    ],
    arguments: &[
        ALIAS,
        Argument::one("SLOT", Kind::Text),
        Argument::optional("TARGET", Kind::Clip),
    ],
    flags: &[
        &Section {
            title: "Target",
            flags: &[
                Flag::valued("--hub", "URL", "the hub of the target"),
                Flag::valued("--hub-token", "TOKEN", "the token for that hub"),
                Flag::valued("--clip-token", "SECRET", "the secret of the target"),
                Flag::bare(
                    "--list",
                    "list the clips that fit: those of the package a slot wants, in a version it accepts",
                ),
            ],
        },
        &CALLER,
    ],
    notes: "Without TARGET the slot's own name is the alias. The clip restarts once it is idle.",
    examples: &[
        "pinion clip bind notes store db",
        "pinion clip bind notes mail post --hub https://hub.example.org",
    ],
    ..Command::new("bind", "Choose the clip that fills a slot of another")
};

pub static UNBIND: Command = Command {
    arguments: &[ALIAS, Argument::one("SLOT", Kind::Text)],
    flags: &[&CALLER],
    examples: &["pinion clip unbind notes store"],
    ..Command::new("unbind", "Empty a slot of a clip")
};

pub static BINDINGS: Command = Command {
    arguments: &[ALIAS],
    flags: &[&CALLER],
    examples: &["pinion clip bindings notes"],
    ..Command::new("bindings", "List the clips that fill the slots of another")
};

pub static NEW: Command = Command {
    arguments: &[Argument::one("NAME", Kind::Text)],
    flags: &[&Section {
        title: "Flags",
        flags: &[
            Flag::valued(
                "--lang",
                "LANGUAGE",
                "ts (needs bun), python, bash (needs jq) or rust (needs cargo)",
            )
            .or(&["-l"])
            .of(Kind::OneOf(&["ts", "python", "bash", "rust"])),
            Flag::valued(
                "--path",
                "DIR",
                "the directory, if not ./NAME; it must be empty or absent",
            )
            .of(Kind::Directory),
            JSON,
        ],
    }],
    examples: &[
        "pinion clip new hello --lang python",
        "pinion clip add ./hello && pinion invoke hello count --to 3",
    ],
    ..Command::new("new", "Write a first clip into a directory of its name")
};

pub static INVOKE: Command = Command {
    usage: &[
        "[flags] ALIAS COMMAND [--key value…] [word…]",
        "[flags] ALIAS COMMAND '{\"key\":\"value\"}'",
        "[flags] ALIAS COMMAND -",
    ],
    arguments: &[ALIAS],
    flags: &[
        &Section {
            title: "Answer",
            flags: &[
                Flag::bare(
                    "--stream",
                    "print parts of the answer as they come, one per line",
                ),
                Flag::valued(
                    "--jq",
                    "FILTER",
                    "print the outputs of a jq filter of the answer, or of each part of it, each on a line",
                ),
                Flag::valued("--clip-token", "SECRET", "the secret of a guarded clip"),
            ],
        },
        &CALLER,
    ],
    raw_after: Some(1),
    notes: "Flags stand before the alias; --stream, --json and --jq may also stand at the end. The words after the \
            command are\nits input:\n  \
            --key value, --key=value  a member; true, false, numbers, {…} and […] are JSON\n  \
            --key                     true, at the end or before another --key\n  \
            --key a --key b           a list\n  \
            word                      fills the members that the command needs, in their order\n  \
            '{…}' or '[…]' alone      the whole input\n  \
            -                         the whole input from standard input; text that is not JSON becomes the member stdin\n  \
            --                        after it, --json, --stream, --jq and --help are members too\n\n\
            A text is printed without quotes (with --json in quotes), everything else as JSON. The exit code is 1 if the \
            call or\nthe filter fails, and the message is on stderr. Ctrl-C cancels the call.",
    examples: &[
        "pinion invoke todo add --title \"Buy milk\" --tags home --tags shop",
        "pinion invoke todo list --jq '.[] | select(.done | not) | .title'",
        "pinion invoke --stream counter count --to 3",
        "cat page.html | pinion invoke reader summary -",
    ],
    ..Command::new("invoke", "Call a command of a clip and print its answer")
};

/// The command under the name `pinix`.
pub static MCP: Command = SERVE_MCP;

pub static MCP_SERVE: Command = Command {
    name: "serve",
    examples: &[
        "pinion mcp serve todo",
        "claude mcp add hub -- pinion mcp serve",
        "pinion mcp serve --http 127.0.0.1:9100",
    ],
    ..SERVE_MCP
};

const SERVE_MCP: Command = Command {
    usage: &["[--all] [flags]", "CLIP [flags]"],
    arguments: &[Argument::optional("CLIP", Kind::Clip)],
    flags: &[
        &Section {
            title: "Tools",
            flags: &[
                Flag::bare(
                    "--all",
                    "offer the tools list, info, invoke and invoke_stream, for all clips; the default",
                ),
                Flag::valued(
                    "--clip",
                    "CLIP",
                    "offer a tool for each command of this clip",
                )
                .of(Kind::Clip),
                Flag::valued(
                    "--tool-prefix",
                    "TEXT",
                    "begin every tool's name with this text",
                ),
                Flag::valued("--clip-token", "SECRET", "the secret of a guarded clip"),
            ],
        },
        &Section {
            title: "HTTP",
            flags: &[
                Flag::valued(
                    "--http",
                    "ADDRESS",
                    "serve at http://ADDRESS/mcp; callers send the same token that the hub receives",
                ),
                Flag::valued("--allow-host", "NAME", "another name of this machine").repeated(),
                Flag::valued("--allow-origin", "URL", "web pages that may call").repeated(),
            ],
        },
        &CALLER,
    ],
    examples: &[
        "pinion mcp todo",
        "claude mcp add hub -- pinion mcp",
        "pinion mcp --http 127.0.0.1:9100",
    ],
    ..Command::new(
        "mcp",
        "Serve the clips of a hub as tools of an MCP client, over stdio or HTTP",
    )
};
