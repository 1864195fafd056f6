//! Converts between MCP and clips: tools to a manifest, results to outputs, errors to failures.

use std::borrow::Cow;

use bytes::Bytes;
use pinion_clip::manifest::{Command, Manifest};
use pinion_status::{Code, Failure};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::rpc::{Fault, code};

/// A server's description of itself.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Server {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) version: String,
    /// The server's instructions for its users.
    #[serde(default)]
    pub(super) instructions: String,
}

/// One page of tools.
#[derive(Debug, Deserialize)]
pub(super) struct Page<'a> {
    #[serde(borrow)]
    pub(super) tools: Vec<Tool<'a>>,
    #[serde(default, rename = "nextCursor")]
    pub(super) next: Option<String>,
}

/// A tool as a server lists it.
#[derive(Debug, Deserialize)]
pub(super) struct Tool<'a> {
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(borrow, default, rename = "inputSchema")]
    input: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "outputSchema")]
    output: Option<&'a RawValue>,
}

impl Tool<'_> {
    pub(super) fn command(self) -> Command {
        let schema = |schema: Option<&RawValue>| schema.map_or("", RawValue::get).to_owned();
        Command {
            name: self.name,
            description: self.description.or(self.title).unwrap_or_default(),
            input: schema(self.input),
            output: schema(self.output),
        }
    }
}

/// Returns the manifest of a server with these tools.
pub(super) fn manifest(alias: &str, server: &Server, commands: Vec<Command>) -> Manifest {
    let description = [&server.title, &server.name];
    let description = description.into_iter().find(|text| !text.is_empty());
    let mut manifest = Manifest {
        name: alias.to_owned(),
        package: if server.name.is_empty() {
            alias.to_owned()
        } else {
            server.name.clone()
        },
        version: server.version.clone(),
        domain: "mcp".to_owned(),
        description: description.cloned().unwrap_or_default(),
        commands,
        patterns: vec![server.instructions.clone()],
        ..Manifest::default()
    };
    manifest.normalise();
    manifest
}

#[derive(Debug, Deserialize)]
struct Given<'a> {
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    #[serde(borrow, default, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
    #[serde(default, rename = "isError")]
    is_error: bool,
    #[serde(borrow, default, rename = "resultType")]
    kind: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    data: Cow<'a, str>,
    #[serde(borrow, default, rename = "mimeType")]
    mime: Cow<'a, str>,
}

/// Returns the result of a tool as it is, without `_meta`.
pub(super) fn value(result: &RawValue) -> Result<Value, Failure> {
    let malformed = || Failure::new(Code::Internal, "the server's result is malformed");
    let value: Value = serde_json::from_str(result.get()).map_err(|_| malformed())?;
    let Value::Object(mut members) = value else {
        return Err(malformed());
    };
    let kind = members.get("resultType").and_then(Value::as_str);
    if kind.is_some_and(|kind| kind != "complete") {
        return Err(asks_for_input());
    }
    members.shift_remove("_meta");
    members.shift_remove("resultType");
    Ok(Value::Object(members))
}

fn asks_for_input() -> Failure {
    let message = "the tool asks for input from a person, which pinion does not support";
    Failure::new(Code::FailedPrecondition, message)
}

/// Returns the outputs in the result of a tool.
///
/// Structured content is one output, unchanged. Without it, consecutive texts form one output, and each other item is
/// an output.
pub(super) fn outputs(result: &RawValue) -> Result<Vec<Bytes>, Failure> {
    let broken = |error: serde_json::Error| {
        let message = format!("the server's result is malformed: {error}");
        Failure::new(Code::Internal, message)
    };
    let result: Given<'_> = serde_json::from_str(result.get()).map_err(broken)?;
    if result
        .kind
        .as_deref()
        .is_some_and(|kind| kind != "complete")
    {
        return Err(asks_for_input());
    }
    let mut texts: Vec<String> = Vec::new();
    let mut outputs: Vec<Bytes> = Vec::new();
    let put_texts = |texts: &mut Vec<String>, outputs: &mut Vec<Bytes>| {
        if !texts.is_empty()
            && let Ok(text) = serde_json::to_vec(&std::mem::take(texts).join("\n"))
        {
            outputs.push(text.into());
        }
    };
    let data = result.structured.filter(|data| data.get() != "null");
    if let Some(data) = data
        && !result.is_error
    {
        return Ok(vec![bytes(data)]);
    }
    for part in result.content {
        let item: Item<'_> = serde_json::from_str(part.get()).map_err(broken)?;
        if item.kind == "text" {
            texts.push(item.text.into_owned());
            continue;
        }
        put_texts(&mut texts, &mut outputs);
        outputs.push(match &*item.kind {
            "image" | "audio" => {
                let value = serde_json::json!({ "type": item.kind, "mimeType": item.mime, "data": item.data });
                value.to_string().into()
            }
            _ => bytes(part),
        });
    }
    if result.is_error {
        let mut message = texts.join("\n");
        if message.is_empty() {
            message = match data {
                Some(data) => data.get().to_owned(),
                None => "the tool failed without a reason".to_owned(),
            };
        }
        return Err(Failure::new(Code::Internal, message));
    }
    put_texts(&mut texts, &mut outputs);
    Ok(outputs)
}

