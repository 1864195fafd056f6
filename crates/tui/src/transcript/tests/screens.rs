//! Tests of the transcript's screens.

use pinion_message::{
    BashExecutionMessage, BranchSummaryMessage, CompactionSummaryMessage, CustomMessage,
};
use ratatui::style::{Color, Modifier};
use serde_json::json;

use super::*;
use crate::transcript::{Images, NoticeKind};

fn custom(text: &str, display: bool) -> Arc<Message> {
    Arc::new(Message::Custom(CustomMessage {
        custom_type: "reminder".into(),
        content: Content::Text(text.into()),
        display,
        details: None,
        timestamp: 0,
    }))
}

fn shell(command: &str, output: &str, exit_code: Option<i32>) -> Arc<Message> {
    Arc::new(Message::BashExecution(BashExecutionMessage {
        command: command.into(),
        output: output.into(),
        exit_code,
        cancelled: exit_code.is_none(),
        truncated: false,
        full_output_path: None,
        timestamp: 0,
        exclude_from_context: None,
    }))
}

fn with_picture() -> Arc<Message> {
    Arc::new(Message::User(UserMessage {
        content: Content::Blocks(vec![
            Block::text("What is in this picture?\nLook closely."),
            Block::Image {
                data: "A".repeat(40_000),
                mime_type: "image/png".into(),
            },
        ]),
        timestamp: 0,
        attachments: Some(json!([{
            "type": "document", "fileName": "notes.pdf", "mimeType": "application/pdf", "content": "AAAA",
        }])),
    }))
}

