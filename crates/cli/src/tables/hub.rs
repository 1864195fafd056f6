//! The tables of `pinion hub`.

use super::{CALLER, JSON, LEVELS, PID, ROOT, THINKING};
use crate::table::{Argument, Command, Flag, Kind, Section};

pub static HUB: Command = Command {
    commands: &[
        &SERVE, &STATUS, &STOP, &INFO, &JOIN, &TOKEN, &LOGIN, &LOGOUT, &WHOAMI,
    ],
    otherwise: Some(&SERVE),
    notes: "The hub's files are in ~/.pinion/hub; --root or PINION_HUB_DIR name another directory.\n\
            `pinion clip` manages clips, `pinion invoke` calls them.",
    examples: &[
        "pinion hub serve",
        "pinion hub serve --port 0 --root ./hub",
        "pinion hub status",
    ],
    ..Command::new(
        "hub",
        "Run a hub, in which clips, providers and their callers meet",
    )
};

pub(crate) const BUN: Flag = Flag::valued(
    "--bun",
    "FILE",
    "the bun that runs TypeScript clips, if it is not on the path",
)
.of(Kind::File);

pub(crate) const LOG_LEVEL: Flag = Flag::valued(
    "--log-level",
    "LEVEL",
    "the lowest level that is written to stderr: debug, info, warn or error",
)
.of(LEVELS);

static ADDRESS: Section = Section {
    title: "Address and files",
    flags: &[
        Flag::valued("--port", "PORT", "9000; 0 selects a free one"),
        Flag::valued(
            "--bind",
            "ADDRESS",
            "127.0.0.1; others need TLS or --insecure-bind",
        ),
        Flag::bare("--insecure-bind", "listen on other addresses without TLS"),
        Flag::valued(
            "--tls-cert",
            "FILE",
            "serve TLS with this certificate, in PEM",
        )
        .of(Kind::File),
        Flag::valued("--tls-key", "FILE", "the key of the certificate, in PEM").of(Kind::File),
        ROOT,
        PID,
    ],
};

static CALLERS: Section = Section {
    title: "Callers",
    flags: &[
        Flag::valued(
            "--auth",
            "MODE",
            "token: every call needs a token (the default); manage: without one, callers may list and call, but change \
             nothing; none: every process on this machine may do everything, on loopback only",
        )
        .of(Kind::OneOf(&["token", "manage", "none"])),
        Flag::valued(
            "--super-token",
            "TOKEN",
            "one more token with all rights, of 16 characters at least; other users of the machine see it: prefer \
             --super-token-file or PINION_SUPER_TOKEN",
        ),
        Flag::valued("--super-token-file", "FILE", "a file with that token").of(Kind::File),
        Flag::valued(
            "--jwt-issuer",
            "URL",
            "also accept JWTs that this issuer signed, as hub tokens of the user they name",
        ),
        Flag::valued("--jwt-audience", "NAME", "accept only JWTs for this audience"),
        Flag::bare("--jwt-manage", "let their bearers install, remove and bind their own clips"),
        Flag::valued(
            "--origin",
            "URL",
            "foreign web pages that may call; * permits all of them, without cookies",
        )
        .repeated(),
        Flag::bare(
            "--trust-provider-pages",
            "let web pages of remote providers act for the user who opens them",
        ),
    ],
};

static WORK: Section = Section {
    title: "Work",
    flags: &[
        Flag::bare("--hub-only", "run no clips, only route calls"),
        Flag::valued(
            "--call-timeout",
            "TIME",
            "the longest time for a single answer: 5m; 0 for no limit",
        ),
        Flag::valued(
            "--silence",
            "TIME",
            "the longest time without data on a stream: 5m; 0 for no limit",
        ),
        Flag::valued(
            "--join",
            "URL",
            "also offer the clips installed here to another hub",
        ),
        Flag::bare("--offer-all", "with --join: offer all clips of this hub"),
        Flag::valued(
            "--import-pinix",
            "DIR",
            "import the clips, data and super token of a Pinix directory, which does not change",
        )
        .of(Kind::Directory),
        BUN,
        Flag::valued("--model", "MODEL", "the model of agents that name none").of(Kind::Model),
        Flag::valued(
            "--provider",
            "NAME",
            "the provider of agents that name none",
        ),
        Flag::valued(
            "--thinking",
            "LEVEL",
            "the thinking level of agents that name none",
        )
        .of(THINKING),
        Flag::valued(
            "--agent-dir",
            "DIR",
            "the directory in which tools of the agent work: the one in which the hub was started",
        )
        .of(Kind::Directory),
        Flag::bare("--no-agent", "run without the clip agent"),
        Flag::bare("--no-scheduler", "run without the clip scheduler"),
        LOG_LEVEL,
    ],
};

