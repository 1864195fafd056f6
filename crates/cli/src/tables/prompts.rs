//! The tables of the commands that run prompts: `run-command`, `commands` and `run`.
//!
//! A command file adds options of its own to those of `run-command`; `run-command FILE --help` prints them.

use super::{root, run_command, sandbox};
use crate::table::{Argument, Command, Flag, Kind, Section};

pub static RUN_COMMAND: Command = Command {
    usage: &[
        "FILE.yaml [options] [arguments]",
        "FILE.yaml --help        the options of this command",
        "FILE.yaml --long-help   every option",
    ],
    arguments: &[Argument::one("FILE.yaml", Kind::File)],
    raw_after: Some(1),
    flags: &run_command::SECTIONS,
    notes: "--output jsonl and --rpc print a JSON frame per line, from hello to done; --stdin-rpc reads requests: submit,\n\
            cancel, snapshot, shutdown. --model offline/demo is built in and needs no key.",
    examples: &[
        "pinion run-command greet.yaml --name Ada",
        "pinion run-command greet.yaml --rpc | jq -r 'select(.uiEvent.name==\"ChatTextSegmentFinished\").uiEvent.payload.content'",
        "printf '%s\\n' '{\"submit\":{\"prompt\":\"hello\"}}' | pinion run-command greet.yaml --stdin-rpc",
        "pinion run-command greet.yaml --rpc --turns-db turns.db --session-id notes --resume",
        "pinion run-command greet.yaml --chat --turns-db turns.db --timeline-db timeline.db --session-id notes",
    ],
    ..Command::new(
        "run-command",
        "Run a prompt in a YAML file: options and arguments fill its templates, and a model answers",
    )
};

pub static COMMANDS: Command = Command {
    text: "They are in ~/.pinocchio/prompts and in the directories under app.repositories of the configuration. A directory is\n\
           a word of the command: code/go.yaml is run as `code go`.",
    commands: &[&COMMANDS_LIST, &COMMANDS_RUN, &COMMANDS_HELP],
    examples: &["pinion commands list", "pinion commands run code go --help"],
    ..Command::new(
        "commands",
        "List, run and explain the prompts in your repositories",
    )
};

pub static COMMANDS_LIST: Command = Command {
    flags: &[&Section {
        title: "Flags",
        flags: &[super::JSON],
    }],
    examples: &["pinion commands list"],
    ..Command::new("list", "List the commands")
};

pub static COMMANDS_RUN: Command = Command {
    usage: &["WORDS… [options]"],
    arguments: &[Argument::any("WORDS", Kind::Text)],
    raw_after: Some(0),
    notes: "Under the name pinocchio: `pinocchio WORDS…`.",
    examples: &["pinion commands run code go --help"],
    ..Command::new("run", "Run a command")
};

pub static COMMANDS_HELP: Command = Command {
    usage: &["WORDS…", "TOPIC", "--list"],
    arguments: &[Argument::any("WORDS", Kind::Text)],
    raw_after: Some(0),
    notes: "A TOPIC is a page of the repositories; --list, --topics, --examples, --applications and --tutorials list them.\n\
            Under the name pinocchio: `pinocchio help WORDS…`.",
    examples: &[
        "pinion commands help code go",
        "pinion commands help --list",
    ],
    ..Command::new("help", "Explain a command or print a page")
};

/// The flags of opencode that a run of pinion does not have.
static OPENCODE: Section = Section {
    title: "opencode",
    flags: &[
        Flag::valued("--format", "json", "the format of the lines").of(Kind::OneOf(&["json"])),
        Flag::valued("--file", "FILE", "a file of the prompt")
            .or(&["-f"])
            .of(Kind::File)
            .repeated(),
        Flag::valued("--dir", "DIR", "the directory to work in").of(Kind::Directory),
    ],
};

pub static RUN: Command = Command {
    usage: &["--format json [flags] [MESSAGE…]"],
    arguments: &[Argument::any("MESSAGE", Kind::Text)],
    flags: &[
        &OPENCODE,
        &root::MODEL_OF_RUN,
        &root::SESSION_OF_RUN,
        &root::PROMPT,
        &root::EXTENSIONS,
        &root::TOOLS,
        &root::APPROVALS,
        &sandbox::SANDBOX_SECTION,
        &root::BEHAVIOUR_OF_RUN,
        &super::LOG,
    ],
    notes: "The prompt is MESSAGE, or standard input, of any size.\n\
            Exit codes: 0 done, 1 failed, 2 wrong command line.",
    examples: &[
        "pinion run --format json -m offline/demo \"list the files\"",
        "git diff | pinion run --format json -m anthropic/claude-sonnet-4-5 -",
    ],
    ..Command::new(
        "run",
        "Run one conversation and print the lines of `opencode run --format json`",
    )
};
