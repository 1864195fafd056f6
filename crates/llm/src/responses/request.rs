//! A request in the words of the Responses API: one flat list of items, in which reasoning goes
//! back exactly as it came. Azure speaks the same with another address and another header.

use std::borrow::Cow;
use std::sync::Arc;

use pinion_message::{
    AssistantMessage, Block, Content, Message, Model, ThinkingLevel, ToolCall, ToolResultMessage,
    ToolSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::compat;
use crate::outgoing::{DataUrl, Headers, HttpRequest, api_key, cache_session, joined_text, url};
use crate::request::{CacheRetention, Request};
use crate::thinking::{Mapped, clamped, effort, mapped, max_tokens};
use crate::tool_ids::short_hash;
use crate::transform::transform;

/// Whose Responses API it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    OpenAi,
    Azure,
}

/// Longer message ids are refused.
const MAX_MESSAGE_ID: usize = 64;

#[derive(Serialize)]
struct Body<'a> {
    model: Cow<'a, str>,
    input: Vec<Item<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_retention: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
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
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Said {
        role: &'static str,
        content: Said<'a>,
    },
    Reasoning(&'a RawValue),
    Answer(Answer<'a>),
    Call(Call<'a>),
    Output {
        r#type: &'static str,
        call_id: &'a str,
        output: Said<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText {
        text: &'a str,
    },
    InputImage {
        detail: &'static str,
        image_url: DataUrl<'a>,
    },
}

#[derive(Serialize)]
struct Answer<'a> {
    r#type: &'static str,
    role: &'static str,
    content: [OutputText<'a>; 1],
    status: &'static str,
    id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct OutputText<'a> {
    r#type: &'static str,
    text: &'a str,
    annotations: [(); 0],
}

#[derive(Serialize)]
struct Call<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    call_id: &'a str,
    name: &'a str,
    arguments: String,
}

/// What is kept of a message item: its id, and which phase of the answer it was.
#[derive(Deserialize)]
struct TextSignature<'a> {
    v: u64,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(default, borrow)]
    phase: Option<Cow<'a, str>>,
}

/// The request as it goes out.
pub(crate) fn build(request: &Request, flavour: Flavour) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let options = &request.options;
    let compat = compat::Responses::of(model);
    let history = transform(&request.messages, model);
    let azure = flavour == Flavour::Azure;
    let long = options.cache_retention == CacheRetention::Long && compat.long_cache && !azure;
    let (reasoning, include) = reasoning(request, &compat);
    let body = Body {
        model: if azure {
            azure_deployment(model).into()
        } else {
            (&model.id).into()
        },
        input: items(request, &history, &compat),
        stream: true,
        prompt_cache_key: match flavour {
            Flavour::OpenAi => cache_session(request),
            Flavour::Azure => options.session_id.as_deref(),
        },
        prompt_cache_retention: long.then_some("24h"),
        store: (!azure).then_some(false),
        max_output_tokens: max_tokens(request).filter(|_| compat.max_output_tokens),
        temperature: options.temperature,
        tools: request.tools.iter().map(tool).collect(),
        reasoning,
        include,
    };
    let address = if azure {
        azure_url(model)?
    } else {
        url(model, "responses")?
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
            summary: Some("auto"),
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

fn items<'a>(
    request: &'a Request,
    history: &'a [Arc<Message>],
    compat: &compat::Responses,
) -> Vec<Item<'a>> {
    let model = &*request.model;
    let mut items = Vec::with_capacity(history.len() + 1);
    if let Some(prompt) = request
        .system_prompt
        .as_deref()
        .filter(|prompt| !prompt.is_empty())
    {
        let developer = model.reasoning && compat.developer_role;
        let role = if developer { "developer" } else { "system" };
        items.push(Item::Said {
            role,
            content: Said::Text(prompt.into()),
        });
    }
    for (number, message) in history.iter().enumerate() {
        match &**message {
            Message::User(user) => {
                let parts = match &user.content {
                    Content::Text(text) => vec![Part::InputText { text }],
                    Content::Blocks(blocks) => blocks.iter().filter_map(part).collect(),
                };
                if !parts.is_empty() {
                    items.push(Item::Said {
                        role: "user",
                        content: Said::Parts(parts),
                    });
                }
            }
            Message::Assistant(answer) => push_answer(&mut items, answer, model, number),
            Message::ToolResult(result) => items.push(output(result, model)),
            _ => {}
        }
    }
    items
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(text) => Some(Part::InputText { text: &text.text }),
        Block::Image { data, mime_type } => Some(Part::InputImage {
            detail: "auto",
            image_url: DataUrl { mime_type, data },
        }),
        _ => None,
    }
}

