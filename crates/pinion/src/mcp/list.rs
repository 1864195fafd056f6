//! `pinion mcp list`: connects to the servers and lists their tools.

use std::process::ExitCode;

use pinion_agent_mcp::{list_json, list_text, untrusted_notice};
use pinion_cli::tables;
use pinion_config::Dirs;
use pinion_message::Mask;

use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};

pub(super) const VERB: Verb = Verb::new("pinion mcp", &tables::mcp::LIST, list);

fn list(line: &Line) -> Result<ExitCode, Failure> {
    let [] = line.exactly()?;
    let dirs = Dirs::from_env()?;
    let config = super::load(&dirs);
    if let Some(file) = &config.untrusted {
        eprintln!("Warning: {}", untrusted_notice(file));
    }
    let mask = Mask::default();
    let runtime = pinion_process::runtime::build()?;
    let servers = runtime.block_on(pinion_agent_mcp::list(&config, &dirs, &mask));
    let failed = servers.iter().any(|server| server.tools.is_err());
    let text = if line.has("--json") {
        format!("{}\n", list_json(&servers, &config))
    } else {
        list_text(&servers, &config)
    };
    out(&mask.text(&text))?;
    if servers.is_empty() && config.problems.is_empty() {
        eprintln!("No MCP servers. `pinion mcp add NAME -- COMMAND` adds one.");
    }
    let is_broken = failed || !config.problems.is_empty();
    Ok(ExitCode::from(u8::from(is_broken)))
}
