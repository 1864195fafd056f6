//! The tables of the commands that print an answer and exit.

use super::JSON;
use crate::complete::Shell;
use crate::table::{Argument, Command, Flag, Kind, Section};

static TRUSTING: Section = Section {
    title: "Trust",
    flags: &[
        Flag::bare("--trust", "trust this project for this run"),
        Flag::bare("--no-trust", "distrust this project for this run"),
    ],
};

pub static SESSIONS: Command = Command {
    commands: &[&SESSIONS_LIST, &SESSIONS_SHOW, &SESSIONS_EXPORT],
    examples: &[
        "pinion sessions list",
        "pinion sessions show 73984c08",
        "pinion sessions export 73984c08 talk.html",
    ],
    ..Command::new("sessions", "List, print and export stored sessions")
};

pub static SESSIONS_LIST: Command = Command {
    flags: &[&Section {
        title: "Flags",
        flags: &[Flag::bare("--all", "the sessions of all directories"), JSON],
    }],
    examples: &["pinion sessions list --all"],
    ..Command::new("list", "List the sessions of this directory")
};

pub static SESSIONS_SHOW: Command = Command {
    arguments: &[Argument::one("PATH|ID", Kind::Session)],
    examples: &["pinion sessions show 73984c08"],
    ..Command::new("show", "Print the conversation as text")
};

pub static SESSIONS_EXPORT: Command = Command {
    arguments: &[
        Argument::one("PATH|ID", Kind::Session),
        Argument::optional("OUT.html", Kind::File),
    ],
    examples: &["pinion sessions export 73984c08 talk.html"],
    ..Command::new("export", "Write the conversation as one web page")
};

pub static MODELS: Command = Command {
    text: "The columns are provider, id, context, longest answer, thinking and images.",
    arguments: &[Argument::any("SEARCH", Kind::Text)],
    notes: "SEARCH selects the models whose provider, id or name contains every word.",
    examples: &["pinion models", "pinion models sonnet"],
    ..Command::new("models", "List the models you have keys for")
};

pub static EXTENSIONS: Command = Command {
    commands: &[&EXTENSIONS_LIST],
    examples: &["pinion extensions list"],
    ..Command::new(
        "extensions",
        "List the extensions that a run in this directory loads",
    )
};

pub static EXTENSIONS_LIST: Command = Command {
    text: "It shows their sources, what they register, the modules they import, the time they took, and why some cannot be\n\
           loaded. They are loaded for it, without a session.",
    flags: &[
        &Section {
            title: "Flags",
            flags: &[
                Flag::bare("--json", "print one line of JSON per extension"),
                Flag::bare("--no-load", "only look for them; run nothing"),
                Flag::valued("--extension", "SOURCE", "load this one too")
                    .or(&["-e"])
                    .of(Kind::File)
                    .repeated(),
                Flag::bare("--no-extensions", "load only those that -e names").or(&["-ne"]),
            ],
        },
        &TRUSTING,
    ],
    conflicts: &[&["--trust", "--no-trust"]],
    notes: "They are found in this order; a file that is found twice is loaded once.\n  \
            1. the sources of -e\n  \
            2. \"extensions\" in .pi/settings.json, then .pi/extensions/, if the project is trusted\n  \
            3. \"extensions\" in the agent directory's settings.json, then its extensions/\n  \
            4. packages: the project's, then yours\n\
            Exit codes: 0, or 1 if one of them cannot be loaded.",
    examples: &[
        "pinion extensions list",
        "pinion extensions list --json -e ./new.ts",
        "pinion extensions list --no-load",
    ],
    ..Command::new(
        "list",
        "List the extensions that a run in this directory loads, in order",
    )
};

static PROFILE_FLAGS: Section = Section {
    title: "Flags",
    flags: &[
        Flag::valued("--profile", "NAME", "use this profile (PINOCCHIO_PROFILE)"),
        Flag::valued(
            "--profile-registries",
            "LIST",
            "yaml:PATH, sqlite:PATH or a path, separated by commas (PINOCCHIO_PROFILE_REGISTRIES)",
        ),
        Flag::valued(
            "--config-file",
            "PATH",
            "one more document, which overrides all others",
        )
        .of(Kind::File),
        Flag::bare(
            "--json",
            "print JSON also on a terminal; it is JSON anyway when piped",
        ),
    ],
};

pub static PROFILES: Command = Command {
    text: "Profiles name an engine and its settings for `run-command`. Configuration documents and registries hold them: YAML\n\
           files and SQLite databases.",
    commands: &[&PROFILES_LIST, &PROFILES_SHOW, &PROFILES_DEBUG],
    notes: "Documents, later ones override:\n  \
            /etc/pinocchio/config.yaml, ~/.pinocchio/config.yaml, ~/.config/pinocchio/config.yaml,\n  \
            .pinocchio.yml and .pinocchio.override.yml at the root of the repository, then in this directory (if it is\n  \
            trusted), --config-file.\n\n\
            Keys are never shown.",
    examples: &[
        "pinion profiles list",
        "pinion profiles show fast",
        "pinion profiles debug --profile fast | jq .engine",
        "PINOCCHIO_PROFILE_REGISTRIES=team.yaml pinion profiles list --json",
    ],
    ..Command::new(
        "profiles",
        "Show the engines and settings that profiles name",
    )
};

