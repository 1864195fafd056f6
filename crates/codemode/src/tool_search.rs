//! The tool `tool_search`: finds tools that the model does not see, and declares them.

use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use pinion_agent::Reach;
use pinion_message::ToolSpec;
use pinion_tools::{Exposure, Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};

use crate::catalogue::best;
use crate::{Shared, TOOL_SEARCH};

/// The tools that a search declares unless the model asks for another number.
const DEFAULT_LIMIT: usize = 8;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec {
    name: TOOL_SEARCH.to_owned(),
    description: "Searches the tools that are not declared, such as those of MCP servers, by words, and declares the \
                  matches for the next call of the model."
        .to_owned(),
    parameters: json!({
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "description": "Words about the purpose of the tool, or its name"},
            "limit": {"type": "number", "description": "The most tools to declare; 8 if absent"},
        },
    }),
}
});

pub(crate) struct ToolSearch {
    shared: Arc<Shared>,
}

impl ToolSearch {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    async fn run(&self, arguments: &Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let query = arguments["query"].as_str().unwrap_or_default();
        let limit = arguments["limit"]
            .as_u64()
            .map_or(DEFAULT_LIMIT, |limit| limit as usize);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError("Operation aborted".into())),
            () = self.shared.arrived(&Reach::All) => {}
        }
        let Some(session) = self.shared.session.get() else {
            return Err(ToolError(
                "tool_search can declare tools in a session only".into(),
            ));
        };
        let mut active = session.active_tools();
        let mut tools = session.callable_tools();
        tools.retain(|tool| !active.contains(&tool.spec().name));
        let found = best(query, &tools, limit);
        if found.is_empty() {
            return Ok(ToolOutput {
                details: Some(json!({"loaded": []})),
                ..ToolOutput::text(format!("No tool matches \"{query}\"."))
            });
        }
        let loaded: Vec<String> = found.iter().map(|tool| tool.spec().name.clone()).collect();
        active.extend(loaded.iter().cloned());
        let declared = session.set_active_tools(&active);
        declared.map_err(|error| ToolError(error.to_string()))?;
        let lines = found.iter().map(|tool| {
            let spec = tool.spec();
            format!("- {}: {}", spec.name, spec.description)
        });
        let lines: Vec<String> = lines.collect();
        Ok(ToolOutput {
            details: Some(json!({"loaded": loaded})),
            ..ToolOutput::text(format!(
                "These tools can be called from now on:\n{}",
                lines.join("\n")
            ))
        })
    }
}

impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Find tools that are not declared, such as those of MCP servers")
    }

    fn exposure(&self) -> Exposure {
        Exposure::ModelOnly
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.run(&arguments, context).await })
    }
}
