//! The tables of the names `pinix` and `pinixd`.

use super::{CALLER, PID, ROOT, clip, hub};
use crate::table::{Argument, Command, Flag, Kind, Section};

static GLOBAL: Section = Section {
    title: "Flags, before the command",
    flags: &[
        Flag::valued("--server", "URL", "the hub"),
        Flag::valued("--auth-token", "TOKEN", "your token"),
        Flag::valued(
            "--clip-token",
            "SECRET",
            "the secret of a guarded clip, for a call",
        ),
    ],
};

pub static PINIX: Command = Command {
    usage: &["[flags] COMMAND …", "[flags] CLIP COMMAND [--key value…]"],
    flags: &[&GLOBAL],
    commands: &[
        &START,
        &hub::STOP,
        &hub::STATUS,
        &HUB,
        &clip::LIST,
        &INFO,
        &clip::ADD,
        &clip::REMOVE,
        &clip::UPDATE,
        &clip::BIND,
        &clip::UNBIND,
        &clip::BINDINGS,
        &LOGS,
        &clip::MCP,
        &clip::INVOKE,
        &clip::DATA,
        &SCHEDULE,
        &CHAT,
        &REGISTRY,
        &SEARCH,
        &PUBLISH,
        &REGISTER,
        &TAGS,
        &LOGIN,
        &WHOAMI,
        &LOGOUT,
        &CONFIG,
    ],
    notes: "The same commands of pinion: pinion hub, pinion clip, pinion invoke, pinion mcp.",
    examples: &[
        "pinix start",
        "pinix hub add ./todo",
        "pinix todo add --title \"Buy milk\"",
        "pinix todo list --jq '.[].title'",
    ],
    ..Command::new(
        "pinix",
        "Run the hub, manage its clips and call them, by the words of Pinix",
    )
};

/// The daemon: `pinix start --foreground`.
pub static PINIXD: Command = Command {
    flags: &[&STARTING],
    notes: START_NOTES,
    examples: &["pinixd --hub-only", "pinixd --port 9100"],
    ..Command::new("pinixd", "Run a hub in the foreground")
};

const START_NOTES: &str = "The hub listens on 127.0.0.1, and every call needs a token. `pinion hub serve --help` explains more.";

static STARTING: Section = Section {
    title: "Flags",
    flags: &[
        Flag::bare("--foreground", "stay in the foreground"),
        Flag::bare("--no-browser", "accepted for compatibility"),
        Flag::valued(
            "--port",
            "PORT",
            "9000; 0 selects a free one; with --hub only a part of the name there",
        ),
        Flag::valued(
            "--hub",
            "URL",
            "offer the clips here to that hub instead of running one",
        ),
        Flag::valued("--hub-token", "TOKEN", "with --hub: the token for that hub"),
        Flag::bare("--hub-only", "run no clips, only route calls"),
        Flag::valued("--super-token", "TOKEN", "one more token with all rights"),
        Flag::valued(
            "--jwt-issuer",
            "URL",
            "also accept JWTs that this issuer signed",
        ),
        Flag::valued(
            "--jwt-audience",
            "NAME",
            "accept only JWTs for this audience",
        ),
        Flag::bare(
            "--jwt-manage",
            "let their bearers install, remove and bind their own clips",
        ),
        Flag::valued(
            "--config",
            "FILE",
            "a config.json; its directory is that of the hub",
        )
        .of(Kind::File),
        ROOT,
        PID,
        hub::BUN,
        Flag::valued("--bind", "ADDRESS", "127.0.0.1"),
        Flag::valued("--auth", "MODE", "token, manage or none")
            .of(Kind::OneOf(&["token", "manage", "none"])),
        hub::LOG_LEVEL,
    ],
};

pub static START: Command = Command {
    flags: &[&STARTING],
    notes: START_NOTES,
    examples: &["pinix start --port 9100", "pinixd --hub-only"],
    ..Command::new("start", "Start a hub in the background")
};

