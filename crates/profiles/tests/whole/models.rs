//! The chosen model, its server, key and options.

use std::sync::Arc;

use pinion_llm::{EventStream, Provider, Request, RequestOptions, build_request};
use pinion_message::{Message, ThinkingLevel, UserMessage};
use pinion_profiles::{Chosen, Factories, ProfileError, ProfileRequest, Unnamed, named_engine};
use serde_json::{Value, json};

use crate::world::{World, options, profile};

/// Returns a request as it would be sent: URL, headers, body.
fn sent(world: &World, chosen: &Chosen) -> (String, Vec<(String, String)>, Value) {
    let registry = world.registry();
    let authorization = futures_util::FutureExt::now_or_never(chosen.authorize(&registry));
    let mut options = RequestOptions {
        reasoning: Some(chosen.thinking).filter(|level| *level != ThinkingLevel::Off),
        ..RequestOptions::default()
    };
    authorization.unwrap().unwrap().apply(&mut options);
    chosen.tune(&mut options);
    let user: UserMessage =
        serde_json::from_value(json!({"content": "Hello", "timestamp": 1})).unwrap();
    let request = build_request(&Request {
        model: Arc::clone(&chosen.model),
        system_prompt: None,
        messages: vec![Arc::new(Message::User(user))],
        tools: Arc::new([]),
        options,
        cancel: Default::default(),
    });
    let request = request.unwrap();
    let body = serde_json::from_slice(&request.body).unwrap();
    (request.url, request.headers, body)
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

fn inline(world: &World, settings: &str) -> ProfileRequest {
    world.write(
        "home/.pinocchio/config.yaml",
        &format!("profiles:\n  p:\n    inference_settings: {settings}\n"),
    );
    profile("p")
}

fn error_text(result: Result<Chosen, ProfileError>) -> String {
    let error = result.unwrap_err();
    format!("{} {error}", error.code())
}

#[test]
fn each_api_type_has_its_protocol_key_and_address() {
    let world = World::new();
    for (settings, url, key) in [
        (
            "{chat: {engine: gpt-4o}, api: {api_keys: {openai-api-key: k}}}",
            "https://api.openai.com/v1/chat/completions",
            ("authorization", "Bearer k"),
        ),
        (
            "{chat: {engine: m, api_type: openai}, api: {api_keys: {openai-api-key: k}, base_urls: {openai-base-url: 'https://h/x/'}}}",
            "https://h/x/chat/completions",
            ("authorization", "Bearer k"),
        ),
        (
            "{chat: {engine: gpt-5, api_type: openai-responses}, api: {api_keys: {openai-api-key: k}}}",
            "https://api.openai.com/v1/responses",
            ("authorization", "Bearer k"),
        ),
        (
            "{chat: {engine: gpt-5, api_type: open-responses}, api: {api_keys: {openai-api-key: no, open-responses-api-key: k}, base_urls: {openai-responses-base-url: 'https://r/v1'}}}",
            "https://r/v1/responses",
            ("authorization", "Bearer k"),
        ),
        (
            "{chat: {engine: claude-sonnet-4-5, api_type: claude}, api: {api_keys: {claude-api-key: k}}}",
            "https://api.anthropic.com/v1/messages",
            ("x-api-key", "k"),
        ),
        (
            "{chat: {engine: c, api_type: anthropic}, api: {api_keys: {anthropic-api-key: k}, base_urls: {claude-base-url: 'https://c'}}}",
            "https://c/v1/messages",
            ("x-api-key", "k"),
        ),
        (
            "{chat: {engine: gemini-2.5-pro, api_type: gemini}, api: {api_keys: {gemini-api-key: k}}, gemini: {api_version: v1}}",
            "https://generativelanguage.googleapis.com/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            ("x-goog-api-key", "k"),
        ),
        (
            "{chat: {engine: accounts/x, api_type: fireworks}, api: {api_keys: {fireworks-api-key: k}}}",
            "https://api.fireworks.ai/inference/v1/chat/completions",
            ("authorization", "Bearer k"),
        ),
        (
            "{chat: {engine: m, api_type: anyscale}, api: {api_keys: {anyscale-api-key: k}, base_urls: {anyscale-base-url: 'https://a/v1'}}}",
            "https://a/v1/chat/completions",
            ("authorization", "Bearer k"),
        ),
    ] {
        let chosen = world.engine(&inline(&world, settings)).unwrap();
        let (to, headers, _) = sent(&world, &chosen);
        assert_eq!(to, url, "{settings}");
        assert_eq!(header(&headers, key.0), Some(key.1), "{settings}");
    }
}

#[test]
fn what_cannot_be_asked_says_what_to_set() {
    let world = World::new();
    for (settings, words) in [
        (
            "{chat: {engine: gpt-4o}}",
            "no_api_key no API key for engine \"gpt-4o\" (chat.api_type openai): set PINOCCHIO_OPENAI_API_KEY or OPENAI_API_KEY in the environment, or api.api_keys.openai-api-key in a profile",
        ),
        (
            "{chat: {api_type: claude, engine: c}}",
            "no_api_key no API key for engine \"c\" (chat.api_type claude): set PINOCCHIO_CLAUDE_API_KEY or ANTHROPIC_API_KEY",
        ),
        (
            "{chat: {api_type: gemini, engine: c}}",
            "no_api_key no API key for engine \"c\" (chat.api_type gemini): set PINOCCHIO_GEMINI_API_KEY or GEMINI_API_KEY",
        ),
        (
            "{chat: {api_type: openai-responses, engine: c}}",
            "no_api_key no API key for engine \"c\" (chat.api_type openai-responses): set PINOCCHIO_OPENAI_API_KEY or OPENAI_API_KEY in the environment, or api.api_keys.openai-responses-api-key in a profile",
        ),
        ("{}", "no_api_key no API key for engine \"gpt-4\""),
        (
            "{chat: {engine: mistral/codestral-latest}}",
            "no_api_key No API key found for mistral. Set MISTRAL_API_KEY",
        ),
        (
            "{chat: {engine: openai/gpt-nothing-of-the-kind}}",
            "unknown_model",
        ),
        (
            "{chat: {api_type: anyscale}, api: {api_keys: {anyscale-api-key: k}}}",
            "no_base_url chat.api_type anyscale has no default address: set api.base_urls.anyscale-base-url",
        ),
        (
            "{chat: {api_type: ollama}}",
            "unsupported_api_type chat.api_type \"ollama\" is only a name",
        ),
        ("{chat: {api_type: mistral}}", "unsupported_api_type"),
        ("{chat: {api_type: perplexity}}", "unsupported_api_type"),
        ("{chat: {api_type: cohere}}", "unsupported_api_type"),
        (
            "{chat: {api_type: abacus}}",
            "unknown_api_type chat.api_type \"abacus\" is unknown",
        ),
        (
            "{api: {base_urls: {openai-base-url: 'http://127.0.0.1:1/v1'}, api_keys: {openai-api-key: k}}}",
            "url_not_allowed api.base_urls.openai-base-url \"http://127.0.0.1:1/v1\" is not encrypted; write https://, or set api.allow_http.openai: true",
        ),
        (
            "{api: {base_urls: {openai-base-url: 'http://127.0.0.1:1/v1'}, api_keys: {openai-api-key: k}, allow_http: {openai: true}}}",
            "url_not_allowed api.base_urls.openai-base-url \"http://127.0.0.1:1/v1\" is on this machine or its network; set api.allow_local_networks.openai: true",
        ),
        (
            "{chat: {structured_output_mode: json_schema}, api: {api_keys: {openai-api-key: k}}}",
            "invalid_setting chat.structured_output_schema: structured output needs",
        ),
        (
            "{chat: {structured_output_mode: json_schema, structured_output_schema: '{'}, api: {api_keys: {openai-api-key: k}}}",
            "invalid_setting chat.structured_output_schema: the schema is not valid JSON",
        ),
        (
            "{inference: {reasoning_effort: huge}, api: {api_keys: {openai-api-key: k}}}",
            "invalid_setting inference.reasoning_effort: \"huge\" is not an effort",
        ),
    ] {
        let asked = inline(&world, settings);
        let words_told = error_text(world.engine(&asked));
        assert!(
            words_told.starts_with(words),
            "{settings}\n{words_told}\n{words}"
        );
    }
    let allowed = "{api: {base_urls: {openai-base-url: 'http://127.0.0.1:1/v1'}, api_keys: {openai-api-key: k}, allow_http: {openai: true}, allow_local_networks: {openai: true}}}";
    assert!(world.engine(&inline(&world, allowed)).is_ok());
}

#[test]
fn without_any_key_the_offline_model_answers_and_only_then() {
    let mut world = World::new();
    let name = |chosen: &Chosen| format!("{}/{}", chosen.model.provider, chosen.model.id);
    let chosen = world.engine(&ProfileRequest::default()).unwrap();
    assert_eq!(name(&chosen), "offline/demo");
    assert!(
        chosen
            .notices
            .iter()
            .any(|notice| notice.code == "offline_instead")
    );

    let error_for = |world: &World, asked: &ProfileRequest| error_text(world.engine(asked));
    for asked in [
        options(&[("ai-engine", json!("gpt-4"))]),
        options(&[("ai-api-type", json!("claude"))]),
        ProfileRequest {
            factories: Some(Factories {
                settings: json!({"chat": {"engine": "gpt-4"}}),
                file: None,
            }),
            ..ProfileRequest::default()
        },
    ] {
        assert!(
            error_for(&world, &asked).starts_with("no_api_key"),
            "{asked:?}"
        );
    }
    for asked in [
        options(&[("ai-engine", json!("offline/demo"))]),
        options(&[("ai-api-type", json!("offline"))]),
    ] {
        let chosen = world.engine(&asked).unwrap();
        assert_eq!(name(&chosen), "offline/demo");
        assert!(chosen.notices.is_empty(), "{:?}", chosen.notices);
    }
    // A script must not treat the built-in model's answer as a real one.
    let scripted = world.engine_if_unnamed(&ProfileRequest::default(), Unnamed::default());
    let words = error_text(scripted);
    assert!(
        words.starts_with("no_api_key no model is configured: set ANTHROPIC_API_KEY, "),
        "{words}"
    );
    world.variable("OPENAI_API_KEY", "o");
    let chosen = world.engine(&ProfileRequest::default()).unwrap();
    assert_eq!(name(&chosen), "openai/gpt-4");
    let (_, headers, _) = sent(&world, &chosen);
    assert_eq!(header(&headers, "authorization"), Some("Bearer o"));
    // The front's own variable overrides the usual one.
    world.variable("PINOCCHIO_OPENAI_API_KEY", "p");
    let (_, headers, _) = sent(&world, &world.engine(&ProfileRequest::default()).unwrap());
    assert_eq!(header(&headers, "authorization"), Some("Bearer p"));
}

#[test]
fn a_run_that_names_no_model_uses_one_that_has_a_key() {
    let name = |chosen: &Chosen| format!("{}/{}", chosen.model.provider, chosen.model.id);
    let nothing = ProfileRequest::default();
    for (variable, provider, key) in [
        ("ANTHROPIC_API_KEY", "anthropic/", "x-api-key"),
        ("PINOCCHIO_CLAUDE_API_KEY", "anthropic/", "x-api-key"),
        ("GEMINI_API_KEY", "google/", "x-goog-api-key"),
        ("MISTRAL_API_KEY", "mistral/", "authorization"),
    ] {
        let mut world = World::new();
        world.variable(variable, "k");
        for demo in [false, true] {
            let unnamed = Unnamed { saved: None, demo };
            let chosen = world.engine_if_unnamed(&nothing, unnamed).unwrap();
            assert!(name(&chosen).starts_with(provider), "{}", name(&chosen));
            let (_, headers, _) = sent(&world, &chosen);
            let sent = header(&headers, key).unwrap();
            assert_eq!(sent.trim_start_matches("Bearer "), "k", "{variable}");
        }
    }
    // The key is sent to the server that the settings name.
    let mut world = World::new();
    world.variable("ANTHROPIC_API_KEY", "k");
    world.variable("PINOCCHIO_CLAUDE_BASE_URL", "https://proxy.example");
    let chosen = world.engine(&nothing).unwrap();
    let (to, _, _) = sent(&world, &chosen);
    assert_eq!(to, "https://proxy.example/v1/messages");
    // The user's default model comes first, and its missing key is an error.
    let saved = |provider, id| Unnamed {
        saved: Some((provider, id)),
        demo: true,
    };
    let chosen = world.engine_if_unnamed(&nothing, saved("offline", "demo"));
    assert_eq!(name(&chosen.unwrap()), "offline/demo");
    let words = error_text(world.engine_if_unnamed(&nothing, saved("mistral", "codestral-latest")));
    assert!(words.contains("MISTRAL_API_KEY"), "{words}");
    // A named server without a key is not replaced.
    let words = error_text(world.engine(&options(&[("openai-base-url", json!("https://h/v1"))])));
    assert!(words.contains("no API key for engine \"gpt-4\""), "{words}");
}

#[test]
fn a_missing_key_names_the_models_that_have_one() {
    let mut world = World::new();
    let gpt = options(&[("ai-engine", json!("gpt-4o"))]);
    assert!(!error_text(world.engine(&gpt)).contains("--model"));
    world.variable("ANTHROPIC_API_KEY", "a");
    for engine in ["gpt-4o", "mistral/codestral-latest"] {
        let words = error_text(world.engine(&options(&[("ai-engine", json!(engine))])));
        assert!(words.starts_with("no_api_key"), "{words}");
        assert!(
            words.contains(". Models you have a key for: anthropic/claude-")
                && words.ends_with("; name one with --model"),
            "{words}"
        );
    }
}

#[test]
fn a_named_model_overrides_profiles() {
    let mut world = World::new();
    world.variable("ANTHROPIC_API_KEY", "a");
    let asked = inline(
        &world,
        "{chat: {engine: m, api_type: openai, max_response_tokens: 77}, api: {api_keys: {openai-api-key: k}, base_urls: {openai-base-url: 'https://h/x'}}}",
    );
    let resolved = world.resolve(&asked).unwrap();
    let registry = world.registry();
    let chosen = named_engine(&resolved, &registry, "anthropic/claude-sonnet-4-5:high").unwrap();
    assert_eq!(chosen.thinking, ThinkingLevel::High);
    let (to, headers, body) = sent(&world, &chosen);
    assert_eq!(to, "https://api.anthropic.com/v1/messages");
    assert_eq!(header(&headers, "x-api-key"), Some("a"));
    assert_eq!(body["model"], "claude-sonnet-4-5");
    for (pattern, words) in [
        ("claude-sonet-4-5-nothing-like-it", "unknown_model "),
        (
            "mistral/codestral-latest",
            "no_api_key No API key found for mistral",
        ),
    ] {
        let error = error_text(named_engine(&resolved, &registry, pattern));
        assert!(error.starts_with(words), "{error}");
    }
}

#[test]
fn stored_keys_go_to_the_usual_address_only() {
    let world = World::new();
    world.write(
        "agent/auth.json",
        r#"{"openai": {"type": "api_key", "key": "stored"}}"#,
    );
    let chosen = world
        .engine(&inline(&world, "{chat: {engine: gpt-4o}}"))
        .unwrap();
    let (_, headers, _) = sent(&world, &chosen);
    assert_eq!(header(&headers, "authorization"), Some("Bearer stored"));
    let elsewhere =
        "{chat: {engine: gpt-4o}, api: {base_urls: {openai-base-url: 'https://else.example/v1'}}}";
    assert!(error_text(world.engine(&inline(&world, elsewhere))).starts_with("no_api_key"));
}

#[test]
fn names_of_our_own_models_use_our_own_keys() {
    let mut world = World::new();
    world.variable("ANTHROPIC_API_KEY", "own");
    let asked = options(&[("ai-engine", json!("anthropic/claude-opus-4-7"))]);
    let chosen = world.engine(&asked).unwrap();
    let (url, headers, _) = sent(&world, &chosen);
    assert_eq!(url, "https://api.anthropic.com/v1/messages");
    assert_eq!(header(&headers, "x-api-key"), Some("own"));
    // With its own base URL it is a model name on that server.
    let settings = "{chat: {engine: anthropic/claude-opus-4-7}, api: {api_keys: {openai-api-key: k}, base_urls: {openai-base-url: 'https://router.example/v1'}}}";
    let (url, _, body) = sent(&world, &world.engine(&inline(&world, settings)).unwrap());
    assert_eq!(url, "https://router.example/v1/chat/completions");
    assert_eq!(body["model"], json!("anthropic/claude-opus-4-7"));
}

#[test]
fn known_models_keep_their_data_and_model_info_adds_to_it() {
    let world = World::new();
    let keys = "api: {api_keys: {openai-api-key: k}}";
    let model = |settings: &str| world.engine(&inline(&world, settings)).unwrap().model;
    let known = model(&format!("{{chat: {{engine: gpt-4o}}, {keys}}}"));
    assert_eq!(known.context_window, 128_000);
    assert!(known.cost.input > 0.0);
    let unknown = model(&format!(
        "{{chat: {{engine: nobody-knows}}, model_info: {{name: N, reasoning: true, input: [text], context_window: 5000, max_output_tokens: 77, cost: {{input: 1, output: 2}}}}, {keys}}}"
    ));
    assert_eq!(unknown.name, "N");
    assert!(unknown.reasoning && !unknown.takes_images());
    assert_eq!((unknown.context_window, unknown.max_tokens), (5000, 77));
    assert_eq!((unknown.cost.input, unknown.cost.output), (1.0, 2.0));
    let plain = model(&format!("{{chat: {{engine: nobody-knows}}, {keys}}}"));
    assert_eq!((plain.context_window, plain.reasoning), (128_000, false));
}

#[test]
fn what_was_set_is_sent_and_nothing_else() {
    let world = World::new();
    let body = |settings: &str| {
        let chosen = world.engine(&inline(&world, settings)).unwrap();
        (sent(&world, &chosen).2, chosen)
    };
    let keys = "api: {api_keys: {openai-api-key: k, claude-api-key: k, gemini-api-key: k}}";
    let (plain, chosen) = body(&format!("{{chat: {{engine: gpt-4}}, {keys}}}"));
    assert_eq!(
        plain,
        json!({"model": "gpt-4", "messages": [{"role": "user", "content": "Hello"}], "stream": true,
            "temperature": 0.7, "stream_options": {"include_usage": true}, "store": false})
    );
    assert!(chosen.notices.is_empty(), "{:?}", chosen.notices);

    let all = "temperature: 0.1, top_p: 0.2, stop: [a], max_response_tokens: 10, structured_output_mode: json_schema, structured_output_name: n, structured_output_description: d, structured_output_schema: '{\"type\":\"object\"}'";
    let more = "openai: {presence_penalty: 0.3, frequency_penalty: 0.4, logit_bias: {5: 1}, parallel_tool_calls: true}, inference: {seed: 6}, client: {organization: org, user_agent: me/1, timeout: 9}, claude: {top_k: 7, user_id: u}";
    let (full, chosen) = body(&format!(
        "{{chat: {{engine: gpt-4, {all}}}, {more}, {keys}}}"
    ));
    for (name, value) in [
        ("temperature", json!(0.1)),
        ("top_p", json!(0.2)),
        ("stop", json!(["a"])),
        ("max_completion_tokens", json!(10)),
        ("presence_penalty", json!(0.3)),
        ("frequency_penalty", json!(0.4)),
        ("logit_bias", json!({"5": 1})),
        ("seed", json!(6)),
        (
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "n", "description": "d", "schema": {"type": "object"}, "strict": true}}),
        ),
        // There is no tool to call.
        ("parallel_tool_calls", Value::Null),
        ("top_k", Value::Null),
    ] {
        assert_eq!(full[name], value, "{name}");
    }
    let (_, headers, _) = sent(&world, &chosen);
    assert_eq!(header(&headers, "openai-organization"), Some("org"));
    assert_eq!(header(&headers, "user-agent"), Some("me/1"));
    assert_eq!(
        chosen.tuning.timeout,
        Some(std::time::Duration::from_secs(9))
    );
    assert!(chosen.notices.is_empty(), "{:?}", chosen.notices);

    let (claude, chosen) = body(&format!(
        "{{chat: {{engine: claude-sonnet-4-5, api_type: claude, {all}}}, {more}, {keys}}}"
    ));
    for (name, value) in [
        ("temperature", json!(0.1)),
        ("top_p", json!(0.2)),
        ("top_k", json!(7)),
        ("stop_sequences", json!(["a"])),
        ("max_tokens", json!(10)),
        ("metadata", json!({"user_id": "u"})),
        (
            "output_config",
            json!({"format": {"type": "json_schema", "schema": {"type": "object"}}}),
        ),
    ] {
        assert_eq!(claude[name], value, "{name}");
    }
    let notice = &chosen.notices[0];
    assert!(notice.message.ends_with("anthropic-messages has no word for them: seed, presence_penalty, frequency_penalty, logit_bias, parallel_tool_calls"), "{notice}");

    let (gemini, _) = body(&format!(
        "{{chat: {{engine: gemini-2.5-flash, api_type: gemini, {all}}}, {more}, {keys}}}"
    ));
    let config = &gemini["generationConfig"];
    for (name, value) in [
        ("temperature", json!(0.1)),
        ("topP", json!(0.2)),
        ("stopSequences", json!(["a"])),
        ("maxOutputTokens", json!(10)),
        ("seed", json!(6)),
        ("responseMimeType", json!("application/json")),
        ("responseJsonSchema", json!({"type": "object"})),
    ] {
        assert_eq!(config[name], value, "{name}");
    }
}