pub static PROFILES_LIST: Command = Command {
    flags: &[&PROFILE_FLAGS, &TRUSTING],
    conflicts: &[&["--trust", "--no-trust"]],
    examples: &["pinion profiles list"],
    ..Command::new(
        "list",
        "List the profiles; * marks the one in use, d a registry's default",
    )
};

pub static PROFILES_SHOW: Command = Command {
    arguments: &[Argument::optional("PROFILE", Kind::Text)],
    flags: &[&PROFILE_FLAGS, &TRUSTING],
    conflicts: &[&["--trust", "--no-trust"]],
    examples: &["pinion profiles show fast"],
    ..Command::new(
        "show",
        "Show what a profile and its stack set, and the settings of a run with it",
    )
};

pub static PROFILES_DEBUG: Command = Command {
    flags: &[&PROFILE_FLAGS, &TRUSTING],
    conflicts: &[&["--trust", "--no-trust"]],
    examples: &["pinion profiles debug --profile fast | jq .engine"],
    ..Command::new(
        "debug",
        "Show documents, registries, the profile, the model, and the origin of every setting",
    )
};

pub static TRUST: Command = Command {
    text: "Until you trust a project, pinion ignores its .pi/settings.json, its extensions, packages, prompt templates, skills,\n\
           SYSTEM.md, APPEND_SYSTEM.md and .pinocchio.yml, and reports each on stderr. Context files (AGENTS.md, CLAUDE.md)\n\
           are read in any case.",
    arguments: &[Argument::optional("DIRECTORY", Kind::Directory)],
    flags: &[&Section {
        title: "Flags",
        flags: &[Flag::bare("--revoke", "stop trusting it")],
    }],
    notes: "Without DIRECTORY it is the current one.",
    examples: &["pinion trust", "pinion trust --revoke ~/src/borrowed"],
    ..Command::new("trust", "Trust a project's settings and programs")
};

pub static SCHEMA: Command = Command {
    text: "The schema describes every line that the program writes and, under $defs/input, every line that a client writes. It\n\
           is made from the types that print and read the lines.",
    usage: &["pi [--dialect NAME] [--multi-session]", "fleet"],
    arguments: &[Argument::one("PROTOCOL", Kind::OneOf(&["pi", "fleet"]))],
    flags: &[&Section {
        title: "Flags",
        flags: &[
            Flag::valued(
                "--dialect",
                "NAME",
                "early, classic or modern; classic without the flag",
            )
            .of(Kind::OneOf(&["early", "classic", "modern"])),
            Flag::bare("--multi-session", "the additions of several sessions"),
        ],
    }],
    conflicts: &[&["--dialect", "--multi-session"]],
    notes: "`fleet` is the schema of report.json and events.jsonl of `pinion fleet`.",
    examples: &[
        "pinion schema pi --dialect modern > pi-modern.schema.json",
        "pinion schema pi | jq '.\"$defs\".command'",
    ],
    ..Command::new(
        "schema",
        "Print the JSON Schema (2020-12) of a protocol's lines",
    )
};

pub static DOCTOR: Command = Command {
    flags: &[&Section {
        title: "Flags",
        flags: &[
            Flag::bare(
                "--online",
                "also send one short request to each provider with a key",
            ),
            JSON,
        ],
    }],
    notes: "Exit codes: 0, or 1 if a problem was found. Nothing is changed; without --online nothing is sent.",
    examples: &[
        "pinion doctor",
        "pinion doctor --online --json | jq .problems",
    ],
    ..Command::new(
        "doctor",
        "Check directories, settings, models, keys, clips, the shell and the system",
    )
};

const NAMES: Kind = Kind::OneOf(&["pinion", "pi", "pinocchio", "pinix", "pinixd"]);

pub static COMPLETIONS: Command = Command {
    arguments: &[
        Argument::one("SHELL", Kind::OneOf(&Shell::NAMES)),
        Argument::optional("NAME", NAMES),
    ],
    notes: "SHELL is bash, zsh or fish. NAME is a name under which the binary is linked: pinion, pi, pinocchio, pinix or pinixd.",
    examples: &[
        "pinion completions bash > ~/.local/share/bash-completion/completions/pinion",
        "pinion completions fish pinix > ~/.config/fish/completions/pinix.fish",
    ],
    ..Command::new(
        "completions",
        "Print completions of commands, flags and values for a shell",
    )
};

pub static MAN: Command = Command {
    usage: &["[COMMAND…]"],
    arguments: &[Argument::any("COMMAND", Kind::Text)],
    notes: "A first word that is another name of the binary (pi, pinocchio, pinix, pinixd) selects its pages.",
    examples: &[
        "pinion man hub serve | man -l -",
        "pinion man > ~/.local/share/man/man1/pinion.1",
    ],
    ..Command::new("man", "Print the man page of a command")
};

pub static HELP: Command = Command {
    usage: &["[COMMAND…]"],
    arguments: &[Argument::any("COMMAND", Kind::Text)],
    examples: &["pinion help hub serve"],
    ..Command::new("help", "Print an overview, or the help of a command")
};
