//! Renewals of stored logins: one request, under the lock that all programs share, stored before it is used.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pinion_llm::{Environment, Registry, RegistryOptions};
use pinion_logins::KimiCoding;
use pinion_message::now_millis;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use support::server::{Ending, Reply, Server};

const PROVIDER: &str = "kimi-coding";

fn registry(directory: &Path, server: &str) -> Registry {
    let options = RegistryOptions {
        environment: Environment::Fixed(
            [("KIMI_API_KEY".to_owned(), "of-environment".to_owned())].into(),
        ),
        ..RegistryOptions::default()
    };
    let (registry, _) = Registry::load(directory, options);
    registry.set_login_provider(PROVIDER, Some(Arc::new(KimiCoding::at(server))));
    registry
}

fn store(directory: &Path, entries: &Value) {
    fs::write(directory.join("auth.json"), entries.to_string()).unwrap();
}

fn stored(directory: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(directory.join("auth.json")).unwrap()).unwrap()
}

fn login(expires: i64) -> Value {
    json!({"type": "oauth", "access": "old-access", "refresh": "old-refresh", "expires": expires, "extra": 1})
}

fn tokens() -> Reply {
    let body =
        json!({"access_token": "new-access", "refresh_token": "new-refresh", "expires_in": 28_800});
    Reply::new(200, &body.to_string())
}

async fn token(registry: &Registry) -> Result<String, String> {
    let key = registry.provider_key(PROVIDER).await;
    let key = key.map_err(|error| error.to_string())?;
    Ok(key.unwrap().expose_secret().to_owned())
}

#[tokio::test]
async fn a_login_is_renewed_five_minutes_before_it_ends_and_other_entries_stay() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(vec![tokens()]);
    let registry = registry(directory.path(), &server.base);
    let minute = 60_000;
    store(
        directory.path(),
        &json!({PROVIDER: login(now_millis() + 10 * minute)}),
    );
    assert_eq!(token(&registry).await.unwrap(), "old-access");
    assert!(server.requests().is_empty());

    let other = json!({"type": "later", "deep": {"x": [1, 2]}});
    store(
        directory.path(),
        &json!({"other": other, PROVIDER: login(now_millis() + 4 * minute), "openai": {"type": "api_key", "key": "k"}}),
    );
    assert_eq!(token(&registry).await.unwrap(), "new-access");
    assert_eq!(server.requests().len(), 1);
    assert!(server.requests()[0].contains("refresh_token=old-refresh"));
    let after = stored(directory.path());
    assert_eq!(after["other"], other);
    assert_eq!(after["openai"]["key"], "k");
    let renewed = &after[PROVIDER];
    assert_eq!(
        (&renewed["access"], &renewed["refresh"]),
        (&json!("new-access"), &json!("new-refresh"))
    );
    assert!(
        renewed.get("extra").is_none(),
        "a renewed entry holds what the provider returned"
    );
    let text = fs::read_to_string(directory.path().join("auth.json")).unwrap();
    assert!(
        text.starts_with("{\n  \"other\"") && text.ends_with('}'),
        "{text}"
    );
    assert!(!directory.path().join("auth.json.lock").exists());
    assert_eq!(token(&registry).await.unwrap(), "new-access");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_renewal_that_fails_changes_nothing_and_shows_no_token() {
    let directory = tempfile::tempdir().unwrap();
    let body = json!({"error": "invalid_grant", "error_description": "old-refresh was revoked"});
    let server = Server::start(vec![Reply::new(400, &body.to_string())]);
    let registry = registry(directory.path(), &server.base);
    store(directory.path(), &json!({PROVIDER: login(1)}));
    let before = stored(directory.path());
    let error = token(&registry).await.unwrap_err();
    assert!(
        error.starts_with("OAuth refresh failed for kimi-coding: "),
        "{error}"
    );
    assert!(
        error.contains("invalid_grant") && error.contains("*** was revoked"),
        "{error}"
    );
    assert_eq!(stored(directory.path()), before);
    assert!(!directory.path().join("auth.json.lock").exists());
}