/// A provider that records the options of its request.
#[derive(Default)]
struct RecordingProvider(std::sync::Mutex<Option<RequestOptions>>);

impl Provider for RecordingProvider {
    fn stream(&self, request: Request) -> EventStream {
        *self.0.lock().unwrap() = Some(request.options);
        Box::pin(futures_util::stream::empty())
    }
}

#[test]
fn whoever_answers_is_asked_as_the_settings_say() {
    let world = World::new();
    let settings = "{chat: {engine: claude-sonnet-4-5, api_type: claude, temperature: 0.5, stop: [x]}, inference: {thinking_budget: 2000}, client: {timeout: 7}, api: {api_keys: {claude-api-key: k}}}";
    let chosen = world.engine(&inline(&world, settings)).unwrap();
    let listening = Arc::new(RecordingProvider::default());
    let provider = chosen.provider(Arc::clone(&listening) as Arc<dyn Provider>);
    let mut options = RequestOptions {
        max_tokens: Some(3),
        ..RequestOptions::default()
    };
    options.headers.insert("user-agent".into(), "mine".into());
    let _ = provider.stream(Request {
        model: Arc::clone(&chosen.model),
        system_prompt: None,
        messages: Vec::new(),
        tools: Arc::new([]),
        options,
        cancel: Default::default(),
    });
    let asked = listening.0.lock().unwrap().take().unwrap();
    assert_eq!(asked.temperature, Some(0.5));
    assert_eq!(asked.max_tokens, Some(3));
    assert_eq!(asked.sampling.unwrap().stop, ["x"]);
    assert_eq!(asked.thinking_budgets[&chosen.thinking], 2000);
    assert_eq!(asked.timeouts.idle, std::time::Duration::from_secs(7));
    assert_eq!(asked.headers["user-agent"], "mine");
}

