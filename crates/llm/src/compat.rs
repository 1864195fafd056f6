//! Differences between a server and the API it claims to support. Known servers are recognised by
//! provider name or address; every flag in the model's `compat` object overrides that. Flags for
//! features that pinion never uses (grammar tools, tool search, fallback models …) are not read.

use pinion_message::Model;
use serde_json::{Map, Value};

/// The `compat` object of a model.
#[derive(Clone, Copy)]
struct Flags<'a>(Option<&'a Map<String, Value>>);

impl<'a> Flags<'a> {
    fn of(model: &'a Model) -> Self {
        Self(model.compat.as_ref())
    }

    fn get(self, name: &str) -> Option<&'a Value> {
        self.0.and_then(|flags| flags.get(name))
    }

    fn on(self, name: &str, default: bool) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    fn text(self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    fn object(self, name: &str) -> Option<&'a Map<String, Value>> {
        self.get(name)
            .and_then(Value::as_object)
            .filter(|object| !object.is_empty())
    }
}

/// Flags of `anthropic-messages`.
pub(crate) struct Anthropic {
    pub(crate) eager_tool_input: bool,
    pub(crate) long_cache: bool,
    pub(crate) cache_on_tools: bool,
    pub(crate) temperature: bool,
    pub(crate) adaptive_thinking: bool,
    pub(crate) empty_signature: bool,
    pub(crate) session_headers: bool,
}

impl Anthropic {
    pub(crate) fn of(model: &Model) -> Self {
        /// Models that choose their own thinking budget, for catalogues without that flag.
        const ADAPTIVE: [&str; 6] = [
            "opus-4-6",
            "opus-4.6",
            "opus-4-7",
            "opus-4.7",
            "sonnet-4-6",
            "sonnet-4.6",
        ];
        let flags = Flags::of(model);
        let known = ADAPTIVE.iter().any(|part| model.id.contains(part));
        Self {
            eager_tool_input: flags.on("supportsEagerToolInputStreaming", true),
            long_cache: flags.on("supportsLongCacheRetention", true),
            cache_on_tools: flags.on("supportsCacheControlOnTools", true),
            temperature: flags.on("supportsTemperature", true),
            adaptive_thinking: flags.on("forceAdaptiveThinking", known),
            empty_signature: flags.on("allowEmptySignature", false),
            session_headers: flags.on("sendSessionAffinityHeaders", false),
        }
    }
}

/// Flags of `openai-responses`.
pub(crate) struct Responses {
    pub(crate) session_header: bool,
    pub(crate) long_cache: bool,
    pub(crate) developer_role: bool,
    pub(crate) reasoning_effort: bool,
    pub(crate) max_output_tokens: bool,
}

impl Responses {
    pub(crate) fn of(model: &Model) -> Self {
        let flags = Flags::of(model);
        let nameless = flags.text("sessionAffinityFormat") == Some("openai-nosession");
        Self {
            session_header: flags.on("sendSessionIdHeader", !nameless),
            long_cache: flags.on("supportsLongCacheRetention", true),
            developer_role: flags.on("supportsDeveloperRole", true),
            reasoning_effort: flags.on("supportsReasoningEffort", true),
            max_output_tokens: flags.on("supportsMaxOutputTokens", true),
        }
    }
}

/// Reports whether the Responses API takes the tools of a model among the items.
pub(crate) fn has_additional_tools(model: &Model) -> bool {
    Flags::of(model).on("supportsAdditionalTools", false)
}

/// The request member with which a Completions server switches thinking on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingFormat {
    OpenAi,
    OpenRouter,
    DeepSeek,
    /// `enable_thinking`, at Z.ai and Qwen.
    EnableThinking,
    QwenChatTemplate,
    Together,
    /// `thinking: "<effort>"`.
    StringThinking,
    /// The template of the model's `compat` object, in `chat_template_kwargs`.
    ChatTemplate,
    /// The template of the model's `compat` object, in `chat_template_args`.
    Baseten,
    /// An unknown format: nothing is sent.
    Unknown,
}

/// The headers that name the session to a Completions server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionHeaders {
    None,
    OpenAi,
    /// As `OpenAi` without the `session_id` header.
    Nameless,
    OpenRouter,
}

/// Flags of `openai-completions`.
pub(crate) struct Completions<'a> {
    pub(crate) store: bool,
    pub(crate) developer_role: bool,
    pub(crate) reasoning_effort: bool,
    pub(crate) usage_in_streaming: bool,
    pub(crate) max_tokens_field: &'a str,
    pub(crate) tool_result_name: bool,
    pub(crate) assistant_after_tool_result: bool,
    pub(crate) thinking_as_text: bool,
    pub(crate) reasoning_content_required: bool,
    pub(crate) thinking: ThinkingFormat,
    pub(crate) strict_mode: bool,
    pub(crate) anthropic_cache: bool,
    pub(crate) session_headers: SessionHeaders,
    pub(crate) long_cache: bool,
    pub(crate) tool_stream: bool,
    pub(crate) finish_reason: bool,
    pub(crate) open_router_routing: Option<&'a Map<String, Value>>,
    pub(crate) vercel_routing: Option<&'a Map<String, Value>>,
    pub(crate) chat_template: Option<&'a Map<String, Value>>,
    pub(crate) thinking_budget_field: Option<&'a str>,
}

