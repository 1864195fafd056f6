//! Tests that every event is shown, and that a session looks the same when it is opened again.

use std::borrow::Cow;

use pinion_agent::{CompactionReason, SummaryPurpose};
use pinion_message::CustomMessage;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::plain::PlainPrinter;
use crate::transcript::{NoticeKind, Scroll};

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,40}",
        "([a-z*`#-]{1,8}[ \n]){0,12}",
        "\\PC{0,20}",
        Just("\u{1b}[31mred\ttab\r\n\u{202e}".to_owned()),
        Just("日本語 👩‍👩‍👧 e\u{301}\n```rust\nfn main() {}".to_owned()),
    ]
}

fn block(id: usize) -> impl Strategy<Value = Block> {
    prop_oneof![
        words().prop_map(Block::text),
        words().prop_map(|text| thinking(&text)),
        (
            prop_oneof![
                Just("bash"),
                Just("read"),
                Just("edit"),
                Just("write"),
                Just("other")
            ],
            words()
        )
            .prop_map(move |(name, text)| {
                call(
                    &format!("call-{id}"),
                    name,
                    json!({"command": text, "path": text, "content": text}),
                )
            }),
    ]
}

/// A turn: its text, and the results of its calls.
#[derive(Debug, Clone)]
enum TestTurn {
    User(String),
    Custom(String, bool),
    Answer(Vec<Block>, StopReason, Vec<(String, bool)>),
}

fn turn() -> impl Strategy<Value = TestTurn> {
    let stop = prop_oneof![
        Just(StopReason::Stop),
        Just(StopReason::ToolUse),
        Just(StopReason::Length),
        Just(StopReason::Error),
        Just(StopReason::Aborted),
    ];
    let blocks = (block(0), block(1), block(2), 0usize..4)
        .prop_map(|(a, b, c, count)| [a, b, c].into_iter().take(count).collect());
    prop_oneof![
        words().prop_map(TestTurn::User),
        (words(), any::<bool>()).prop_map(|(text, shown)| TestTurn::Custom(text, shown)),
        (
            blocks,
            stop,
            proptest::collection::vec((words(), any::<bool>()), 3)
        )
            .prop_map(|(blocks, stop, results)| TestTurn::Answer(blocks, stop, results)),
    ]
}

/// The turns as events of a run, and as messages of a session.
fn played(turns: &[TestTurn]) -> (Vec<Event>, Vec<Arc<Message>>) {
    let mut events = vec![Event::AgentStart];
    let mut messages = Vec::new();
    for turn in turns {
        match turn {
            TestTurn::User(text) => {
                let message = user(text);
                events.extend(said(&message));
                messages.push(message);
            }
            TestTurn::Custom(text, display) => {
                let message = Arc::new(Message::Custom(CustomMessage {
                    custom_type: "note".into(),
                    content: Content::Text(text.clone()),
                    display: *display,
                    details: None,
                    timestamp: 0,
                }));
                events.extend(said(&message));
                messages.push(message);
            }
            TestTurn::Answer(blocks, stop, results) => {
                let message = answer(blocks.clone(), *stop, Some("it broke"));
                events.push(Event::TurnStart);
                events.extend(streamed(&message));
                messages.push(message);
                if matches!(stop, StopReason::Error | StopReason::Aborted) {
                    continue;
                }
                let calls = blocks
                    .iter()
                    .filter(|block| matches!(block, Block::ToolCall(_)));
                for (call, (text, is_error)) in calls.zip(results) {
                    let made = TestCall::new(call, output(text, None), *is_error);
                    events.push(made.start());
                    events.push(made.update(text));
                    events.extend(made.events());
                    messages.push(made.message());
                }
            }
        }
    }
    events.push(Event::Settled { aborted: false });
    (events, messages)
}