#[test]
fn inference_goes_before_chat() {
    let world = World::new();
    let settings = "{chat: {engine: gpt-4, temperature: 1, top_p: 1, stop: [a], max_response_tokens: 1}, inference: {temperature: 0, top_p: 0.5, stop: [b], max_response_tokens: 2}, api: {api_keys: {openai-api-key: k}}}";
    let (_, _, body) = sent(&world, &world.engine(&inline(&world, settings)).unwrap());
    assert_eq!(body["temperature"], json!(0.0));
    assert_eq!(body["top_p"], json!(0.5));
    assert_eq!(body["stop"], json!(["b"]));
    assert_eq!(body["max_completion_tokens"], json!(2));
}

#[test]
fn thinking_follows_the_settings() {
    let world = World::new();
    let keys = "api: {api_keys: {openai-api-key: k, claude-api-key: k, gemini-api-key: k}}";
    let body = |settings: &str| {
        let asked = inline(&world, &format!("{{{settings}, {keys}}}"));
        sent(&world, &world.engine(&asked).unwrap()).2
    };
    let responses = body("chat: {engine: gpt-5, api_type: openai-responses}");
    assert_eq!(
        responses["reasoning"],
        json!({"effort": "medium", "summary": "auto"})
    );
    assert_eq!(responses.get("temperature"), None);
    let responses = body(
        "chat: {engine: gpt-5, api_type: openai-responses}, openai: {reasoning_effort: high, reasoning_summary: detailed}",
    );
    assert_eq!(
        responses["reasoning"],
        json!({"effort": "high", "summary": "detailed"})
    );
    let chat =
        body("chat: {engine: gpt-5}, openai: {reasoning_effort: high, chat_reasoning_effort: low}");
    assert_eq!(chat["reasoning_effort"], json!("low"));
    let chat = body(
        "chat: {engine: gpt-5}, openai: {chat_reasoning_effort: low}, inference: {reasoning_effort: high}",
    );
    assert_eq!(chat["reasoning_effort"], json!("high"));
    let claude = body("chat: {engine: claude-sonnet-4-5, api_type: claude}");
    assert_eq!(claude["thinking"], json!({"type": "disabled"}));
    let claude = body(
        "chat: {engine: claude-sonnet-4-5, api_type: claude}, inference: {thinking_budget: 3000}",
    );
    assert_eq!(claude["thinking"]["budget_tokens"], json!(3000));
    let gemini =
        body("chat: {engine: gemini-2.5-flash, api_type: gemini}, gemini: {thinking_budget: 700}");
    assert_eq!(
        gemini["generationConfig"]["thinkingConfig"]["thinkingBudget"],
        json!(700)
    );
    let gemini =
        body("chat: {engine: gemini-2.5-flash, api_type: gemini}, gemini: {thinking_budget: 0}");
    assert_eq!(
        gemini["generationConfig"]["thinkingConfig"]["thinkingBudget"],
        json!(0)
    );
    let gemini = body(
        "chat: {engine: gemini-2.5-flash, api_type: gemini}, inference: {thinking_type: disabled}",
    );
    assert_eq!(
        gemini["generationConfig"]["thinkingConfig"]["thinkingBudget"],
        json!(0)
    );
}

