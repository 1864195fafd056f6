//! Tests of questions over the conversation.

use std::sync::Arc;

use pinion_agent::ToolRun;

use super::*;

#[test]
fn a_question_is_answered_with_its_id() {
    let mut chat = TestChat::new(Abilities::Session);
    chat.record(
        json!({"type": "extension_ui_request", "id": "q", "method": "confirm",
        "title": "Sure?", "message": "It cannot be undone."}),
    );
    assert!(chat.screen(80, 12).contains("It cannot be undone."));
    // Longer than a question ignores keys.
    std::thread::sleep(std::time::Duration::from_millis(350));
    chat.press(KeyCode::Esc, KeyModifiers::NONE);
    let answered = chat.host.answered.lock().unwrap().clone();
    assert_eq!(answered.len(), 1);
    assert_eq!(
        (answered[0].0.as_str(), &answered[0].1["cancelled"]),
        ("q", &json!(true))
    );
}

#[test]
fn the_enter_of_a_message_does_not_approve() {
    let approval = json!({"type": "extension_ui_request", "id": "q", "method": "select",
        "title": "Allow bash: rm -rf target?", "options": ["Allow once", "Refuse"]});
    let mut chat = TestChat::new(Abilities::Session);
    chat.write("and the");
    chat.record(approval.clone());
    assert!(chat.screen(80, 12).contains("choose one first"));
    // Longer than a question ignores keys after typing.
    std::thread::sleep(std::time::Duration::from_millis(1_050));
    chat.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(chat.host.answered.lock().unwrap().is_empty());
    chat.press(KeyCode::Down, KeyModifiers::NONE);
    chat.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(chat.host.answered.lock().unwrap().len(), 1);
    assert!(chat.screen(80, 12).contains("> and the"), "it is kept");
    // A user who has just sent a message waits for the question.
    chat.press(KeyCode::Enter, KeyModifiers::NONE);
    chat.record(approval);
    assert!(chat.screen(80, 12).contains("❯ Allow once"));
}

fn asks_about(chat: &mut TestChat, name: &str, arguments: Value) {
    chat.event(Event::AgentStart);
    chat.asked();
    let run = Arc::new(ToolRun {
        call_id: "1".into(),
        name: name.into(),
        arguments,
        parent_call_id: None,
    });
    chat.event(Event::ToolStart(run));
    chat.record(
        json!({"type": "extension_ui_request", "id": "q", "method": "select",
        "title": format!("Allow {name}: n.txt?"), "options": ["Allow once", "Refuse"]}),
    );
}

#[test]
fn a_question_shows_the_planned_change() {
    let mut chat = TestChat::new(Abilities::Session);
    let content: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    asks_about(
        &mut chat,
        "write",
        json!({"path": "n.txt", "content": content}),
    );
    let screen = chat.screen(60, 30);
    assert!(
        screen.contains("n.txt (30 lines) · waiting for you"),
        "{screen}"
    );
    assert!(screen.contains("line 1\n"), "{screen}");
    assert!(!screen.contains("line 30"), "{screen}");
    chat.press(KeyCode::Char('o'), KeyModifiers::CONTROL);
    assert!(chat.screen(60, 30).contains("line 30"));
    chat.press(KeyCode::PageUp, KeyModifiers::NONE);
    assert!(!chat.screen(60, 30).contains("line 30"));
    assert!(chat.screen(60, 30).contains("Allow once"));

    let mut chat = TestChat::new(Abilities::Session);
    let edit = json!({"path": "n.txt", "oldText": "milk\nbread", "newText": "milk\nwine"});
    asks_about(&mut chat, "edit", edit);
    insta::assert_snapshot!("edit_to_be_allowed", chat.screen(60, 16));
}

#[test]
fn control_c_refuses_and_stops_the_run() {
    let mut chat = TestChat::new(Abilities::Session);
    asks_about(&mut chat, "bash", json!({"command": "rm n.txt"}));
    chat.record(
        json!({"type": "extension_ui_request", "id": "r", "method": "input", "title": "Who?"}),
    );
    chat.screen(60, 16);
    // Longer than a question ignores keys.
    std::thread::sleep(std::time::Duration::from_millis(350));
    chat.press(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let answered = chat.host.answered.lock().unwrap().clone();
    let ids: Vec<&str> = answered.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["q", "r"]);
    assert!(
        answered
            .iter()
            .all(|(_, response)| response["cancelled"] == true)
    );
    assert_eq!(chat.asked(), ["Abort"]);
}