impl<'a> Completions<'a> {
    pub(crate) fn of(model: &'a Model) -> Self {
        let flags = Flags::of(model);
        let server = Server::of(model);
        let standard = !server.is_nonstandard();
        let plain = !server.moonshot && !server.cloudflare_gateway;
        let max_tokens = if plain && !server.chutes {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        let claude = model.provider == "openrouter" && model.id.starts_with("anthropic/");
        Self {
            store: flags.on("supportsStore", standard),
            developer_role: flags.on("supportsDeveloperRole", standard),
            reasoning_effort: flags.on(
                "supportsReasoningEffort",
                plain && !server.xai && !server.zai,
            ),
            usage_in_streaming: flags.on("supportsUsageInStreaming", true),
            max_tokens_field: flags.text("maxTokensField").unwrap_or(max_tokens),
            tool_result_name: flags.on("requiresToolResultName", false),
            assistant_after_tool_result: flags.on("requiresAssistantAfterToolResult", false),
            thinking_as_text: flags.on("requiresThinkingAsText", false),
            reasoning_content_required: flags.on(
                "requiresReasoningContentOnAssistantMessages",
                server.deepseek,
            ),
            thinking: thinking_format(flags.text("thinkingFormat"), &server),
            strict_mode: flags.on("supportsStrictMode", plain),
            anthropic_cache: flags
                .text("cacheControlFormat")
                .map_or(claude, |f| f == "anthropic"),
            session_headers: session_headers(flags, &server),
            long_cache: flags.on("supportsLongCacheRetention", !server.cloudflare),
            tool_stream: flags.on("zaiToolStream", false),
            finish_reason: flags.on("supportsFinishReason", true),
            open_router_routing: flags.object("openRouterRouting"),
            vercel_routing: flags.object("vercelGatewayRouting"),
            chat_template: flags
                .object("chatTemplateKwargs")
                .or_else(|| flags.object("chatTemplateArgs")),
            thinking_budget_field: flags.text("thinkingTokenBudgetField"),
        }
    }
}

fn thinking_format(flag: Option<&str>, server: &Server) -> ThinkingFormat {
    match flag {
        Some("openai") => ThinkingFormat::OpenAi,
        Some("openrouter") => ThinkingFormat::OpenRouter,
        Some("deepseek") => ThinkingFormat::DeepSeek,
        Some("zai" | "qwen") => ThinkingFormat::EnableThinking,
        Some("qwen-chat-template") => ThinkingFormat::QwenChatTemplate,
        Some("together") => ThinkingFormat::Together,
        Some("string-thinking") => ThinkingFormat::StringThinking,
        Some("chat-template") => ThinkingFormat::ChatTemplate,
        Some("baseten") => ThinkingFormat::Baseten,
        Some(_) => ThinkingFormat::Unknown,
        None if server.deepseek => ThinkingFormat::DeepSeek,
        None if server.zai => ThinkingFormat::EnableThinking,
        None if server.open_router => ThinkingFormat::OpenRouter,
        None => ThinkingFormat::OpenAi,
    }
}

fn session_headers(flags: Flags<'_>, server: &Server) -> SessionHeaders {
    if !flags.on("sendSessionAffinityHeaders", false) {
        return SessionHeaders::None;
    }
    match flags.text("sessionAffinityFormat") {
        Some("openrouter") => SessionHeaders::OpenRouter,
        Some("openai-nosession") => SessionHeaders::Nameless,
        None if server.open_router => SessionHeaders::OpenRouter,
        _ => SessionHeaders::OpenAi,
    }
}

/// The server behind a Completions address, recognised by provider name or by host.
struct Server {
    cerebras: bool,
    xai: bool,
    zai: bool,
    chutes: bool,
    deepseek: bool,
    moonshot: bool,
    opencode: bool,
    open_router: bool,
    cloudflare: bool,
    cloudflare_gateway: bool,
}

impl Server {
    fn of(model: &Model) -> Self {
        let is = |providers: &[&str], hosts: &[&str]| {
            providers.contains(&model.provider.as_str())
                || hosts.iter().any(|host| model.base_url.contains(host))
        };
        let cloudflare_gateway = is(&["cloudflare-ai-gateway"], &["gateway.ai.cloudflare.com"]);
        Self {
            cerebras: is(&["cerebras"], &["cerebras.ai"]),
            xai: is(&["xai"], &["api.x.ai"]),
            zai: is(&["zai"], &["api.z.ai"]),
            chutes: is(&[], &["chutes.ai"]),
            deepseek: is(&["deepseek"], &["deepseek.com"]),
            moonshot: is(&["moonshotai", "moonshotai-cn"], &["api.moonshot."]),
            opencode: is(&["opencode"], &["opencode.ai"]),
            open_router: is(&["openrouter"], &["openrouter.ai"]),
            cloudflare: cloudflare_gateway
                || is(&["cloudflare-workers-ai"], &["api.cloudflare.com"]),
            cloudflare_gateway,
        }
    }

    /// Reports whether the server rejects members OpenAI added later, such as `store` or the
    /// developer role.
    fn is_nonstandard(&self) -> bool {
        self.cerebras
            || self.xai
            || self.zai
            || self.chutes
            || self.deepseek
            || self.moonshot
            || self.opencode
            || self.cloudflare
    }
}
