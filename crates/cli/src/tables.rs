//! The tables of all commands, by the name of the program.

pub mod acp;
pub mod auth;
pub mod clip;
pub mod cluster;
pub mod commands;
pub mod databases;
pub mod fleet;
pub mod hub;
pub mod mcp;
pub mod packages;
pub mod pinix;
pub mod prompts;
pub mod root;
pub mod run_command;
pub mod sandbox;

use crate::table::{Command, Flag, Kind, Section};

/// The command lines of all programs, one for each name of the binary.
pub static PROGRAMS: [&Command; 5] = [
    &root::PINION,
    &root::PI,
    &root::PINOCCHIO,
    &pinix::PINIX,
    &pinix::PINIXD,
];

/// Returns the command line of the program with this name.
pub fn program(name: &str) -> Option<&'static Command> {
    PROGRAMS.into_iter().find(|program| program.name == name)
}

/// `--setup` of commands that an editor may start for the set-up.
pub(crate) const SETUP: Flag = Flag::bare(
    "--setup",
    "ask for a provider and its key in a terminal, save the key and exit",
);

/// `--json` of commands that print JSON only on request.
pub(crate) const JSON: Flag = Flag::bare("--json", "print JSON");

/// The diagnostic log: flags of `pinion` and of every command below it.
pub static LOG: Section = Section {
    title: "Log",
    flags: &[
        Flag::valued(
            "--log",
            "FILTER",
            "error, warn, info, debug or trace, also per crate: pinion_agent=debug,warn",
        )
        .of(Kind::OneOf(&["error", "warn", "info", "debug", "trace"])),
        Flag::valued("--log-format", "FORMAT", "text or json").of(Kind::OneOf(&["text", "json"])),
        Flag::valued(
            "--log-file",
            "FILE",
            "append the log to this file instead of printing it on stderr",
        )
        .of(Kind::File),
    ],
};

/// Returns the flags that every command of a program accepts besides its own. The other names of the binary have the
/// command lines of other programs, so they have none.
pub(crate) fn common(program: &str) -> &'static [Flag] {
    if program == root::PINION.name {
        LOG.flags
    } else {
        &[]
    }
}

/// The levels of a log.
pub(crate) const LEVELS: Kind = Kind::OneOf(&["debug", "info", "warn", "error"]);

/// The levels of thinking of a model.
pub(crate) const THINKING: Kind =
    Kind::OneOf(&["off", "minimal", "low", "medium", "high", "xhigh", "max"]);

/// The flags of every command that calls a hub.
pub(crate) static CALLER: Section = Section {
    title: "The hub",
    flags: &[
        Flag::valued(
            "--server",
            "URL",
            "the hub: PINIX_URL, else the one in client.json, else the one that runs here, else http://127.0.0.1:9000",
        ),
        Flag::valued(
            "--auth-token",
            "TOKEN",
            "your token: PINIX_TOKEN, else the one in client.json, else that of the hub that runs here",
        ),
        Flag::valued(
            "--root",
            "DIR",
            "the directory of the hub's files: ~/.pinion/hub, or PINION_HUB_DIR",
        )
        .of(Kind::Directory),
        Flag::valued(
            "--timeout",
            "TIME",
            "the longest wait for an answer: 30s, 5m",
        ),
        Flag::valued(
            "--ca",
            "FILE",
            "for a hub with TLS: trust only certificates that those in this file have signed",
        )
        .of(Kind::File),
        Flag::bare(
            "--json",
            "print JSON; it is JSON anyway when the output is not a terminal",
        ),
    ],
};

/// `--root` of commands that only read or write the files of the hub.
pub(crate) const ROOT: Flag = Flag::valued(
    "--root",
    "DIR",
    "the directory of the hub's files: ~/.pinion/hub, or PINION_HUB_DIR",
)
.of(Kind::Directory);

/// `--pid` of commands that start, stop or look for a hub.
pub(crate) const PID: Flag = Flag::valued(
    "--pid",
    "FILE",
    "the file with the process id: pinixd.pid in that directory",
)
.of(Kind::File);
