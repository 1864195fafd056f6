//! The appearance of the chat: sizes, resizing, colours.

use serde_json::json;

use super::{Room, says};

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn everything_is_there_on_a_small_screen() {
    let room = Room::sized(json!({"turns": [says("A small answer.")]}), 40, 12);
    room.start("");
    room.terminal.wait_for("mock-1");
    room.terminal
        .say("a question that is longer than forty columns are");
    let screen = room.terminal.wait_for("A small answer.");
    let rows: Vec<&str> = screen.lines().collect();
    assert_eq!(rows.len(), 12, "{screen}");
    assert!(rows[11].contains("mock-1"), "{screen}");
    assert!(rows.iter().all(|row| row.chars().count() <= 40), "{screen}");
    room.terminal.press(&["C-g"]);
    room.terminal.wait_for("Talking");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn another_size_is_another_layout() {
    let words = "a sentence that goes on and on until it does not fit into the window any more, which takes a while";
    let room = Room::new(json!({"turns": [says(words)]}));
    let chat = room.chat("");
    chat.say("talk");
    chat.wait_for("a sentence that goes on");
    chat.wait_for("Ctrl-G help");
    for (columns, rows) in [(120, 30), (50, 15), (80, 24)] {
        chat.resize(columns, rows);
        let screen = chat.wait_until("a status line at the bottom", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            lines.len() == usize::from(rows)
                && lines.last().is_some_and(|last| last.contains("mock-1"))
                && lines.iter().any(|line| {
                    line.starts_with('─') && line.chars().count() == usize::from(columns)
                })
        });
        let text: String = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{screen}");
    }
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn after_another_size_every_key_counts() {
    let room = Room::new(json!({"turns": [says("One.")]}));
    let chat = room.chat("");
    let resize = |columns: u16| {
        chat.resize(columns, 24);
        let is_wide = |line: &str| line.chars().count() == usize::from(columns);
        chat.wait_until("the new size", |screen| {
            screen
                .lines()
                .any(|line| line.starts_with('─') && is_wide(line))
        });
    };
    resize(90);
    chat.write("a");
    chat.wait_for("> a");
    resize(80);
    chat.write("b");
    chat.wait_for("> ab");
    resize(90);
    let pasted: String = (0..3_000)
        .map(|number| format!("pasted line {number}\n"))
        .collect();
    chat.paste(&pasted);
    chat.wait_for("[paste #1");
    chat.press(&["Enter"]);
    chat.wait_for("One.");
    let request = room.server.requests()[0].to_string();
    assert!(request.contains("pasted line 0\\n") && request.contains("pasted line 2999"));
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn long_conversations_scroll_and_come_back() {
    let lines: String = (1..=200)
        .map(|number| format!("- item {number}\n"))
        .collect();
    let room = Room::new(json!({"turns": [says(&lines)]}));
    let chat = room.chat("");
    chat.say("a long list");
    chat.wait_for("item 200");
    chat.press(&["PPage"]);
    chat.wait_without("item 200");
    chat.press(&["C-Home"]);
    chat.wait_for("a long list");
    chat.press(&["C-End"]);
    chat.wait_for("item 200");
    let wheel_up = "\u{1b}[<64;10;5M";
    chat.write(wheel_up);
    chat.wait_without("item 200");
    let wheel_down = "\u{1b}[<65;10;5M";
    chat.write(wheel_down);
    chat.wait_for("item 200");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn a_light_terminal_says_so() {
    let room = Room::new(json!({}));
    let accent = |screen: &str| {
        let row = screen
            .lines()
            .find(|line| line.contains("pinion 0"))
            .unwrap_or_default();
        row.to_owned()
    };
    let chat = room.chat("");
    let dark = accent(&chat.coloured_screen());
    chat.press(&["C-d"]);
    chat.wait_for("ended with 0");
    chat.set_option("window-style", "bg=#ffffff,fg=#000000");
    let chat = room.chat("");
    chat.wait_until("other colours", |_| accent(&chat.coloured_screen()) != dark);
    let screen = chat.screen();
    assert!(!screen.contains("rgb:"), "the answer is no text: {screen}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn an_answer_in_another_spelling_is_no_text_either() {
    let room = Room::new(json!({}));
    let chat = room.chat("");
    for answer in ["rgba:ffff/ffff/ffff/ffff", "#ffffff", "white"] {
        chat.write(&format!("\u{1b}]11;{answer}\u{7}"));
    }
    chat.write("hello");
    let screen = chat.wait_for("> hello");
    assert!(!screen.contains("Talking"), "no help is shown: {screen}");
}

#[test]
#[ignore = "needs tmux: cargo xtask test --all"]
fn without_colours_nothing_is_coloured() {
    let room = Room::new(
        json!({"turns": [says("# Heading\n\n`code` and **bold**\n\n```rust\nlet x = 1;\n```")]}),
    );
    room.terminal.say("export NO_COLOR=1");
    let chat = room.chat("");
    chat.say("talk");
    chat.wait_for("let x = 1;");
    chat.wait_for("Ctrl-G help");
    let screen = chat.coloured_screen();
    for colour in (30..38).chain(90..98).chain(40..48) {
        for sequence in [format!("\u{1b}[{colour}m"), format!(";{colour}m")] {
            assert!(!screen.contains(&sequence), "{sequence:?} in {screen:?}");
        }
    }
    assert!(screen.contains("\u{1b}[1m"), "weight stays: {screen:?}");
}
