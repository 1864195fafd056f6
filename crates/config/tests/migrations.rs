//! Old layouts move once, and only when nothing is in the way.

#![allow(
    clippy::unwrap_used,
    reason = "a sandbox that cannot be built fails the test"
)]

mod sandbox;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use pinion_config::{Notice, ProjectTrust, Settings, migrate};
use sandbox::{Sandbox, codes};
use serde_json::{Value, json};

fn run(sandbox: &Sandbox) -> Vec<Notice> {
    run_with(sandbox, ProjectTrust::Trusted)
}

fn run_with(sandbox: &Sandbox, trust: ProjectTrust) -> Vec<Notice> {
    let (settings, _) = Settings::load(&sandbox.dirs, trust);
    migrate(&sandbox.dirs, &settings, trust)
}

#[test]
fn a_new_installation_needs_nothing() {
    let sandbox = Sandbox::new();
    assert_eq!(run(&sandbox), []);
    assert_eq!(fs::read_dir(&sandbox.dirs.agent_dir).unwrap().count(), 0);
}

#[test]
fn commands_become_prompts_in_both_places() {
    let sandbox = Sandbox::new();
    sandbox.agent("commands/a.md", "a");
    sandbox.project(".pi/commands/b.md", "b");
    assert_eq!(codes(&run(&sandbox)), ["migrated", "migrated"]);
    assert!(sandbox.dirs.agent_dir.join("prompts/a.md").is_file());
    assert!(sandbox.dirs.project_dir.join("prompts/b.md").is_file());
    assert_eq!(run(&sandbox), []);
}

#[test]
fn nothing_in_an_untrusted_project_is_renamed() {
    let sandbox = Sandbox::new();
    sandbox.project(".pi/commands/b.md", "b");
    assert_eq!(run_with(&sandbox, ProjectTrust::Untrusted), []);
    assert!(sandbox.dirs.project_dir.join("commands/b.md").is_file());
}

#[test]
fn an_existing_target_or_a_link_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.agent("commands/a.md", "a");
    sandbox.agent("prompts/b.md", "b");
    sandbox.home("mine/c.md", "c");
    fs::create_dir_all(&sandbox.dirs.project_dir).unwrap();
    symlink(
        sandbox.dirs.home.join("mine"),
        sandbox.dirs.project_dir.join("commands"),
    )
    .unwrap();
    assert_eq!(run(&sandbox), []);
    assert!(sandbox.dirs.agent_dir.join("commands/a.md").is_file());
    assert!(sandbox.dirs.project_dir.join("commands/c.md").is_file());
}

#[test]
fn a_repository_cannot_rename_what_is_not_its_own() {
    let sandbox = Sandbox::new();
    sandbox.home("tool/commands/c.md", "c");
    symlink(sandbox.dirs.home.join("tool"), &sandbox.dirs.project_dir).unwrap();
    assert_eq!(run(&sandbox), []);
    assert!(sandbox.dirs.home.join("tool/commands/c.md").is_file());
}

#[test]
fn credentials_move_into_a_private_file() {
    let sandbox = Sandbox::new();
    sandbox.agent(
        "oauth.json",
        r#"{"anthropic":{"refresh":"r","access":"a","expires":1}}"#,
    );
    sandbox.agent(
        "settings.json",
        r#"{"theme":"dark","apiKeys":{"openai":"sk-1","anthropic":"sk-2","odd":3}}"#,
    );
    sandbox.project(
        ".pi/settings.json",
        r#"{"apiKeys":{"groq":"from the project"}}"#,
    );
    let notices = run(&sandbox);
    assert_eq!(codes(&notices), ["migrated"]);
    assert!(
        !notices[0].to_string().contains("sk-1"),
        "names, not keys: {notices:?}"
    );
    let auth = sandbox.dirs.agent_dir.join("auth.json");
    let stored: Value = serde_json::from_str(&fs::read_to_string(&auth).unwrap()).unwrap();
    let expected = json!({
        "anthropic": {"type": "oauth", "refresh": "r", "access": "a", "expires": 1},
        "openai": {"type": "api_key", "key": "sk-1"},
    });
    assert_eq!(stored, expected);
    assert_eq!(
        fs::metadata(&auth).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(sandbox.dirs.agent_dir.join("oauth.json.migrated").is_file());
    assert!(!sandbox.dirs.agent_dir.join("oauth.json").exists());
    let settings = fs::read_to_string(sandbox.dirs.global_settings()).unwrap();
    assert_eq!(settings, "{\n  \"theme\": \"dark\"\n}");
    assert_eq!(run(&sandbox), []);
}

#[test]
fn existing_credentials_are_never_touched() {
    let sandbox = Sandbox::new();
    sandbox.agent("auth.json", "{ not even json");
    sandbox.agent("oauth.json", r#"{"anthropic":{"refresh":"r"}}"#);
    assert_eq!(run(&sandbox), []);
    let text = fs::read_to_string(sandbox.dirs.agent_dir.join("auth.json")).unwrap();
    assert_eq!(text, "{ not even json");
    assert!(sandbox.dirs.agent_dir.join("oauth.json").is_file());
}

#[test]
fn a_broken_token_file_stays_and_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.agent("oauth.json", "{");
    assert_eq!(codes(&run(&sandbox)), ["broken_file"]);
    assert!(!sandbox.dirs.agent_dir.join("auth.json").exists());
    assert!(sandbox.dirs.agent_dir.join("oauth.json").is_file());
}
