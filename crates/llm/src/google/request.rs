//! Builds requests of Google's APIs from the contents, the tools and the settings of a request.

use pinion_message::ToolSpec;
use serde::Serialize;
use serde_json::{Map, Value};

use super::contents::{WireContent, contents};
use super::thinking::{ThinkingConfig, thinking_config};
use crate::http_request::{Headers, HttpRequest, api_key, url};
use crate::request::Request;
use crate::sampling;
use crate::thinking::max_tokens;
use crate::transform::transform;

/// Google's hosts, which differ in their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    GenerativeLanguage,
    Vertex,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<WireContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<WireContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
    #[serde(flatten)]
    sampling: Map<String, Value>,
}

pub(crate) fn build(request: &Request, host: Host) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let history = transform(&request.messages, model);
    let system = request
        .system_prompt
        .as_deref()
        .filter(|prompt| !prompt.is_empty());
    let tools = (!request.tools.is_empty()).then(|| {
        [Tools {
            function_declarations: request.tools.iter().map(declaration).collect(),
        }]
    });
    let body = Body {
        contents: contents(&history, model),
        system_instruction: system.map(|prompt| WireContent::text("user", prompt)),
        tools,
        generation_config: GenerationConfig {
            temperature: request.options.temperature,
            max_output_tokens: max_tokens(request),
            thinking_config: model.reasoning.then(|| thinking_config(request, host)),
            sampling: sampling::members(request),
        },
    };
    let mut headers = Headers::json("*/*");
    headers.set("x-goog-api-key", api_key(request).unwrap_or_default());
    headers.model(request);
    let path = format!("models/{}:streamGenerateContent?alt=sse", model.id);
    let address = match host {
        Host::GenerativeLanguage => url(request, &path)?,
        Host::Vertex => vertex_url(request, &path)?,
    };
    headers.into_request(address, &body, request)
}

fn declaration(spec: &ToolSpec) -> Declaration<'_> {
    let ToolSpec {
        name,
        description,
        parameters,
    } = spec;
    Declaration {
        name,
        description,
        parameters_json_schema: parameters,
    }
}

/// The address for an API key, which contains neither project nor location.
fn vertex_url(request: &Request, path: &str) -> Result<String, String> {
    let path = format!("v1/publishers/google/{path}");
    let base = &request.model.base_url;
    if base.is_empty() || base.contains("{location}") {
        return Ok(format!("https://aiplatform.googleapis.com/{path}"));
    }
    url(request, &path)
}
