//! Options of requests: sampling, length, thinking, structured output, timeouts; and notices about
//! unsupported ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pinion_llm::{RequestOptions, Sampling, StructuredOutput};
use pinion_message::{Model, ThinkingLevel};

use crate::error::{Notice, ProfileError};
use crate::resolve::Resolved;
use crate::settings::InferenceSettings;

/// Options of requests to a model.
#[derive(Debug, Clone, Default)]
pub struct Tuning {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u64>,
    /// Other sampling options, and the structure of the answer.
    pub sampling: Arc<Sampling>,
    /// Tokens for thinking, at any level.
    pub thinking_budget: Option<u64>,
    /// Headers of the request: organization, user agent.
    pub headers: BTreeMap<String, String>,
    /// The id of the end user.
    pub user_id: Option<String>,
    /// The longest wait for the server, for the first byte and between two chunks.
    pub timeout: Option<Duration>,
}

impl Tuning {
    /// Applies the options to a request; options that are already set there stay.
    pub fn apply(&self, options: &mut RequestOptions) {
        options.temperature = options.temperature.or(self.temperature);
        options.max_tokens = options.max_tokens.or(self.max_tokens);
        if options.sampling.is_none() {
            options.sampling = Some(Arc::clone(&self.sampling));
        }
        if let Some(budget) = self.thinking_budget {
            for level in ThinkingLevel::ALL {
                options.thinking_budgets.insert(level, budget);
            }
        }
        for (name, value) in &self.headers {
            let headers = &mut options.headers;
            headers.entry(name.clone()).or_insert_with(|| value.clone());
        }
        if options.user_id.is_none() {
            options.user_id.clone_from(&self.user_id);
        }
        if let Some(timeout) = self.timeout {
            options.timeouts.first_byte = timeout;
            options.timeouts.idle = timeout;
        }
    }
}

/// Returns the options and the thinking level for `model`, with notices about unsupported settings.
pub(crate) fn of(
    resolved: &Resolved,
    model: &Model,
) -> Result<(Tuning, ThinkingLevel, Vec<Notice>), ProfileError> {
    let settings = &resolved.settings;
    let (thinking, thinking_budget) = thinking(resolved, model)?;
    let sampling = sampling(resolved, model)?;
    let mut notices = Vec::new();
    let missing = sampling.unsupported(&model.api);
    if !missing.is_empty() && model.api != "offline" {
        notices.push(Notice::new(
            "unsupported_setting",
            format!(
                "these settings are not sent, because {} has no word for them: {}",
                model.api,
                missing.join(", ")
            ),
        ));
    }
    unsupported(resolved, model, &mut notices);
    let whole = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
    let timeout = settings.client.timeout.and_then(whole);
    let tuning = Tuning {
        temperature: temperature(resolved, model, sampling.top_p.is_some()),
        max_tokens: settings
            .inference
            .max_response_tokens
            .or(settings.chat.max_response_tokens)
            .and_then(whole),
        sampling: Arc::new(sampling),
        thinking_budget,
        headers: headers(settings, model),
        user_id: settings.claude.user_id.clone(),
        timeout: timeout
            .filter(|_| resolved.is_given(&["client", "timeout"]))
            .map(Duration::from_secs),
    };
    Ok((tuning, thinking, notices))
}

/// Returns the requested temperature; the default only if it does not conflict with other options.
fn temperature(resolved: &Resolved, model: &Model, has_top_p: bool) -> Option<f64> {
    let settings = &resolved.settings;
    if let Some(temperature) = settings.inference.temperature {
        return Some(temperature);
    }
    let given = resolved.is_given(&["chat", "temperature"]);
    settings
        .chat
        .temperature
        .filter(|_| given || !(model.reasoning || has_top_p))
}

