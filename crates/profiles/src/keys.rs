//! The table of inference settings: the path, type, option, environment variable and default of
//! each.

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    Text,
    /// Text that is never shown.
    Secret,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Switch,
    Texts,
    Integers,
    /// One of these.
    Choice(&'static [&'static str]),
    /// A mapping whose members are not checked.
    Free,
}

/// One inference setting.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The path below `inference_settings`.
    pub path: &'static [&'static str],
    pub kind: SettingKind,
    /// The option that sets it, without dashes; the variable is `PINOCCHIO_` and the option in
    /// capitals.
    pub option: Option<&'static str>,
    pub default: Option<&'static str>,
    /// The help line.
    pub help: &'static str,
}

impl Key {
    /// Returns the group of options in which help shows it.
    pub fn group(&self) -> &'static str {
        match self.path {
            ["chat", ..] => "ai-chat",
            ["client", ..] => "ai-client",
            ["inference", ..] => "ai-inference",
            ["openai", ..] | ["api", _, "openai-api-key" | "openai-base-url"] => "openai-chat",
            ["claude", ..] | ["api", _, "claude-api-key" | "claude-base-url"] => "claude-chat",
            ["gemini", ..] | ["api", _, "gemini-api-key" | "gemini-base-url"] => "gemini-chat",
            _ => "",
        }
    }

    /// Returns the environment variable that sets it.
    pub fn variable(&self) -> Option<String> {
        let option = self.option?;
        Some(format!(
            "PINOCCHIO_{}",
            option.to_ascii_uppercase().replace('-', "_")
        ))
    }
}

/// Returns the settings that prompt commands have options and variables for.
pub fn options() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.option.is_some())
}

/// Sections of features other than chat, whose members are stored as written.
pub(crate) const FREE_SECTIONS: [&str; 3] = ["ollama", "embeddings", "rerank"];

/// Every section, in the order of the documentation.
pub(crate) const SECTIONS: [&str; 11] = [
    "api",
    "chat",
    "client",
    "openai",
    "claude",
    "gemini",
    "ollama",
    "inference",
    "model_info",
    "embeddings",
    "rerank",
];

const CACHE_TYPES: &[&str] = &["none", "memory", "disk"];
const OUTPUT_MODES: &[&str] = &["off", "json_schema"];

const fn key(path: &'static [&'static str], kind: SettingKind) -> Key {
    Key {
        path,
        kind,
        option: None,
        default: None,
        help: "",
    }
}

const fn opt(
    option: &'static str,
    path: &'static [&'static str],
    kind: SettingKind,
    help: &'static str,
) -> Key {
    Key {
        path,
        kind,
        option: Some(option),
        default: None,
        help,
    }
}

const fn def(
    option: &'static str,
    path: &'static [&'static str],
    kind: SettingKind,
    default: &'static str,
    help: &'static str,
) -> Key {
    Key {
        path,
        kind,
        option: Some(option),
        default: Some(default),
        help,
    }
}

use SettingKind::{Choice, Free, Integer, Integers, Number, Secret, Switch, Text, Texts};

