//! A tool that an extension provides.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_message::ToolSpec;
use pinion_tools::{
    Execution, Exposure, Namespace, NullText, Tool, ToolContext, ToolError, ToolOutput,
    validate_typebox,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::extensions::Inner;
use super::payload;
use super::work::Work;

/// Time that a cancelled call may take to end.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// A tool as its extension describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolDeclaration {
    pub name: String,
    #[serde(default)]
    description: String,
    parameters: Value,
    #[serde(default)]
    snippet: Option<String>,
    #[serde(default)]
    guidelines: Vec<String>,
    #[serde(default)]
    sequential: bool,
    /// False starts the tool inactive.
    #[serde(default)]
    default_active: bool,
    #[serde(default)]
    exposure: ExposureName,
    #[serde(default)]
    namespace: Option<NamespaceCard>,
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    prepares: bool,
    /// The parameters were built with TypeBox.
    #[serde(default)]
    typebox: bool,
    #[serde(default)]
    source_info: Value,
}

/// [`Exposure`] in the words of extensions.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ExposureName {
    #[default]
    Direct,
    ModelOnly,
    Codemode,
    Deferred,
    Hidden,
}

#[derive(Debug, Clone, Deserialize)]
struct NamespaceCard {
    name: String,
    alias: String,
    description: String,
    instructions: String,
}

/// A tool that runs in an extension.
pub(super) struct ExtensionTool {
    inner: Arc<Inner>,
    /// The instance that the tool belongs to.
    number: u64,
    spec: ToolSpec,
    namespace: Option<Namespace>,
    declaration: ToolDeclaration,
}

/// The result of a call: exactly one of the members is set.
#[derive(Deserialize)]
struct CallOutcome {
    #[serde(default)]
    output: Value,
    #[serde(default)]
    error: Option<String>,
}

impl ExtensionTool {
    pub fn shared(
        inner: &Arc<Inner>,
        number: u64,
        mut declaration: ToolDeclaration,
    ) -> Arc<dyn Tool> {
        declaration.snippet = declaration
            .snippet
            .as_deref()
            .map(one_line)
            .filter(|text| !text.is_empty());
        let namespace = declaration.namespace.take().map(|card| Namespace {
            name: card.name,
            alias: card.alias,
            description: card.description,
            instructions: card.instructions,
        });
        Arc::new(Self {
            inner: Arc::clone(inner),
            number,
            namespace,
            spec: ToolSpec {
                name: declaration.name.clone(),
                description: std::mem::take(&mut declaration.description),
                parameters: std::mem::take(&mut declaration.parameters),
            },
            declaration,
        })
    }

    fn work(&self) -> Result<Work, ToolError> {
        let instance = self.inner.instance(self.number);
        let instance = instance.ok_or_else(|| ToolError("The extension is gone.".into()))?;
        Ok(Work::new(&self.inner, &instance))
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn outcome(answer: Result<String, crate::ScriptError>) -> Result<Value, ToolError> {
    let answer = answer.map_err(|error| ToolError(error.to_string()))?;
    let outcome: CallOutcome = pinion_jsonl::json::from_slice(answer.as_bytes())
        .map_err(|error| ToolError(error.to_string()))?;
    match outcome.error {
        Some(error) => Err(ToolError(error)),
        None => Ok(outcome.output),
    }
}

impl Tool for ExtensionTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn validate(&self, arguments: &Value) -> Result<Value, String> {
        let null_text = if self.declaration.typebox {
            NullText::Word
        } else {
            NullText::Empty
        };
        validate_typebox(&self.spec, arguments, null_text)
    }

    fn prepare(&self, arguments: Value) -> BoxFuture<'_, Result<Value, ToolError>> {
        if !self.declaration.prepares {
            return Box::pin(std::future::ready(Ok(arguments)));
        }
        Box::pin(async move {
            let mut work = self.work()?;
            let name = json!(self.spec.name).to_string();
            let arguments = vec![name, arguments.to_string()];
            outcome(work.call("main.prepareArguments", arguments).await)
        })
    }

    fn snippet(&self) -> Option<&str> {
        self.declaration.snippet.as_deref()
    }

    fn guidelines(&self) -> &[String] {
        &self.declaration.guidelines
    }

    fn execution(&self) -> Execution {
        if self.declaration.sequential {
            Execution::Sequential
        } else {
            Execution::Parallel
        }
    }

    fn starts_active(&self) -> bool {
        self.declaration.default_active && self.exposure().is_declared()
    }

    fn exposure(&self) -> Exposure {
        match self.declaration.exposure {
            ExposureName::Direct => Exposure::Direct,
            ExposureName::ModelOnly => Exposure::ModelOnly,
            ExposureName::Codemode => Exposure::Codemode,
            ExposureName::Deferred => Exposure::Deferred,
            ExposureName::Hidden => Exposure::Hidden,
        }
    }

    fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }

    fn output_schema(&self) -> Option<&Value> {
        self.declaration.output_schema.as_ref()
    }

    fn source(&self) -> Option<Value> {
        Some(self.declaration.source_info.clone())
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let mut work = self.work()?;
            work.report_to(Arc::clone(&context.updates));
            if let Some(caller) = &context.nested {
                work.nest(caller.clone());
            }
            let stop = work.stopper();
            let name = json!(self.spec.name).to_string();
            let call_id = json!(*context.call_id).to_string();
            let call = work.call("main.runTool", vec![name, call_id, arguments.to_string()]);
            tokio::pin!(call);
            let answer = tokio::select! {
                answer = &mut call => answer,
                () = context.cancel.cancelled() => {
                    stop();
                    match tokio::time::timeout(CANCEL_GRACE, call).await {
                        Ok(answer) => answer,
                        Err(_) => return Err(ToolError("Operation aborted".into())),
                    }
                }
            };
            outcome(answer).map(|output| payload::output_from(&output))
        })
    }
}
