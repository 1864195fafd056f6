//! Settings for users: two files, defaults, mistakes, and safe writes.

#![allow(
    clippy::unwrap_used,
    reason = "a sandbox that cannot be built fails the test"
)]

use std::fs;
use std::path::Path;

use pinion_config::{Dirs, Notice, ProjectTrust, ResourceKind, Settings, SettingsFile};
use pinion_message::ThinkingLevel;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

fn sandbox(global: &str, project: &str) -> (TempDir, Dirs) {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    let cwd = root.path().join("work");
    let dirs = Dirs::new(cwd, |name| (name == "HOME").then(|| home.clone().into()));
    for (directory, text) in [(&dirs.agent_dir, global), (&dirs.project_dir, project)] {
        fs::create_dir_all(directory).unwrap();
        if !text.is_empty() {
            fs::write(directory.join("settings.json"), text).unwrap();
        }
    }
    (root, dirs)
}

fn load(global: &str, project: &str) -> (Settings, Vec<Notice>) {
    let (_root, dirs) = sandbox(global, project);
    Settings::load(&dirs, ProjectTrust::Trusted)
}

#[test]
fn without_files_every_setting_has_its_default() {
    let (settings, notices) = load("", "");
    assert_eq!(notices, []);
    assert_eq!(settings.default_provider(), None);
    assert_eq!(settings.default_thinking_level(), None);
    assert!(settings.thinking_budgets().is_empty());
    assert_eq!(settings.steering_mode(), "one-at-a-time");
    assert_eq!(settings.follow_up_mode(), "one-at-a-time");
    assert_eq!(settings.transport(), "sse");
    let compaction = settings.compaction();
    assert_eq!(
        (
            compaction.enabled,
            compaction.reserve_tokens,
            compaction.keep_recent_tokens
        ),
        (true, 16384, 20000)
    );
    let branch = settings.branch_summary();
    assert_eq!((branch.reserve_tokens, branch.skip_prompt), (16384, false));
    let retry = settings.retry();
    assert_eq!((retry.enabled, retry.max_retries), (true, 3));
    assert_eq!((retry.base_delay_ms, retry.max_delay_ms), (2000, 60000));
    assert_eq!(
        (retry.provider.timeout_ms, retry.provider.max_retries),
        (None, None)
    );
    let images = settings.images();
    assert_eq!((images.auto_resize, images.block_images), (true, false));
    assert!(settings.enable_skill_commands());
    assert_eq!(settings.enabled_models(), None);
}

#[test]
fn the_project_wins_one_level_deep_and_lists_are_replaced() {
    let (settings, _) = load(
        r#"{"defaultModel":"a","retry":{"maxRetries":7,"baseDelayMs":1,"provider":{"timeoutMs":5,"maxRetries":1}},
            "enabledModels":["x","y"],"prompts":["mine"]}"#,
        r#"{"defaultModel":"b","retry":{"baseDelayMs":60,"provider":{"timeoutMs":9}},
            "enabledModels":["z"],"prompts":["theirs"]}"#,
    );
    assert_eq!(settings.default_model(), Some("b"));
    let retry = settings.retry();
    assert_eq!((retry.max_retries, retry.base_delay_ms), (7, 60));
    assert_eq!(
        (retry.provider.timeout_ms, retry.provider.max_retries),
        (Some(9), None)
    );
    assert_eq!(settings.enabled_models(), Some(vec!["z"]));
    assert_eq!(settings.user_paths(ResourceKind::Prompts), ["mine"]);
    assert_eq!(settings.project_paths(ResourceKind::Prompts), ["theirs"]);
}

#[test]
fn a_broken_file_counts_as_empty_and_is_reported_with_its_position() {
    let (settings, notices) = load("{\"defaultModel\": \"a\",}", r#"{"defaultModel":"b"}"#);
    assert_eq!(settings.default_model(), Some("b"));
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].code, "broken_file");
    assert_eq!(notices[0].position.unwrap().0, 1);
    assert!(
        notices[0]
            .path
            .as_ref()
            .unwrap()
            .ends_with(".pi/agent/settings.json")
    );
}