/// Every known setting.
#[rustfmt::skip]
pub static KEYS: &[Key] = &[
    def("ai-engine", &["chat", "engine"], Text, "gpt-4", "the model to ask; offline/demo is built in, provider/id is one of pinion's own"),
    def("ai-api-type", &["chat", "api_type"], Text, "openai", "which API to speak: openai, open-responses, openai-responses, claude, gemini, offline"),
    opt("ai-max-response-tokens", &["chat", "max_response_tokens"], Integer, "the longest answer, in tokens"),
    def("ai-top-p", &["chat", "top_p"], Number, "1.0", "draw from the likeliest tokens that make up this share"),
    def("ai-temperature", &["chat", "temperature"], Number, "0.7", "how freely tokens are drawn"),
    opt("ai-stop", &["chat", "stop"], Texts, "texts at which the answer ends"),
    key(&["chat", "stream"], Switch),
    def("ai-cache-type", &["chat", "cache_type"], Choice(CACHE_TYPES), "none", "keep answers; only none is supported"),
    opt("ai-cache-max-size", &["chat", "cache_max_size"], Integer, "bytes to keep"),
    opt("ai-cache-max-entries", &["chat", "cache_max_entries"], Integer, "answers to keep"),
    opt("ai-cache-directory", &["chat", "cache_directory"], Text, "where to keep them"),
    def("ai-structured-output-mode", &["chat", "structured_output_mode"], Choice(OUTPUT_MODES), "off", "json_schema makes the answer fit a schema"),
    opt("ai-structured-output-name", &["chat", "structured_output_name"], Text, "a name for the schema"),
    opt("ai-structured-output-description", &["chat", "structured_output_description"], Text, "a description of the schema for the model"),
    opt("ai-structured-output-schema", &["chat", "structured_output_schema"], Text, "the JSON Schema, as JSON"),
    def("ai-structured-output-strict", &["chat", "structured_output_strict"], Switch, "true", "nothing but the schema may come"),
    def("ai-structured-output-require-valid", &["chat", "structured_output_require_valid"], Switch, "false", "an answer that does not fit is a failure"),
    def("timeout", &["client", "timeout"], Integer, "60", "seconds to wait for the server; see the documentation"),
    opt("organization", &["client", "organization"], Text, "sent to OpenAI as the organization"),
    opt("user-agent", &["client", "user_agent"], Text, "sent as the user agent"),
    opt("proxy-url", &["client", "proxy_url"], Text, "the proxy to use"),
    def("proxy-from-environment", &["client", "proxy_from_environment"], Switch, "true", "use the proxy HTTPS_PROXY and its like name"),
    opt("openai-api-key", &["api", "api_keys", "openai-api-key"], Secret, "the key; prefer the environment, other users can see arguments"),
    def("openai-base-url", &["api", "base_urls", "openai-base-url"], Text, "https://api.openai.com/v1", "where OpenAI's API is"),
    def("openai-n", &["openai", "n"], Integer, "1", "answers to make; only one is supported"),
    opt("openai-presence-penalty", &["openai", "presence_penalty"], Number, "against tokens that occurred"),
    opt("openai-frequency-penalty", &["openai", "frequency_penalty"], Number, "against tokens that occurred often"),
    opt("openai-logit-bias", &["openai", "logit_bias"], Integers, "for or against single tokens: NUMBER=BIAS"),
    def("openai-reasoning-effort", &["openai", "reasoning_effort"], Text, "medium", "how hard to think: minimal, low, medium, high, xhigh"),
    opt("openai-thinking-type", &["openai", "thinking_type"], Text, "enabled or disabled"),
    opt("openai-chat-reasoning-effort", &["openai", "chat_reasoning_effort"], Text, "how hard to think, for chat completions only"),
    def("openai-parallel-tool-calls", &["openai", "parallel_tool_calls"], Switch, "false", "several tools may be called at once"),
    def("openai-reasoning-summary", &["openai", "reasoning_summary"], Text, "auto", "how thinking is summed up: auto, concise, detailed, none"),
    def("openai-include-reasoning-encrypted", &["openai", "include_reasoning_encrypted"], Switch, "false", "have thinking sent back sealed; always done where it matters"),
    def("openai-stream-include-usage", &["openai", "stream-include-usage"], Switch, "true", "have tokens counted"),
    opt("claude-api-key", &["api", "api_keys", "claude-api-key"], Secret, "the key; prefer the environment, other users can see arguments"),
    def("claude-base-url", &["api", "base_urls", "claude-base-url"], Text, "https://api.anthropic.com", "where Anthropic's API is"),
    def("claude-top-k", &["claude", "top_k"], Integer, "1", "draw from this many of the likeliest tokens"),
    opt("claude-user-id", &["claude", "user_id"], Text, "names the end user"),
    opt("gemini-api-key", &["api", "api_keys", "gemini-api-key"], Secret, "the key; prefer the environment, other users can see arguments"),
    opt("gemini-base-url", &["api", "base_urls", "gemini-base-url"], Text, "where Google's API is"),
    def("gemini-api-version", &["gemini", "api_version"], Text, "v1beta", "the version in its address"),
    opt("gemini-include-thoughts", &["gemini", "include_thoughts"], Switch, "have thinking shown"),
    opt("gemini-thinking-budget", &["gemini", "thinking_budget"], Integer, "tokens to think with; 0 is off"),
    opt("gemini-thinking-level", &["gemini", "thinking_level"], Text, "how hard to think: minimal, low, medium, high"),
    opt("inference-thinking-budget", &["inference", "thinking_budget"], Integer, "tokens to think with"),
    opt("inference-reasoning-effort", &["inference", "reasoning_effort"], Text, "how hard to think: off, minimal, low, medium, high, xhigh, max"),
    opt("inference-thinking-type", &["inference", "thinking_type"], Text, "enabled or disabled"),
    opt("inference-reasoning-summary", &["inference", "reasoning_summary"], Text, "how thinking is summed up"),
    opt("inference-temperature", &["inference", "temperature"], Number, "goes before --ai-temperature"),
    opt("inference-top-p", &["inference", "top_p"], Number, "goes before --ai-top-p"),
    opt("inference-max-response-tokens", &["inference", "max_response_tokens"], Integer, "goes before --ai-max-response-tokens"),
    opt("inference-stop", &["inference", "stop"], Texts, "goes before --ai-stop"),
    opt("inference-seed", &["inference", "seed"], Integer, "makes answers repeatable"),
    key(&["model_info", "id"], Text),
    key(&["model_info", "name"], Text),
    key(&["model_info", "reasoning"], Switch),
    key(&["model_info", "input"], Texts),
    key(&["model_info", "context_window"], Integer),
    key(&["model_info", "quality_high_watermark"], Number),
    key(&["model_info", "max_output_tokens"], Integer),
    key(&["model_info", "cost", "input"], Number),
    key(&["model_info", "cost", "output"], Number),
    key(&["model_info", "cost", "cache_read"], Number),
    key(&["model_info", "cost", "cache_write"], Number),
    key(&["model_info", "metadata"], Free),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_a_group_a_variable_and_words() {
        let mut names: Vec<&str> = options().filter_map(|key| key.option).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for key in options() {
            assert!(!key.group().is_empty() && !key.help.is_empty(), "{key:?}");
            assert!(key.variable().unwrap().starts_with("PINOCCHIO_"), "{key:?}");
            assert!(SECTIONS.contains(&key.path[0]), "{key:?}");
        }
        let key = KEYS.iter().find(|key| key.option == Some("openai-api-key"));
        assert_eq!(
            key.and_then(Key::variable).as_deref(),
            Some("PINOCCHIO_OPENAI_API_KEY")
        );
    }
}