fn bytes(value: &RawValue) -> Bytes {
    Bytes::copy_from_slice(value.get().as_bytes())
}

/// Converts an error of a server to a failure.
pub(super) fn failure(fault: &Fault) -> Failure {
    let code = match fault.code {
        code::INVALID_PARAMS | code::INVALID_REQUEST | code::PARSE => Code::InvalidArgument,
        code::METHOD_NOT_FOUND => Code::Unimplemented,
        _ => Code::Internal,
    };
    Failure::new(code, fault.message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(result: &Value) -> Result<Vec<Value>, Failure> {
        let raw = RawValue::from_string(result.to_string()).unwrap();
        let outputs = outputs(&raw)?;
        Ok(outputs
            .iter()
            .map(|output| serde_json::from_slice(output).unwrap())
            .collect())
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn results_are_outputs() {
        assert_eq!(read(&json!({"content": []})).unwrap(), [] as [Value; 0]);
        let one = json!({"content": [text("{\"a\":1}")]});
        assert_eq!(read(&one).unwrap(), [json!("{\"a\":1}")]);
        let data = json!({"content": [text("x")], "structuredContent": {"a": [1]}, "resultType": "complete"});
        assert_eq!(read(&data).unwrap(), [json!({"a": [1]})]);
        let image =
            json!({"type": "image", "mimeType": "image/png", "data": "aGk=", "annotations": {}});
        let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
        let mixed = json!({"content": [text("a"), text("b"), image, link, text("c")]});
        assert_eq!(
            read(&mixed).unwrap(),
            [
                json!("a\nb"),
                json!({"type": "image", "mimeType": "image/png", "data": "aGk="}),
                link,
                json!("c")
            ]
        );
    }

    #[test]
    fn errors_are_failures() {
        let failed = |result: Value| read(&result).unwrap_err();
        let failure = failed(json!({"content": [text("no"), text("way")], "isError": true}));
        assert_eq!(
            (failure.code, &*failure.message),
            (Code::Internal, "no\nway")
        );
        let data = failed(json!({"structuredContent": {"error": "x"}, "isError": true}));
        assert_eq!(data.message, "{\"error\":\"x\"}");
        assert!(
            failed(json!({"isError": true}))
                .message
                .contains("without a reason")
        );
        let asks = failed(json!({"resultType": "input_required", "inputRequests": {}}));
        assert_eq!(asks.code, Code::FailedPrecondition);
        assert_eq!(failed(json!({"content": 5})).code, Code::Internal);
        assert_eq!(failed(json!(5)).code, Code::Internal);
    }

    #[test]
    fn tools_are_commands() {
        let page = r#"{"tools":[{"name":"b","inputSchema":{"type": "object"}},{"name":"a","title":"A","description":null}],"nextCursor":"x"}"#;
        let page: Page<'_> = serde_json::from_str(page).unwrap();
        let commands = page.tools.into_iter().map(Tool::command).collect();
        let server = Server {
            name: "files".into(),
            version: "1.2".into(),
            instructions: " Be careful. ".into(),
            ..Server::default()
        };
        let manifest = manifest("fs", &server, commands);
        assert_eq!(
            (manifest.name.as_str(), manifest.package.as_str()),
            ("fs", "files")
        );
        let names: Vec<_> = manifest
            .commands
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(manifest.commands[0].description, "A");
        assert_eq!(manifest.commands[1].input, r#"{"type": "object"}"#);
        assert_eq!(manifest.patterns, ["Be careful."]);
    }
}