#[test]
fn an_engine_nobody_knows_thinks_if_it_is_told_to() {
    let world = World::new();
    let keys = "api: {api_keys: {openai-api-key: k, claude-api-key: k, gemini-api-key: k}}";
    let body = |settings: &str| {
        let asked = inline(&world, &format!("{{{settings}, {keys}}}"));
        sent(&world, &world.engine(&asked).unwrap()).2
    };
    let chat = body("chat: {engine: next}, inference: {reasoning_effort: high}");
    assert_eq!(chat["reasoning_effort"], json!("high"));
    let chat = body("chat: {engine: next}, openai: {reasoning_effort: low}");
    assert_eq!(chat["reasoning_effort"], json!("low"));
    let chat = body("chat: {engine: next}");
    assert_eq!(chat.get("reasoning_effort"), None);
    let responses = body(
        "chat: {engine: next, api_type: openai-responses}, inference: {reasoning_effort: low}",
    );
    assert_eq!(responses["reasoning"]["effort"], json!("low"));
    let claude = body("chat: {engine: next, api_type: claude}, inference: {thinking_budget: 3000}");
    assert_eq!(claude["thinking"]["budget_tokens"], json!(3000));
    assert!(claude["max_tokens"].as_u64().unwrap() > 3000, "{claude}");
    let gemini =
        body("chat: {engine: gemini-next, api_type: gemini}, gemini: {thinking_budget: 700}");
    let thinking = &gemini["generationConfig"]["thinkingConfig"];
    assert_eq!(thinking["thinkingBudget"], json!(700), "{gemini}");
    // Settings that disable thinking are followed.
    let never =
        "chat: {engine: next}, inference: {reasoning_effort: high}, model_info: {reasoning: false}";
    assert_eq!(body(never).get("reasoning_effort"), None);
    let off = "chat: {engine: next}, inference: {reasoning_effort: high, thinking_type: disabled}";
    assert_eq!(body(off).get("reasoning_effort"), None);
    let asked = inline(&world, &format!("{{{never}, {keys}}}"));
    let told = &world.engine(&asked).unwrap().notices[0].message;
    assert!(
        told.starts_with("inference.reasoning_effort has no effect: next does not think"),
        "{told}"
    );
}

