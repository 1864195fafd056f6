//! Requests as they are sent, compared member by member with captured ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a vector that does not read is a failed test"
)]

mod support;

use std::collections::BTreeMap;

use pinion_llm::{HttpRequest, build_request};
use pinion_message::Secret;
use serde_json::{Value, json};
use support::{context, files, hello, images_after_results, read, request, rows};

/// Texts whose wording differs from the captured requests.
const FILLERS: [(&str, &str); 5] = [
    (
        "(image omitted: model does not support images)",
        "[image left out: this model cannot see images]",
    ),
    (
        "(tool image omitted: model does not support images)",
        "[tool image left out: this model cannot see images]",
    ),
    (
        "Attached image(s) from tool result:",
        "Images from the tool results above:",
    ),
    ("Tool result image:", "Images from the tool results above:"),
    (
        "I have processed the tool results.",
        "I have read the tool results.",
    ),
];

fn in_our_words(expected: &Value) -> Value {
    let mut text = expected.to_string();
    for (theirs, ours) in FILLERS {
        text = text.replace(theirs, ours);
    }
    serde_json::from_str(&text).unwrap()
}

fn path(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap();
    &rest[rest.find('/').unwrap()..]
}

fn compare(name: &str, built: &HttpRequest, expected: &Value) {
    assert_eq!(
        path(&built.url),
        expected["path"].as_str().unwrap(),
        "{name}"
    );
    let mut headers: BTreeMap<String, String> =
        serde_json::from_value(expected["headers"].clone()).unwrap();
    // Only a browser needs it.
    headers.remove("anthropic-dangerous-direct-browser-access");
    let sent: BTreeMap<String, String> = built.headers.iter().cloned().collect();
    assert_eq!(sent, headers, "{name}");
    let body: Value = serde_json::from_slice(&built.body).unwrap();
    let expected = in_our_words(&expected["body"]);
    if body != expected {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
        panic!(
            "{name}\nsent {}\nexpected {}",
            pretty(&body),
            pretty(&expected)
        );
    }
}

fn check_folder(folder: &str, count: usize) {
    let files = files(&format!("requests/{folder}"), ".json");
    assert_eq!(files.len(), count);
    for file in files {
        let vector = read(&file);
        let name = vector["scenario"].as_str().unwrap();
        let mut expected = vector["request"].clone();
        if let Some(contents) = expected["body"].get_mut("contents") {
            *contents = images_after_results(contents);
        }
        let built = build_request(&request(&vector, &context(&vector), "http://test")).unwrap();
        compare(name, &built, &expected);
    }
}

#[test]
fn anthropic_messages() {
    check_folder("anthropic-messages", 18);
}

#[test]
fn openai_completions() {
    check_folder("openai-completions", 23);
}

#[test]
fn openai_responses() {
    check_folder("openai-responses", 18);
}

#[test]
fn google_generative_ai() {
    check_folder("google-generative-ai", 17);
}

#[test]
fn thinking_uses_the_members_of_each_server() {
    const MEMBERS: [&str; 14] = [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "maxOutputTokens",
        "thinking",
        "thinkingConfig",
        "output_config",
        "reasoning",
        "reasoning_effort",
        "include",
        "store",
        "enable_thinking",
        "chat_template_kwargs",
        "tool_choice",
    ];
    let models = rows("thinking-params.models.jsonl");
    let table = rows("thinking-params.jsonl");
    assert_eq!(table.len(), 252);
    for row in table {
        let same =
            |model: &&Value| model["provider"] == row["provider"] && model["id"] == row["id"];
        let mut model = models.iter().find(same).unwrap().clone();
        let url = model["baseUrl"]
            .as_str()
            .unwrap()
            .replace("{CLOUDFLARE_ACCOUNT_ID}", "account");
        model["baseUrl"] = json!(url);
        let level = Some(&row["level"]).filter(|level| **level != "off");
        let vector = json!({"model": model, "options": {"reasoning": level}});
        let mut request = request(&vector, &hello(), "");
        request.options.api_key = Some(Secret::from("sk-key"));
        let built = build_request(&request).unwrap();
        let body: Value = serde_json::from_slice(&built.body).unwrap();
        let mut sent = serde_json::Map::new();
        for member in MEMBERS {
            let value = body
                .get(member)
                .or_else(|| body["generationConfig"].get(member));
            sent.extend(value.map(|value| (member.to_owned(), value.clone())));
        }
        let beta = built
            .headers
            .iter()
            .find(|(name, _)| name == "anthropic-beta");
        sent.extend(beta.map(|(_, beta)| ("header:anthropic-beta".to_owned(), json!(beta))));
        assert_eq!(Value::Object(sent), row["sent"], "{row}");
    }
}

#[test]
fn an_unknown_api_is_named() {
    let mut vector = read(&files("requests/openai-completions", ".json")[0]);
    vector["model"]["api"] = json!("carrier-pigeon");
    let error = build_request(&request(&vector, &hello(), "http://test")).unwrap_err();
    assert_eq!(error, "No API provider registered for api: carrier-pigeon");
}

#[test]
fn debug_output_of_a_request_has_no_secrets() {
    let vector = read(&files("requests/openai-completions", ".json")[0]);
    let mut request = request(&vector, &hello(), "http://test");
    request
        .options
        .headers
        .insert("x-extra".to_owned(), "secret-value".to_owned());
    let built = build_request(&request).unwrap();
    let printed = format!("{built:?} {request:?}");
    assert!(printed.contains("x-extra"));
    assert!(
        !printed.contains("test-key") && !printed.contains("secret-value"),
        "{printed}"
    );
}

#[test]
fn every_model_of_the_catalogue_can_be_asked_at_every_level() {
    const SPOKEN: [&str; 7] = [
        "anthropic-messages",
        "azure-openai-responses",
        "google-generative-ai",
        "google-vertex",
        "mistral-conversations",
        "openai-completions",
        "openai-responses",
    ];
    let nowhere = std::path::Path::new("/nonexistent");
    let (registry, _) = pinion_llm::Registry::load(nowhere, pinion_llm::RegistryOptions::default());
    let mut asked = 0;
    for model in registry.all() {
        if !SPOKEN.contains(&model.api.as_str()) {
            continue;
        }
        let mut model = (*model).clone();
        // Some addresses, or parts of them, come from the environment.
        model.base_url = match model.base_url.as_str() {
            "" => "http://test".to_owned(),
            url => url.replace(['{', '}'], ""),
        };
        let model = std::sync::Arc::new(model);
        let vector = read(&files("requests/openai-completions", ".json")[0]);
        let mut request = request(&vector, &hello(), "http://test");
        request.model = model.clone();
        for level in pinion_message::ThinkingLevel::ALL {
            request.options.reasoning = Some(level);
            let built = build_request(&request).unwrap();
            let body: Value = serde_json::from_slice(&built.body).unwrap();
            assert!(
                body.is_object() && !body.to_string().contains("null,"),
                "{}",
                model.id
            );
            asked += 1;
        }
    }
    assert!(asked > 5000, "{asked}");
}