static JOINING: Section = Section {
    title: "Joining another hub",
    flags: &[
        Flag::valued(
            "--hub-token",
            "TOKEN",
            "the token for that hub: PINIX_HUB_TOKEN, else the one in client.json",
        ),
        Flag::valued(
            "--name",
            "NAME",
            "the name of this machine there; else pinixd-HOST-PORT",
        ),
        Flag::bare(
            "--accept-installs",
            "let callers who may manage that hub install and remove clips here",
        ),
    ],
};

pub(crate) static CLUSTER_ACCESS: Section = Section {
    title: "Cluster",
    flags: &[
        Flag::valued(
            "--cluster",
            "URLS",
            "the NATS servers of the cluster, separated by commas: nats://127.0.0.1:4222; also PINION_CLUSTER",
        ),
        Flag::valued(
            "--cluster-name",
            "NAME",
            "the name of the cluster on these servers: pinion",
        ),
        Flag::valued(
            "--cluster-creds",
            "FILE",
            "the credentials for the servers: a .creds file, the seed of an nkey, or a line user:password; also \
             PINION_CLUSTER_CREDS",
        )
        .of(Kind::File),
        Flag::valued(
            "--cluster-ca",
            "FILE",
            "trust servers whose certificates those in this file have signed, in PEM",
        )
        .of(Kind::File),
        Flag::valued(
            "--cluster-cert",
            "FILE",
            "the certificate to show to the servers, in PEM",
        )
        .of(Kind::File),
        Flag::valued("--cluster-key", "FILE", "the key of that certificate, in PEM").of(Kind::File),
        Flag::valued(
            "--cluster-replicas",
            "N",
            "the number of servers that store each change: 1, 3 or 5; else as many as there are, at most 3",
        ),
        Flag::bare(
            "--insecure-cluster",
            "speak with servers of other machines without TLS",
        ),
    ],
};

pub static SERVE: Command = Command {
    flags: &[&ADDRESS, &CALLERS, &WORK, &JOINING, &CLUSTER_ACCESS],
    requirements: &[
        ("--jwt-audience", "--jwt-issuer"),
        ("--jwt-manage", "--jwt-issuer"),
        ("--hub-token", "--join"),
        ("--name", "--join"),
        ("--accept-installs", "--join"),
        ("--offer-all", "--join"),
    ],
    notes: "The one line on stdout is \"Listening on URL\". SIGHUP reads the tokens again. Nothing that the hub started \
            outlives it.",
    examples: &[
        "pinion hub serve",
        "pinion hub serve --port 0 --root ./hub --log-level warn",
        "pinion hub serve --bind 0.0.0.0 --tls-cert hub.pem --tls-key hub.key",
        "pinion hub serve --jwt-issuer https://login.example --jwt-audience hub",
        "pinion hub serve --join http://192.168.1.5:9000",
        "pinion hub serve --port 0 --cluster nats://127.0.0.1:4222",
    ],
    ..Command::new(
        "serve",
        "Run a hub in the foreground until SIGTERM or SIGINT",
    )
};

static SEAT: Section = Section {
    title: "Flags",
    flags: &[ROOT, PID, JSON],
};

pub static STATUS: Command = Command {
    flags: &[&SEAT],
    notes: "The exit code is 1 if no hub runs.",
    examples: &[
        "pinion hub status",
        "pinion hub status --json | jq -r .hubURL",
    ],
    ..Command::new("status", "Report if a hub runs, and its address")
};

pub static STOP: Command = Command {
    flags: &[&SEAT],
    notes: "The hub accepts no more calls, ends its clips and exits. After 15 s it is killed.",
    examples: &["pinion hub stop"],
    ..Command::new("stop", "End the hub")
};

pub static INFO: Command = Command {
    flags: &[&CALLER],
    notes: "It needs no token.",
    examples: &[
        "pinion hub info",
        "pinion hub info --server https://hub.example.org",
    ],
    ..Command::new("info", "Print how a hub describes itself")
};