/// Any event, in any order.
fn anything() -> impl Strategy<Value = Event> {
    let message = prop_oneof![
        words().prop_map(|text| user(&text)),
        (block(0), block(1)).prop_map(|(a, b)| answer(vec![a, b], StopReason::Stop, None)),
        words().prop_map(|text| {
            TestCall::new(
                &call("call-1", "bash", json!({})),
                output(&text, None),
                true,
            )
            .message()
        }),
    ];
    let run = (0usize..4).prop_map(|id| {
        Arc::new(ToolRun {
            call_id: format!("call-{id}").into(),
            name: "bash".into(),
            arguments: json!({"command": "x"}),
            parent_call_id: None,
        })
    });
    prop_oneof![
        message.clone().prop_map(Event::MessageStart),
        message.prop_map(Event::MessageEnd),
        (0usize..4, block(1)).prop_map(|(index, block)| Event::BlockStart {
            index,
            block: Arc::new(block),
        }),
        (0usize..4, words()).prop_map(|(index, text)| Event::BlockDelta {
            index,
            delta: text.into(),
        }),
        (0usize..4, block(1)).prop_map(|(index, block)| Event::BlockEnd {
            index,
            block: Arc::new(block),
        }),
        run.clone().prop_map(Event::ToolStart),
        (run.clone(), words()).prop_map(|(run, text)| Event::ToolUpdate {
            run,
            output: Arc::new(output(&text, None)),
        }),
        (run, words(), any::<bool>()).prop_map(|(run, text, is_error)| Event::ToolEnd {
            run,
            output: Arc::new(output(&text, Some(json!({"diff": text})))),
            is_error,
            duration: Some(Duration::from_secs(3)),
        }),
        words().prop_map(|error| Event::RetryStart {
            attempt: 1,
            max_attempts: 2,
            delay: Duration::from_secs(2),
            error,
        }),
        any::<bool>().prop_map(|success| Event::RetryEnd {
            success,
            attempt: 1,
            final_error: None,
        }),
        Just(Event::CompactionStart {
            reason: CompactionReason::Overflow
        }),
        words().prop_map(|error| Event::CompactionEnd {
            reason: CompactionReason::Overflow,
            result: None,
            aborted: false,
            will_retry: true,
            error: Some(error),
        }),
        Just(Event::SummaryRetryStart(SummaryPurpose::Branch)),
        words().prop_map(|error| Event::Fault {
            source: "x".into(),
            during: Cow::Borrowed("y"),
            error,
        }),
        Just(Event::AgentStart),
        Just(Event::AgentEnd {
            messages: Arc::new([]),
            will_retry: true,
        }),
        Just(Event::Settled { aborted: true }),
    ]
}

/// An event, or an action of the user.
#[derive(Debug, Clone)]
enum Step {
    Apply(Event),
    Scroll(Scroll),
    Draw(u16, u16, bool),
    Notice(String),
}

fn step() -> impl Strategy<Value = Step> {
    let scroll = prop_oneof![
        (0usize..50).prop_map(Scroll::Up),
        (0usize..50).prop_map(Scroll::Down),
        Just(Scroll::PageUp),
        Just(Scroll::PageDown),
        Just(Scroll::Start),
        Just(Scroll::End),
    ];
    prop_oneof![
        6 => anything().prop_map(Step::Apply),
        1 => scroll.prop_map(Step::Scroll),
        2 => (0u16..90, 0u16..30, any::<bool>()).prop_map(|(width, height, fold)| Step::Draw(width, height, fold)),
        1 => words().prop_map(Step::Notice),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_steps_is_drawn(steps in proptest::collection::vec(step(), 1..60)) {
        let mut transcript = Transcript::new();
        let mut printer = PlainPrinter::new(Fold::Unfolded, Fold::Folded);
        for step in steps {
            match step {
                Step::Apply(event) => {
                    transcript.apply(&event);
                    let words = printer.event(&event);
                    prop_assert!(!words.contains(|c: char| c.is_control() && c != '\n'), "{:?}", words);
                }
                Step::Scroll(by) => transcript.scroll(by),
                Step::Draw(width, height, fold) => {
                    let test_look = if fold { TestLook::new() } else { TestLook::unfolded() };
                    buffer(&mut transcript, width, height, &test_look);
                }
                Step::Notice(text) => transcript.notice(NoticeKind::Warning, &text),
            }
        }
    }

    #[test]
    fn a_session_opened_again_looks_as_it_did(
        turns in proptest::collection::vec(turn(), 0..8),
        width in 12u16..100,
    ) {
        let (events, messages) = played(&turns);
        let mut followed = Transcript::new();
        let test_look = TestLook::new();
        for (at, event) in events.iter().enumerate() {
            followed.apply(event);
            // Draws now and then, so that cached lines are tested too.
            if at % 3 == 0 {
                buffer(&mut followed, width, 20, &test_look);
            }
        }
        let mut loaded = Transcript::new();
        loaded.load(&messages);
        for test_look in [TestLook::new(), TestLook::unfolded()] {
            prop_assert_eq!(whole(&mut followed, width, &test_look), whole(&mut loaded, width, &test_look));
        }
        prop_assert_eq!(followed.last_answer(), loaded.last_answer());
        prop_assert_eq!(followed.user_texts(), loaded.user_texts());
    }
}
