//! Tests of questions over the conversation.

use std::sync::Arc;

use pinion_agent::ToolRun;

use super::*;

#[test]
fn a_question_is_answered_with_its_id() {
    let mut desk = Desk::new(Abilities::Session);
    desk.record(
        json!({"type": "extension_ui_request", "id": "q", "method": "confirm",
        "title": "Sure?", "message": "It cannot be undone."}),
    );
    assert!(desk.screen(80, 12).contains("It cannot be undone."));
    std::thread::sleep(std::time::Duration::from_millis(350));
    desk.press(KeyCode::Esc, KeyModifiers::NONE);
    let answered = desk.host.answered.lock().unwrap().clone();
    assert_eq!(answered.len(), 1);
    assert_eq!(
        (answered[0].0.as_str(), &answered[0].1["cancelled"]),
        ("q", &json!(true))
    );
}

#[test]
fn whoever_writes_does_not_approve_with_the_enter_of_the_message() {
    let approval = json!({"type": "extension_ui_request", "id": "q", "method": "select",
        "title": "Allow bash: rm -rf target?", "options": ["Allow once", "Refuse"]});
    let mut desk = Desk::new(Abilities::Session);
    desk.write("and the");
    desk.record(approval.clone());
    assert!(desk.screen(80, 12).contains("choose one first"));
    std::thread::sleep(std::time::Duration::from_millis(1_050));
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(desk.host.answered.lock().unwrap().is_empty());
    desk.press(KeyCode::Down, KeyModifiers::NONE);
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(desk.host.answered.lock().unwrap().len(), 1);
    assert!(desk.screen(80, 12).contains("> and the"), "it is kept");
    // A user who has just sent a message waits for the question.
    desk.press(KeyCode::Enter, KeyModifiers::NONE);
    desk.record(approval);
    assert!(desk.screen(80, 12).contains("❯ Allow once"));
}

fn asks_about(desk: &mut Desk, name: &str, arguments: Value) {
    desk.tell(Event::AgentStart);
    desk.asked();
    let run = Arc::new(ToolRun {
        call_id: "1".into(),
        name: name.into(),
        arguments,
    });
    desk.tell(Event::ToolStart(run));
    desk.record(
        json!({"type": "extension_ui_request", "id": "q", "method": "select",
        "title": format!("Allow {name}: n.txt?"), "options": ["Allow once", "Refuse"]}),
    );
}

#[test]
fn whoever_is_asked_sees_what_will_be_written() {
    let mut desk = Desk::new(Abilities::Session);
    let content: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    asks_about(
        &mut desk,
        "write",
        json!({"path": "n.txt", "content": content}),
    );
    let screen = desk.screen(60, 30);
    assert!(
        screen.contains("n.txt (30 lines) · waiting for you"),
        "{screen}"
    );
    assert!(screen.contains("line 1\n"), "{screen}");
    assert!(!screen.contains("line 30"), "{screen}");
    desk.press(KeyCode::Char('o'), KeyModifiers::CONTROL);
    assert!(desk.screen(60, 30).contains("line 30"));
    desk.press(KeyCode::PageUp, KeyModifiers::NONE);
    assert!(!desk.screen(60, 30).contains("line 30"));
    assert!(desk.screen(60, 30).contains("Allow once"));

    let mut desk = Desk::new(Abilities::Session);
    let edit = json!({"path": "n.txt", "oldText": "milk\nbread", "newText": "milk\nwine"});
    asks_about(&mut desk, "edit", edit);
    insta::assert_snapshot!("edit_to_be_allowed", desk.screen(60, 16));
}

#[test]
fn control_c_refuses_and_stops_the_run() {
    let mut desk = Desk::new(Abilities::Session);
    asks_about(&mut desk, "bash", json!({"command": "rm n.txt"}));
    desk.record(
        json!({"type": "extension_ui_request", "id": "r", "method": "input", "title": "Who?"}),
    );
    desk.screen(60, 16);
    std::thread::sleep(std::time::Duration::from_millis(350));
    desk.press(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let answered = desk.host.answered.lock().unwrap().clone();
    let ids: Vec<&str> = answered.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["q", "r"]);
    assert!(
        answered
            .iter()
            .all(|(_, response)| response["cancelled"] == true)
    );
    assert_eq!(desk.asked(), ["Abort"]);
}