pub static JOIN: Command = Command {
    arguments: &[Argument::one("URL", Kind::Text)],
    flags: &[
        &JOINING,
        &Section {
            title: "Flags",
            flags: &[
                ROOT,
                Flag::valued(
                    "--port",
                    "PORT",
                    "the number in that name; else one made from the directory. Nothing listens on it",
                ),
                PID,
                BUN,
                LOG_LEVEL,
            ],
        },
    ],
    notes: "It runs until SIGTERM or SIGINT, and joins again after a lost connection. `pinion hub serve --join URL` is a \
            hub\nthat does the same.",
    examples: &[
        "pinion hub join https://hub.example.org --hub-token pnx_…",
        "pinion hub serve --join http://192.168.1.5:9000",
    ],
    ..Command::new("join", "Offer the clips installed here to another hub")
};

pub static TOKEN: Command = Command {
    commands: &[&TOKEN_CREATE, &TOKEN_LIST, &TOKEN_REVOKE],
    notes: "The commands work on the files of the hub in ~/.pinion/hub or --root, also while no hub runs. With --server \
            URL,\nPINIX_URL or after `pinion hub login` they ask that hub, which requires a super token.",
    examples: &[
        "pinion hub token create --scope @ann --expires 30d --label \"Ann's laptop\"",
        "pinion hub token revoke k3v9q2mz",
    ],
    ..Command::new("token", "Create, list and revoke the tokens of callers")
};

pub static TOKEN_CREATE: Command = Command {
    flags: &[
        &Section {
            title: "Token",
            flags: &[
                Flag::valued(
                    "--kind",
                    "KIND",
                    "hub: for a user (the default); clip: for a program that is a clip; super: for everything; metrics: to read \
                     /metrics only",
                )
                .of(Kind::OneOf(&["hub", "clip", "super", "metrics"])),
                Flag::valued("--scope", "@NAME", "the user"),
                Flag::valued("--alias", "ALIAS", "the clip").of(Kind::Clip),
                Flag::bare("--manage", "let the user also install, remove and bind"),
                Flag::valued("--expires", "TIME", "the lifetime: 12h, 30d, 2w or never; 90d without the flag"),
                Flag::valued("--ttl", "TIME", "the same as --expires"),
                Flag::valued("--label", "TEXT", "a note that lists show"),
            ],
        },
        &CALLER,
    ],
    notes: "The token is shown once; only its hash is stored.",
    examples: &[
        "pinion hub token create --scope @ann --manage --expires 30d",
        "pinion hub token create --kind clip --alias todo",
        "pinion hub token create --kind metrics --expires never --label prometheus",
        "PINIX_TOKEN=$(pinion hub token create --scope @ci | jq -r .token)",
    ],
    ..Command::new("create", "Create a token")
};

pub static TOKEN_LIST: Command = Command {
    flags: &[&CALLER],
    examples: &[
        "pinion hub token list",
        "pinion hub token list --json | jq -r '.[].id'",
    ],
    ..Command::new(
        "list",
        "List tokens by id, owner and expiry, without the tokens themselves",
    )
};

pub static TOKEN_REVOKE: Command = Command {
    arguments: &[Argument::one("ID", Kind::Text)],
    flags: &[&CALLER],
    notes: "A running hub refuses the token within a second, and ends its calls within five.",
    examples: &["pinion hub token revoke k3v9q2mz"],
    ..Command::new("revoke", "Revoke a token")
};

static ONLY_ROOT: Section = Section {
    title: "Flags",
    flags: &[ROOT],
};

pub static LOGIN: Command = Command {
    flags: &[&Section {
        title: "Flags",
        flags: &[
            Flag::valued(
                "--server",
                "URL",
                "the hub, else PINIX_URL, else the hub of the last login",
            ),
            Flag::valued(
                "--token",
                "TOKEN",
                "the token that the owner of the hub created for you with `pinion hub token create`. Without the flag, \
                 pinion asks for it or reads it from standard input; other users see command lines",
            ),
            ROOT,
        ],
    }],
    notes: "Later commands call that hub with that token. The hub checks the token first. It is sent over https only, or \
            to\nthis machine.",
    examples: &[
        "pinion hub login --server https://hub.example.org",
        "pinion hub login --server https://hub.example.org < token.txt",
    ],
    ..Command::new(
        "login",
        "Store the address of a hub and your token for it in client.json",
    )
};

pub static LOGOUT: Command = Command {
    flags: &[&ONLY_ROOT],
    examples: &["pinion hub logout"],
    ..Command::new("logout", "Delete the token of the login")
};

pub static WHOAMI: Command = Command {
    flags: &[&ONLY_ROOT],
    notes: "The exit code is 1 without a login.",
    examples: &["pinion hub whoami"],
    ..Command::new("whoami", "Print the @name of the login")
};
