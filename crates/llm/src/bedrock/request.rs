//! Builds requests of the Converse API.

use std::borrow::Cow;

use pinion_message::ToolSpec;
use serde::Serialize;
use serde_json::{Value, json};

use super::Names;
use super::address::address;
use super::messages::{CachePoint, Part, WireMessage, messages};
use super::thinking::thinking;
use crate::http_request::{Headers, HttpRequest, api_key};
use crate::identity::{CloudIdentity, RequestSigner};
use crate::request::{CacheRetention, Request};
use crate::thinking::fitting_max_tokens;
use crate::transform::transform_dropping_thinking;

/// Claude models whose prompts can be cached.
const CACHED: [&str; 7] = [
    "fable-5",
    "opus-5",
    "sonnet-5",
    "haiku-5",
    "-4-",
    "claude-3-7-sonnet",
    "claude-3-5-haiku",
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Vec<Part<'a>>>,
    inference_config: InferenceConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_model_request_fields: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    tool_spec: Spec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Schema<'a>,
}

#[derive(Serialize)]
struct Schema<'a> {
    json: &'a Value,
}

pub(crate) fn build(request: &Request) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let names = Names::of(model);
    let history = transform_dropping_thinking(&request.messages, model);
    let mut messages = messages(&history, &names)?;
    let cache = cache_point(request, &names);
    if let (Some(cache), Some(last)) = (
        cache,
        messages.last_mut().filter(|last| last.role == "user"),
    ) {
        last.content.push(Part::CachePoint(cache));
    }
    let prompt = request
        .system_prompt
        .as_deref()
        .filter(|prompt| !prompt.trim().is_empty());
    let system = prompt.map(|prompt| {
        let mut parts = vec![Part::Text(Cow::Borrowed(prompt))];
        parts.extend(cache.map(Part::CachePoint));
        parts
    });
    let (max_tokens, fields) = thinking(request, &names, fitting_max_tokens(request));
    let body = Body {
        messages,
        system,
        inference_config: InferenceConfig {
            max_tokens,
            temperature: request.options.temperature,
        },
        tool_config: tool_config(request),
        additional_model_request_fields: fields,
    };
    let address = address(request);
    let mut headers = Headers::default();
    headers.set("content-type", "application/json");
    headers.model(request);
    let mut built = headers.into_request(address.url, &body, request)?;
    // The signature, or the token below, decides about these.
    built.headers.retain(|(name, _)| {
        name != "authorization" && name != "host" && !name.starts_with("x-amz-")
    });
    match (api_key(request), &request.options.identity) {
        (Some(key), _) => built
            .headers
            .push(("authorization".to_owned(), format!("Bearer {key}"))),
        (
            None,
            Some(CloudIdentity::Aws {
                keys: Some(keys), ..
            }),
        ) => {
            built.signer = Some(RequestSigner {
                keys: keys.clone(),
                region: address.region,
            });
        }
        _ => {}
    }
    Ok(built)
}

fn cache_point(request: &Request, names: &Names) -> Option<CachePoint> {
    let long = match request.options.cache_retention {
        CacheRetention::None => return None,
        CacheRetention::Short => false,
        CacheRetention::Long => true,
    };
    let is_forced = request
        .options
        .environment
        .get("AWS_BEDROCK_FORCE_CACHE")
        .as_deref()
        == Some("1");
    let is_known = names.is_claude() && names.has_any(&CACHED);
    (is_known || is_forced).then(|| CachePoint::new(long))
}

fn tool_config(request: &Request) -> Option<ToolConfig<'_>> {
    let choice = request.options.tool_choice.as_ref();
    if request.tools.is_empty() || choice.is_some_and(|choice| choice == "none") {
        return None;
    }
    let tool_choice = choice.and_then(|choice| match choice {
        Value::String(word) if word == "auto" => Some(json!({"auto": {}})),
        Value::String(word) if word == "any" || word == "required" => Some(json!({"any": {}})),
        Value::Object(_) => {
            let name = choice
                .get("name")
                .or_else(|| choice.pointer("/function/name"));
            name.map(|name| json!({"tool": {"name": name}}))
        }
        _ => None,
    });
    Some(ToolConfig {
        tools: request.tools.iter().map(tool).collect(),
        tool_choice,
    })
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    let ToolSpec {
        name,
        description,
        parameters,
    } = spec;
    Tool {
        tool_spec: Spec {
            name,
            description,
            input_schema: Schema { json: parameters },
        },
    }
}
