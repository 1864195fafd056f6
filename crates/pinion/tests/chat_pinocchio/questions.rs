//! The question after a run whether to continue in the chat.

use serde_json::json;

use super::{KEPT, Room, kinds, number, says};

const QUESTION: &str = "continue in chat? [y/n]";

#[test]
fn after_an_answer_on_a_terminal_the_chat_goes_on_from_it() {
    let room = Room::new(json!([says("One it is."), says("Two it is.")]));
    room.start(&format!(
        "--what first {KEPT} --debug-events-jsonl frames.jsonl"
    ));
    let shell = room.terminal.wait_for(QUESTION);
    assert!(shell.contains("One it is."), "{shell}");
    assert_eq!(room.terminal.ask("#{alternate_on}"), "0");
    // An empty answer means yes.
    room.terminal.press(&["Enter"]);
    room.terminal.wait_for("profile: quick");
    room.terminal.wait_for("One it is.");
    assert_eq!(room.server.requests().len(), 1, "nothing is asked again");
    room.say("second", "Two it is.");
    let shell = room.leave();
    assert!(shell.contains("ended with 0"), "{shell}");
    assert_eq!(
        room.told(),
        [
            "system: Be brief.",
            "user: first",
            "assistant: One it is.",
            "user: second"
        ]
    );
    // It is one conversation in one session.
    assert_eq!(number(&room.turns(), "SELECT count(*) FROM turns"), 1);
    assert_eq!(room.kept("final"), 2);
    let frames = room.read("frames.jsonl");
    assert_eq!(kinds(&frames), ["hello", "snapshot", "snapshot", "done"]);
}

#[test]
fn whoever_does_not_want_to_is_left_alone() {
    let room = Room::new(json!([
        says("One."),
        says("Two."),
        says("Three."),
        says("Four.")
    ]));
    room.start("--what first --interactive");
    room.terminal.wait_for(QUESTION);
    room.terminal.say("perhaps");
    room.terminal.wait_until("the question again", |screen| {
        screen.matches(QUESTION).count() == 2
    });
    room.terminal.say("n");
    room.terminal.wait_for("ended with 0");
    room.start("--what first --non-interactive");
    let shell = room.terminal.wait_for("ended with 0");
    assert!(!shell.contains(QUESTION), "{shell}");
    room.start("--what first --interactive > out.txt");
    let shell = room.terminal.wait_for("ended with 0");
    assert!(!shell.contains(QUESTION), "{shell}");
    assert_eq!(room.read("out.txt"), "Three.\n");
    room.start("--what first");
    room.terminal.wait_for(QUESTION);
    room.terminal.press(&["C-c"]);
    room.terminal.wait_for("ended with 130");
}

#[test]
fn it_can_be_asked_when_the_output_leads_elsewhere() {
    let room = Room::new(json!([says("One it is."), says("Two it is.")]));
    room.start("--what first --force-interactive > out.txt");
    room.terminal.wait_for(QUESTION);
    room.terminal.say("y");
    room.terminal.wait_for("profile: quick");
    room.terminal.wait_for("One it is.");
    room.say("second", "Two it is.");
    let shell = room.leave();
    assert!(shell.contains("ended with 0"), "{shell}");
    assert_eq!(room.read("out.txt"), "One it is.\n");
}

#[test]
fn after_a_failure_nothing_is_asked() {
    let room = Room::new(json!([{"http": {"status": 400, "body": "the model is out"}}]));
    room.start("--what first");
    let shell = room.terminal.wait_for("ended with 1");
    assert!(!shell.contains(QUESTION), "{shell}");
}