#[test]
fn one_wrong_value_is_ignored() {
    let (settings, notices) = load(
        r#"{"defaultModel":"good","defaultThinkingLevel":"enormous","steeringMode":7,
            "compaction":{"enabled":"yes","reserveTokens":4000.0},
            "retry":"often","prompts":["ok",1],"images":{"blockImages":true},"mine":{"own":1}}"#,
        r#"{"defaultModel":["bad"]}"#,
    );
    assert_eq!(
        settings.default_model(),
        Some("good"),
        "a bad project value does not hide a good one"
    );
    assert_eq!(settings.default_thinking_level(), None);
    assert_eq!(settings.steering_mode(), "one-at-a-time");
    assert_eq!(
        (
            settings.compaction().enabled,
            settings.compaction().reserve_tokens
        ),
        (true, 4000)
    );
    assert_eq!(settings.retry().max_retries, 3);
    assert!(settings.images().block_images);
    assert_eq!(settings.get("mine.own"), Some(&json!(1)));
    let named: Vec<&str> = notices
        .iter()
        .map(|notice| notice.message.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        named,
        [
            "defaultThinkingLevel",
            "steeringMode",
            "compaction.enabled",
            "retry",
            "prompts",
            "defaultModel"
        ]
    );
    assert!(notices.iter().all(|notice| notice.code == "wrong_type"));
}

#[test]
fn null_means_absent_and_a_project_null_hides_the_users_value() {
    let (settings, notices) = load(
        r#"{"defaultProvider":null,"defaultModel":"m","retry":null}"#,
        r#"{"defaultModel":null}"#,
    );
    assert_eq!(notices, []);
    assert_eq!(
        (settings.default_provider(), settings.default_model()),
        (None, None)
    );
    assert_eq!(settings.retry().max_retries, 3);
    assert_eq!(settings.get("defaultModel"), None);
}

#[test]
fn any_queue_mode_is_kept_as_it_is() {
    let (settings, notices) = load(r#"{"steeringMode":"sometimes","followUpMode":"never"}"#, "");
    assert_eq!(
        (settings.steering_mode(), settings.follow_up_mode()),
        ("sometimes", "never")
    );
    assert_eq!(notices, []);
}

#[test]
fn a_write_touches_only_what_it_changes() {
    let (_root, dirs) = sandbox(
        r#"{"zeta": 1, "compaction": {"keepRecentTokens": 5, "own": [1]}, "queueMode": "all", "alpha": null}"#,
        "",
    );
    let file = SettingsFile::global(&dirs);
    file.update(&[
        ("defaultProvider", Some(json!("p"))),
        ("compaction.enabled", Some(json!(false))),
        ("retry.enabled", Some(json!(true))),
        ("zeta", None),
        ("absent.member", None),
    ])
    .unwrap();
    let text = fs::read_to_string(dirs.global_settings()).unwrap();
    let expected = r#"{
  "compaction": {
    "keepRecentTokens": 5,
    "own": [
      1
    ],
    "enabled": false
  },
  "queueMode": "all",
  "alpha": null,
  "defaultProvider": "p",
  "retry": {
    "enabled": true
  }
}"#;
    assert_eq!(text, expected);
}

#[test]
fn a_write_creates_the_file_and_its_directory() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    let dirs = Dirs::new("/proj".into(), |name| {
        (name == "HOME").then(|| home.clone().into())
    });
    SettingsFile::global(&dirs)
        .update(&[("theme", Some(json!("dark")))])
        .unwrap();
    assert_eq!(
        fs::read_to_string(dirs.global_settings()).unwrap(),
        "{\n  \"theme\": \"dark\"\n}"
    );
}

#[test]
fn a_write_that_changes_nothing_leaves_the_bytes_alone() {
    let (_root, dirs) = sandbox("{ \"theme\":\"dark\" }", "");
    SettingsFile::global(&dirs)
        .update(&[("theme", Some(json!("dark")))])
        .unwrap();
    assert_eq!(
        fs::read_to_string(dirs.global_settings()).unwrap(),
        "{ \"theme\":\"dark\" }"
    );
}

