//! The chat in plain lines.

use serde_json::json;

use super::{Room, says};

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn plain_lines_say_everything() {
    let room = Room::new(json!({"turns": [
        {"steps": [{"tool": "bash", "args": {"command": "touch made"}}]},
        says("It is made.\n\nAnd that is all."),
        {"steps": [{"text": ["Never ending\n", {"stall": true}]}]},
        says("Here again."),
    ]}));
    room.start("--plain --approve ask");
    let plain = &room.terminal;
    plain.wait_for("Ctrl-D quits");
    plain.wait_for(">");
    assert_eq!(plain.ask("#{alternate_on}"), "0");
    plain.say("make it");
    plain.wait_for("1. Allow once");
    plain.say("1");
    plain.wait_for("And that is all.");
    assert!(room.sandbox.work().join("made").exists());
    let plainly = plain.coloured_screen();
    assert!(!plainly.contains('\u{1b}'), "{plainly:?}");
    plain.wait_until("the next prompt", |screen| screen.trim_end().ends_with('>'));
    plain.say("go on");
    plain.wait_for("Never ending");
    plain.press(&["C-c"]);
    plain.wait_until("the prompt after stopping", |screen| {
        screen.trim_end().ends_with('>')
    });
    plain.say("again");
    plain.wait_for("Here again.");
    plain.wait_until("the last prompt", |screen| screen.trim_end().ends_with('>'));
    plain.press(&["C-d"]);
    let screen = plain.wait_for("ended with 0");
    assert!(screen.contains("To go on with this session"), "{screen}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_terminal_that_can_do_nothing_gets_plain_lines() {
    let room = Room::new(json!({"turns": [says("Hello yourself.")]}));
    room.terminal.say("export TERM=dumb");
    room.start("hello");
    room.terminal.wait_for("Hello yourself.");
    assert_eq!(room.terminal.ask("#{alternate_on}"), "0");
    room.terminal.say("/quit");
    room.terminal.wait_for("ended with 0");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_session_is_picked_by_its_number() {
    let room = Room::new(json!({"turns": [says("Hello yourself."), says("Here again.")]}));
    let plain = &room.terminal;
    let prompt = || {
        plain.wait_until("the prompt", |screen| screen.trim_end().ends_with('>'));
    };
    room.start("--plain hello");
    plain.wait_for("Hello yourself.");
    prompt();
    plain.press(&["C-d"]);
    plain.wait_for("ended with 0");
    room.start("--plain -r");
    plain.wait_for("1. hello (2 messages)");
    plain.say("1");
    plain.wait_for("Hello yourself.");
    prompt();
    plain.say("again");
    plain.wait_for("Here again.");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_single_answer_shows_its_status_until_it_is_there() {
    let wait = json!({"tool": "bash", "args": {"command": "while [ ! -e go ]; do sleep 0.05; done"}, "id": "call_1"});
    let turns = json!([{"steps": [wait]}, {"steps": [{"text": "Here it is."}]}]);
    let room = Room::new(json!({ "turns": turns }));
    room.start("-p hello");
    room.terminal.wait_for(" · bash …");
    std::fs::write(room.sandbox.work().join("go"), "").unwrap();
    let screen = room.terminal.wait_for("ended with 0");
    assert!(screen.starts_with("Here it is.\nended with 0"), "{screen}");
    assert!(!screen.contains(" · bash"), "{screen}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_single_answer_shows_no_status_in_a_file() {
    let turns = json!([{"steps": [{"text": "Here it is."}]}]);
    let room = Room::new(json!({ "turns": turns }));
    room.start("-p hello 2> errors");
    room.terminal.wait_for("ended with 0");
    let errors = std::fs::read_to_string(room.sandbox.work().join("errors")).unwrap();
    assert_eq!(errors, "");
}
