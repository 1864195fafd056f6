//! A request in Google's words: turns of parts, function responses in user turns, and thought
//! signatures that only go back to the model that made them.

use std::borrow::Cow;
use std::sync::Arc;

use pinion_message::{
    AssistantMessage, Block, Content, Message, Model, ThinkingLevel, ToolResultMessage, ToolSpec,
};
use serde::Serialize;
use serde_json::Value;

use crate::outgoing::{Headers, HttpRequest, SEE_IMAGE, TOOL_IMAGES, api_key, joined_text, url};
use crate::request::Request;
use crate::thinking::{Mapped, mapped, max_tokens};
use crate::tool_ids::needs_call_ids;
use crate::transform::transform;

/// Which of Google's hosts is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    GenerativeLanguage,
    Vertex,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    args: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    name: &'a str,
    response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
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
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    include_thoughts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<i64>,
}

/// The request as it goes out.
pub(crate) fn build(request: &Request, host: Host) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let history = transform(&request.messages, model);
    let text = |text| Part {
        text: Some(text),
        ..Part::default()
    };
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
        contents: turns(&history, model),
        system_instruction: system.map(|prompt| Turn {
            role: "user",
            parts: vec![text(prompt)],
        }),
        tools,
        generation_config: GenerationConfig {
            temperature: request.options.temperature,
            max_output_tokens: max_tokens(request),
            thinking_config: model.reasoning.then(|| thinking_config(request, host)),
        },
    };
    let mut headers = Headers::json("*/*");
    headers.set("x-goog-api-key", api_key(request).unwrap_or_default());
    headers.model(request);
    let path = format!("models/{}:streamGenerateContent?alt=sse", model.id);
    let address = match host {
        Host::GenerativeLanguage => url(model, &path)?,
        Host::Vertex => vertex_url(model, &path)?,
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

/// With a key there is neither project nor location in the address.
fn vertex_url(model: &Model, path: &str) -> Result<String, String> {
    let path = format!("v1/publishers/google/{path}");
    if model.base_url.is_empty() || model.base_url.contains("{location}") {
        return Ok(format!("https://aiplatform.googleapis.com/{path}"));
    }
    url(model, &path)
}

fn thinking_config(request: &Request, host: Host) -> ThinkingConfig {
    let model = &*request.model;
    let family = Family::of(&model.id, host);
    let asked = request
        .options
        .reasoning
        .filter(|&level| level != ThinkingLevel::Off);
    let Some(asked) = asked else {
        return thinking_off(model, family);
    };
    let level = match model.clamp_thinking(asked) {
        ThinkingLevel::Off => ThinkingLevel::High,
        level => level,
    };
    let config = ThinkingConfig {
        include_thoughts: Some(true),
        ..ThinkingConfig::default()
    };
    match level_word(model, family, level) {
        Some(word) => ThinkingConfig {
            thinking_level: Some(word),
            ..config
        },
        None => {
            let own = request.options.thinking_budgets.get(&level);
            let budget = own.map_or_else(|| family.budget(level), |&tokens| tokens as i64);
            ThinkingConfig {
                thinking_budget: Some(budget),
                ..config
            }
        }
    }
}

/// Newer models cannot be kept from thinking; they are asked to think as little as they can.
fn thinking_off(model: &Model, family: Family) -> ThinkingConfig {
    let least = match mapped(model, ThinkingLevel::Off) {
        Mapped::Unsupported => model.thinking_levels().first().copied(),
        _ => Some(ThinkingLevel::Minimal).filter(|_| family.speaks_levels()),
    };
    let word = least.and_then(|level| level_word(model, family, level));
    match word {
        Some(word) => ThinkingConfig {
            thinking_level: Some(word),
            ..ThinkingConfig::default()
        },
        None => ThinkingConfig {
            thinking_budget: Some(0),
            ..ThinkingConfig::default()
        },
    }
}

/// The level as a word, where the model takes words rather than budgets.
fn level_word(model: &Model, family: Family, level: ThinkingLevel) -> Option<String> {
    match mapped(model, level) {
        Mapped::Word(word) => Some(word.to_ascii_uppercase()),
        _ => family.level(level).map(str::to_owned),
    }
}

/// Models that take thinking the same way, told by their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Gemini3Pro,
    Gemini3Flash,
    Gemma4,
    Gemini25Pro,
    Gemini25FlashLite,
    Gemini25Flash,
    Other,
}

