//! Calls of tools.

use std::borrow::Cow;

use bytes::Bytes;
use futures_util::StreamExt;
use pinion_clip::Aggregate;
use pinion_clip::manifest::Manifest;
use pinion_status::Failure;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tracing::{Instrument, error_span};

use super::clips::{ClipSummary, Outputs};
use super::tools::{self, HubTool};
use super::{Answer, Gateway, GatewayScope, NotificationSink, RequestContext, read};
use crate::rpc::{self, Fault, Id, Request};

const NO_INPUT: Bytes = Bytes::from_static(b"{}");

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default, rename = "progressToken")]
    token: Option<Id>,
    /// The span of the client.
    #[serde(default)]
    traceparent: Option<String>,
}

/// The result of a tool.
#[derive(Debug, Serialize)]
struct ToolResult {
    content: [Content; 1],
    #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    structured: Option<Box<RawValue>>,
    #[serde(rename = "isError")]
    is_error: bool,
}

#[derive(Debug, Serialize)]
struct Content {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}

impl ToolResult {
    fn new(text: String, structured: Option<Box<RawValue>>) -> Self {
        Self {
            content: [Content { kind: "text", text }],
            structured,
            is_error: false,
        }
    }

    /// Creates a result that has the same data as text and as structured content.
    fn data(data: &Value) -> Self {
        Self::new(data.to_string(), raw(data))
    }

    fn failed(failure: &Failure) -> Self {
        let content = json!({ "error": failure.message, "code": failure.code() });
        Self {
            is_error: true,
            ..Self::new(failure.message.to_string(), raw(&content))
        }
    }
}

fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

/// Sends progress notifications to a client.
struct Progress<'a> {
    token: Id,
    sink: &'a dyn NotificationSink,
    count: u64,
}

impl Progress<'_> {
    async fn send(&mut self, output: &[u8]) {
        self.count += 1;
        let notification =
            json!({ "progressToken": self.token, "progress": self.count, "message": text(output) });
        let notification = rpc::notification("notifications/progress", Some(&notification));
        self.sink.send(notification).await;
    }
}

impl Gateway {
    pub(super) async fn call(&self, request: &Request, context: RequestContext<'_>) -> Answer {
        let params: Params<'_> = read(request)?;
        let (token, traceparent) = match params.meta {
            Some(meta) => (meta.token, meta.traceparent),
            None => (None, None),
        };
        let span = error_span!("mcp_call", tool = &*params.name, traceparent);
        let progress = token.zip(context.sink).map(|(token, sink)| Progress {
            token,
            sink,
            count: 0,
        });
        let arguments = params.arguments.filter(|given| given.get() != "null");
        let given = async {
            match &self.scope {
                GatewayScope::Hub => {
                    let Some(tool) = HubTool::named(&params.name, &self.prefix) else {
                        return Err(no_tool(&params.name));
                    };
                    Ok(self.call_hub(tool, arguments, progress).await)
                }
                GatewayScope::Clip(clip) => match self.tool(&params.name).await {
                    Ok(Some(tool)) => {
                        let outputs = self.clips.invoke(clip, &tool.command, input(arguments));
                        let output = collect_output(outputs, progress).await;
                        Ok(output.map(|output| tool_result(&output)))
                    }
                    Ok(None) => Err(no_tool(&params.name)),
                    Err(failure) => Ok(Err(failure)),
                },
            }
        };
        let given = given.instrument(span).await?;
        let given = given.unwrap_or_else(|failure| ToolResult::failed(&failure));
        self.finish(context.era, &given)
    }

    async fn call_hub(
        &self,
        tool: HubTool,
        arguments: Option<&RawValue>,
        progress: Option<Progress<'_>>,
    ) -> Result<ToolResult, Failure> {
        let progress = progress.filter(|_| tool == HubTool::InvokeStream);
        match tool {
            HubTool::List => {
                let mut clips = self.clips.list().await?;
                clips.sort_by(|left, right| left.name.cmp(&right.name));
                let items: Vec<_> = clips.iter().map(item).collect();
                Ok(ToolResult::data(&json!({ "items": items })))
            }
            HubTool::Info => {
                let wanted: ClipArguments<'_> = wanted(arguments)?;
                self.info(&wanted.clip()?).await
            }
            HubTool::Invoke | HubTool::InvokeStream => {
                let wanted: ClipArguments<'_> = wanted(arguments)?;
                let (clip, command) = (wanted.clip()?, wanted.command()?);
                let given = wanted.input.filter(|given| given.get() != "null");
                let outputs = self.clips.invoke(&clip, &command, input(given));
                let output = collect_output(outputs, progress).await?;
                Ok(invoke_result(&clip, &command, &output))
            }
        }
    }

