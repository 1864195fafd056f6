//! The tables of `pinion turns` and `pinion timeline`.

use crate::table::{Command, Flag, Kind, Section};

const EXIT_CODES: &str = "Nothing is changed, and no file is created.\n\
    Exit codes: 0, 1 if it failed or damage was found, 2 for a wrong command line.";

const BACKENDS: Kind = Kind::OneOf(&["sqlite", "postgres", "memory", "disabled"]);

const SESSION: Flag = Flag::valued("--session", "S", "only this session").or(&["--session-id"]);
const PHASE: Flag = Flag::valued(
    "--phase",
    "P",
    "final (the default of show and export), failed, or another phase",
);
const LIMIT: Flag = Flag::valued("--limit", "N", "the largest number of rows: 200");
const JSON: Flag = Flag::bare("--json", "print one line of JSON each");
const AS_OF: Flag = Flag::valued("--as-of", "N", "the state after event N");

static EXPORT: Section = Section {
    title: "Output",
    flags: &[
        SESSION,
        Flag::valued(
            "--format",
            "F",
            "jsonl, markdown or html; else the ending of FILE decides, else jsonl",
        )
        .of(Kind::OneOf(&["jsonl", "markdown", "html"])),
        Flag::valued("--output", "FILE", "write to this file")
            .or(&["-o"])
            .of(Kind::File),
    ],
};

static TURNS_DATABASE: Section = Section {
    title: "Database",
    flags: &[
        Flag::valued("--turns-db", "FILE", "the database file").of(Kind::File),
        Flag::valued(
            "--turns-dsn",
            "DSN",
            "file:PATH, or postgres://USER@HOST/NAME",
        ),
        Flag::valued(
            "--turns-backend",
            "NAME",
            "the kind of database, if the DSN does not show it",
        )
        .of(BACKENDS),
    ],
};

static TIMELINE_DATABASE: Section = Section {
    title: "Database",
    flags: &[
        Flag::valued("--timeline-db", "FILE", "the database file").of(Kind::File),
        Flag::valued(
            "--timeline-dsn",
            "DSN",
            "file:PATH, or postgres://USER@HOST/NAME",
        ),
        Flag::valued(
            "--timeline-backend",
            "NAME",
            "the kind of database, if the DSN does not show it",
        )
        .of(BACKENDS),
    ],
};

pub static TURNS: Command = Command {
    text: "Turns are the messages of models and to models, as `run-command --turns-db` stores them.",
    commands: &[&TURNS_LIST, &TURNS_SHOW, &TURNS_EXPORT, &TURNS_CHECK],
    notes: EXIT_CODES,
    examples: &[
        "pinion turns list --turns-db ~/.pinocchio/turns.db",
        "pinion turns show --turns-db turns.db --session project-notes",
        "pinion turns export --turns-db turns.db --session project-notes -o talk.html",
    ],
    ..Command::new("turns", "Read the conversations in a turns database")
};

pub static TURNS_LIST: Command = Command {
    flags: &[
        &TURNS_DATABASE,
        &Section {
            title: "Rows",
            flags: &[SESSION, PHASE, LIMIT, JSON],
        },
    ],
    examples: &["pinion turns list --turns-db ~/.pinocchio/turns.db"],
    ..Command::new("list", "List the turns, the newest first")
};

pub static TURNS_SHOW: Command = Command {
    flags: &[
        &TURNS_DATABASE,
        &Section {
            title: "Turn",
            flags: &[SESSION, PHASE, JSON, Flag::bare("--yaml", "print YAML")],
        },
    ],
    conflicts: &[&["--json", "--yaml"]],
    examples: &["pinion turns show --turns-db turns.db --session project-notes"],
    ..Command::new("show", "Print the newest final turn")
};

pub static TURNS_EXPORT: Command = Command {
    flags: &[
        &TURNS_DATABASE,
        &EXPORT,
        &Section {
            title: "Turns",
            flags: &[
                PHASE,
                Flag::bare(
                    "--all",
                    "export every stored turn, not only the newest of each session",
                ),
            ],
        },
    ],
    examples: &[
        "pinion turns export --turns-db turns.db --session project-notes -o talk.html",
        "pinion turns export --turns-db turns.db | jq -r '.turn.blocks[] | select(.kind == \"user\") | .payload.text'",
    ],
    ..Command::new(
        "export",
        "Write turns as JSON lines, Markdown or a web page",
    )
};

pub static TURNS_CHECK: Command = Command {
    flags: &[&TURNS_DATABASE],
    examples: &["pinion turns check --turns-db turns.db"],
    ..Command::new("check", "Look for damage")
};

pub static TIMELINE: Command = Command {
    text: "A timeline holds numbered events, and the messages and tool calls they add up to, as `run-command --timeline-db`\n\
           stores them.",
    commands: &[
        &TIMELINE_LIST,
        &TIMELINE_SHOW,
        &TIMELINE_EXPORT,
        &TIMELINE_CHECK,
    ],
    notes: EXIT_CODES,
    examples: &[
        "pinion timeline list --timeline-db timeline.db",
        "pinion timeline show --timeline-db timeline.db --session project-notes --as-of 12",
        "pinion timeline export --timeline-db timeline.db --session project-notes -o talk.md",
    ],
    ..Command::new("timeline", "Read the conversations in a timeline database")
};

pub static TIMELINE_LIST: Command = Command {
    flags: &[
        &TIMELINE_DATABASE,
        &Section {
            title: "Rows",
            flags: &[SESSION, LIMIT, JSON],
        },
    ],
    examples: &["pinion timeline list --timeline-db timeline.db"],
    ..Command::new("list", "List the sessions, the last written first")
};

pub static TIMELINE_SHOW: Command = Command {
    flags: &[
        &TIMELINE_DATABASE,
        &Section {
            title: "Session",
            flags: &[
                SESSION,
                AS_OF,
                Flag::bare("--events", "print the events themselves"),
                JSON,
            ],
        },
    ],
    examples: &[
        "pinion timeline show --timeline-db timeline.db --session project-notes",
        "pinion timeline show --timeline-db timeline.db --session project-notes --as-of 12",
    ],
    ..Command::new("show", "Print a session")
};

pub static TIMELINE_EXPORT: Command = Command {
    flags: &[
        &TIMELINE_DATABASE,
        &EXPORT,
        &Section {
            title: "Session",
            flags: &[AS_OF],
        },
    ],
    notes: "--session is needed if there is more than one; export as jsonl writes events, then entities, of all.",
    examples: &[
        "pinion timeline export --timeline-db timeline.db --session project-notes -o talk.md",
        "pinion timeline export --timeline-db timeline.db | jq -c 'select(.type == \"event\") | .name'",
    ],
    ..Command::new(
        "export",
        "Write a session as JSON lines, Markdown or a web page",
    )
};

pub static TIMELINE_CHECK: Command = Command {
    flags: &[&TIMELINE_DATABASE],
    examples: &["pinion timeline check --timeline-db timeline.db"],
    ..Command::new("check", "Look for damage")
};
