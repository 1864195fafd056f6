//! Sampling parameters, as a server on loopback received them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a request that does not arrive is a failed test"
)]

mod support;

use std::sync::Arc;

use futures_util::StreamExt;
use pinion_llm::{HttpProvider, Provider, Sampling, StructuredOutput};
use pinion_message::ThinkingLevel;
use serde_json::{Map, Value, json};
use support::server::{Reply, Server};
use support::{hello, request};

fn everything() -> Sampling {
    Sampling {
        top_p: Some(0.5),
        top_k: Some(4),
        stop: vec!["END".to_owned()],
        seed: Some(-7),
        presence_penalty: Some(0.25),
        frequency_penalty: Some(-0.25),
        logit_bias: Map::from_iter([("50256".to_owned(), json!(-100))]),
        parallel_tool_calls: Some(false),
        reasoning_summary: Some("concise".to_owned()),
        structured_output: Some(StructuredOutput {
            name: "shape".to_owned(),
            description: Some("a shape".to_owned()),
            schema: json!({"type": "object"}),
            strict: false,
        }),
        uncapped: false,
    }
}

/// The body that the server received for these options.
async fn received(
    api: &str,
    sampling: Option<Sampling>,
    reasoning: Option<ThinkingLevel>,
) -> Value {
    let server = Server::start(vec![Reply::new(400, "{}")]);
    let vector = json!({"model": {
        "id": "m", "name": "m", "api": api, "provider": "p", "baseUrl": "BASE", "reasoning": true,
        "input": [], "cost": {}, "contextWindow": 50000, "maxTokens": 20000,
    }});
    let mut request = request(&vector, &hello(), &server.base);
    request.options.sampling = sampling.map(Arc::new);
    request.options.reasoning = reasoning;
    request.options.temperature = Some(0.75);
    let _: Vec<_> = HttpProvider::new().stream(request).collect().await;
    let requests = server.requests();
    let (_, body) = requests[0].split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

/// The members that the second body has and the first has not, and those that differ.
fn added(plain: &Value, full: &Value) -> Map<String, Value> {
    let members = full.as_object().unwrap().iter();
    let new = members.filter(|(name, value)| plain.get(name.as_str()) != Some(value));
    new.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[tokio::test]
async fn every_api_receives_its_own_members() {
    let described = json!({"name": "shape", "description": "a shape", "schema": {"type": "object"}, "strict": false});
    let format = json!({"type": "json_schema", "json_schema": described});
    for (api, expected, unsupported) in [
        (
            "openai-completions",
            json!({"top_p": 0.5, "stop": ["END"], "seed": -7, "presence_penalty": 0.25,
                "frequency_penalty": -0.25, "logit_bias": {"50256": -100},
                "parallel_tool_calls": false, "response_format": format}),
            vec!["top_k"],
        ),
        (
            "mistral-conversations",
            json!({"top_p": 0.5, "stop": ["END"], "random_seed": -7, "presence_penalty": 0.25,
                "frequency_penalty": -0.25, "parallel_tool_calls": false, "response_format": format}),
            vec!["top_k", "logit_bias"],
        ),
        (
            "openai-responses",
            json!({"top_p": 0.5, "parallel_tool_calls": false, "text": {"format": {"type": "json_schema",
                "name": "shape", "description": "a shape", "schema": {"type": "object"}, "strict": false}}}),
            vec![
                "top_k",
                "stop",
                "seed",
                "presence_penalty",
                "frequency_penalty",
                "logit_bias",
            ],
        ),
        (
            "anthropic-messages",
            json!({"top_p": 0.5, "top_k": 4, "stop_sequences": ["END"],
                "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}),
            vec![
                "seed",
                "presence_penalty",
                "frequency_penalty",
                "logit_bias",
                "parallel_tool_calls",
            ],
        ),
        (
            "google-generative-ai",
            json!({"topP": 0.5, "topK": 4, "stopSequences": ["END"], "seed": -7, "presencePenalty": 0.25,
                "frequencyPenalty": -0.25, "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "object"}}),
            vec!["logit_bias", "parallel_tool_calls"],
        ),
    ] {
        let mut plain = received(api, None, None).await;
        let mut full = received(api, Some(everything()), None).await;
        if api.starts_with("google") {
            plain = plain["generationConfig"].take();
            full = full["generationConfig"].take();
        }
        assert_eq!(plain["temperature"], json!(0.75), "{api}");
        assert_eq!(Value::Object(added(&plain, &full)), expected, "{api}");
        assert_eq!(everything().unsupported(api), unsupported, "{api}");
        // Without parameters nothing is sent.
        let nothing = received(api, Some(Sampling::default()), None).await;
        let expected = received(api, None, None).await;
        assert_eq!(nothing, expected, "{api}");
    }
}

#[tokio::test]
async fn without_a_requested_cap_the_server_decides() {
    for (api, pointer, insists) in [
        ("openai-completions", "/max_completion_tokens", false),
        ("openai-responses", "/max_output_tokens", false),
        ("mistral-conversations", "/max_tokens", false),
        (
            "google-generative-ai",
            "/generationConfig/maxOutputTokens",
            false,
        ),
        ("anthropic-messages", "/max_tokens", true),
    ] {
        let capped = received(api, None, None).await;
        assert_eq!(capped.pointer(pointer), Some(&json!(20000)), "{api}");
        let uncapped = Sampling {
            uncapped: true,
            ..Sampling::default()
        };
        let uncapped = received(api, Some(uncapped), None).await;
        assert_eq!(uncapped.pointer(pointer).is_some(), insists, "{api}");
    }
}

#[tokio::test]
async fn thinking_and_shape_share_their_place() {
    let level = Some(ThinkingLevel::High);
    let body = received("anthropic-messages", Some(everything()), level).await;
    // A model that thinks takes neither.
    assert_eq!(body.get("top_k"), None);
    assert_eq!(body.get("temperature"), None);
    assert_eq!(
        body["output_config"]["format"]["type"],
        json!("json_schema")
    );
    let body = received("openai-responses", Some(everything()), level).await;
    assert_eq!(
        body["reasoning"],
        json!({"effort": "high", "summary": "concise"})
    );
    let none = Sampling {
        reasoning_summary: Some("none".to_owned()),
        ..Sampling::default()
    };
    let body = received("openai-responses", Some(none), level).await;
    assert_eq!(body["reasoning"], json!({"effort": "high"}));
}
