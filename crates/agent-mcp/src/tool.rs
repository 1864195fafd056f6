//! A tool of a server as a tool of the agent.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_clip::manifest::Command;
use pinion_message::ToolSpec;
use pinion_tools::{
    Exposure, Namespace, Tool, ToolContext, ToolError, ToolOutput, accept_any_object,
};
use serde_json::{Value, json};

use crate::result;
use crate::server::Server;

/// The largest description and schema of a tool, in bytes. A tool with a larger one is skipped.
const MAX_DECLARATION_BYTES: usize = 256 << 10;

pub(crate) struct McpTool {
    spec: ToolSpec,
    server: Arc<Server>,
    /// The name at the server.
    tool: String,
    exposure: Exposure,
    namespace: Arc<Namespace>,
    output_schema: Value,
}

impl McpTool {
    /// Returns the tool that a server describes by `command`, or the reason why it cannot be used.
    pub fn new(
        server: &Arc<Server>,
        command: &Command,
        name: String,
        exposure: Exposure,
        namespace: &Arc<Namespace>,
    ) -> Result<Self, String> {
        let size = command.description.len() + command.input.len() + command.output.len();
        if size > MAX_DECLARATION_BYTES {
            return Err(format!(
                "its tool \"{}\" is described by more than {MAX_DECLARATION_BYTES} bytes and is skipped",
                command.name
            ));
        }
        let own = serde_json::from_str::<Value>(&command.output).ok();
        let structured = own.filter(Value::is_object).unwrap_or_else(|| json!({}));
        Ok(Self {
            spec: ToolSpec {
                name,
                description: command.description.clone(),
                parameters: parameters(&command.input),
            },
            server: Arc::clone(server),
            tool: command.name.clone(),
            exposure,
            namespace: Arc::clone(namespace),
            output_schema: json!({
                "type": "object",
                "properties": {
                    "content": {"type": "array", "items": {"type": "object"}},
                    "structuredContent": structured,
                    "isError": {"type": "boolean"},
                },
                "required": ["content"],
            }),
        })
    }
}

/// Returns the schema of the arguments, which always describes an object.
fn parameters(input: &str) -> Value {
    match serde_json::from_str(input) {
        Ok(Value::Object(mut schema)) => {
            if schema.get("type") != Some(&json!("object")) {
                schema.insert("type".into(), "object".into());
            }
            Value::Object(schema)
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Accepts every object: the server checks its arguments itself.
    fn validate(&self, arguments: &Value) -> Result<Value, String> {
        accept_any_object(&self.spec, arguments)
    }

    fn exposure(&self) -> Exposure {
        self.exposure
    }

    fn namespace(&self) -> Option<&Namespace> {
        Some(&self.namespace)
    }

    fn output_schema(&self) -> Option<&Value> {
        Some(&self.output_schema)
    }

    fn source(&self) -> Option<Value> {
        Some(json!({
            "path": format!("<mcp:{}>", self.server.name()),
            "source": "mcp",
            "scope": "temporary",
            "origin": "top-level",
        }))
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let answer = Arc::clone(&self.server).call(self.tool.clone(), arguments);
            let answer = tokio::select! {
                biased;
                () = context.cancel.cancelled() => return Err(ToolError("Operation aborted".into())),
                answer = answer => answer.map_err(ToolError)?,
            };
            Ok(result::output(self.server.name(), &self.tool, answer).await)
        })
    }
}
