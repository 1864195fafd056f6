//! The tables of `auth` and `config`, which pi has too.

use super::JSON;
use crate::table::{Argument, Command, Flag, Kind, Section};

const PROVIDER: Flag = Flag::valued("--provider", "NAME", "the provider of the credential");
const MODEL: Flag =
    Flag::valued("--model", "PATTERN", "the model whose provider it is").of(Kind::Model);

static CREDENTIAL: Section = Section {
    title: "Credential",
    flags: &[PROVIDER, MODEL],
};

pub static AUTH: Command = Command {
    commands: &[&LIST, &CHECK, &PRINT_API_KEY, &PRINT_BEARER_TOKEN],
    examples: &["pinion auth check --provider openai"],
    ..Command::new("auth", "Check and print the credentials of providers")
};

pub static LOGIN: Command = Command {
    arguments: &[Argument::optional("PROVIDER", Kind::Text)],
    flags: &[&Section {
        title: "Flags",
        flags: &[
            Flag::bare("--key", "enter an API key in place of a sign-in"),
            Flag::bare(
                "--test",
                "send one short request with the credential before it is stored",
            ),
        ],
    }],
    notes: "It signs in to a provider of models, or stores its API key, in auth.json, which pi shares. Without PROVIDER it\n  \
            shows a list. A key is read from the terminal without showing it, or from standard input.\n  \
            For a hub, use `pinion hub login`; for an MCP server, `pinion mcp login`.",
    examples: &[
        "pinion login openai",
        "pinion login openrouter",
        "pinion login groq --test < key.txt",
    ],
    ..Command::new(
        "login",
        "Sign in to a provider of models, or store its API key",
    )
};

pub static LOGOUT: Command = Command {
    arguments: &[Argument::optional("PROVIDER", Kind::Text)],
    notes: "It removes the provider's entry from auth.json. Variables of the environment and models.json stay.\n  \
            For a hub, use `pinion hub logout`; for an MCP server, `pinion mcp logout`.",
    examples: &["pinion logout openai"],
    ..Command::new(
        "logout",
        "Remove the stored login or API key of a provider of models",
    )
};

pub static LIST: Command = Command {
    flags: &[&Section {
        title: "Flags",
        flags: &[JSON],
    }],
    examples: &["pinion auth list", "pinion auth list --json"],
    ..Command::new("list", "List the providers that have a login or a key")
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
