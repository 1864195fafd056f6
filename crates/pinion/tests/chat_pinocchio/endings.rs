//! The end of a chat on a command, and the state that a killed one leaves.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinion_testkit::Tmux;
use serde_json::json;

use super::{KEPT, Room, kinds, lingers, number, says};

/// The process of the program, which it wrote down before it became one.
fn start_and_name(room: &Room, arguments: &str) {
    let program = env!("CARGO_BIN_EXE_pinion");
    room.terminal.run(&format!(
        "sh -c 'echo $$ > pid; exec {program} run-command say.yaml {arguments}'; echo ended with $?"
    ));
    room.terminal.wait_for("profile: quick");
}

fn send(room: &Room, signal: Signal) {
    let process = room.read("pid").trim().parse().unwrap();
    kill(Pid::from_raw(process), signal).unwrap();
}

#[test]
fn the_failure_of_the_last_run_is_that_of_the_program() {
    let refused = json!({"http": {"status": 400, "body": "the model is out"}});
    let room = Room::new(json!([says("One it is."), refused]));
    room.chat(&format!("{KEPT} --debug-events-jsonl frames.jsonl"));
    room.say("first", "One it is.");
    room.terminal.say("second");
    room.terminal.wait_for("the model is out");
    room.idle();
    let shell = room.leave();
    assert!(shell.contains("ended with 1"), "{shell}");
    assert!(shell.contains("the model is out"), "{shell}");
    assert_eq!((room.kept("final"), room.kept("failed")), (1, 1));
    let key: String = room
        .turns()
        .query_row("SELECT runtime_key FROM turns", [], |row| row.get(0))
        .unwrap();
    assert_eq!(key, "default");
    let frames = room.read("frames.jsonl");
    assert_eq!(
        kinds(&frames),
        ["hello", "snapshot", "snapshot", "error", "done"]
    );
}

#[test]
fn what_cannot_be_begun_is_said_without_a_screen() {
    let room = Room::new(json!([]));
    room.start(&format!(
        "--chat --resume {KEPT} --debug-events-jsonl frames.jsonl"
    ));
    let shell = room.terminal.wait_for("ended with 1");
    assert!(
        shell.contains("no persisted final turn found for session \"s\""),
        "{shell}"
    );
    assert_eq!(
        kinds(&room.read("frames.jsonl")),
        ["hello", "snapshot", "error"]
    );
    room.start("--chat --resume");
    room.terminal.wait_for("--resume requires --session-id");
    room.start("--chat --resume --session-id s");
    room.terminal
        .wait_for("resume requires --turns-db or --turns-dsn");
    for backend in ["disabled", "memory"] {
        room.start(&format!(
            "--chat --resume --session-id s --turns-backend {backend}"
        ));
        room.terminal
            .wait_for("resume requires --turns-db or --turns-dsn");
    }
    room.start("--chat --turns-dsn somewhere");
    room.terminal
        .wait_for("persistence DSN requires an explicit backend");
}

#[test]
fn a_signal_ends_the_chat_in_order() {
    let room = Room::new(json!([lingers("Well, this")]));
    start_and_name(
        &room,
        &format!("--chat {KEPT} --debug-events-jsonl frames.jsonl"),
    );
    room.terminal.say("take your time");
    room.terminal.wait_for("Well, this");
    send(&room, Signal::SIGTERM);
    let shell = room.terminal.wait_for("ended with 143");
    assert!(!shell.contains("Well, this"), "{shell}");
    assert_eq!(room.terminal.ask("#{alternate_on}"), "0");
    let frames = room.read("frames.jsonl");
    assert!(
        frames
            .lines()
            .last()
            .unwrap()
            .contains("\"status\":\"stopped\""),
        "{frames}"
    );
    assert_eq!(room.kept("final") + room.kept("failed"), 0);
}

#[test]
fn in_plain_lines_every_interruption_counts() {
    let room = Room::new(json!([
        lingers("Well, this\n"),
        lingers("And that\n"),
        says("Here again.")
    ]));
    let plain = &room.terminal;
    let prompt = || {
        plain.wait_until("the prompt", |screen| screen.trim_end().ends_with('>'));
    };
    room.start("--chat --plain");
    plain.wait_for("Ctrl-D quits");
    assert_eq!(plain.ask("#{alternate_on}"), "0");
    prompt();
    for begun in ["Well, this", "And that"] {
        plain.say("take your time");
        plain.wait_for(begun);
        plain.press(&["C-c"]);
        prompt();
    }
    plain.say("again");
    plain.wait_for("Here again.");
    prompt();
    plain.press(&["C-c"]);
    plain.wait_for("ended with 130");
}

#[test]
fn a_field_of_the_command_goes_before_the_option_for_plain_lines() {
    let room = Room::new(json!([says("One it is.")]));
    let command =
        "name: say\nflags:\n  - name: plain\n    type: string\nprompt: \"{{ .plain }}\"\n";
    std::fs::write(room.path("say.yaml"), command).unwrap();
    room.chat("--plain first");
    room.terminal.wait_for("One it is.");
    assert_eq!(room.terminal.ask("#{alternate_on}"), "1");
    assert_eq!(room.told(), ["user: first"]);
}

#[test]
fn a_killed_chat_goes_on_from_the_last_answer() {
    let mut room = Room::new(json!([
        says("One it is."),
        lingers("Well, this"),
        says("Two it is.")
    ]));
    start_and_name(&room, &format!("--chat {KEPT}"));
    room.say("first", "One it is.");
    room.terminal.say("take your time");
    room.terminal.wait_for("Well, this");
    send(&room, Signal::SIGKILL);
    room.terminal.wait_for("ended with 137");
    // The killed one could not give its terminal back.
    room.terminal = Tmux::shell(&room.sandbox, 100, 30);
    room.terminal.wait_for("$");
    room.chat(&format!("--resume {KEPT}"));
    // The user sees all of it; the model receives only what was answered.
    let screen = room.terminal.wait_for("Well, this");
    assert!(screen.contains("One it is."), "{screen}");
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
    assert_eq!(room.kept("final"), 2);
    let timeline = room.timeline();
    let check: String = timeline
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    let events = "SELECT count(*) FROM sessionstream_events";
    let last = "SELECT max(ordinal) FROM sessionstream_events";
    assert_eq!(number(&timeline, events), number(&timeline, last));
}