fn push_answer<'a>(
    items: &mut Vec<Item<'a>>,
    answer: &'a AssistantMessage,
    model: &Model,
    number: usize,
) {
    // The server checks that a call with an item id follows the reasoning it belongs to, which
    // another model's reasoning no longer does.
    let other_model =
        answer.provider == model.provider && answer.api == model.api && answer.model != model.id;
    for block in &answer.content {
        items.extend(match block {
            Block::Thinking(thinking) => {
                let item = thinking.thinking_signature.as_deref();
                item.and_then(|item| serde_json::from_str(item).ok())
                    .map(Item::Reasoning)
            }
            Block::Text(text) => {
                let (id, phase) = message_id(text.text_signature.as_deref(), number);
                Some(Item::Answer(Answer {
                    r#type: "message",
                    role: "assistant",
                    content: [OutputText {
                        r#type: "output_text",
                        text: &text.text,
                        annotations: [],
                    }],
                    status: "completed",
                    id,
                    phase,
                }))
            }
            Block::ToolCall(call) => Some(Item::Call(function_call(call, other_model))),
            Block::Image { .. } => None,
        });
    }
}

fn message_id(signature: Option<&str>, number: usize) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    let Some(signature) = signature.filter(|signature| !signature.is_empty()) else {
        return (format!("msg_{number}").into(), None);
    };
    let (id, phase) = match serde_json::from_str::<TextSignature<'_>>(signature) {
        Ok(TextSignature { v: 1, id, phase }) => (id, phase),
        // Old sessions kept the bare id.
        _ => (signature.into(), None),
    };
    let known = |phase: &Cow<'_, str>| matches!(&**phase, "commentary" | "final_answer");
    let id = if id.len() > MAX_MESSAGE_ID {
        format!("msg_{}", short_hash(&id)).into()
    } else {
        id
    };
    (id, phase.filter(known))
}

fn function_call(call: &ToolCall, other_model: bool) -> Call<'_> {
    let (call_id, item) = match call.id.split_once('|') {
        Some((call_id, item)) => (call_id, Some(item)),
        None => (call.id.as_str(), None),
    };
    Call {
        r#type: "function_call",
        id: item.filter(|item| !(other_model && item.starts_with("fc_"))),
        call_id,
        name: &call.name,
        arguments: call.arguments.to_string(),
    }
}

fn output<'a>(result: &'a ToolResultMessage, model: &Model) -> Item<'a> {
    let has_image = result
        .content
        .iter()
        .any(|block| matches!(block, Block::Image { .. }));
    let output = if has_image && model.takes_images() {
        let parts = result.content.iter().filter_map(part);
        let filled = |part: &Part<'_>| !matches!(part, Part::InputText { text: "" });
        Said::Parts(parts.filter(filled).collect())
    } else {
        Said::Text(joined_text(&result.content))
    };
    let call_id = result.tool_call_id.split('|').next().unwrap_or_default();
    Item::Output {
        r#type: "function_call_output",
        call_id,
        output,
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| !value.trim().is_empty())
}

/// The deployment that serves the model, from `AZURE_OPENAI_DEPLOYMENT_NAME_MAP` (`id=name,…`).
fn azure_deployment(model: &Model) -> String {
    let map = environment("AZURE_OPENAI_DEPLOYMENT_NAME_MAP").unwrap_or_default();
    let named = map.split(',').filter_map(|pair| pair.split_once('='));
    let found = named
        .map(|(id, name)| (id.trim(), name.trim()))
        .find(|(id, _)| *id == model.id);
    found.map_or_else(|| model.id.clone(), |(_, name)| name.to_owned())
}

fn azure_url(model: &Model) -> Result<String, String> {
    let resource = environment("AZURE_OPENAI_RESOURCE_NAME")
        .map(|name| format!("https://{name}.openai.azure.com/openai/v1"));
    let base = environment("AZURE_OPENAI_BASE_URL").or(resource);
    let base = base.unwrap_or_else(|| model.base_url.clone());
    let mut base = reqwest::Url::parse(&base)
        .map_err(|error| format!("The Azure base URL {base:?} is not valid: {error}"))?;
    let host = base.host_str().unwrap_or_default();
    let azure = [".openai.azure.com", ".cognitiveservices.azure.com"];
    if azure.iter().any(|domain| host.ends_with(domain)) {
        base.set_query(None);
        if matches!(base.path().trim_end_matches('/'), "" | "/openai") {
            base.set_path("/openai/v1");
        }
    }
    let version = environment("AZURE_OPENAI_API_VERSION").unwrap_or_else(|| "v1".to_owned());
    let path = format!("{}/responses", base.path().trim_end_matches('/'));
    base.set_path(&path);
    base.query_pairs_mut().append_pair("api-version", &version);
    Ok(base.into())
}
