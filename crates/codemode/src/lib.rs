//! The tools `codemode` and `tool_search`, which reach the tools that a model does not see.
//!
//! `codemode` runs a script of the model in an engine without files, processes, network and timers; the script reaches
//! the world only by calling tools, each with the checks of a call of the model. `tool_search` finds tools by words and
//! declares them to the model.
//!
//! | file | holds |
//! |---|---|
//! | `sandbox.rs`, `prelude.js` | the engine, its thread, its limits, and the names that a script sees |
//! | `tool.rs` | the tool `codemode`: calls of the script, progress, result |
//! | `output.rs` | the layout and the limits of a script's output |
//! | `declaration.rs`, `description.rs` | tools as TypeScript declarations, and the description for the model |
//! | `catalogue.rs`, `search.rs`, `tool_search.rs` | the callable tools, their ranking, and the tool `tool_search` |
//! | `store.rs` | values that scripts keep in the session |

mod catalogue;
mod declaration;
mod description;
mod options;
mod output;
mod sandbox;
mod search;
mod store;
mod tool;
mod tool_search;

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use pinion_agent::{Reach, SessionApi, ToolSupply};
use pinion_tools::Tool;

/// The name of the tool that runs scripts.
pub const CODEMODE: &str = "codemode";
/// The name of the tool that finds tools.
pub const TOOL_SEARCH: &str = "tool_search";

/// The largest `codemode.inlineBudget`.
const MAX_INLINE_BUDGET: u64 = 1_000_000;

/// The settings of `codemode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodemodeSettings {
    /// The model sees `codemode` in place of the tools that scripts can call.
    pub replaces_tools: bool,
    /// Estimated tokens of the declarations in the description of `codemode`.
    pub inline_budget: usize,
}

impl Default for CodemodeSettings {
    fn default() -> Self {
        Self {
            replaces_tools: false,
            inline_budget: 3000,
        }
    }
}

impl CodemodeSettings {
    /// Reads `codemode.mode` and `codemode.inlineBudget` of the settings. The error names an unknown mode.
    pub fn named(mode: Option<&str>, inline_budget: Option<u64>) -> Result<Self, String> {
        let mut read = Self::default();
        match mode {
            None | Some("on") => {}
            Some("only") => read.replaces_tools = true,
            Some(other) => {
                return Err(format!(
                    "codemode.mode in settings.json: unknown mode {other:?}; use on or only"
                ));
            }
        }
        if let Some(budget) = inline_budget {
            read.inline_budget = budget.min(MAX_INLINE_BUDGET) as usize;
        }
        Ok(read)
    }
}

/// The tools `codemode` and `tool_search` of one session, and the supply of the tools that they reach.
#[derive(Clone)]
pub struct ScriptTools {
    shared: Arc<Shared>,
    settings: CodemodeSettings,
}

/// The session and the supply of its tools.
struct Shared {
    session: OnceLock<SessionApi>,
    supply: Option<Arc<dyn ToolSupply>>,
}

impl ScriptTools {
    /// Creates the tools for a session with the tools of `supply`.
    pub fn new(settings: CodemodeSettings, supply: Option<Arc<dyn ToolSupply>>) -> Self {
        let shared = Shared {
            session: OnceLock::new(),
            supply,
        };
        Self {
            shared: Arc::new(shared),
            settings,
        }
    }

    /// Returns both tools.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![
            Arc::new(tool::Codemode::new(Arc::clone(&self.shared), self.settings)),
            Arc::new(tool_search::ToolSearch::new(Arc::clone(&self.shared))),
        ]
    }
}

impl std::fmt::Debug for ScriptTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptTools")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Waits for the tools of `reach`.
    async fn arrived(&self, reach: &Reach) {
        if let Some(supply) = &self.supply {
            supply.arrived(reach).await;
        }
    }

    /// Returns the tools that other tools may call now.
    fn callable(&self) -> Vec<Arc<dyn Tool>> {
        self.session
            .get()
            .map(SessionApi::callable_tools)
            .unwrap_or_default()
    }
}

impl ToolSupply for ScriptTools {
    fn attach(&self, session: SessionApi) {
        if self.shared.session.set(session.clone()).is_ok()
            && let Some(supply) = &self.shared.supply
        {
            supply.attach(session);
        }
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        match &self.shared.supply {
            Some(supply) => supply.ready(),
            None => Box::pin(std::future::ready(())),
        }
    }

    fn arrived<'a>(&'a self, reach: &'a Reach) -> BoxFuture<'a, ()> {
        Box::pin(self.shared.arrived(reach))
    }
}
