//! The tables of `auth` and `config`, which pi has too.

use super::JSON;
use crate::table::{Command, Flag, Kind, Section};

const PROVIDER: Flag = Flag::valued("--provider", "NAME", "the provider of the credential");
const MODEL: Flag =
    Flag::valued("--model", "PATTERN", "the model whose provider it is").of(Kind::Model);

static CREDENTIAL: Section = Section {
    title: "Credential",
    flags: &[PROVIDER, MODEL],
};

pub static AUTH: Command = Command {
    commands: &[&CHECK, &PRINT_API_KEY, &PRINT_BEARER_TOKEN],
    examples: &["pinion auth check --provider openai"],
    ..Command::new("auth", "Check and print the credentials of providers")
};

pub static CHECK: Command = Command {
    flags: &[
        &CREDENTIAL,
        &Section {
            title: "Flags",
            flags: &[
                JSON,
                Flag::bare("--credentials", "print the credential too, if it is ready"),
                Flag::bare(
                    "--no-refresh",
                    "do not renew a login that is about to expire",
                ),
            ],
        },
    ],
    notes: "It prints ready, not_ready or invalid; the exit code is 0, 1 or 2.",
    examples: &["pinion auth check --provider openai --json"],
    ..Command::new("check", "Report whether a provider has a usable credential")
};

pub static PRINT_API_KEY: Command = Command {
    flags: &[&CREDENTIAL],
    examples: &["pinion auth print-api-key --provider openai"],
    ..Command::new("print-api-key", "Print the API key of a provider")
};

pub static PRINT_BEARER_TOKEN: Command = Command {
    flags: &[
        &CREDENTIAL,
        &Section {
            title: "Flags",
            flags: &[Flag::valued(
                "--min-expiry",
                "DURATION",
                "the shortest remaining validity, such as 500ms, 30s, 30m or 2h; 30m",
            )],
        },
    ],
    examples: &["pinion auth print-bearer-token --provider anthropic --min-expiry 5m"],
    ..Command::new(
        "print-bearer-token",
        "Print the token of a login with OAuth",
    )
};

pub static CONFIG: Command = Command {
    flags: &[&Section {
        title: "Flags",
        flags: &[
            Flag::bare("--local", "the project's settings instead of yours").or(&["-l"]),
            JSON,
        ],
    }],
    notes: "Edit \"packages\" in the settings file to change what loads: an entry\n  \
            {\"source\": \"npm:NAME\", \"skills\": []} loads no skill of the package.",
    examples: &["pinion config", "pinion config --local"],
    ..Command::new(
        "config",
        "List the packages and which of their resources load",
    )
};