#[test]
fn tokens_are_not_counted_for_who_does_not_want_that() {
    let world = World::new();
    for (setting, options) in [
        ("", json!({"include_usage": true})),
        (
            ", openai: {stream-include-usage: true}",
            json!({"include_usage": true}),
        ),
        (", openai: {stream-include-usage: false}", json!(null)),
    ] {
        let settings = format!(
            "{{chat: {{engine: gpt-4o}}{setting}, api: {{api_keys: {{openai-api-key: k}}}}}}"
        );
        let (_, _, body) = sent(&world, &world.engine(&inline(&world, &settings)).unwrap());
        assert_eq!(body["stream_options"], options, "{setting}");
    }
}

#[test]
fn what_is_not_done_is_told() {
    let world = World::new();
    let settings = "{chat: {engine: o3, cache_type: disk, structured_output_require_valid: true}, openai: {n: 3}, client: {proxy_url: 'http://p', proxy_from_environment: false}, api: {api_keys: {openai-api-key: k}}}";
    let chosen = world.engine(&inline(&world, settings)).unwrap();
    let told: Vec<&str> = chosen
        .notices
        .iter()
        .map(|notice| notice.message.split([' ', ',']).next().unwrap())
        .collect();
    assert_eq!(
        told,
        [
            "this",
            "chat.cache_type",
            "openai.n",
            "client.proxy_url",
            "client.proxy_from_environment",
            "chat.structured_output_require_valid",
        ]
    );
}

