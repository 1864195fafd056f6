//! A fleet on a real terminal: the live table, the short report, and the state of the terminal afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail loudly"
)]

#[path = "../support/mod.rs"]
mod support;

use std::fs;

use pinion_testkit::{Sandbox, Tmux};
use serde_json::json;

/// A child that runs until the file `go` exists.
const WAITS: &str = r#"echo '{"type":"tool","name":"search"}'; while [ ! -e go ]; do sleep 0.05; done; echo '{"type":"step","cost":0.25,"usage":{"input":1200,"output":34}}'; echo '{"type":"done"}'"#;

/// A sandbox with a plan, and a shell in a terminal.
struct Room {
    terminal: Tmux,
    sandbox: Sandbox,
}

impl Room {
    fn new(plan: &str, columns: u16, rows: u16) -> Self {
        let sandbox = support::offline_sandbox(&json!({}));
        fs::write(sandbox.work().join("plan.yaml"), plan).unwrap();
        let terminal = Tmux::shell(&sandbox, columns, rows);
        terminal.wait_for("$");
        Self { terminal, sandbox }
    }

    /// Runs the plan from the shell.
    fn start(&self, more: &str) {
        let program = env!("CARGO_BIN_EXE_pinion");
        self.terminal.run(&format!(
            "{program} fleet run plan.yaml --run-dir run {more}; echo ended with $?"
        ));
    }

    fn go(&self) {
        fs::write(self.sandbox.work().join("go"), "").unwrap();
    }
}

/// Returns the line of a plan for a child that is a shell script.
fn script(name: &str, body: &str) -> String {
    let command = json!(["bash", "-c", body]);
    format!(
        "  - {{ name: {name}, agent: jsonl, prompt: go, model: some/model, command: {command} }}\n"
    )
}

fn plan(parallel: usize, children: &[(&str, &str)]) -> String {
    let children: String = children
        .iter()
        .map(|(name, body)| script(name, body))
        .collect();
    format!("name: review\nparallel: {parallel}\nchildren:\n{children}")
}

/// Returns the row of a child.
fn row(screen: &str, child: &str) -> String {
    let mut rows = screen.lines();
    let row = rows.find(|row| row.split_whitespace().next() == Some(child));
    row.unwrap_or_default().to_owned()
}

