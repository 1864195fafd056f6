use std::path::PathBuf;
use std::sync::Arc;

use pinion_message::{Model, ThinkingLevel};
use pinion_session::SessionInfo;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::SessionScope;
use crate::overlay::{Choice, ModelPicker, SessionPicker, ThinkingPicker};

const NOW: i64 = 1_800_000_000_000;

fn model(
    provider: &str,
    id: &str,
    name: &str,
    window: u64,
    price: (f64, f64),
    can: &str,
) -> Arc<Model> {
    let images = can.contains("images");
    let model = json!({"id": id, "name": name, "api": "a", "provider": provider, "baseUrl": "u",
        "reasoning": can.contains("thinks"), "input": if images { vec!["text", "image"] } else { vec!["text"] },
        "cost": {"input": price.0, "output": price.1}, "contextWindow": window, "maxTokens": 1});
    Arc::new(serde_json::from_value(model).unwrap())
}

fn models() -> Vec<Arc<Model>> {
    vec![
        model(
            "anthropic",
            "claude-opus-4-5",
            "Claude Opus 4.5",
            200_000,
            (5.0, 25.0),
            "thinks images",
        ),
        model(
            "anthropic",
            "claude-haiku-4-5",
            "Claude Haiku 4.5",
            200_000,
            (1.0, 5.0),
            "thinks images",
        ),
        model(
            "openai",
            "gpt-5-nano",
            "GPT-5 nano",
            400_000,
            (0.05, 0.4),
            "thinks images",
        ),
        model(
            "google",
            "gemini-3-pro-preview-with-a-long-id",
            "Gemini 3 Pro",
            1_048_576,
            (2.0, 12.0),
            "thinks images",
        ),
        model("ollama", "qwen3:8b", "qwen3:8b", 32_768, (0.0, 0.0), ""),
        model(
            "offline",
            "demo",
            "Offline demo",
            128_000,
            (0.0, 0.0),
            "thinks",
        ),
    ]
}

fn session(
    number: usize,
    name: Option<&str>,
    first: &str,
    minutes: i64,
    count: usize,
) -> SessionInfo {
    SessionInfo {
        path: PathBuf::from(format!("/sessions/{number}.jsonl")),
        id: number.to_string(),
        cwd: "/home/ada/projects/analytical-engine".into(),
        name: name.map(str::to_owned),
        parent_session_path: None,
        created: NOW,
        modified: NOW - minutes * 60_000,
        message_count: count,
        first_message: first.into(),
    }
}

fn sessions() -> Vec<SessionInfo> {
    vec![
        session(1, None, "List the files\nand say which is largest", 0, 4),
        session(
            2,
            Some("parser"),
            "Fix the parser: it loses the last line when there is no newline at the end",
            95,
            212,
        ),
        session(3, None, "What does this program do?", 60 * 24 * 3, 1),
        session(4, None, "(no messages)", 60 * 24 * 400, 0),
    ]
}

fn picker(scope: SessionScope) -> SessionPicker {
    SessionPicker::at(scope, Some("/sessions/2.jsonl".into()), NOW)
}

#[test]
fn models_are_chosen_by_keys() {
    let models = models();
    for (keys, id) in [
        ("Enter", "gpt-5-nano"),
        ("Down Enter", "gemini-3-pro-preview-with-a-long-id"),
        ("h a i k Enter", "claude-haiku-4-5"),
        ("Q W E N Enter", "qwen3:8b"),
        ("End Enter", "demo"),
    ] {
        let mut picker = ModelPicker::new(models.clone(), Some(&models[2]));
        match press(&mut picker, keys) {
            Step::Chosen(Choice::Model { id: chosen, .. }) => assert_eq!(chosen, id, "{keys}"),
            other => panic!("{other:?} after {keys}"),
        }
    }
    assert_eq!(
        press(&mut ModelPicker::new(models, None), "Esc"),
        Step::Close
    );
    assert_eq!(
        press(&mut ModelPicker::new(Vec::new(), None), "Enter"),
        Step::Stay
    );
}

#[test]
fn levels_are_chosen_by_keys() {
    let mut picker = ThinkingPicker::new(&ThinkingLevel::ALL, ThinkingLevel::Medium);
    assert_eq!(
        press(&mut picker, "Down Enter"),
        Step::Chosen(Choice::Thinking(ThinkingLevel::High))
    );
}

