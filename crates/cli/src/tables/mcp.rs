//! The tables of `pinion mcp`: MCP servers of the agent, and the clips of a hub as an MCP server.

use super::{JSON, clip};
use crate::table::{Argument, Command, Flag, Kind, Section};

const LOCAL: Flag = Flag::bare(
    "--local",
    "for this project (.pi/mcp.json) instead of for you",
)
.or(&["-l"]);

static PLACE: Section = Section {
    title: "Flags",
    flags: &[LOCAL],
};

const SERVERS: &str = "The servers are in mcp.json in the agent directory and, for a trusted project, in .pi/mcp.json.";

pub static MCP: Command = Command {
    commands: &[&clip::MCP_SERVE, &ADD, &REMOVE, &LIST, &LOGIN, &LOGOUT],
    otherwise: Some(&clip::MCP_SERVE),
    notes: "Without one of these words the command is `mcp serve`: `pinion mcp CLIP` serves the clip.",
    examples: &[
        "pinion mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
        "pinion mcp list",
        "pinion mcp serve todo",
    ],
    ..Command::new(
        "mcp",
        "Manage the MCP servers of the agent, or serve clips to MCP clients",
    )
};

pub static MCP_OF_PI: Command = Command {
    commands: &[&ADD, &REMOVE, &LIST, &LOGIN, &LOGOUT],
    examples: &[
        "pi mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
        "pi mcp list",
    ],
    ..Command::new("mcp", "Manage the MCP servers of the agent")
};

pub static ADD: Command = Command {
    usage: &[
        "NAME [flags] -- COMMAND [ARGUMENT…]",
        "NAME [flags] --url URL",
    ],
    arguments: &[
        Argument::one("NAME", Kind::Text),
        Argument::any("COMMAND", Kind::File),
    ],
    flags: &[
        &Section {
            title: "Program",
            flags: &[
                Flag::valued("--env", "KEY=VALUE", "a variable; ${NAME} is one of yours")
                    .repeated(),
                Flag::valued("--cwd", "DIR", "the working directory").of(Kind::Directory),
            ],
        },
        &Section {
            title: "Server on the network",
            flags: &[
                Flag::valued("--url", "URL", "the address for streamable HTTP"),
                Flag::valued("--header", "KEY=VALUE", "a header of every request").repeated(),
                Flag::valued(
                    "--bearer-token-env-var",
                    "NAME",
                    "send the token in this variable",
                ),
                Flag::valued(
                    "--oauth-client-id",
                    "ID",
                    "the registered client of sign-ins",
                ),
                Flag::valued(
                    "--oauth-client-secret",
                    "SECRET",
                    "its secret; ${NAME} is a variable",
                ),
                Flag::valued(
                    "--oauth-callback-port",
                    "PORT",
                    "the port for the browser's answer",
                ),
                Flag::valued(
                    "--oauth-client-name",
                    "NAME",
                    "the name for registrations; pi",
                ),
                Flag::valued("--oauth-client-registration", "MODE", "auto or dcr")
                    .of(Kind::OneOf(&["auto", "dcr"])),
            ],
        },
        &Section {
            title: "Tools",
            flags: &[
                Flag::valued(
                    "--exposure",
                    "MODE",
                    "codemode (scripts call them; the default), deferred, direct or hidden",
                )
                .of(Kind::OneOf(&["codemode", "deferred", "direct", "hidden"])),
                Flag::valued(
                    "--description",
                    "TEXT",
                    "a sentence about the server, for the model",
                ),
                Flag::valued("--timeout", "SECONDS", "the longest call; 60"),
                LOCAL,
            ],
        },
    ],
    raw_after: Some(2),
    notes: "It replaces a server of the same name and does not connect: `pinion mcp list` does.",
    examples: &[
        "pinion mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
        "pinion mcp add docs --url https://example.com/mcp --bearer-token-env-var DOCS_TOKEN",
    ],
    ..Command::new("add", "Add a server to mcp.json")
};

pub static REMOVE: Command = Command {
    arguments: &[Argument::one("NAME", Kind::Text)],
    flags: &[&PLACE],
    notes: "A stored sign-in stays; `pinion mcp logout` deletes it.",
    examples: &["pinion mcp remove files"],
    ..Command::new("remove", "Remove a server from mcp.json")
};

pub static LIST: Command = Command {
    text: SERVERS,
    flags: &[&Section {
        title: "Flags",
        flags: &[JSON],
    }],
    notes: "It connects to every enabled server. The exit code is 1 if an entry is invalid or a server is not connected.",
    examples: &["pinion mcp list", "pinion mcp list --json"],
    ..Command::new("list", "Connect to the servers and list their tools")
};

pub static LOGIN: Command = Command {
    arguments: &[Argument::one("NAME", Kind::Text)],
    flags: &[&Section {
        title: "Flags",
        flags: &[
            Flag::valued(
                "--timeout",
                "SECONDS",
                "the longest wait for the browser; 300",
            ),
            LOCAL,
        ],
    }],
    notes: "It prints an address to open in a browser. If the browser runs on another machine, paste the address that it\n\
            shows at the end.",
    examples: &["pinion mcp login docs"],
    ..Command::new("login", "Sign in to a server with OAuth")
};

pub static LOGOUT: Command = Command {
    arguments: &[Argument::one("NAME", Kind::Text)],
    flags: &[&PLACE],
    examples: &["pinion mcp logout docs"],
    ..Command::new("logout", "Delete the sign-in of a server")
};