#[test]
fn servers_that_resemble_openai_are_asked_plainly() {
    let world = World::new();
    let settings = "{chat: {engine: llama, max_response_tokens: 5}, api: {api_keys: {openai-api-key: k}, base_urls: {openai-base-url: 'https://llama.example/v1'}}}";
    let (_, _, body) = sent(&world, &world.engine(&inline(&world, settings)).unwrap());
    assert_eq!(body["max_tokens"], json!(5));
    assert_eq!(body.get("store"), None);
}

#[test]
fn a_login_is_sent_as_a_bearer_token() {
    let world = World::new();
    let registry = |api_type: &str, expires: &str, more: &str| {
        world.write(
            "home/.config/pinocchio/profiles.yaml",
            &format!("slug: own\nprofiles:\n  login:\n    inference_settings: {{chat: {{engine: m, api_type: {api_type}}}{more}}}\n    extensions:\n      pinocchio.oauth@v1: {{kind: oauth_bearer, access_token: tok-planted, expires_at: {expires}}}\n"),
        );
        world.engine(&ProfileRequest::default())
    };
    for api_type in ["openai", "openai-responses", "claude", "gemini"] {
        let chosen = registry(api_type, "2026-06-01T12:00:01Z", "").unwrap();
        let (_, headers, _) = sent(&world, &chosen);
        assert_eq!(
            header(&headers, "authorization"),
            Some("Bearer tok-planted"),
            "{api_type}"
        );
        assert_eq!(header(&headers, "x-api-key"), None);
        assert!(!format!("{chosen:?}").contains("planted"));
    }
    let ended = error_text(registry("openai", "2026-06-01T12:00:00Z", ""));
    assert!(
        ended.starts_with(
            "login_unusable profile \"login\": its login ended at 2026-06-01T12:00:00Z"
        ),
        "{ended}"
    );
    assert!(!ended.contains("planted"));
    let both = error_text(registry(
        "openai",
        "",
        ", api: {api_keys: {openai-api-key: k}}",
    ));
    assert!(both.contains("take one of them out"), "{both}");
}
