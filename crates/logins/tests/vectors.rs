//! Sign-ins and renewals against a real server on loopback, as recorded with pi.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a vector that does not read is a failed test"
)]

mod support;

use std::path::Path;
use std::sync::Arc;

use pinion_logins::{
    KimiCoding, Login, LoginError, LoginProvider, Meta, OpenAi, OpenAiCodex, OpenRouter, SignIn,
    Xai,
};
use pinion_message::now_millis;
use serde_json::{Value, json};
use support::{Browser, Script};

const DEVICE: &str = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

fn vector(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The requests of a vector with their responses.
fn exchanges(vector: &Value) -> Vec<(Value, Value)> {
    let steps = vector["steps"].as_array().unwrap().iter();
    let steps = steps.filter(|step| step.get("request").is_some());
    steps
        .map(|step| {
            let response = step.get("response").cloned().unwrap_or(Value::Null);
            (step["request"].clone(), response)
        })
        .collect()
}

fn provider(name: &str, base: &str, callback: &str) -> Arc<dyn LoginProvider> {
    match name {
        name if name.starts_with("openai-chatgpt") => Arc::new(OpenAi::at(base, callback)),
        name if name.starts_with("openai-codex") => Arc::new(OpenAiCodex::at(base)),
        name if name.starts_with("openrouter") => Arc::new(OpenRouter::at(base)),
        name if name.starts_with("kimi") => Arc::new(KimiCoding::at(base)),
        name if name.starts_with("meta") => Arc::new(Meta::at(base)),
        _ => Arc::new(Xai::at(base)),
    }
}

/// Compares a login with the recorded one, whose clock stood still.
fn compare(name: &str, vector: &Value, login: &Login) {
    let clock = match vector.get("clock") {
        // 2026-01-02T03:04:05Z, moved by the recorded waits.
        Some(_) => 1_767_323_045_000_i64 + waits(vector),
        None => 1_767_323_045_000,
    };
    let mut expected = vector["credential"].clone();
    let mut seen = login.entry();
    let (recorded, ours) = (
        expected["expires"].as_i64().unwrap(),
        seen["expires"].as_i64().unwrap(),
    );
    if recorded < 9_000_000_000_000_000 {
        let drift = (ours - now_millis()) - (recorded - clock);
        assert!(drift.abs() < 20_000, "{name}: expires {drift} ms off");
        expected["expires"] = json!(0);
        seen["expires"] = json!(0);
    }
    assert_eq!(seen, expected, "{name}");
}

fn waits(vector: &Value) -> i64 {
    let steps = vector["steps"].as_array().unwrap().iter();
    steps.filter_map(|step| step["wait"].as_i64()).sum()
}

#[tokio::test]
async fn renewals_are_those_of_the_vectors() {
    let names = [
        ("openai-chatgpt-refresh", None),
        (
            "openai-chatgpt-refresh-invalidated",
            Some("refresh_token_invalidated"),
        ),
        ("openai-chatgpt-refresh-no-client-id", Some("clientId")),
        ("openai-codex-refresh", None),
        ("openai-codex-refresh-invalid", Some("already been used")),
        ("openai-codex-refresh-missing-fields", Some("refresh_token")),
        ("openai-codex-refresh-network", Some("/oauth/token")),
        ("openrouter-refresh", None),
        ("kimi-coding-refresh-after-503", None),
        ("kimi-coding-refresh-unauthorized", Some("revoked")),
        ("meta-refresh", None),
        ("meta-refresh-expired", Some("invalid token")),
        ("xai-refresh-denied", Some("invalid_grant: Token revoked")),
        ("xai-refresh-not-rotated", None),
    ];
    for (name, error) in names {
        let vector = vector(name);
        let script = Script::start(exchanges(&vector));
        let base = match name {
            "openai-codex-refresh-network" => "http://127.0.0.1:9",
            _ => script.base.as_str(),
        };
        let provider = provider(name, base, "http://127.0.0.1/auth/callback");
        let stored = Login::from_entry(vector["stored"].as_object().unwrap().clone()).unwrap();
        let renewed = provider.renew(&stored).await;
        match (renewed, error) {
            (Ok(login), None) => {
                compare(name, &vector, &login);
                let access = provider.access(&login, None).await.unwrap();
                use secrecy::ExposeSecret;
                let key = access.api_key.unwrap();
                let expected = &vector["requestAuth"];
                let expected = expected["apiKey"].as_str().map(str::to_owned).or_else(|| {
                    let header = expected["headers"]["Authorization"].as_str()?;
                    Some(header.strip_prefix("Bearer ")?.to_owned())
                });
                assert_eq!(Some(key.expose_secret()), expected.as_deref(), "{name}");
            }
            (Err(LoginError::Failed(text)), Some(part)) => {
                assert!(text.contains(part), "{name}: {text}");
                assert!(!text.contains(stored.refresh()), "{name}: {text}");
            }
            (seen, _) => panic!("{name}: {seen:?}"),
        }
        script.finish(
            name,
            if name.ends_with("network") {
                0
            } else {
                exchanges(&vector).len()
            },
        );
    }
}

/// Runs the sign-in of a vector with a browser that does what the vector records.
async fn signed_in(name: &str) -> (Value, Result<Login, LoginError>) {
    let vector = vector(name);
    let script = Script::start(exchanges(&vector));
    let provider = provider(name, &script.base, "http://127.0.0.1/auth/callback");
    let browser = Browser::new(&vector, &script);
    let sign_in = SignIn {
        conversation: &browser,
        device_id: DEVICE,
        previous: None,
    };
    let result = provider.sign_in(sign_in).await;
    browser.finish().await;
    script.finish(name, exchanges(&vector).len());
    (vector, result)
}

#[tokio::test]
async fn sign_ins_with_a_browser_or_a_pasted_answer_are_those_of_the_vectors() {
    for name in [
        "openai-chatgpt-browser",
        "openai-chatgpt-paste",
        "openrouter-browser",
        "openrouter-paste",
    ] {
        let (vector, result) = signed_in(name).await;
        compare(name, &vector, &result.unwrap());
    }
}

#[tokio::test]
async fn sign_ins_that_fail_say_why() {
    for (name, part) in [
        ("openai-chatgpt-paste-bare-code", "paste the whole address"),
        ("openai-chatgpt-scope-missing", "chatgpt.tokens.use.direct"),
        ("openrouter-exchange-error", "(HTTP 403): Invalid code"),
    ] {
        let (_, result) = signed_in(name).await;
        let text = result.unwrap_err().to_string();
        assert!(text.contains(part), "{name}: {text}");
        assert!(!text.contains("ORCODE"), "{name}: {text}");
    }
}

#[tokio::test]
async fn an_id_token_of_another_sign_in_is_refused() {
    for (claim, value, part) in [
        ("nonce", json!("other"), "belongs to another sign-in"),
        ("aud", json!("other-client"), "is for another client"),
        ("exp", json!(1), "has expired"),
        (
            "iss",
            json!("https://evil.example"),
            "issued by another server",
        ),
    ] {
        let vector = vector("openai-chatgpt-browser");
        let script = Script::start(exchanges(&vector));
        let provider = OpenAi::at(&script.base, "http://127.0.0.1/auth/callback");
        let browser = Browser::new(&vector, &script).with_claim(claim, value);
        let sign_in = SignIn {
            conversation: &browser,
            device_id: DEVICE,
            previous: None,
        };
        let text = provider.sign_in(sign_in).await.unwrap_err().to_string();
        assert!(text.contains(part), "{claim}: {text}");
        for secret in ["siwc-access", "siwc-refresh"] {
            assert!(!text.contains(secret), "{text}");
        }
        browser.finish().await;
    }
}

#[tokio::test]
async fn the_issued_client_is_used_for_the_next_sign_in() {
    let mut vector = vector("openai-chatgpt-browser");
    // An answer without a client belongs to the known one, so the browser does not visit twice.
    let steps = vector["steps"].as_array_mut().unwrap();
    let last = steps
        .iter()
        .rposition(|step| step.get("browserGets").is_some());
    steps.remove(last.unwrap());
    for step in steps.iter_mut() {
        let visits = step
            .get("browserGets")
            .is_some_and(|url| !url.as_str().unwrap().contains("bad"));
        if visits {
            step["status"] = json!(200);
        }
    }
    let script = Script::start(exchanges(&vector));
    let provider = OpenAi::at(&script.base, "http://127.0.0.1/auth/callback");
    let browser = Browser::new(&vector, &script);
    let previous = Login::new("a", "r", 0).with("clientId", json!("issued-client-1"));
    let sign_in = SignIn {
        conversation: &browser,
        device_id: DEVICE,
        previous: Some(&previous),
    };
    provider.sign_in(sign_in).await.unwrap();
    let shown = browser.opened();
    assert!(
        shown.contains("client_id=issued-client-1&agent_name_hint=pinion&"),
        "{shown}"
    );
    browser.finish().await;
}

#[tokio::test]
async fn a_user_who_cancels_ends_the_sign_in() {
    let script = Script::start(Vec::new());
    for provider in [
        Arc::new(OpenAi::at(&script.base, "http://127.0.0.1/auth/callback"))
            as Arc<dyn LoginProvider>,
        Arc::new(OpenRouter::at(&script.base)),
    ] {
        let browser = Browser::cancelling();
        let sign_in = SignIn {
            conversation: &browser,
            device_id: DEVICE,
            previous: None,
        };
        assert_eq!(provider.sign_in(sign_in).await, Err(LoginError::Cancelled));
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_explained() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let provider = OpenAi::at(
        "http://127.0.0.1:9",
        &format!("http://127.0.0.1:{port}/auth/callback"),
    );
    let sign_in = SignIn {
        conversation: &pinion_logins::Silent,
        device_id: DEVICE,
        previous: None,
    };
    let text = provider.sign_in(sign_in).await.unwrap_err().to_string();
    assert!(text.contains("needs exactly this port"), "{text}");
}
