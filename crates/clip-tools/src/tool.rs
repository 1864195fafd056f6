//! One command of a clip as a tool.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use pinion_clip::manifest::Command;
use pinion_message::ToolSpec;
use pinion_tools::{Tool, ToolContext, ToolError, ToolOutput, accept_any_object};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ClipCaller;
use super::output::CommandOutput;
use super::schema::{self, Parameters, Shape};

/// Interval between updates with the output of a running call.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// A tool that calls a command of a clip.
pub(super) struct ClipTool {
    spec: ToolSpec,
    shape: Shape,
    clip: Arc<str>,
    /// Empty if the arguments name the command.
    command: String,
    caller: Arc<dyn ClipCaller>,
}

impl ClipTool {
    pub fn new(
        name: String,
        clip: &Arc<str>,
        command: Command,
        caller: Arc<dyn ClipCaller>,
    ) -> Self {
        let Parameters {
            schema,
            shape,
            note,
        } = Parameters::of(&command.input);
        let said = match command.description.as_str() {
            "" => format!("The command \"{}\" of the clip {clip}", command.name),
            said => said.to_owned(),
        };
        let description = match note {
            Some(note) => format!("{said}\n{note}"),
            None => said,
        };
        Self {
            spec: ToolSpec {
                name,
                description,
                parameters: schema,
            },
            shape,
            clip: Arc::clone(clip),
            command: command.name,
            caller,
        }
    }

    /// Creates a tool for a clip that does not list its commands.
    pub fn any(name: String, clip: &Arc<str>, caller: Arc<dyn ClipCaller>) -> Self {
        let Parameters { schema, shape, .. } = Parameters::any();
        Self {
            spec: ToolSpec {
                name,
                description: format!("Calls a command of the clip {clip}"),
                parameters: schema,
            },
            shape,
            clip: Arc::clone(clip),
            command: String::new(),
            caller,
        }
    }

    async fn run(&self, arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (named, input) = schema::input(self.shape, arguments).map_err(ToolError)?;
        let command = named.as_deref().unwrap_or(&self.command);
        let mut answers = self.caller.call(&self.clip, command, input.into());
        let mut gathered = CommandOutput::default();
        let mut due = Instant::now();
        let mut unseen = false;
        loop {
            let output = tokio::select! {
                biased;
                () = context.cancel.cancelled() => return Err(ToolError("Operation aborted".into())),
                output = answers.next() => output,
                () = tokio::time::sleep_until(due), if unseen => {
                    (context.updates)(ToolOutput::text(gathered.so_far()));
                    (due, unseen) = (Instant::now() + UPDATE_INTERVAL, false);
                    continue;
                }
            };
            match output {
                None => break,
                Some(Ok(output)) => {
                    unseen |= !gathered.is_full();
                    gathered.push(&output);
                }
                Some(Err(error)) => {
                    let failure = error.failure();
                    let (clip, code) = (&self.clip, failure.code);
                    let words = format!("{clip} {command} failed ({code}): {failure}");
                    return Err(ToolError(if gathered.is_empty() {
                        words
                    } else {
                        format!("{}\n\n{words}", gathered.whole())
                    }));
                }
            }
        }
        Ok(ToolOutput {
            details: Some(json!({"clip": &*self.clip, "command": command})),
            ..ToolOutput::text(gathered.whole())
        })
    }
}

impl Tool for ClipTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Accepts every object: the clip checks its input itself.
    fn validate(&self, arguments: &Value) -> Result<Value, String> {
        accept_any_object(&self.spec, arguments)
    }

    fn source(&self) -> Option<Value> {
        Some(json!({
            "path": format!("<clip:{}>", self.clip),
            "source": "clip",
            "scope": "temporary",
            "origin": "top-level",
        }))
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run(arguments, context))
    }
}
