//! The MCP servers of a session, and the tools `codemode` and `tool_search`.

use std::sync::Arc;

use pinion_agent::ToolSupply;
pub(crate) use pinion_agent_mcp::untrusted_notice;
use pinion_agent_mcp::{McpConfig, McpServers, ToolSelection, configured_files};
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
    /// Reads `mcp.json`. Without it, and if no flag or setting names `codemode` or `tool_search`, there is no supply.
    pub fn of(
        flags: &Flags,
        dirs: &Dirs,
        trust: ProjectTrust,
        settings: &Settings,
        choice: &ToolChoice,
        mask: &Mask,
    ) -> Result<Self, Failure> {
        let has_files = !flags.no_mcp && !configured_files(dirs).is_empty();
        let servers = has_files.then(|| servers(dirs, trust, choice, mask));
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

fn servers(
    dirs: &Dirs,
    trust: ProjectTrust,
    choice: &ToolChoice,
    mask: &Mask,
) -> Option<McpServers> {
    let config = McpConfig::load(dirs, trust);
    tell(&config.problems);
    if let Some(file) = &config.untrusted {
        tell(&[untrusted_notice(file)]);
    }
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
