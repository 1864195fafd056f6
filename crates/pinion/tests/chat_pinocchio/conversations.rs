//! A conversation on a command, from its first prompt to the databases and its continuation from them.

use serde_json::json;

use super::{KEPT, Room, kinds, lingers, number, says};

#[test]
fn the_prompt_of_the_command_is_said_and_then_whatever_is_typed() {
    let room = Room::new(json!([says("One it is."), says("Two it is.")]));
    room.chat(&format!(
        "--what first {KEPT} --debug-events-jsonl frames.jsonl"
    ));
    room.terminal.wait_for("One it is.");
    room.idle();
    assert_eq!(room.terminal.ask("#{pane_title}"), "pinocchio");
    assert_eq!(room.terminal.ask("#{alternate_on}"), "1");
    // Tab submits, as Enter does.
    room.terminal.write("second");
    room.terminal.press(&["Tab"]);
    room.terminal.wait_for("Two it is.");
    room.idle();
    let shell = room.leave();
    assert!(shell.contains("ended with 0"), "{shell}");
    assert!(shell.contains("--session-id s --resume"), "{shell}");
    assert_eq!(
        room.told(),
        [
            "system: Be brief.",
            "user: first",
            "assistant: One it is.",
            "user: second"
        ]
    );

    let turns = room.turns();
    assert_eq!(number(&turns, "SELECT count(*) FROM turns"), 1);
    assert_eq!(room.kept("final"), 2);
    assert_eq!(
        number(&turns, "SELECT count(*) FROM turn_block_membership"),
        3 + 5
    );
    let runtime: String = turns
        .query_row("SELECT runtime_key FROM turns", [], |row| row.get(0))
        .unwrap();
    assert_eq!(runtime, "");
    let timeline = room.timeline();
    let events = "SELECT count(*) FROM sessionstream_events WHERE session_id = 's'";
    let finished = format!("{events} AND name = 'ChatRunFinished'");
    assert_eq!(number(&timeline, &finished), 2);
    let last = "SELECT max(ordinal) FROM sessionstream_events WHERE session_id = 's'";
    assert_eq!(number(&timeline, events), number(&timeline, last));
    let frames = room.read("frames.jsonl");
    assert_eq!(kinds(&frames), ["hello", "snapshot", "snapshot", "done"]);
    assert_eq!(
        frames
            .lines()
            .filter(|line| line.contains("uiEvent"))
            .count() as i64,
        number(&timeline, events)
    );
    assert!(frames.contains("\"debug-log\""));
    assert!(frames.lines().last().unwrap().contains("\"status\":\"ok\""));
}

#[test]
fn a_resumed_chat_shows_and_knows_what_was_said() {
    let room = Room::new(json!([
        says("One it is."),
        says("Two it is."),
        says("Three it is.")
    ]));
    room.chat(KEPT);
    room.say("first", "One it is.");
    room.leave();
    room.chat(&format!("--what second --resume {KEPT}"));
    let screen = room.terminal.wait_for("Two it is.");
    assert!(screen.contains("One it is."), "{screen}");
    room.idle();
    room.leave();
    assert_eq!(
        room.told(),
        [
            "system: Be brief.",
            "user: first",
            "assistant: One it is.",
            "user: second"
        ]
    );
    // With the timeline alone, the user sees the conversation, but the model does not receive it.
    room.chat("--session-id s --timeline-db timeline.db");
    room.terminal.wait_for("Two it is.");
    room.say("third", "Three it is.");
    room.leave();
    assert_eq!(room.told(), ["system: Be brief.", "user: third"]);
    assert_eq!(room.kept("final"), 2);
}

#[test]
fn a_stopped_answer_is_not_kept_and_its_prompt_is_remembered() {
    let room = Room::new(json!([lingers("Well, this"), says("Here I am.")]));
    room.chat(KEPT);
    room.terminal.say("take your time");
    room.terminal.wait_for("Well, this");
    // One at a time.
    room.terminal.say("hurry");
    room.terminal.wait_for("The model is still answering.");
    room.terminal.press(&["Escape"]);
    room.idle();
    assert_eq!(room.kept("final") + room.kept("failed"), 0);
    room.terminal.press(&["C-c"]);
    room.say("and now?", "Here I am.");
    let shell = room.leave();
    assert!(shell.contains("ended with 0"), "{shell}");
    assert_eq!(
        room.told(),
        [
            "system: Be brief.",
            "user: take your time",
            "user: and now?"
        ]
    );
    assert_eq!(room.kept("final"), 1);
    let stopped = "SELECT count(*) FROM sessionstream_events WHERE name = 'ChatRunStopped'";
    assert_eq!(number(&room.timeline(), stopped), 1);
}

#[test]
fn the_screen_is_drawn_on_standard_error_when_the_output_leads_elsewhere() {
    let room = Room::new(json!([says("One it is.")]));
    room.chat("> out.txt");
    room.say("first", "One it is.");
    let shell = room.leave();
    assert!(shell.contains("ended with 0"), "{shell}");
    assert_eq!(room.read("out.txt"), "");
    room.start("--chat > out.txt 2> err.txt");
    room.terminal.wait_for("ended with 1");
    assert!(room.read("err.txt").contains("--chat needs a terminal"));
}