    async fn info(&self, clip: &str) -> Result<ToolResult, Failure> {
        let manifest = self.clips.manifest(clip).await?;
        let clips = self.clips.list().await?;
        let named = |name: &str| clips.iter().find(|known| known.name == name);
        let summary = match named(clip).or_else(|| named(&manifest.name)) {
            Some(summary) => summary.clone(),
            None => ClipSummary {
                name: clip.to_owned(),
                ..ClipSummary::default()
            },
        };
        Ok(ToolResult::data(&described(&summary, &manifest)))
    }
}

fn no_tool(name: &str) -> Fault {
    Fault::invalid_params(format!("unknown tool: {name}"))
}

/// The arguments of `info` and `invoke`.
#[derive(Default, Deserialize)]
struct ClipArguments<'a> {
    #[serde(default)]
    clip: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    command: String,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

fn wanted(arguments: Option<&RawValue>) -> Result<ClipArguments<'_>, Failure> {
    let Some(arguments) = arguments else {
        return Ok(ClipArguments::default());
    };
    if !arguments.get().starts_with('{') {
        return Err(Failure::invalid("the arguments are not an object"));
    }
    serde_json::from_str(arguments.get())
        .map_err(|error| Failure::invalid(format!("the arguments are invalid: {error}")))
}

impl ClipArguments<'_> {
    fn clip(&self) -> Result<String, Failure> {
        let names = [self.clip.trim(), self.name.trim()];
        match names.into_iter().find(|name| !name.is_empty()) {
            Some(name) => Ok(name.to_owned()),
            None => Err(Failure::invalid(
                "clip is required: use an alias that list returns",
            )),
        }
    }

    fn command(&self) -> Result<String, Failure> {
        match self.command.trim() {
            "" => Err(Failure::invalid(
                "command is required: use a name that info returns",
            )),
            command => Ok(command.to_owned()),
        }
    }
}

fn input(given: Option<&RawValue>) -> Bytes {
    given.map_or(NO_INPUT, |given| {
        Bytes::copy_from_slice(given.get().as_bytes())
    })
}

/// Waits for the whole output and reports its parts as progress.
async fn collect_output(
    mut outputs: Outputs,
    mut progress: Option<Progress<'_>>,
) -> Result<Bytes, Failure> {
    let mut aggregate = Aggregate::default();
    while let Some(output) = outputs.next().await {
        let output = output?;
        if let Some(progress) = &mut progress {
            progress.send(&output).await;
        }
        aggregate.push(output)?;
    }
    Ok(aggregate.finish())
}

/// Converts an output to text: strings without their quotes, everything else as JSON.
fn text(output: &[u8]) -> String {
    serde_json::from_slice(output)
        .unwrap_or_else(|_| String::from_utf8_lossy(output).trim().to_owned())
}

/// Converts the output of a command that is a tool.
fn tool_result(output: &[u8]) -> ToolResult {
    let data: Option<Box<RawValue>> = serde_json::from_slice(output).ok();
    ToolResult::new(
        text(output),
        data.filter(|data| data.get().starts_with('{')),
    )
}

/// Converts the output of a command that was called by name.
fn invoke_result(clip: &str, command: &str, output: &[u8]) -> ToolResult {
    #[derive(Serialize)]
    struct Invoked<'a> {
        kind: &'static str,
        clip: &'a str,
        command: &'a str,
        result: Box<RawValue>,
    }
    let text = text(output);
    let result: Option<Box<RawValue>> = serde_json::from_slice(output).ok();
    let result = result.or_else(|| raw(&text)).unwrap_or_default();
    let data = raw(&Invoked {
        kind: "clip",
        clip,
        command,
        result,
    });
    ToolResult::new(text, data)
}

fn item(clip: &ClipSummary) -> Value {
    let mut item = Map::new();
    item.insert("kind".to_owned(), "clip".into());
    item.insert("name".to_owned(), clip.name.clone().into());
    item.insert("status".to_owned(), "online".into());
    item.insert("source".to_owned(), clip.provider.clone().into());
    item.insert("domain".to_owned(), clip.domain.clone().into());
    item.insert("commands".to_owned(), clip.commands.clone().into());
    item.insert("online".to_owned(), true.into());
    item.insert("tokenProtected".to_owned(), clip.token_protected.into());
    Value::Object(item)
}

fn described(clip: &ClipSummary, manifest: &Manifest) -> Value {
    let mut described = item(clip);
    if !manifest.domain.is_empty() {
        described["domain"] = manifest.domain.clone().into();
    }
    if !manifest.description.is_empty() {
        described["description"] = manifest.description.clone().into();
    }
    described["commands"] = manifest.commands.iter().map(tools::described).collect();
    described
}