pub static HUB: Command = Command {
    commands: &[
        &clip::LIST,
        &INFO,
        &clip::ADD,
        &clip::REMOVE,
        &clip::UPDATE,
        &clip::BIND,
        &clip::UNBIND,
        &clip::BINDINGS,
        &LOGS,
        &clip::MCP,
        &HUB_LOGIN,
        &HUB_WHOAMI,
        &HUB_LOGOUT,
    ],
    examples: &["pinix hub add ./todo", "pinix hub list"],
    ..Command::new("hub", "Manage the clips of the hub")
};

pub static INFO: Command = Command {
    arguments: &[Argument::one("CLIP", Kind::Clip)],
    flags: &[&CALLER],
    examples: &["pinix hub info todo"],
    ..Command::new("info", "Show the commands of a clip and their inputs")
};

pub static LOGS: Command = Command {
    examples: &["pinix hub logs", "pinix hub logs todo -f"],
    ..clip::LOGS_TABLE
};

pub static SCHEDULE: Command = Command {
    usage: &[
        "add ID CLIP COMMAND --cron '*/5 * * * *' [--input JSON] [--desc TEXT]",
        "list",
        "remove|pause|resume|run|history ID",
    ],
    arguments: &[Argument::one(
        "COMMAND",
        Kind::OneOf(&["list", "add", "remove", "pause", "resume", "run", "history"]),
    )],
    raw_after: Some(0),
    examples: &["pinix schedule list"],
    ..Command::new("schedule", "Schedule calls of clips")
};

pub static CHAT: Command = Command {
    flags: &[
        &Section {
            title: "Conversation",
            flags: &[
                Flag::valued(
                    "--agent-id",
                    "ID",
                    "the agent, if not the first; `pinix agent agent list` lists them",
                ),
                Flag::valued(
                    "--topic-id",
                    "ID",
                    "continue a conversation; `pinix agent topic list` lists them",
                ),
            ],
        },
        &CALLER,
    ],
    notes: "Each line is a message; the answer is printed as it comes. Ctrl-C stops an answer, Ctrl-D ends the chat. With \
            piped\ninput, the exit code is 1 if any answer failed.",
    examples: &["pinix chat", "echo \"What is on my list?\" | pinix chat"],
    ..Command::new("chat", "Talk to the hub's agent")
};

static REGISTRY_FLAGS: Section = Section {
    title: "Registry",
    flags: &[
        Flag::valued(
            "--registry",
            "URL",
            "the registry: PINIX_REGISTRY, else the one in client.json",
        ),
        ROOT,
    ],
};

pub static REGISTRY: Command = Command {
    commands: &[
        &SEARCH,
        &PUBLISH,
        &TAGS,
        &REGISTER,
        &REGISTRY_LOGIN,
        &REGISTRY_WHOAMI,
        &REGISTRY_LOGOUT,
    ],
    examples: &["pinix registry search todo"],
    ..Command::new(
        "registry",
        "Search and publish packages, and use an account at a registry",
    )
};

pub static SEARCH: Command = Command {
    arguments: &[Argument::any("WORDS", Kind::Text)],
    flags: &[
        &Section {
            title: "Search",
            flags: &[
                Flag::valued("--domain", "NAME", "only packages of this domain"),
                Flag::valued("--type", "TYPE", "clip or edge-clip")
                    .of(Kind::OneOf(&["clip", "edge-clip"])),
                Flag::valued("--limit", "COUNT", "the largest number of packages"),
            ],
        },
        &REGISTRY_FLAGS,
    ],
    examples: &["pinix registry search todo"],
    ..Command::new("search", "Search packages in a registry")
};

pub static PUBLISH: Command = Command {
    arguments: &[Argument::optional("PATH", Kind::Directory)],
    flags: &[
        &Section {
            title: "Package",
            flags: &[Flag::valued("--tag", "NAME", "the tag of the version")],
        },
        &REGISTRY_FLAGS,
    ],
    notes: "The clip runs once, to describe its commands.",
    examples: &["pinix registry publish ./todo --registry /srv/registry"],
    ..Command::new("publish", "Publish the clip in a directory to a registry")
};

pub static TAGS: Command = Command {
    usage: &["list PACKAGE [flags]", "add PACKAGE@VERSION TAG [flags]"],
    arguments: &[
        Argument::one("OPERATION", Kind::OneOf(&["list", "add"])),
        Argument::one("PACKAGE", Kind::Text),
        Argument::optional("TAG", Kind::Text),
    ],
    flags: &[&REGISTRY_FLAGS],
    examples: &["pinix registry dist-tag add @me/todo@1.3.0 beta"],
    ..Command::new("dist-tag", "List and set the tags of a package")
};

