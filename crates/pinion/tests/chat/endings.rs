//! The state of the terminal after quitting, signals, a panic and a suspension.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinion_testkit::Tmux;
use serde_json::json;

use super::{Room, says};

/// Returns the modes of the terminal, as the shell sees them.
fn modes(terminal: &Tmux) -> String {
    terminal.run("stty -a; echo modes end");
    let screen = terminal.wait_until("the modes", |screen| screen.contains("\nmodes end"));
    let lines = screen
        .lines()
        .filter(|line| line.starts_with(['i', '-', 'e', 'o']) || line.contains(';'));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the process id of the program.
fn program_of(room: &Room) -> Pid {
    let shell = room.terminal.process();
    let children = format!("/proc/{shell}/task/{shell}/children");
    let children = std::fs::read_to_string(children).unwrap();
    let child = children.split_whitespace().next().unwrap();
    Pid::from_raw(child.parse().unwrap())
}

fn assert_given_back(terminal: &Tmux, before: &str) {
    for mode in ["#{alternate_on}", "#{mouse_any_flag}", "#{keypad_flag}"] {
        assert_eq!(terminal.ask(mode), "0", "{mode}");
    }
    assert_eq!(terminal.ask("#{cursor_flag}"), "1");
    assert_eq!(modes(terminal), before);
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn every_way_to_quit_gives_the_terminal_back() {
    let room = Room::new(json!({}));
    let before = modes(&room.terminal);
    for keys in [
        &["C-d"][..],
        &["C-c", "C-c"],
        &["/", "q", "u", "i", "t", "Enter"],
    ] {
        let chat = room.chat("");
        assert_eq!(chat.ask("#{alternate_on}"), "1");
        assert_eq!(chat.ask("#{mouse_any_flag}"), "1");
        chat.press(keys);
        let screen = chat.wait_for("ended with 0");
        assert!(!screen.contains("To go on"), "nothing was said: {screen}");
        assert_given_back(&room.terminal, &before);
    }
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn signals_give_the_terminal_back_and_save_what_was_said() {
    let room = Room::new(json!({"on_exhausted": "repeat_last", "turns": [
        says("Kept."),
        {"steps": [{"text": ["Unfinished", {"stall": true}]}]},
    ]}));
    let before = modes(&room.terminal);
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
        (Signal::SIGQUIT, 131),
    ] {
        let chat = room.chat("");
        chat.say("begin");
        chat.wait_until("an answer", |screen| {
            screen.contains("Kept.") || screen.contains("Unfinished")
        });
        kill(program_of(&room), signal).unwrap();
        let screen = chat.wait_for(&format!("ended with {code}"));
        assert!(screen.contains("To go on with this session"), "{screen}");
        assert_given_back(&room.terminal, &before);
    }
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_terminal_that_goes_away_ends_the_program() {
    for (before, scenario) in [
        ("", json!({})),
        // With SIGHUP ignored, the program notices the closed terminal nevertheless.
        ("trap '' HUP; ", json!({})),
        (
            "",
            json!({"turns": [{"steps": [{"text": ["Unfinished", {"stall": true}]}]}]}),
        ),
    ] {
        let room = Room::new(scenario);
        if !before.is_empty() {
            room.terminal.say(before);
        }
        let chat = room.chat("");
        chat.say("begin");
        chat.wait_for("begin");
        let program = program_of(&room);
        let Room {
            terminal,
            server: _server,
            sandbox: _sandbox,
        } = room;
        drop(terminal);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while kill(program, None).is_ok() {
            assert!(std::time::Instant::now() < end, "it is still there");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn suspended_and_continued() {
    let room = Room::new(json!({"turns": [says("Still here.")]}));
    // Only a shell with job control can stop its jobs.
    room.terminal.say("set -m");
    let before = modes(&room.terminal);
    room.terminal.run(env!("CARGO_BIN_EXE_pinion"));
    room.terminal.wait_for("Ctrl-G help");
    room.terminal.write("half a thought");
    room.terminal.wait_for("> half a thought");
    room.terminal.press(&["C-z"]);
    room.terminal.wait_for("Stopped");
    assert_given_back(&room.terminal, &before);
    room.terminal.say("fg");
    room.terminal.wait_for("> half a thought");
    assert_eq!(room.terminal.ask("#{alternate_on}"), "1");
    room.terminal.press(&["Enter"]);
    room.terminal.wait_for("Still here.");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn stopped_by_somebody_else_and_continued() {
    let room = Room::new(json!({"turns": [says("Still here.")]}));
    room.terminal.say("set -m");
    let before = modes(&room.terminal);
    room.terminal.run(env!("CARGO_BIN_EXE_pinion"));
    room.terminal.wait_for("Ctrl-G help");
    room.terminal.write("half a thought");
    room.terminal.wait_for("> half a thought");
    for _ in 0..2 {
        kill(program_of(&room), Signal::SIGTSTP).unwrap();
        room.terminal.wait_for("Stopped");
        assert_given_back(&room.terminal, &before);
        room.terminal.run("fg");
        room.terminal.wait_for("> half a thought");
        assert_eq!(room.terminal.ask("#{alternate_on}"), "1");
    }
    room.terminal.press(&["Enter"]);
    room.terminal.wait_for("Still here.");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn where_nobody_could_continue_it_nothing_stops() {
    let room = Room::new(json!({"turns": [says("Still here.")]}));
    room.terminal
        .run(&format!("exec {}", env!("CARGO_BIN_EXE_pinion")));
    room.terminal.wait_for("Ctrl-G help");
    room.terminal.press(&["C-z"]);
    // Keys of this moment would have been for the shell.
    std::thread::sleep(std::time::Duration::from_millis(500));
    room.terminal.say("hello");
    room.terminal.wait_for("Still here.");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_start_that_fails_says_why_on_the_terminal() {
    let room = Room::new(json!({}));
    room.start("--session 0000-not-there");
    let screen = room.terminal.wait_for("ended with 1");
    assert!(screen.contains("0000-not-there"), "{screen}");
    room.start("-e missing.ts");
    let screen = room.terminal.wait_for("ended with 1");
    assert!(screen.contains("missing.ts"), "{screen}");
    assert_eq!(room.terminal.ask("#{alternate_on}"), "0");
}

/// Opens the terminal and panics, if the test below requests it.
#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_program_that_panics() {
    if std::env::var_os("PINION_TEST_PANICS").is_none() {
        return;
    }
    let output = std::fs::File::options()
        .write(true)
        .open("/dev/tty")
        .unwrap();
    let mut terminal = pinion_tui::Terminal::open(output).unwrap();
    let drawn = terminal.draw(|frame| frame.render_widget("soon it panics", frame.area()));
    drawn.unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    panic!("on purpose");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_panic_gives_the_terminal_back() {
    let room = Room::new(json!({}));
    let before = modes(&room.terminal);
    let itself = std::env::current_exe().unwrap();
    let itself = itself.display();
    room.terminal.run(&format!(
        "PINION_TEST_PANICS=1 {itself} --ignored --exact endings::a_program_that_panics --nocapture"
    ));
    room.terminal.wait_for("soon it panics");
    assert_eq!(room.terminal.ask("#{alternate_on}"), "1");
    room.terminal.press(&["C-j"]);
    room.terminal.wait_for("1 failed");
    assert_given_back(&room.terminal, &before);
}