fn sampling(resolved: &Resolved, model: &Model) -> Result<Sampling, ProfileError> {
    let InferenceSettings {
        chat,
        openai,
        claude,
        inference,
        ..
    } = &resolved.settings;
    let given = |section: &str, name: &str| resolved.is_given(&[section, name]);
    let claude_top_k = claude.top_k.filter(|_| given("claude", "top_k"));
    Ok(Sampling {
        top_p: inference
            .top_p
            .or(chat.top_p.filter(|_| given("chat", "top_p"))),
        top_k: claude_top_k
            .filter(|_| model.api == "anthropic-messages")
            .and_then(|top_k| u64::try_from(top_k).ok()),
        stop: inference.stop.clone().unwrap_or_else(|| chat.stop.clone()),
        seed: inference.seed,
        presence_penalty: openai.presence_penalty,
        frequency_penalty: openai.frequency_penalty,
        logit_bias: openai.logit_bias.clone(),
        parallel_tool_calls: openai
            .parallel_tool_calls
            .filter(|_| given("openai", "parallel_tool_calls")),
        reasoning_summary: inference
            .reasoning_summary
            .clone()
            .or_else(|| openai.reasoning_summary.clone()),
        structured_output: structured_output(resolved)?,
        // Only Anthropic requires a cap; elsewhere the server's default is better.
        uncapped: model.api != "anthropic-messages",
    })
}

fn structured_output(resolved: &Resolved) -> Result<Option<StructuredOutput>, ProfileError> {
    let chat = &resolved.settings.chat;
    if chat.structured_output_mode.as_deref() != Some("json_schema") {
        return Ok(None);
    }
    let wrong = |message: String| ProfileError::Setting {
        origin: "chat.structured_output_schema".to_owned(),
        message,
    };
    let text = chat.structured_output_schema.as_deref().unwrap_or_default();
    if text.trim().is_empty() {
        return Err(wrong(
            "structured output needs a JSON Schema; set it, or set chat.structured_output_mode to off"
                .to_owned(),
        ));
    }
    let schema: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        let why = pinion_jsonl::explain_with_position(&error);
        wrong(format!("the schema is not valid JSON: {why}"))
    })?;
    if !schema.is_object() {
        return Err(wrong("the schema must be a JSON object".to_owned()));
    }
    let set = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    Ok(Some(StructuredOutput {
        name: set(&chat.structured_output_name).unwrap_or_else(|| "output".to_owned()),
        description: set(&chat.structured_output_description),
        schema,
        strict: chat.structured_output_strict.unwrap_or(true),
    }))
}

/// Returns the thinking level and its budget in tokens.
///
/// OpenAI's and Google's models think at their default level, Anthropic's only on request.
fn thinking(
    resolved: &Resolved,
    model: &Model,
) -> Result<(ThinkingLevel, Option<u64>), ProfileError> {
    let InferenceSettings {
        openai,
        gemini,
        inference,
        ..
    } = &resolved.settings;
    let given = |name: &str| resolved.is_given(&["openai", name]);
    let of_openai = model.api.starts_with("openai");
    let of_google = model.api.starts_with("google");
    let kind = inference.thinking_type.as_deref();
    let kind = kind.or(openai.thinking_type.as_deref().filter(|_| of_openai));
    if matches!(kind, Some("disabled" | "off" | "none")) {
        return Ok((ThinkingLevel::Off, None));
    }
    let budget = inference
        .thinking_budget
        .or(gemini.thinking_budget.filter(|_| of_google));
    let asked = if let Some(effort) = &inference.reasoning_effort {
        Some(("inference.reasoning_effort", effort))
    } else if model.api == "openai-completions" && openai.chat_reasoning_effort.is_some() {
        let effort = openai.chat_reasoning_effort.as_ref();
        effort.map(|effort| ("openai.chat_reasoning_effort", effort))
    } else if of_openai && (given("reasoning_effort") || budget.is_none()) {
        let effort = openai.reasoning_effort.as_ref();
        effort.map(|effort| ("openai.reasoning_effort", effort))
    } else if of_google {
        let level = gemini.thinking_level.as_ref();
        level.map(|level| ("gemini.thinking_level", level))
    } else {
        None
    };
    let asked = asked
        .map(|(origin, word)| level(origin, word))
        .transpose()?;
    let tokens = budget.and_then(|budget| u64::try_from(budget).ok());
    let level = match (asked, budget) {
        (Some(level), _) => level,
        (None, Some(0)) => ThinkingLevel::Off,
        (None, Some(_)) => ThinkingLevel::High,
        (None, None) if of_openai || of_google || kind.is_some() => ThinkingLevel::Medium,
        (None, None) if model.api == "offline" => ThinkingLevel::Medium,
        (None, None) => ThinkingLevel::Off,
    };
    Ok((level, tokens.filter(|tokens| *tokens > 0)))
}