impl Family {
    fn of(id: &str, host: Host) -> Self {
        let id = id.to_ascii_lowercase();
        let generative = host == Host::GenerativeLanguage;
        if is_gemini_3(&id, "-pro") {
            Self::Gemini3Pro
        } else if is_gemini_3(&id, "-flash") {
            Self::Gemini3Flash
        } else if generative && (id.contains("gemma-4") || id.contains("gemma4")) {
            Self::Gemma4
        } else if id.contains("2.5-pro") {
            Self::Gemini25Pro
        } else if generative && id.contains("2.5-flash-lite") {
            Self::Gemini25FlashLite
        } else if id.contains("2.5-flash") {
            Self::Gemini25Flash
        } else {
            Self::Other
        }
    }

    fn speaks_levels(self) -> bool {
        matches!(self, Self::Gemini3Pro | Self::Gemini3Flash | Self::Gemma4)
    }

    fn level(self, level: ThinkingLevel) -> Option<&'static str> {
        use ThinkingLevel::{Low, Medium, Minimal};
        match (self, level) {
            (Self::Gemini3Pro, Minimal | Low) => Some("LOW"),
            (Self::Gemini3Flash, Minimal) | (Self::Gemma4, Minimal | Low) => Some("MINIMAL"),
            (Self::Gemini3Flash, Low) => Some("LOW"),
            (Self::Gemini3Flash, Medium) => Some("MEDIUM"),
            _ if self.speaks_levels() => Some("HIGH"),
            _ => None,
        }
    }

    fn budget(self, level: ThinkingLevel) -> i64 {
        let [minimal, high] = match self {
            Self::Gemini25Pro => [128, 32_768],
            Self::Gemini25FlashLite => [512, 24_576],
            Self::Gemini25Flash => [128, 24_576],
            // The model decides.
            _ => return -1,
        };
        match level {
            ThinkingLevel::Off => 0,
            ThinkingLevel::Minimal => minimal,
            ThinkingLevel::Low => 2048,
            ThinkingLevel::Medium => 8192,
            _ => high,
        }
    }
}

/// `gemini-3-pro`, `gemini-3.1-flash` and the like.
fn is_gemini_3(id: &str, kind: &str) -> bool {
    let Some((_, rest)) = id.split_once("gemini-3") else {
        return false;
    };
    let rest = match rest.strip_prefix('.') {
        Some(minor) => minor.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    rest.starts_with(kind)
}

/// Whether images ride inside function responses: from Gemini 3 on, and behind other names.
fn nests_images(id: &str) -> bool {
    match id.to_ascii_lowercase().split_once("gemini-") {
        None => true,
        Some((_, version)) => {
            let major: String = version.chars().take_while(char::is_ascii_digit).collect();
            // `gemini-flash-latest` has no number and is new.
            major.parse::<u32>().map_or(true, |major| major >= 3)
        }
    }
}

fn turns<'a>(history: &'a [Arc<Message>], model: &Model) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::with_capacity(history.len());
    // A run of results is one turn; images that cannot ride in it make the next one.
    let mut results: Vec<Part<'a>> = Vec::new();
    let mut images: Vec<Part<'a>> = Vec::new();
    for message in history {
        if let Message::ToolResult(result) = &**message {
            push_result(&mut results, &mut images, result, model);
            continue;
        }
        flush_results(&mut turns, &mut results, &mut images);
        let (role, parts): (_, Vec<Part<'a>>) = match &**message {
            Message::User(user) => ("user", user_parts(&user.content)),
            Message::Assistant(answer) => ("model", model_parts(answer, model)),
            _ => continue,
        };
        if !parts.is_empty() {
            turns.push(Turn { role, parts });
        }
    }
    flush_results(&mut turns, &mut results, &mut images);
    turns
}

