//! `pinion mcp`: the MCP servers of the agent, and the clips of a hub as an MCP server.

mod list;
mod serve;
mod sign_in;

use std::path::PathBuf;
use std::process::ExitCode;

use pinion_agent_mcp::{McpConfig, NewServer, NewTarget, ServerEntry, add_server, remove_server};
use pinion_cli::tables;
use pinion_config::{Dirs, Trust, TrustFlag};

pub(crate) use self::serve::VERB as SERVE;
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Entry, Group, Line, Verb};

const ADD: Verb = Verb::new("pinion mcp", &tables::mcp::ADD, add);
const REMOVE: Verb = Verb::new("pinion mcp", &tables::mcp::REMOVE, remove);

pub(crate) static GROUP: Group = Group {
    above: "pinion",
    command: &tables::mcp::MCP,
    entries: &[
        Entry::One(&SERVE),
        Entry::One(&ADD),
        Entry::One(&REMOVE),
        Entry::One(&list::VERB),
        Entry::One(&sign_in::LOGIN),
        Entry::One(&sign_in::LOGOUT),
    ],
    takes_words: true,
};

pub(crate) static GROUP_OF_PI: Group = Group {
    above: "pi",
    command: &tables::mcp::MCP_OF_PI,
    entries: &[
        Entry::One(&ADD),
        Entry::One(&REMOVE),
        Entry::One(&list::VERB),
        Entry::One(&sign_in::LOGIN),
        Entry::One(&sign_in::LOGOUT),
    ],
    takes_words: false,
};

/// The flags for sign-ins, with their members of `oauth` in `mcp.json`.
const OAUTH_FLAGS: [(&str, &str); 4] = [
    ("--oauth-client-id", "clientId"),
    ("--oauth-client-secret", "clientSecret"),
    ("--oauth-client-name", "clientName"),
    ("--oauth-client-registration", "clientRegistration"),
];

/// The file of the user, or of the project with `--local`.
fn file(line: &Line, dirs: &Dirs) -> PathBuf {
    let directory = if line.has("--local") {
        &dirs.project_dir
    } else {
        &dirs.agent_dir
    };
    directory.join("mcp.json")
}

fn add(line: &Line) -> Result<ExitCode, Failure> {
    let dirs = Dirs::from_env()?;
    let (name, command) = line.words.split_first().ok_or_else(|| line.misfit())?;
    let command: Vec<&String> = command.iter().chain(&line.raw).collect();
    let text = |flag: &str| line.value(flag).map(str::to_owned);
    let texts = |flag: &str| line.values(flag).map(str::to_owned).collect();
    let target = match (text("--url"), command.split_first()) {
        (Some(url), None) => NewTarget::Http {
            url,
            headers: texts("--header"),
            bearer_variable: text("--bearer-token-env-var"),
            oauth: OAUTH_FLAGS
                .iter()
                .filter_map(|(flag, member)| Some((*member, text(flag)?)))
                .collect(),
            callback_port: line.parsed("--oauth-callback-port", "a port number")?,
        },
        (None, Some((program, arguments))) => NewTarget::Command {
            program: (*program).clone(),
            arguments: arguments.iter().copied().cloned().collect(),
            env: texts("--env"),
            cwd: text("--cwd"),
        },
        _ => return Err(line.wrong("name a command after --, or an address with --url")),
    };
    let server = NewServer {
        name: name.clone(),
        target,
        exposure: text("--exposure"),
        description: text("--description"),
        timeout: line.parsed("--timeout", "a number of seconds")?,
    };
    let entry = server.entry().map_err(|error| line.wrong(error))?;
    let file = file(line, &dirs);
    let replaced = add_server(&file, name, entry)?;
    let word = if replaced { "Replaced" } else { "Added" };
    let (trust, _) = Trust::decide(&dirs, TrustFlag::Unset);
    if line.has("--local") && trust == pinion_config::ProjectTrust::Untrusted {
        eprintln!(
            "Note: this project is not trusted, so its servers are not used yet; run `pinion trust` here."
        );
    }
    out(&format!("{word} MCP server {name} in {}\n", file.display()))
}

fn remove(line: &Line) -> Result<ExitCode, Failure> {
    let [name] = line.exactly()?;
    let file = file(line, &Dirs::from_env()?);
    if remove_server(&file, name)? {
        return out(&format!(
            "Removed MCP server {name} from {}\n",
            file.display()
        ));
    }
    Err(Failure::failed(format!(
        "{} has no server {name:?}; `pinion mcp list` shows the servers there are.",
        file.display()
    )))
}

/// Reads the configuration as a session in this directory does.
fn load(dirs: &Dirs) -> McpConfig {
    let (trust, notices) = Trust::decide(dirs, TrustFlag::Unset);
    for notice in notices {
        eprintln!("Warning: {notice}");
    }
    McpConfig::load(dirs, trust)
}

/// Finds a configured server.
fn find(dirs: &Dirs, name: &str, local: bool) -> Result<ServerEntry, Failure> {
    let config = load(dirs);
    let project = dirs.project_dir.join("mcp.json");
    let found = config.find(name, local.then_some(&*project));
    found.cloned().map_err(Failure::failed)
}
