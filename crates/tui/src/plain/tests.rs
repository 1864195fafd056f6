use std::time::Duration;

use pinion_agent::ToolRun;
use pinion_message::{
    AssistantMessage, StopReason, ThinkingBlock, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use serde_json::{Value, json};

use super::*;

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(UserMessage {
        content: Content::Text(text.into()),
        timestamp: 0,
        attachments: None,
    }))
}

fn answer(content: Vec<Block>, stop_reason: StopReason, error: Option<&str>) -> Arc<Message> {
    Arc::new(Message::Assistant(AssistantMessage {
        content,
        api: String::new(),
        provider: String::new(),
        model: String::new(),
        usage: Usage::default(),
        stop_reason,
        timestamp: 0,
        response_id: None,
        response_model: None,
        error_message: error.map(str::to_owned),
        raw_stop_reason: None,
        refused: false,
        duration_ms: None,
        thinking_level: None,
    }))
}

fn call(id: &str, name: &str, arguments: Value) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        arguments,
        thought_signature: None,
        arguments_error: None,
    })
}

fn run(block: &Block) -> Arc<ToolRun> {
    let Block::ToolCall(call) = block else {
        panic!("not a call");
    };
    Arc::new(ToolRun {
        call_id: call.id.as_str().into(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        parent_call_id: None,
    })
}

fn ended(block: &Block, text: &str, details: Option<Value>, is_error: bool) -> Event {
    Event::ToolEnd {
        run: run(block),
        output: Arc::new(ToolOutput {
            content: vec![Block::text(text)],
            details,
            ..ToolOutput::default()
        }),
        is_error,
        duration: Some(Duration::from_millis(1234)),
    }
}

fn printed(printer: &mut PlainPrinter, events: &[Event]) -> String {
    events.iter().map(|event| printer.event(event)).collect()
}

fn thinking(text: &str) -> Block {
    Block::Thinking(ThinkingBlock {
        thinking: text.into(),
        ..ThinkingBlock::default()
    })
}

fn streamed(blocks: &[Block], pieces: &[(usize, &str)]) -> Vec<Event> {
    let mut events = vec![Event::MessageStart(answer(vec![], StopReason::Stop, None))];
    for (index, block) in blocks.iter().enumerate() {
        let empty = match block {
            Block::Thinking(_) => thinking(""),
            _ => Block::text(""),
        };
        events.push(Event::BlockStart {
            index,
            block: Arc::new(empty),
        });
        for (_, piece) in pieces.iter().filter(|(of, _)| *of == index) {
            events.push(Event::BlockDelta {
                index,
                delta: (*piece).into(),
            });
        }
        events.push(Event::BlockEnd {
            index,
            block: Arc::new(block.clone()),
        });
    }
    let message = answer(blocks.to_vec(), StopReason::Stop, None);
    events.push(Event::MessageEnd(message));
    events
}

/// Messages of every kind, as a session has them.
fn session() -> Vec<Arc<Message>> {
    let test = call("1", "bash", json!({"command": "cargo test"}));
    let edit = call("2", "edit", json!({"path": "a.rs"}));
    let result = |id: &str, name: &str, text: &str, details: Option<Value>, is_error: bool| {
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: id.into(),
            tool_name: name.into(),
            content: vec![Block::text(text)],
            details,
            is_error,
            duration_ms: None,
            timestamp: 0,
            nested_calls: None,
        }))
    };
    vec![
        user("Make it work"),
        answer(
            vec![
                thinking("Hm."),
                Block::text("I look.\n\nThen I work."),
                test,
                edit,
            ],
            StopReason::ToolUse,
            None,
        ),
        result("1", "bash", "no\n\nCommand exited with code 1", None, true),
        result(
            "2",
            "edit",
            "fine",
            Some(json!({"diff": "-1 a\n+1 b\n+2 c"})),
            false,
        ),
        answer(vec![Block::text("It works")], StopReason::Length, None),
    ]
}

