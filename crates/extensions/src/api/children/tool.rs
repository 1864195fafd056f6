//! A tool that a script defined for a child session.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_message::ToolSpec;
use pinion_tools::{
    Execution, NullText, Tool, ToolContext, ToolError, ToolOutput, validate_typebox,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::outbox::Outbox;
use crate::api::payload;

/// Time that a cancelled call may take to end.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Card {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Value,
    #[serde(default)]
    snippet: Option<String>,
    #[serde(default)]
    guidelines: Vec<String>,
    #[serde(default)]
    sequential: bool,
}

pub(super) struct ChildTool {
    spec: ToolSpec,
    snippet: Option<String>,
    guidelines: Vec<String>,
    sequential: bool,
    outbox: Arc<Outbox>,
}

impl ChildTool {
    pub fn shared(card: Value, outbox: &Arc<Outbox>) -> Result<Arc<dyn Tool>, String> {
        let card: Card = serde_json::from_value(card).map_err(|error| error.to_string())?;
        Ok(Arc::new(Self {
            spec: ToolSpec {
                name: card.name,
                description: card.description,
                parameters: card.parameters,
            },
            snippet: card.snippet.filter(|snippet| !snippet.is_empty()),
            guidelines: card.guidelines,
            sequential: card.sequential,
            outbox: Arc::clone(outbox),
        }))
    }

    async fn ask(&self, question: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let updates = Some(Arc::clone(&context.updates));
        let answer = self.outbox.ask("runTool", question, updates).await;
        let answer = answer.ok_or_else(|| ToolError("Operation aborted".into()))?;
        match answer["error"].as_str() {
            Some(error) => Err(ToolError(error.to_owned())),
            None => Ok(payload::output_from(&answer["output"])),
        }
    }
}

impl Tool for ChildTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn validate(&self, arguments: &Value) -> Result<Value, String> {
        validate_typebox(&self.spec, arguments, NullText::Empty)
    }

    fn snippet(&self) -> Option<&str> {
        self.snippet.as_deref()
    }

    fn guidelines(&self) -> &[String] {
        &self.guidelines
    }

    fn execution(&self) -> Execution {
        if self.sequential {
            Execution::Sequential
        } else {
            Execution::Parallel
        }
    }

    fn source(&self) -> Option<Value> {
        Some(json!({ "source": "sdk", "scope": "temporary", "origin": "top-level" }))
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let question = json!({
                "toolName": self.spec.name,
                "toolCallId": &*context.call_id,
                "input": arguments,
            });
            let stop = json!({ "toolCallId": &*context.call_id });
            let call = self.ask(question, context);
            tokio::pin!(call);
            tokio::select! {
                answer = &mut call => answer,
                () = context.cancel.cancelled() => {
                    self.outbox.notify("stopTool", stop);
                    match tokio::time::timeout(CANCEL_GRACE, call).await {
                        Ok(answer) => answer,
                        Err(_) => Err(ToolError("Operation aborted".into())),
                    }
                }
            }
        })
    }
}