/// Messages of every kind, as a session has them.
fn conversation() -> Vec<Arc<Message>> {
    let read = call(
        "1",
        "read",
        json!({"path": "src/main.rs", "offset": 1, "limit": 40}),
    );
    let list = call("2", "ls", json!({}));
    let test = call(
        "3",
        "bash",
        json!({"command": "cargo test --workspace --all-features"}),
    );
    let edit = call(
        "4",
        "edit",
        json!({"path": "src/main.rs", "oldText": "a", "newText": "b"}),
    );
    let write = call(
        "5",
        "write",
        json!({"path": "notes.md", "content": "one\ntwo\n"}),
    );
    let grep = call("6", "grep", json!({"pattern": "fn main", "glob": "*.rs"}));
    let weather = call("7", "weather", json!({"city": "Oslo", "days": 3}));
    let refused = call("8", "bash", json!({"command": "rm -rf target"}));
    let missing = call("9", "read", json!({"path": "missing.rs"}));
    let never = call("10", "bash", json!({"command": "sleep 100"}));
    let numbers: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    let results = [
        TestCall::new(&read, output(&numbers, None), false),
        TestCall::new(&list, output("Cargo.toml\nsrc/", None), false),
        TestCall::new(
            &test,
            output(
                &format!("{numbers}test result: FAILED\n\nCommand exited with code 101"),
                None,
            ),
            true,
        ),
        TestCall::new(
            &edit,
            output(
                "Successfully replaced text in src/main.rs.",
                Some(
                    json!({"diff": " 1 fn main() {\n-2     let a = 1;\n+2     let a = 2;\n+3     let b = 3;\n 4 }"}),
                ),
            ),
            false,
        ),
        TestCall::new(
            &write,
            output("Successfully wrote 8 bytes to notes.md", None),
            false,
        ),
        TestCall::new(
            &grep,
            output(
                "src/main.rs:1: fn main() {\nsrc/bin/two.rs:7: fn main() {",
                None,
            ),
            false,
        ),
        TestCall::new(&weather, output("sunny\nwindy\nwet", None), false),
        TestCall::new(
            &refused,
            output(
                "The user refused this call.",
                Some(json!({"approval": {"outcome": "refused"}})),
            ),
            true,
        ),
        TestCall::new(
            &missing,
            output("File not found: missing.rs", Some(json!({}))),
            true,
        ),
    ];
    let mut messages = vec![
        Arc::new(Message::CompactionSummary(CompactionSummaryMessage {
            summary: "## Goal\n\nMake the tests pass.".into(),
            tokens_before: 123_456,
            timestamp: 0,
        })),
        user("Make the tests pass, please."),
        with_picture(),
        answer(
            vec![
                thinking("First I look at the code.\nThen I run the tests.\nThen I see."),
                Block::text("I look at the **code** first:\n\n- `src/main.rs`\n- the tests"),
                read,
                list,
                test,
                edit,
                write,
                grep,
                weather,
                refused,
                missing,
            ],
            StopReason::ToolUse,
            None,
        ),
    ];
    messages.extend(results.iter().map(TestCall::message));
    messages.extend([
        answer(
            vec![Block::text(
                "Done. The change:\n\n```rust\nlet a = 2; // was 1\n```\n\nAnything else?",
            )],
            StopReason::Stop,
            None,
        ),
        shell("git status --short", " M src/main.rs\n?? notes.md", Some(0)),
        shell("false", "", Some(1)),
        custom("Remember to *commit*.", true),
        custom("hidden", false),
        Arc::new(Message::BranchSummary(BranchSummaryMessage {
            summary: "Another way was tried.".into(),
            from_id: Some("x".into()),
            timestamp: 0,
        })),
        user("Go on"),
        answer(vec![Block::text("This is as far as I ca")], StopReason::Length, None),
        user("Go on"),
        answer(
            vec![Block::text("I will now"), never],
            StopReason::Aborted,
            Some("Request was aborted."),
        ),
        user("Again"),
        answer(
            vec![],
            StopReason::Error,
            Some(r#"401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#),
        ),
    ]);
    messages
}

fn loaded() -> Transcript {
    let mut transcript = Transcript::new();
    transcript.load(&conversation());
    transcript
}

#[test]
fn a_conversation_at_three_widths() {
    for width in [40, 80, 120] {
        let text = whole(&mut loaded(), width, &TestLook::new());
        insta::assert_snapshot!(format!("conversation_{width}"), text);
    }
}

#[test]
fn a_conversation_unfolded() {
    for width in [40, 80, 120] {
        let text = whole(&mut loaded(), width, &TestLook::unfolded());
        insta::assert_snapshot!(format!("unfolded_{width}"), text);
    }
}

#[test]
fn included_files_are_folded_to_their_names() {
    let text = "<file name=\"a.rs\">\none\ntwo\n</file>\n<skill name=\"tidy\" location=\"x\">\nDo it.\n</skill>\n\nTidy up a < b";
    let mut transcript = Transcript::new();
    apply(&mut transcript, said(&user(text)));
    assert_eq!(
        whole(&mut transcript, 40, &TestLook::new()),
        "> [file a.rs, 2 lines]\n[skill tidy, 1 line]\n\nTidy up a < b"
    );
    assert!(whole(&mut transcript, 40, &TestLook::unfolded()).contains("\none\ntwo\n"));
}

#[test]
fn escape_sequences_never_reach_the_screen() {
    let evil = "\u{1b}[31mred\u{1b}]0;title\u{7} \u{202e}back\u{8}";
    let block = call("1", evil, json!({"command": evil}));
    let bash = call("2", "bash", json!({"command": evil}));
    let mut transcript = Transcript::new();
    let messages = vec![
        user(evil),
        answer(
            vec![
                thinking(evil),
                Block::text(evil),
                block.clone(),
                bash.clone(),
            ],
            StopReason::Error,
            Some(evil),
        ),
        TestCall::new(&block, output(evil, None), false).message(),
        TestCall::new(&bash, output(evil, None), true).message(),
        shell(evil, evil, Some(3)),
        custom(evil, true),
    ];
    transcript.load(&messages);
    transcript.notice(NoticeKind::Error, evil);
    for test_look in [TestLook::new(), TestLook::unfolded()] {
        let buffer = buffer(&mut transcript, 60, 80, &test_look);
        for cell in &buffer.content {
            assert!(
                !cell
                    .symbol()
                    .contains(|c: char| c.is_control() || c == '\u{202e}'),
                "{:?}",
                cell.symbol()
            );
        }
        assert!(rows(&buffer).join("\n").contains("red"));
    }
}

#[test]
fn blank_lines_around_an_answer_are_not_shown() {
    let mut transcript = Transcript::new();
    let text = Block::text("\n\nHello\n\n\n");
    let blank = Block::text("\n \n");
    apply(&mut transcript, said(&user("\n\nHi\n\n")));
    apply(
        &mut transcript,
        streamed(&answer(vec![blank, text], StopReason::Stop, None)),
    );
    apply(&mut transcript, said(&user("Bye")));
    assert_eq!(
        whole(&mut transcript, 40, &TestLook::new()),
        "> Hi\n\nHello\n\n> Bye"
    );
}

#[test]
fn pictures_are_drawn_where_the_terminal_can() {
    // The first bytes of a PNG of 80 by 32 pixels, which contain its size.
    let data = "iVBORw0KGgoAAAANSUhEUgAAAFAAAAAgAAAA".to_owned();
    let picture = Arc::new(Message::User(UserMessage {
        content: Content::Blocks(vec![
            Block::text("Look"),
            Block::Image {
                data,
                mime_type: "image/png".into(),
            },
        ]),
        timestamp: 0,
        attachments: None,
    }));
    let test_look = TestLook::new();
    let mut transcript = Transcript::new();
    transcript.load(&[picture, user("Thanks")]);
    let named = "> Look\n[image image/png, 27 B]\n\n> Thanks";
    assert_eq!(whole(&mut transcript, 40, &test_look), named);
    assert_eq!(transcript.take_pictures(), None);

    transcript.set_images(Images::Drawn);
    let buffer = buffer(&mut transcript, 40, 10, &test_look);
    assert_eq!(buffer[(9, 3)].symbol(), "\u{10EEEE}\u{30D}\u{34A}");
    assert_eq!(buffer[(10, 3)].symbol(), " ");
    assert!(rows(&buffer)[5].starts_with("> Thanks"));
    let sent = transcript.take_pictures().unwrap();
    assert!(sent.contains("c=10,r=2"), "{sent:?}");
    whole(&mut transcript, 40, &test_look);
    assert_eq!(transcript.take_pictures(), None, "sent again");
}

#[test]
fn styles_distinguish_authors_and_failures() {
    let style_of = |test_look: &TestLook, text: &str| {
        let mut transcript = loaded();
        let buffer = buffer(&mut transcript, 80, 200, test_look);
        let rows = rows(&buffer);
        let y = rows.iter().position(|row| row.contains(text)).expect(text);
        buffer[(0, u16::try_from(y).unwrap())].style()
    };
    let dark = TestLook::new();
    let user = style_of(&dark, "> Make the tests");
    assert_eq!(user.fg, Some(Color::Cyan));
    assert!(user.add_modifier.contains(Modifier::BOLD));
    assert_eq!(style_of(&dark, "✗ read missing").fg, Some(Color::Red));
    assert_eq!(style_of(&dark, "✓ read src").fg, Some(Color::Green));
    assert_eq!(style_of(&dark, "The request failed").fg, Some(Color::Red));

    let light = TestLook {
        theme: Theme::new(Background::Light, Colours::Palette),
        ..TestLook::new()
    };
    assert_eq!(style_of(&light, "> Make the tests").fg, Some(Color::Blue));

    let none = TestLook {
        theme: Theme::new(Background::Dark, Colours::None),
        ..TestLook::new()
    };
    let user = style_of(&none, "> Make the tests");
    assert_eq!(user.fg, Some(Color::Reset));
    assert!(user.add_modifier.contains(Modifier::BOLD));
}

#[test]
fn what_can_be_copied_is_what_was_said() {
    let transcript = loaded();
    assert_eq!(transcript.last_answer().as_deref(), Some("I will now"));
    assert_eq!(
        transcript.user_texts().last().map(String::as_str),
        Some("Again")
    );
    assert_eq!(transcript.user_texts().len(), 5);

    let mut transcript = Transcript::new();
    assert_eq!(transcript.last_answer(), None);
    assert!(transcript.last_code().is_empty());
    assert!(transcript.is_empty());
    let two = answer(
        vec![
            Block::text("One:\n\n```sh\nmake\n```\n"),
            thinking("hm"),
            Block::text("Two:\n\n    indented\n\n~~~\nplain\n~~~"),
        ],
        StopReason::Stop,
        None,
    );
    apply(&mut transcript, streamed(&two));
    transcript.notice(NoticeKind::Information, "Copied.");
    let text = transcript.last_answer().unwrap();
    assert!(
        text.starts_with("One:\n\n```sh") && text.ends_with("~~~"),
        "{text}"
    );
    assert_eq!(transcript.last_code(), ["make\n", "indented\n", "plain\n"]);
}