#[test]
fn a_session_in_plain_words() {
    let mut printer = PlainPrinter::new(Fold::Folded, Fold::Folded);
    insta::assert_snapshot!(printer.history(&session()), @r#"
    You: Make it work
    Thinking hidden.

    Assistant: I look.

    Then I work.
    Tool bash: cargo test … failed, exit code 1
    no
    Tool edit: a.rs … done, 2 lines added, 1 removed

    Assistant: It works
    The answer was cut: it reached the model's output limit.
    Send "continue" to get the rest.
    "#);
    let mut printer = PlainPrinter::new(Fold::Unfolded, Fold::Unfolded);
    insta::assert_snapshot!(printer.history(&session()), @r#"
    You: Make it work

    Thinking: Hm.

    Assistant: I look.

    Then I work.
    Tool bash: cargo test … failed, exit code 1
    no
    Tool edit: a.rs … done, 2 lines added, 1 removed
    -1 a
    +1 b
    +2 c

    Assistant: It works
    The answer was cut: it reached the model's output limit.
    Send "continue" to get the rest.
    "#);
}

#[test]
fn an_answer_comes_line_by_line() {
    let mut printer = PlainPrinter::new(Fold::Folded, Fold::Folded);
    let blocks = [thinking("a\nb"), Block::text("One two\nthree\n\nfour")];
    let pieces = [
        (0, "a\nb"),
        (1, "One "),
        (1, "two\nth"),
        (1, "ree\n\nfo"),
        (1, "ur"),
    ];
    let lines: Vec<String> = streamed(&blocks, &pieces)
        .iter()
        .map(|event| printer.event(event))
        .filter(|text| !text.is_empty())
        .collect();
    assert_eq!(
        lines,
        [
            "Thinking hidden.\n",
            "\nAssistant: One two\n",
            "three\n\n",
            "four\n"
        ]
    );
}

#[test]
fn a_call_completes_its_line() {
    let mut printer = PlainPrinter::new(Fold::Folded, Fold::Folded);
    let test = call("1", "bash", json!({"command": "cargo test"}));
    assert_eq!(
        printer.event(&Event::ToolStart(run(&test))),
        "Tool bash: cargo test …"
    );
    let numbers: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    insta::assert_snapshot!(printer.event(&ended(&test, &numbers, None, false)), @r"
     done in 1.2 s
    (15 more lines)
    line 16
    line 17
    line 18
    line 19
    line 20
    ");
}

#[test]
fn calls_side_by_side_keep_their_lines_apart() {
    let mut printer = PlainPrinter::new(Fold::Folded, Fold::Folded);
    let read = call("1", "read", json!({"path": "a.rs", "limit": 5}));
    let list = call("2", "ls", json!({}));
    let other = call("3", "other", json!({}));
    let events = [
        Event::ToolStart(run(&read)),
        Event::ToolStart(run(&list)),
        ended(&read, "x\ny", None, false),
        ended(&list, "Not found", None, true),
        Event::ToolStart(run(&other)),
        Event::Fault {
            source: "session".into(),
            during: "append".into(),
            error: "disk full".into(),
        },
        ended(&other, "no", Some(json!({"approval": {}})), true),
    ];
    insta::assert_snapshot!(printed(&mut printer, &events), @r"
    Tool read: a.rs:1-5 …
    Tool ls: . …
    Tool read: a.rs:1-5 … done in 1.2 s
    Tool ls: . … failed in 1.2 s
    Not found
    Tool other …
    Error in session (append): disk full
    Tool other … refused in 1.2 s
    no
    ");
}

#[test]
fn what_was_typed_is_not_said_again() {
    let mut printer = PlainPrinter::new(Fold::Folded, Fold::Folded);
    printer.typed("Hello \n");
    assert_eq!(printer.event(&Event::MessageEnd(user("Hello"))), "");
    assert_eq!(
        printer.event(&Event::MessageEnd(user("Hello"))),
        "You: Hello\n"
    );
}

#[test]
fn failures_say_what_to_do() {
    let mut printer = PlainPrinter::new(Fold::Folded, Fold::Folded);
    let failed = answer(vec![], StopReason::Error, Some("529 Overloaded"));
    let events = [
        Event::MessageStart(Arc::clone(&failed)),
        Event::MessageEnd(failed),
        Event::RetryStart {
            attempt: 1,
            max_attempts: 3,
            delay: Duration::from_secs(2),
            error: "529 Overloaded".into(),
        },
        Event::RetryEnd {
            success: false,
            attempt: 3,
            final_error: None,
        },
        Event::MessageEnd(answer(
            vec![Block::text("Half an ans")],
            StopReason::Aborted,
            None,
        )),
    ];
    let mut text = printed(&mut printer, &events);
    text.push_str(&printer.notice(NoticeKind::Error, "No model.\nChoose one."));
    insta::assert_snapshot!(text, @r"
    The request failed: 529 Overloaded
    The provider is busy. Send the message again in a moment, or choose another model with /model.
    Trying again in 2 s (retry 1 of 3).
    The request is not retried again.

    Assistant: Half an ans
    Stopped.
    Error: No model.
    Choose one.
    ");
}

#[test]
fn a_command_of_the_user_and_its_outcome() {
    let mut printer = PlainPrinter::new(Fold::Folded, Fold::Folded);
    let outcome = BashOutcome {
        output: "a\nb\n".into(),
        exit_code: Some(3),
        cancelled: false,
        truncated: true,
        full_output_path: Some("/tmp/all".into()),
    };
    assert_eq!(
        printer.shell_end("make", Ok(&outcome)),
        "Command make … exit code 3\na\nb\nFull output: /tmp/all\n"
    );
    assert_eq!(
        printer.shell_end("x", Err("no shell")),
        "Command x failed: no shell\n"
    );
}

#[test]
fn nothing_printed_moves_the_cursor() {
    let evil = "\u{1b}[2J\u{1b}]0;title\u{7}a\rb\u{8}";
    let mut printer = PlainPrinter::new(Fold::Unfolded, Fold::Unfolded);
    let block = call("1", evil, json!({"x": evil}));
    let blocks = [thinking(evil), Block::text(evil)];
    let mut text = printed(&mut printer, &streamed(&blocks, &[(0, evil), (1, evil)]));
    text.push_str(&printed(
        &mut printer,
        &[
            Event::ToolStart(run(&block)),
            ended(&block, evil, None, true),
            Event::MessageEnd(user(evil)),
        ],
    ));
    text.push_str(&printer.notice(NoticeKind::Warning, evil));
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n'),
        "{text:?}"
    );
    assert!(text.matches('a').count() >= 5);
}
