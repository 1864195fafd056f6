//! The ways in which a tool is reachable: by the model, by other tools, or by neither.

use std::sync::Arc;

use crate::Tool;

/// The way in which a tool is reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exposure {
    /// The model sees it; other tools may call it while it is active.
    #[default]
    Direct,
    /// The model sees it; other tools may not call it.
    ModelOnly,
    /// Other tools may call it, and scripts see its declaration. The model sees it once it is activated.
    Codemode,
    /// Other tools may call it, and scripts find it by a search. The model sees it once it is activated.
    Deferred,
    /// Neither the model nor other tools may call it.
    Hidden,
}

impl Exposure {
    /// Reports whether the model sees the tool from the start.
    pub fn is_declared(self) -> bool {
        matches!(self, Self::Direct | Self::ModelOnly)
    }

    /// Reports whether other tools may call the tool.
    pub fn is_callable(self, is_active: bool) -> bool {
        match self {
            Self::Direct => is_active,
            Self::Codemode | Self::Deferred => true,
            Self::ModelOnly | Self::Hidden => false,
        }
    }
}

/// A group of tools, such as those of one MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// The prefix of the names of its tools, such as `mcp__files`.
    pub name: String,
    /// Another name by which scripts may look it up.
    pub alias: String,
    /// A sentence about its purpose.
    pub description: String,
    /// Advice for its use.
    pub instructions: String,
}

/// The tools of a session when they have changed.
pub struct Loadout<'a> {
    /// The tools that the model may call.
    pub active: &'a [Arc<dyn Tool>],
    /// The tools that other tools may call.
    pub callable: &'a [Arc<dyn Tool>],
}

/// The changes of an active tool to the declarations that the model sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declarations {
    /// The description of the tool itself; `None` leaves it unchanged.
    pub description: Option<String>,
    /// The names of active tools whose declarations the model does not see.
    pub hidden: Vec<String>,
}

impl std::fmt::Debug for Loadout<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |tools: &[Arc<dyn Tool>]| -> Vec<String> {
            tools.iter().map(|tool| tool.spec().name.clone()).collect()
        };
        f.debug_struct("Loadout")
            .field("active", &names(self.active))
            .field("callable", &names(self.callable))
            .finish()
    }
}
