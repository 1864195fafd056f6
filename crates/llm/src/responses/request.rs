//! Builds requests of the Responses API: one flat list of items, in which reasoning is sent back
//! exactly as it came. Azure has the same API with another address and another header.

use std::borrow::Cow;

use pinion_message::{ThinkingLevel, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value};

use super::azure::{azure_deployment, azure_url};
use super::items::{Item, PromptRole, items};
use crate::compat;
use crate::http_request::{Headers, HttpRequest, api_key, base_url, cache_session, url};
use crate::request::{CacheRetention, Request};
use crate::sampling;
use crate::thinking::{Mapped, clamped, effort, fitting_max_tokens, mapped, max_tokens};
use crate::transform::transform;

/// The vendor of the Responses API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    OpenAi,
    Azure,
}

#[derive(Serialize)]
struct Body<'a> {
    model: Cow<'a, str>,
    input: Vec<Item<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_retention: Option<&'static str>,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(flatten)]
    sampling: Map<String, Value>,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

/// The smallest output cap that Azure accepts.
const MIN_AZURE_CAP: u64 = 16;

/// Reports whether the key is a token of "Sign in with ChatGPT", with which the API refuses some members.
fn is_chatgpt_login(request: &Request) -> bool {
    let key = api_key(request).unwrap_or_default();
    request.model.provider == "openai"
        && base_url(request).trim_end_matches('/') == "https://api.openai.com/v1"
        && !key.is_empty()
        && !key.starts_with("sk-")
}

pub(crate) fn build(request: &Request, flavour: Flavour) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let options = &request.options;
    let compat = compat::Responses::of(model);
    let history = transform(&request.messages, model);
    let azure = flavour == Flavour::Azure;
    let long = options.cache_retention == CacheRetention::Long && compat.long_cache && !azure;
    let (reasoning, include) = reasoning(request, &compat);
    // The API calls the role of the prompt differently for models that think.
    let prompt = if model.reasoning && compat.developer_role {
        PromptRole::Developer
    } else {
        PromptRole::System
    };
    let chatgpt = is_chatgpt_login(request);
    let body = Body {
        model: if azure {
            azure_deployment(request).into()
        } else {
            (&model.id).into()
        },
        input: items(request, &history, prompt),
        stream: true,
        prompt_cache_key: match flavour {
            Flavour::OpenAi => cache_session(request),
            Flavour::Azure => options.session_id.as_deref(),
        },
        prompt_cache_retention: (long && !chatgpt).then_some("24h"),
        store: false,
        max_output_tokens: match flavour {
            Flavour::Azure => fitting_max_tokens(request).map(|tokens| tokens.max(MIN_AZURE_CAP)),
            Flavour::OpenAi => max_tokens(request),
        }
        .filter(|_| compat.max_output_tokens && !chatgpt),
        temperature: options.temperature.filter(|_| !chatgpt),
        tools: request.tools.iter().map(tool).collect(),
        reasoning,
        include,
        sampling: sampling::members(request),
    };
    let address = if azure {
        azure_url(request)?
    } else {
        url(request, "responses")?
    };
    headers(request, &compat, flavour).into_request(address, &body, request)
}

fn headers(request: &Request, compat: &compat::Responses, flavour: Flavour) -> Headers {
    let mut headers = Headers::json("application/json");
    match (flavour, request.model.provider.as_str()) {
        (Flavour::Azure, _) => headers.set("api-key", api_key(request).unwrap_or_default()),
        (_, "cloudflare-ai-gateway") => headers.bearer("cf-aig-authorization", request),
        _ => headers.bearer("authorization", request),
    }
    headers.model(request);
    if let Some(session) = cache_session(request).filter(|_| flavour == Flavour::OpenAi) {
        if compat.session_header {
            headers.set("session_id", session);
        }
        headers.set("x-client-request-id", session);
    }
    headers
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    let ToolSpec {
        name,
        description,
        parameters,
    } = spec;
    Tool {
        r#type: "function",
        name,
        description,
        parameters,
        strict: false,
    }
}

fn reasoning<'a>(
    request: &'a Request,
    compat: &compat::Responses,
) -> (Option<Reasoning<'a>>, Option<[&'static str; 1]>) {
    let model = &*request.model;
    if !model.reasoning {
        return (None, None);
    }
    let include = Some(["reasoning.encrypted_content"]);
    if let Some(level) = clamped(request) {
        let effort = effort(model, level);
        let reasoning = Reasoning {
            effort,
            summary: sampling::reasoning_summary(request),
        };
        return (Some(reasoning).filter(|_| compat.reasoning_effort), include);
    }
    let off = match mapped(model, ThinkingLevel::Off) {
        _ if model.provider == "github-copilot" || !compat.reasoning_effort => None,
        Mapped::Unsupported => None,
        Mapped::Word(word) => Some(word),
        Mapped::Default => Some("none"),
    };
    (
        off.map(|effort| Reasoning {
            effort,
            summary: None,
        }),
        None,
    )
}