#[test]
fn sessions_are_searched_by_name_and_first_message() {
    for (typed, path) in [
        ("parser", "/sessions/2.jsonl"),
        ("NEWLINE", "/sessions/2.jsonl"),
        ("program what", "/sessions/3.jsonl"),
        ("largest", "/sessions/1.jsonl"),
    ] {
        let mut picker = picker(SessionScope::Project);
        picker.set_sessions(SessionScope::Project, Ok(sessions()));
        type_in(&mut picker, typed);
        assert_eq!(
            press(&mut picker, "Enter"),
            Step::Chosen(Choice::Session(path.into())),
            "{typed}"
        );
    }
    let mut picker = picker(SessionScope::Everywhere);
    picker.set_sessions(SessionScope::Everywhere, Ok(sessions()));
    type_in(&mut picker, "analytical what");
    assert_eq!(
        press(&mut picker, "Enter"),
        Step::Chosen(Choice::Session("/sessions/3.jsonl".into()))
    );
}

#[test]
fn another_scope_is_asked_for_and_only_that_is_taken() {
    let mut picker = picker(SessionScope::Project);
    assert!(screen(&mut picker, 80, 24).contains("looking for sessions…"));
    assert_eq!(press(&mut picker, "Enter"), Step::Stay);
    assert_eq!(
        press(&mut picker, "Tab"),
        Step::Asked(Choice::Sessions(SessionScope::Everywhere))
    );
    picker.set_sessions(SessionScope::Project, Ok(sessions()));
    assert!(
        screen(&mut picker, 80, 24).contains("looking for sessions…"),
        "an answer to the question before"
    );
    picker.set_sessions(SessionScope::Everywhere, Ok(Vec::new()));
    assert!(screen(&mut picker, 80, 24).contains("no sessions yet"));
    assert_eq!(
        press(&mut picker, "Tab"),
        Step::Asked(Choice::Sessions(SessionScope::Project))
    );
    picker.set_sessions(SessionScope::Project, Ok(sessions()));
    assert!(screen(&mut picker, 80, 24).contains("Fix the parser"));
}

#[test]
fn what_is_typed_while_sessions_are_looked_for_counts() {
    let mut picker = picker(SessionScope::Project);
    type_in(&mut picker, "parser");
    picker.set_sessions(SessionScope::Project, Ok(sessions()));
    assert_eq!(
        press(&mut picker, "Enter"),
        Step::Chosen(Choice::Session("/sessions/2.jsonl".into()))
    );
}

#[test]
fn screens() {
    let models = models();
    insta::assert_snapshot!(
        "models",
        at_all_widths(&mut ModelPicker::new(models.clone(), Some(&models[1])))
    );
    insta::assert_snapshot!(
        "no_models",
        screen(&mut ModelPicker::new(Vec::new(), None), 40, 24)
    );
    insta::assert_snapshot!(
        "thinking",
        at_all_widths(&mut ThinkingPicker::new(
            &ThinkingLevel::ALL,
            ThinkingLevel::Medium
        ))
    );
    for (name, scope) in [
        ("sessions", SessionScope::Project),
        ("all_sessions", SessionScope::Everywhere),
    ] {
        let mut picker = picker(scope);
        picker.set_sessions(scope, Ok(sessions()));
        insta::assert_snapshot!(name, at_all_widths(&mut picker));
    }
    let mut picker = picker(SessionScope::Project);
    picker.set_sessions(
        SessionScope::Project,
        Err("the directory /sessions cannot be read: permission denied".into()),
    );
    insta::assert_snapshot!("sessions_failed", screen(&mut picker, 40, 24));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_session_size_and_key_works(
        found in prop::collection::vec((any::<Option<String>>(), any::<String>(), any::<i64>(), any::<usize>(), any::<String>()), 0..30),
        keys in prop::collection::vec((0usize..10, 0u16..130, 0u16..30), 0..20),
        everywhere in any::<bool>(),
    ) {
        let scope = if everywhere { SessionScope::Everywhere } else { SessionScope::Project };
        let mut picker = picker(scope);
        let found = found.into_iter().enumerate().map(|(number, (name, first, at, count, cwd))| SessionInfo {
            modified: at,
            cwd,
            ..session(number, name.as_deref(), &first, 0, count)
        });
        picker.set_sessions(scope, Ok(found.collect()));
        for (what, width, height) in keys {
            let names = ["Up", "Down", "PgUp", "PgDn", "Home", "End", "a", "Backspace", "Ctrl-U", "Left"];
            press(&mut picker, names[what]);
            screen(&mut picker, width, height);
        }
    }
}

#[test]
fn the_current_model_is_always_in_the_list() {
    let models = models();
    let demo = Arc::clone(&models[2]);
    let mut picker = ModelPicker::new(Vec::new(), Some(&demo));
    assert!(screen(&mut picker, 80, 24).contains(&format!("● {}/{}", demo.provider, demo.id)));
    let mut picker = ModelPicker::new(models[..2].to_vec(), Some(&demo));
    assert!(screen(&mut picker, 80, 24).contains("● "));
}