#[tokio::test]
async fn the_lock_of_another_program_is_respected_and_a_stale_one_is_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(vec![tokens()]);
    let registry = registry(directory.path(), &server.base);
    store(directory.path(), &json!({PROVIDER: login(1)}));
    let lock = directory.path().join("auth.json.lock");
    fs::create_dir(&lock).unwrap();
    let waiting = {
        let registry = registry.clone();
        tokio::spawn(async move { token(&registry).await })
    };
    // Nothing must happen meanwhile.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(server.requests().is_empty() && !waiting.is_finished());
    // The other program renews the login and releases the lock: its token is used.
    let theirs = json!({"type": "oauth", "access": "theirs", "refresh": "r", "expires": now_millis() + 3_600_000});
    store(directory.path(), &json!({PROVIDER: theirs}));
    assert_eq!(waiting.await.unwrap().unwrap(), "theirs");
    assert!(server.requests().is_empty());

    store(directory.path(), &json!({PROVIDER: login(1)}));
    let old = SystemTime::now() - Duration::from_secs(31);
    fs::File::open(&lock).unwrap().set_modified(old).unwrap();
    assert_eq!(token(&registry).await.unwrap(), "new-access");
    assert!(!lock.exists());
}

#[tokio::test]
async fn a_login_that_is_removed_meanwhile_is_not_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(vec![tokens()]);
    let registry = registry(directory.path(), &server.base);
    store(directory.path(), &json!({PROVIDER: login(1)}));
    let lock = directory.path().join("auth.json.lock");
    fs::create_dir(&lock).unwrap();
    let waiting = {
        let registry = registry.clone();
        tokio::spawn(async move { token(&registry).await })
    };
    // Nothing must happen meanwhile.
    tokio::time::sleep(Duration::from_millis(100)).await;
    store(directory.path(), &json!({}));
    fs::remove_dir(&lock).unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(
        error.starts_with("No API key found for kimi-coding."),
        "{error}"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_cancelled_request_does_not_lose_the_answer() {
    let directory = tempfile::tempdir().unwrap();
    let body =
        json!({"access_token": "new-access", "refresh_token": "new-refresh", "expires_in": 28_800})
            .to_string();
    let (head, tail) = body.split_at(10);
    let server = Server::start(vec![Reply::stream(&[head.as_bytes(), tail.as_bytes()])]);
    let registry = registry(directory.path(), &server.base);
    store(directory.path(), &json!({PROVIDER: login(1)}));
    let requested = server.requested();
    tokio::select! {
        biased;
        token = token(&registry) => panic!("{token:?}"),
        () = requested => {}
    }
    // The refresh token is spent, so the answer must be stored although nothing waits for it.
    pinion_llm::finish_renewals();
    assert_eq!(stored(directory.path())[PROVIDER]["refresh"], "new-refresh");
}

#[tokio::test]
async fn a_cancelled_wait_for_the_lock_sends_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(vec![tokens()]);
    let registry = registry(directory.path(), &server.base);
    store(directory.path(), &json!({PROVIDER: login(1)}));
    let lock = directory.path().join("auth.json.lock");
    fs::create_dir(&lock).unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(200), token(&registry));
    assert!(waiting.await.is_err());
    pinion_llm::finish_renewals();
    fs::remove_dir(&lock).unwrap();
    // Nothing must happen meanwhile.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(server.requests().is_empty() && !lock.exists());
}

#[tokio::test]
async fn many_requests_at_once_renew_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(vec![tokens()]);
    store(directory.path(), &json!({PROVIDER: login(1)}));
    // Registries that share nothing, as in several processes.
    let asked = (0..16).map(|_| {
        let registry = registry(directory.path(), &server.base);
        tokio::spawn(async move { token(&registry).await })
    });
    let asked: Vec<_> = asked.collect();
    for task in asked {
        assert_eq!(task.await.unwrap().unwrap(), "new-access");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_does_not_answer_leaves_the_login_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Reply::new(503, "").ending(Ending::CloseBeforeHeaders)]);
    let registry = registry(directory.path(), &server.base);
    store(directory.path(), &json!({PROVIDER: login(1)}));
    let error = token(&registry).await.unwrap_err();
    assert!(
        error.starts_with("OAuth refresh failed for kimi-coding: "),
        "{error}"
    );
    assert!(
        error.contains("/api/oauth/token") && !error.contains("of-environment"),
        "{error}"
    );
    assert_eq!(stored(directory.path())[PROVIDER]["refresh"], "old-refresh");
    assert_eq!(server.requests().len(), 4, "three retries");
}