#[test]
fn a_broken_file_is_never_overwritten() {
    let (_root, dirs) = sandbox("{ oops", "");
    let error = SettingsFile::global(&dirs)
        .update(&[("theme", Some(json!("x")))])
        .unwrap_err();
    assert_eq!(error.code(), "broken_file");
    assert!(error.to_string().contains("settings.json:1:"), "{error}");
    assert_eq!(
        fs::read_to_string(dirs.global_settings()).unwrap(),
        "{ oops"
    );
}

#[test]
fn changes_in_memory_follow_the_same_rules() {
    let mut settings = Settings::from_values(
        json!({"compaction": {"reserveTokens": 1}}),
        json!({"retry": {"enabled": false}}),
    );
    settings.apply(&[
        ("compaction.enabled", Some(json!(false))),
        ("retry.enabled", Some(json!(true))),
        ("defaultThinkingLevel", Some(json!("high"))),
        ("steeringMode", None),
    ]);
    assert_eq!(
        (
            settings.compaction().enabled,
            settings.compaction().reserve_tokens
        ),
        (false, 1)
    );
    assert!(!settings.retry().enabled, "the project still wins");
    assert_eq!(settings.default_thinking_level(), Some(ThinkingLevel::High));
}

#[test]
fn settings_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Settings>();
    shared::<SettingsFile>();
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z!~/.]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            members(inner).prop_map(Value::Object),
        ]
    })
}

fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![
        Just("retry"),
        Just("provider"),
        Just("compaction"),
        Just("enabled"),
        Just("maxRetries"),
        Just("skills"),
        Just("prompts"),
        Just("queueMode"),
        Just("shellPath"),
        Just("unknown"),
    ];
    let pairs = prop::collection::vec((name.prop_map(str::to_owned), value), 0..6);
    pairs.prop_map(|pairs| pairs.into_iter().collect())
}

proptest! {
    #[test]
    fn any_json_loads_and_merging_is_one_level_deep(
        global in members(json_value()), project in members(json_value()),
    ) {
        let below = global.get("unknown").cloned();
        let above = project.get("unknown").cloned();
        let settings = Settings::from_values(Value::Object(global), Value::Object(project));
        let expected = match (below, above) {
            (Some(Value::Object(mut below)), Some(Value::Object(above))) => {
                below.extend(above);
                Some(Value::Object(below))
            }
            (below, above) => above.or(below),
        }
        .filter(|value| !value.is_null());
        prop_assert_eq!(settings.get("unknown"), expected.as_ref());
        // Every getter accepts any value.
        let _ = (settings.retry(), settings.compaction(), settings.images(), settings.shell_path());
        let _ = (settings.user_paths(ResourceKind::Skills), settings.enabled_models());
        for key in ["retry", "compaction"] {
            if let Some(value) = settings.get(key) {
                prop_assert!(value.is_object(), "{key} survived with the wrong type: {value}");
            }
        }
    }
}

proptest! {
    // Every case writes to disk.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn writing_then_reading_gives_what_was_written(value in json_value(), nested in any::<bool>()) {
        let (_root, dirs) = sandbox(r#"{"keep":{"me":1}}"#, "");
        let path = if nested { "a.b.c" } else { "plain" };
        SettingsFile::global(&dirs).update(&[(path, Some(value.clone()))]).unwrap();
        let (settings, _) = Settings::load(&dirs, ProjectTrust::Trusted);
        let expected = (!value.is_null()).then_some(&value);
        prop_assert_eq!(settings.get(path), expected);
        prop_assert_eq!(settings.get("keep.me"), Some(&json!(1)));
    }
}

#[test]
fn the_lock_is_gone_after_a_write() {
    let (_root, dirs) = sandbox("", "");
    SettingsFile::global(&dirs)
        .update(&[("a", Some(json!(1)))])
        .unwrap();
    assert!(!Path::new(&format!("{}.lock", dirs.global_settings().display())).exists());
}