static ONLY_ROOT: Section = Section {
    title: "Flags",
    flags: &[ROOT],
};

pub static LOGIN: Command = Command {
    flags: &[
        &Section {
            title: "Account",
            flags: &[
                Flag::valued(
                    "--token",
                    "TOKEN",
                    "a token that you have; calls then go to the hub of --server",
                ),
                Flag::valued(
                    "--server",
                    "URL",
                    "the service, else PINIX_AUTH_SERVER; a hub is one for its own tokens",
                ),
            ],
        },
        &ONLY_ROOT,
    ],
    notes: "Without --token, you confirm the login in a browser. A runtime that has joined a hub uses the new token after a\n\
            restart.",
    examples: &[
        "pinix login --server https://accounts.example",
        "pinix login --server http://127.0.0.1:9000 --token pnx_…",
    ],
    ..Command::new(
        "login",
        "Log in to the service that issues tokens for your hub",
    )
};

pub static LOGOUT: Command = Command {
    flags: &[&ONLY_ROOT],
    examples: &["pinix logout"],
    ..Command::new("logout", "Delete the token of the login")
};

pub static WHOAMI: Command = Command {
    flags: &[&ONLY_ROOT],
    notes: "The exit code is 1 without a login.",
    examples: &["pinix whoami"],
    ..Command::new("whoami", "Print the @name of the login")
};

static ACCOUNT: Section = Section {
    title: "Account",
    flags: &[
        Flag::valued(
            "--registry",
            "URL",
            "the registry: PINIX_REGISTRY, else the one in client.json",
        ),
        Flag::valued("--username", "NAME", "the name of the account"),
        Flag::valued("--email", "ADDRESS", "the address of a new account"),
        Flag::valued(
            "--password",
            "WORD",
            "the password; without it, pinix asks or reads standard input",
        ),
    ],
};

const ACCOUNT_SECTIONS: &[&Section] = &[&ACCOUNT, &ONLY_ROOT];

const fn account(
    name: &'static str,
    about: &'static str,
    examples: &'static [&'static str],
) -> Command {
    Command {
        flags: ACCOUNT_SECTIONS,
        examples,
        ..Command::new(name, about)
    }
}

pub static HUB_LOGIN: Command = account(
    "login",
    "Log in to the hub with an account at a registry",
    &["pinix hub login --username me < password.txt"],
);
pub static HUB_LOGOUT: Command = account(
    "logout",
    "Delete the token of the login",
    &["pinix hub logout"],
);
pub static HUB_WHOAMI: Command = account(
    "whoami",
    "Print the @name of the login",
    &["pinix hub whoami"],
);
pub static REGISTER: Command = account(
    "register",
    "Create an account at a registry",
    &["pinix registry register --username me --email me@example.org"],
);
pub static REGISTRY_LOGIN: Command = account(
    "login",
    "Log in to a registry",
    &[
        "pinix registry login --registry https://registry.example --username me",
        "pinix registry login --username me < password.txt",
    ],
);
pub static REGISTRY_LOGOUT: Command = account(
    "logout",
    "Delete the token of the registry",
    &["pinix registry logout"],
);
pub static REGISTRY_WHOAMI: Command = account(
    "whoami",
    "Print the name of the account at a registry",
    &["pinix registry whoami"],
);

pub static CONFIG: Command = Command {
    usage: &[
        "get registry|hub|hub-token",
        "set registry|hub|hub-token VALUE",
    ],
    arguments: &[
        Argument::one("OPERATION", Kind::OneOf(&["get", "set"])),
        Argument::one("KEY", Kind::OneOf(&["registry", "hub", "hub-token"])),
        Argument::optional("VALUE", Kind::Text),
    ],
    flags: &[&ONLY_ROOT],
    notes: "An empty value deletes the setting.",
    examples: &[
        "pinix config set hub http://127.0.0.1:9000",
        "pinix config get registry",
    ],
    ..Command::new(
        "config",
        "Read and set the registry and the hub in client.json",
    )
};