/// Returns the setting that enables thinking for a model of `api`, if one is given.
pub(crate) fn asks_to_think(resolved: &Resolved, api: &str) -> Option<&'static str> {
    let InferenceSettings {
        openai,
        gemini,
        inference,
        ..
    } = &resolved.settings;
    let of_openai = api.starts_with("openai");
    let of_google = api.starts_with("google");
    let given = |name: &str| of_openai && resolved.is_given(&["openai", name]);
    let words = |word: &Option<String>| {
        let off = ["", "off", "none", "disabled"];
        let word = word.as_deref().map(str::trim);
        word.is_some_and(|word| !off.contains(&word.to_ascii_lowercase().as_str()))
    };
    let tokens = |budget: Option<i64>| budget.is_some_and(|budget| budget != 0);
    let kinds = [&inference.thinking_type, &openai.thinking_type];
    if kinds.into_iter().any(|kind| kind.is_some() && !words(kind)) {
        return None;
    }
    let asked = [
        ("inference.thinking_type", words(&inference.thinking_type)),
        (
            "inference.thinking_budget",
            tokens(inference.thinking_budget),
        ),
        (
            "inference.reasoning_effort",
            words(&inference.reasoning_effort),
        ),
        (
            "openai.thinking_type",
            given("thinking_type") && words(&openai.thinking_type),
        ),
        (
            "openai.reasoning_effort",
            given("reasoning_effort") && words(&openai.reasoning_effort),
        ),
        (
            "openai.chat_reasoning_effort",
            given("chat_reasoning_effort") && words(&openai.chat_reasoning_effort),
        ),
        (
            "gemini.thinking_budget",
            of_google && tokens(gemini.thinking_budget),
        ),
        (
            "gemini.thinking_level",
            of_google && words(&gemini.thinking_level),
        ),
    ];
    let asked = asked.into_iter().find(|(_, asks)| *asks);
    asked.map(|(name, _)| name)
}

fn level(origin: &str, word: &str) -> Result<ThinkingLevel, ProfileError> {
    let word = word.trim().to_ascii_lowercase();
    if ["none", "disabled", ""].contains(&word.as_str()) {
        return Ok(ThinkingLevel::Off);
    }
    word.parse().map_err(|_| ProfileError::Setting {
        origin: origin.to_owned(),
        message: format!(
            "\"{word}\" is not an effort; use off, minimal, low, medium, high, xhigh or max"
        ),
    })
}

fn headers(settings: &InferenceSettings, model: &Model) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    let mut set = |name: &str, value: &Option<String>| {
        if let Some(value) = value.as_ref().filter(|value| !value.trim().is_empty()) {
            headers.insert(name.to_owned(), value.trim().to_owned());
        }
    };
    if model.api.starts_with("openai") {
        set("openai-organization", &settings.client.organization);
    }
    set("user-agent", &settings.client.user_agent);
    headers
}

/// Reports whether a model's name shows that it can think.
pub(crate) fn thinks_by_name(id: &str) -> bool {
    ["o1", "o3", "o4", "gpt-5"]
        .iter()
        .any(|start| id.starts_with(start))
}

/// Adds notices about settings that have no effect.
fn unsupported(resolved: &Resolved, model: &Model, notices: &mut Vec<Notice>) {
    let settings = &resolved.settings;
    let mut tell = |words: &str| notices.push(Notice::new("unsupported_setting", words));
    if model.api == "openai-completions" && thinks_by_name(&model.id) {
        tell(
            "this model thinks, and chat completions do not show it; use chat.api_type openai-responses to see its thinking",
        );
    }
    if let (false, Some(setting)) = (model.reasoning, asks_to_think(resolved, &model.api)) {
        tell(&format!(
            "{setting} has no effect: {} does not think (if it does, set model_info.reasoning: true)",
            model.id
        ));
    }
    let cache = settings.chat.cache_type.as_deref();
    if cache.is_some_and(|cache| cache != "none") {
        tell("chat.cache_type has no effect: answers are not kept");
    }
    if settings.openai.n.is_some_and(|n| n > 1) {
        tell("openai.n has no effect: one answer is made");
    }
    if settings.client.proxy_url.is_some() {
        tell("client.proxy_url has no effect; set HTTPS_PROXY in the environment instead");
    }
    if settings.client.proxy_from_environment == Some(false) {
        tell("client.proxy_from_environment has no effect; unset HTTPS_PROXY and its like instead");
    }
    if settings.chat.structured_output_require_valid == Some(true) {
        tell("chat.structured_output_require_valid has no effect: answers are not checked");
    }
}