fn heads(screen: &str) -> usize {
    let is_head = |row: &&str| row.starts_with("child ") && row.contains(" state ");
    screen.lines().filter(is_head).count()
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn rows_live_and_end_as_the_report_in_short() {
    let room = Room::new(&plan(1, &[("first", WAITS), ("second", WAITS)]), 80, 24);
    room.start("");
    let screen = room
        .terminal
        .wait_until("a tool", |screen| row(screen, "first").contains("search"));
    assert!(row(&screen, "first").contains("running"), "{screen}");
    assert!(row(&screen, "second").contains("waiting"), "{screen}");
    assert!(screen.contains("1 running · 1 waiting · $0.00"), "{screen}");
    room.go();
    let screen = room.terminal.wait_for("ended with 0");
    for child in ["first", "second"] {
        let row = row(&screen, child);
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[1..5], ["finished", "model", "1", "1.2k"], "{screen}");
        assert_eq!(words[5], "$0.25", "{screen}");
    }
    assert!(
        screen.contains("review: finished (2 of 2 finished)"),
        "{screen}"
    );
    assert!(screen.contains("2.5k tokens · $0.50"), "{screen}");
    assert!(screen.contains("run/report.md"), "{screen}");
    assert_eq!(heads(&screen), 1, "the live table is gone: {screen}");
    assert!(
        !screen.contains("waiting") && !screen.contains("details"),
        "{screen}"
    );
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn the_whole_report_goes_into_a_file() {
    let room = Room::new(&plan(1, &[("first", WAITS)]), 80, 24);
    room.go();
    room.start("> out.md");
    let screen = room.terminal.wait_for("ended with 0");
    assert!(row(&screen, "first").contains("finished"), "{screen}");
    assert!(
        screen.contains("1 finished · $0.25"),
        "the table stays: {screen}"
    );
    let out = fs::read_to_string(room.sandbox.work().join("out.md")).unwrap();
    let report = fs::read_to_string(room.sandbox.work().join("run/report.md")).unwrap();
    assert_eq!(out, report);
    assert!(out.contains("<details>"), "{out}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn another_size_leaves_nothing_of_the_last_one() {
    let names: Vec<String> = (0..12).map(|index| format!("reviewer-{index}")).collect();
    let children: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), WAITS)).collect();
    let room = Room::new(&plan(12, &children), 120, 30);
    room.start("");
    let all_run = |screen: &str| {
        names
            .iter()
            .all(|name| row(screen, name).contains("search"))
    };
    room.terminal.wait_until("all rows", all_run);
    for (columns, rows) in [
        (40, 12),
        (100, 30),
        (60, 16),
        (33, 6),
        (120, 40),
        (80, 8),
        (80, 24),
        (50, 7),
        (47, 42),
        (109, 31),
        (75, 12),
        (91, 13),
        (32, 25),
        (138, 28),
    ] {
        room.terminal.resize(columns, rows);
        let shown = usize::from(rows - if rows < 8 { 3 } else { 4 }).min(12);
        let screen = room
            .terminal
            .wait_until("one table of the new size", |screen| {
                let children = screen.lines().filter(|row| row.starts_with("reviewer-"));
                let summaries = screen.lines().filter(|row| row.starts_with("12 running"));
                heads(screen) == 1 && children.count() == shown && summaries.count() == 1
            });
        for row in screen.lines().filter(|row| row.starts_with("reviewer-")) {
            assert!(row.contains("running") && row.ends_with('s'), "{screen}");
            assert!(row.chars().count() < usize::from(columns), "{screen}");
        }
    }
    room.go();
    let screen = room.terminal.wait_for("ended with 0");
    assert_eq!(heads(&screen), 1, "{screen}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn an_interrupted_run_says_where_it_is_and_leaves_the_terminal_as_it_was() {
    let room = Room::new(&plan(1, &[("first", WAITS), ("second", WAITS)]), 100, 24);
    room.start("");
    room.terminal
        .wait_until("a tool", |screen| row(screen, "first").contains("search"));
    room.terminal.press(&["C-c"]);
    let screen = room.terminal.wait_for("ended with 130");
    assert!(
        screen.contains("review: interrupted (0 of 2 finished)"),
        "{screen}"
    );
    for child in ["first", "second"] {
        assert!(row(&screen, child).contains("stopped"), "{screen}");
    }
    assert!(
        !screen.contains("running") && !screen.contains("^C"),
        "{screen}"
    );
    let directory = room.sandbox.work().join("run");
    let flat: String = screen.split_whitespace().collect();
    assert!(
        flat.contains(&format!("Report:{}", directory.join("report.md").display())),
        "{screen}"
    );
    assert!(
        flat.contains(&format!("pinionfleetresume{}", directory.display())),
        "{screen}"
    );
    assert!(
        fs::read_to_string(directory.join("report.md"))
            .unwrap()
            .contains("interrupted")
    );
    for (mode, wanted) in [
        ("#{cursor_flag}", "1"),
        ("#{wrap_flag}", "1"),
        ("#{alternate_on}", "0"),
    ] {
        assert_eq!(room.terminal.ask(mode), wanted, "{mode}");
    }
    room.go();
    let program = env!("CARGO_BIN_EXE_pinion");
    room.terminal
        .run(&format!("{program} fleet resume run; echo ended with $?"));
    room.terminal.wait_for("ended with 0");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn with_more_children_than_rows_those_that_run_are_shown() {
    let quick = r#"echo '{"type":"done"}'"#;
    let names: Vec<String> = (0..40).map(|index| format!("quick-{index}")).collect();
    let mut children: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), quick)).collect();
    children.push(("slow", WAITS));
    let room = Room::new(&plan(2, &children), 60, 16);
    room.start("");
    let screen = room.terminal.wait_until("the last one alone", |screen| {
        screen.contains("40 finished · 1 running · 29 not shown")
    });
    assert!(row(&screen, "slow").contains("running"), "{screen}");
    assert!(
        screen.contains("\nRun ") || screen.starts_with("Run "),
        "nothing was scrolled away: {screen}"
    );
    room.go();
    let screen = room.terminal.wait_for("ended with 0");
    assert!(screen.contains("… and 1 more in the report"), "{screen}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn wide_characters_take_their_room_and_escapes_do_nothing() {
    let wide = r#"echo '{"type":"tool","name":"检索代码库文件 search"}'; while [ ! -e go ]; do sleep 0.05; done; echo '{"type":"done"}'"#;
    let hostile = r#"echo '{"type":"tool","name":"ev\u001b[2J\u001b[31mil\n\ntool\u001b]0;title\u0007"}'; while [ ! -e go ]; do sleep 0.05; done; echo '{"type":"text","text":"one \u001b]0;title\u0007two"}'; echo '{"type":"done"}'"#;
    let children = [("wide", wide), ("hostile", hostile), ("plain", WAITS)];
    let room = Room::new(&plan(3, &children), 80, 24);
    room.start("");
    let screen = room.terminal.wait_until("all tools", |screen| {
        row(screen, "wide").contains('检')
            && row(screen, "hostile").contains("evil")
            && row(screen, "plain").contains("search")
    });
    let head = screen
        .lines()
        .position(|row| row.starts_with("child "))
        .unwrap();
    let names: Vec<&str> = screen
        .lines()
        .skip(head + 1)
        .take(4)
        .map(|row| row.split_whitespace().next().unwrap_or_default())
        .collect();
    assert_eq!(names, ["wide", "hostile", "plain", "3"], "{screen}");
    // A terminal that counted otherwise would have cut the end of the row.
    let ends: Vec<usize> = ["wide", "hostile", "plain"]
        .iter()
        .map(|name| pinion_tui::width(&row(&screen, name)))
        .collect();
    assert!(ends.iter().all(|end| *end == 79), "{ends:?}: {screen}");
    assert_ne!(room.terminal.ask("#{pane_title}"), "title");
    room.go();
    room.terminal.wait_for("ended with 0");
    let program = env!("CARGO_BIN_EXE_pinion");
    room.terminal
        .run(&format!("{program} fleet show run; echo ended with $?"));
    room.terminal.wait_for("one two");
    room.terminal.wait_for("ended with 0");
    assert_ne!(room.terminal.ask("#{pane_title}"), "title");
    let report = fs::read_to_string(room.sandbox.work().join("run/report.md")).unwrap();
    assert!(
        report.contains("one \u{1b}]0;title"),
        "files have it as it was: {report}"
    );
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn without_colours_nothing_is_coloured() {
    let fails = r#"echo '{"type":"error","message":"401 no"}'; exit 1"#;
    for (variable, coloured) in [("", true), ("export NO_COLOR=1", false)] {
        let room = Room::new(&plan(2, &[("bad", fails), ("good", WAITS)]), 80, 24);
        room.terminal.say(variable);
        room.start("");
        let is_red = || room.terminal.coloured_screen().contains("\u{1b}[31m");
        room.terminal
            .wait_until("a failure", |screen| row(screen, "bad").contains("failed"));
        assert_eq!(is_red(), coloured);
        room.go();
        let screen = room.terminal.wait_for("ended with 1");
        assert!(screen.contains("bad: 401 no"), "{screen}");
        assert_eq!(is_red(), coloured);
    }
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_terminal_that_can_do_nothing_gets_lines() {
    let room = Room::new(&plan(1, &[("first", WAITS)]), 100, 24);
    room.terminal.say("export TERM=dumb");
    room.start("");
    room.terminal.wait_for("first: search");
    room.terminal.press(&["C-c"]);
    let screen = room.terminal.wait_for("ended with 130");
    assert!(screen.contains("\nreview: interrupted"), "{screen}");
    assert!(!room.terminal.coloured_screen().contains("\u{1b}[31m"));
}