fn flush_results<'a>(
    turns: &mut Vec<Turn<'a>>,
    results: &mut Vec<Part<'a>>,
    images: &mut Vec<Part<'a>>,
) {
    if !results.is_empty() {
        turns.push(Turn {
            role: "user",
            parts: std::mem::take(results),
        });
    }
    if !images.is_empty() {
        let mut parts = vec![Part {
            text: Some(TOOL_IMAGES),
            ..Part::default()
        }];
        parts.append(images);
        turns.push(Turn {
            role: "user",
            parts,
        });
    }
}

fn user_parts(content: &Content) -> Vec<Part<'_>> {
    match content {
        Content::Text(text) => vec![Part {
            text: Some(text),
            ..Part::default()
        }],
        Content::Blocks(blocks) => blocks.iter().filter_map(user_part).collect(),
    }
}

fn user_part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(text) => Some(Part {
            text: Some(&text.text),
            ..Part::default()
        }),
        other => image_part(other),
    }
}

fn image_part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Image { data, mime_type } => Some(Part {
            inline_data: Some(InlineData { mime_type, data }),
            ..Part::default()
        }),
        _ => None,
    }
}

fn model_parts<'a>(answer: &'a AssistantMessage, model: &Model) -> Vec<Part<'a>> {
    let own = answer.provider == model.provider && answer.model == model.id;
    let signature =
        |text: &'a Option<String>| text.as_deref().filter(|text| own && is_base64(text));
    let part = |block: &'a Block| match block {
        Block::Text(text) if text.text.trim().is_empty() => None,
        Block::Text(text) => Some(Part {
            text: Some(&text.text),
            thought_signature: signature(&text.text_signature),
            ..Part::default()
        }),
        Block::Thinking(thinking) if thinking.thinking.trim().is_empty() => None,
        Block::Thinking(thinking) => Some(Part {
            text: Some(&thinking.thinking),
            thought: own.then_some(true),
            thought_signature: signature(&thinking.thinking_signature),
            ..Part::default()
        }),
        Block::ToolCall(call) => Some(Part {
            function_call: Some(FunctionCall {
                name: &call.name,
                args: &call.arguments,
                id: needs_call_ids(&model.id).then_some(call.id.as_str()),
            }),
            thought_signature: signature(&call.thought_signature),
            ..Part::default()
        }),
        Block::Image { .. } => None,
    };
    answer.content.iter().filter_map(part).collect()
}

fn push_result<'a>(
    results: &mut Vec<Part<'a>>,
    images: &mut Vec<Part<'a>>,
    result: &'a ToolResultMessage,
    model: &Model,
) {
    let mut shown: Vec<Part<'a>> = Vec::new();
    if model.takes_images() {
        shown.extend(result.content.iter().filter_map(image_part));
    }
    let text = joined_text(&result.content);
    let text = if text.is_empty() && !shown.is_empty() {
        SEE_IMAGE.into()
    } else {
        text
    };
    let nested = nests_images(&model.id);
    results.push(Part {
        function_response: Some(FunctionResponse {
            name: &result.tool_name,
            response: if result.is_error {
                Outcome::Error(text)
            } else {
                Outcome::Output(text)
            },
            parts: if nested {
                std::mem::take(&mut shown)
            } else {
                Vec::new()
            },
            id: needs_call_ids(&model.id).then_some(result.tool_call_id.as_str()),
        }),
        ..Part::default()
    });
    images.append(&mut shown);
}

/// Google refuses signatures that are not base64; other APIs keep other things in their place.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && !digits.is_empty()
        && text.len() - digits.len() <= 2
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}
