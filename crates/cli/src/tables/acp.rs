//! The table of `acp`.

use super::root;
use crate::table::{Command, Flag, Section};

static ACP_FLAGS: Section = Section {
    title: "Editor",
    flags: &[
        super::SETUP,
        Flag::bare(
            "--acp-unstable",
            "offer members and methods that the protocol calls unstable",
        ),
        Flag::valued("--session-dir", "DIR", "the directory of the session files")
            .of(crate::table::Kind::Directory),
        Flag::bare("--no-session", "store nothing on disk"),
    ],
};

pub static ACP: Command = Command {
    usage: &[
        "[flags]",
        "--setup             save the key of a provider, in a terminal",
    ],
    flags: &[
        &ACP_FLAGS,
        &root::MODEL_OF_RUN,
        &root::PROMPT,
        &root::EXTENSIONS,
        &root::TOOLS,
        &root::APPROVALS,
        &root::BEHAVIOUR_OF_RUN,
        &super::LOG,
    ],
    notes: "An editor starts it and speaks the Agent Client Protocol on standard input and output. Tool calls are asked about\n\
            unless --approve or the settings say otherwise. PINION_ACP_LOG names a file for both directions.\n\
            Exit codes: 0 the editor left, 1 failed, 2 wrong command line, 129/130/143 ended by SIGHUP/SIGINT/SIGTERM.",
    examples: &[
        "pinion acp",
        "pinion acp --model anthropic/claude-sonnet-4-5 --approve auto",
    ],
    ..Command::new("acp", "Serve an editor over the Agent Client Protocol")
};
