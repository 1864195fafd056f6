//! The MCP servers of a session, and the tools `codemode` and `tool_search`.

use std::sync::Arc;

use pinion_acp::{ClientServer, ServerTarget as ClientTarget};
use pinion_agent::ToolSupply;
pub(crate) use pinion_agent_mcp::untrusted_notice;
use pinion_agent_mcp::{
    McpConfig, McpServers, OauthSettings, ServerEntry, ServerTarget, ToolSelection,
    configured_files,
};
use pinion_codemode::{CODEMODE, CodemodeSettings, ScriptTools, TOOL_SEARCH};
use pinion_config::{Dirs, ProjectTrust, Settings};
use pinion_message::Mask;
use serde_json::Value;

use super::tell;
use super::tool_choice::ToolChoice;
use crate::cli::Flags;
use crate::failure::Failure;

/// The tools beyond those that the model sees from the start.
#[derive(Default)]
pub(super) struct Supply {
    pub servers: Option<Arc<McpServers>>,
    pub scripts: Option<ScriptTools>,
}

impl Supply {
    /// Reads `mcp.json`, and adds the servers of the client. Without any, and if no flag or setting names `codemode` or `tool_search`, there is no supply.
    pub fn of(
        flags: &Flags,
        dirs: &Dirs,
        trust: ProjectTrust,
        settings: &Settings,
        choice: &ToolChoice,
        of_client: &[ClientServer],
        mask: &Mask,
    ) -> Result<Self, Failure> {
        let has_files = !flags.no_mcp && !configured_files(dirs).is_empty();
        let config = has_files.then(|| read_config(dirs, trust));
        let has_servers = has_files || !of_client.is_empty();
        let config = with_servers(config.unwrap_or_default(), of_client);
        let servers = has_servers.then(|| servers(config, dirs, choice, mask));
        let servers = servers.flatten().map(Arc::new);
        let is_named = choice
            .active
            .iter()
            .any(|name| name == CODEMODE || name == TOOL_SEARCH);
        if servers.is_none() && !is_named {
            return Ok(Self::default());
        }
        let supply = servers
            .clone()
            .map(|servers| servers as Arc<dyn ToolSupply>);
        Ok(Self {
            servers,
            scripts: Some(ScriptTools::new(codemode_settings(settings)?, supply)),
        })
    }

    /// Returns the supply for the engine.
    pub fn for_engine(&self) -> Option<Arc<dyn ToolSupply>> {
        let scripts = self.scripts.clone()?;
        Some(Arc::new(scripts))
    }
}

fn read_config(dirs: &Dirs, trust: ProjectTrust) -> McpConfig {
    let config = McpConfig::load(dirs, trust);
    tell(&config.problems);
    if let Some(file) = &config.untrusted {
        tell(&[untrusted_notice(file)]);
    }
    config
}

/// Adds the servers of a client, which replace those of the same names.
fn with_servers(mut config: McpConfig, of_client: &[ClientServer]) -> McpConfig {
    for server in of_client {
        let target = match server.target.clone() {
            ClientTarget::Command { command, args, env } => ServerTarget::Command {
                command,
                args,
                env,
                cwd: None,
            },
            ClientTarget::Http { url, headers } => ServerTarget::Http {
                url,
                headers,
                oauth: OauthSettings::default(),
            },
            ClientTarget::Unusable(reason) => ServerTarget::Unusable(reason),
        };
        config.servers.retain(|known| known.name != server.name);
        config
            .servers
            .push(ServerEntry::of_client(&server.name, target));
    }
    config
}

fn servers(config: McpConfig, dirs: &Dirs, choice: &ToolChoice, mask: &Mask) -> Option<McpServers> {
    let selection = ToolSelection {
        only: choice.filter.only.clone(),
        without: choice.filter.without.clone(),
    };
    McpServers::new(config, dirs, selection, mask)
}

fn codemode_settings(settings: &Settings) -> Result<CodemodeSettings, Failure> {
    let mode = settings.get("codemode.mode").and_then(Value::as_str);
    let budget = settings.get("codemode.inlineBudget");
    CodemodeSettings::named(mode, budget.and_then(Value::as_u64)).map_err(Failure::failed)
}
