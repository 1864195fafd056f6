//! Random events of a session.

use std::sync::Arc;
use std::time::Duration;

use pinion_agent::{
    CompactionReason, CompactionResult, Event, SavedCompaction, SummaryPurpose, ToolOutput, ToolRun,
};
use pinion_message::{Block, Message, ThinkingLevel, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Text with characters that JSON or lines must escape.
fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-c \n\"\\\\\u{2028}é😀\u{1}]{0,12}").unwrap()
}

fn message(value: Value) -> Arc<Message> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn user(text: &str) -> Arc<Message> {
    message(json!({"role":"user","content":[{"type":"text","text":text}],"timestamp":1}))
}

fn answer(content: &Value, stop: &str, error: Option<&str>) -> Arc<Message> {
    let mut value = json!({"role":"assistant","content":content,"api":"a","provider":"p","model":"m",
        "usage":usage(7),"stopReason":stop,"timestamp":2});
    if let Some(error) = error {
        value["errorMessage"] = json!(error);
    }
    message(value)
}

fn usage(input: u64) -> Usage {
    Usage {
        input,
        total_tokens: input,
        ..Usage::default()
    }
}

/// A session: prompts with their runs, and events between them.
pub fn session() -> impl Strategy<Value = Vec<Event>> {
    vec(prop_oneof![4 => episode(), 1 => aside()], 0..5)
        .prop_map(|parts| parts.into_iter().flatten().collect())
}

/// A prompt with its runs, retries and compactions.
fn episode() -> impl Strategy<Value = Vec<Event>> {
    (vec((run(), continuation()), 0..2), run(), any::<bool>()).prop_map(
        |(retried, last, aborted)| {
            let mut events = Vec::new();
            for (run, between) in retried {
                events.extend(ended(run, true));
                events.extend(between);
            }
            events.extend(ended(last, false));
            events.push(Event::Settled { aborted });
            events
        },
    )
}

fn ended(run: Vec<Event>, will_retry: bool) -> Vec<Event> {
    let messages: Vec<Arc<Message>> = run
        .iter()
        .filter_map(|event| match event {
            Event::MessageEnd(message) => Some(Arc::clone(message)),
            _ => None,
        })
        .collect();
    let mut events = vec![Event::AgentStart];
    events.extend(run);
    events.push(Event::AgentEnd {
        messages: messages.into(),
        will_retry,
    });
    events
}

/// The events between two runs of one prompt.
fn continuation() -> impl Strategy<Value = Vec<Event>> {
    let retry = (1..4_u32, text()).prop_map(|(attempt, error)| {
        vec![
            Event::RetryStart {
                attempt,
                max_attempts: 3,
                delay: Duration::from_millis(5),
                error,
            },
            Event::RetryEnd {
                success: true,
                attempt,
                final_error: None,
            },
        ]
    });
    prop_oneof![retry, compaction()]
}

fn compaction() -> impl Strategy<Value = Vec<Event>> {
    let reason = prop_oneof![
        Just(CompactionReason::Manual),
        Just(CompactionReason::Threshold),
        Just(CompactionReason::Overflow)
    ];
    (reason, text(), any::<Option<bool>>()).prop_map(|(reason, words, outcome)| {
        vec![
            Event::CompactionStart { reason },
            compaction_end(reason, &words, outcome),
        ]
    })
}

/// The end of a compaction: `Some(true)` succeeded, `Some(false)` failed, `None` was stopped.
fn compaction_end(reason: CompactionReason, words: &str, outcome: Option<bool>) -> Event {
    let result = CompactionResult {
        summary: words.to_owned(),
        first_kept_entry_id: "e1".into(),
        tokens_before: 5,
        estimated_tokens_after: 2,
        usage: None,
        details: None,
        saved: SavedCompaction::default(),
    };
    Event::CompactionEnd {
        reason,
        result: (outcome == Some(true)).then(|| Arc::new(result)),
        aborted: outcome.is_none(),
        will_retry: false,
        error: (outcome == Some(false)).then(|| format!("failed: {words}")),
    }
}

fn aside() -> impl Strategy<Value = Vec<Event>> {
    prop_oneof![
        compaction(),
        text().prop_map(|error| vec![Event::Fault {
            source: "x.ts".into(),
            during: "load".into(),
            error,
        }]),
        vec(text(), 0..2).prop_map(|steering| vec![Event::QueueUpdate {
            steering,
            follow_up: Vec::new(),
        }]),
        Just(vec![Event::ThinkingLevelChanged(ThinkingLevel::Low)]),
        text().prop_map(|name| vec![Event::SessionInfoChanged(Some(name))]),
    ]
}

fn run() -> impl Strategy<Value = Vec<Event>> {
    (text(), vec(turn(), 1..3)).prop_map(|(words, turns)| {
        let mut events = Vec::new();
        for (at, turn) in turns.into_iter().enumerate() {
            events.push(Event::TurnStart);
            if at == 0 {
                let said = user(&words);
                events.push(Event::MessageStart(Arc::clone(&said)));
                events.push(Event::MessageEnd(said));
            }
            events.extend(turn);
        }
        events
    })
}

#[derive(Debug, Clone)]
enum Part {
    Text(Vec<String>),
    Thinking(Vec<String>),
    Call { output: String, is_error: bool },
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        vec(text(), 0..4).prop_map(Part::Text),
        vec(text(), 0..4).prop_map(Part::Thinking),
        (text(), any::<bool>()).prop_map(|(output, is_error)| Part::Call { output, is_error }),
    ]
}

fn turn() -> impl Strategy<Value = Vec<Event>> {
    (vec(part(), 0..4), proptest::option::of(text())).prop_map(|(parts, error)| {
        let mut events = vec![Event::MessageStart(answer(&json!([]), "stop", None))];
        let mut content = Vec::new();
        let mut calls = Vec::new();
        for (index, part) in parts.into_iter().enumerate() {
            let (begins, deltas, ends) = match part {
                Part::Text(pieces) => (
                    json!({"type":"text","text":""}),
                    pieces.clone(),
                    json!({"type":"text","text":pieces.concat()}),
                ),
                Part::Thinking(pieces) => (
                    json!({"type":"thinking","thinking":""}),
                    pieces.clone(),
                    json!({"type":"thinking","thinking":pieces.concat()}),
                ),
                Part::Call { output, is_error } => {
                    let id = format!("c{index}");
                    let arguments = json!({"command": output});
                    calls.push((id.clone(), arguments.clone(), output, is_error));
                    (
                        json!({"type":"toolCall","id":id,"name":"bash","arguments":{}}),
                        vec![arguments.to_string()],
                        json!({"type":"toolCall","id":id,"name":"bash","arguments":arguments}),
                    )
                }
            };
            let block = |value: &Value| Arc::new(serde_json::from_value(value.clone()).unwrap());
            events.push(Event::BlockStart {
                index,
                block: block(&begins),
            });
            events.extend(deltas.into_iter().map(|delta| Event::BlockDelta {
                index,
                delta: delta.into(),
            }));
            events.push(Event::UsageUpdate(usage(3)));
            events.push(Event::BlockEnd {
                index,
                block: block(&ends),
            });
            content.push(ends);
        }
        let stop = if error.is_some() { "error" } else { "stop" };
        let message = answer(&json!(content), stop, error.as_deref());
        events.push(Event::MessageEnd(Arc::clone(&message)));
        let mut tool_results = Vec::new();
        for (id, arguments, output, is_error) in calls {
            let result = tool(&mut events, &id, arguments, &output, is_error);
            tool_results.push(result);
        }
        events.push(Event::TurnEnd {
            message,
            tool_results: tool_results.into(),
        });
        events
    })
}

fn tool(
    events: &mut Vec<Event>,
    id: &str,
    arguments: Value,
    output: &str,
    is_error: bool,
) -> Arc<Message> {
    let run = Arc::new(ToolRun {
        call_id: id.into(),
        name: "bash".into(),
        arguments,
        parent_call_id: None,
    });
    let output = Arc::new(ToolOutput {
        content: vec![Block::text(output)],
        ..ToolOutput::default()
    });
    events.push(Event::ToolStart(Arc::clone(&run)));
    events.push(Event::ToolUpdate {
        run: Arc::clone(&run),
        output: Arc::clone(&output),
    });
    events.push(tool_end(&run, &output, is_error));
    let result = message(
        json!({"role":"toolResult","toolCallId":id,"toolName":"bash",
        "content":output.content,"isError":is_error,"timestamp":3}),
    );
    events.push(Event::MessageStart(Arc::clone(&result)));
    events.push(Event::MessageEnd(Arc::clone(&result)));
    result
}

fn tool_end(run: &Arc<ToolRun>, output: &Arc<ToolOutput>, is_error: bool) -> Event {
    Event::ToolEnd {
        run: Arc::clone(run),
        output: Arc::clone(output),
        is_error,
        duration: Some(Duration::from_millis(4)),
    }
}

/// A run with the beginning of an answer that has one block of text.
pub fn opening() -> Vec<Event> {
    vec![
        Event::AgentStart,
        Event::TurnStart,
        Event::MessageStart(answer(&json!([]), "stop", None)),
        Event::BlockStart {
            index: 0,
            block: Arc::new(Block::text("")),
        },
    ]
}

/// An answer of `pieces` deltas.
pub fn answer_of(pieces: usize, delta: &str) -> Vec<Event> {
    let mut events = opening();
    for _ in 0..pieces {
        events.push(Event::BlockDelta {
            index: 0,
            delta: delta.into(),
        });
    }
    events.push(Event::BlockEnd {
        index: 0,
        block: Arc::new(Block::text(delta.repeat(pieces))),
    });
    events
}

/// An event of every kind.
pub fn one_of_each() -> Vec<Event> {
    let run = Arc::new(ToolRun {
        call_id: "c".into(),
        name: "bash".into(),
        arguments: json!({}),
        parent_call_id: None,
    });
    let output = Arc::new(ToolOutput::default());
    let said = user("x");
    vec![
        Event::AgentStart,
        Event::AgentEnd {
            messages: Arc::new([]),
            will_retry: false,
        },
        Event::TurnStart,
        Event::TurnEnd {
            message: answer(&json!([]), "stop", None),
            tool_results: Arc::new([]),
        },
        Event::MessageStart(Arc::clone(&said)),
        Event::MessageEnd(said),
        Event::BlockStart {
            index: 1,
            block: Arc::new(Block::text("")),
        },
        Event::BlockDelta {
            index: 0,
            delta: "x".into(),
        },
        Event::BlockEnd {
            index: 0,
            block: Arc::new(Block::text("x")),
        },
        Event::UsageUpdate(usage(1)),
        Event::ToolStart(Arc::clone(&run)),
        Event::ToolUpdate {
            run: Arc::clone(&run),
            output: Arc::clone(&output),
        },
        tool_end(&run, &output, false),
        tool_end(&run, &output, true),
        Event::RetryStart {
            attempt: 1,
            max_attempts: 3,
            delay: Duration::ZERO,
            error: "e".into(),
        },
        Event::RetryEnd {
            success: true,
            attempt: 1,
            final_error: None,
        },
        Event::CompactionStart {
            reason: CompactionReason::Threshold,
        },
        compaction_end(CompactionReason::Threshold, "s", Some(true)),
        Event::SummaryRetryScheduled {
            attempt: 1,
            max_attempts: 3,
            delay: Duration::ZERO,
            error: "e".into(),
        },
        Event::SummaryRetryStart(SummaryPurpose::Branch),
        Event::SummaryRetryFinished,
        Event::EntryAppended(Arc::new(json!({"type":"custom"}))),
        Event::QueueUpdate {
            steering: Vec::new(),
            follow_up: Vec::new(),
        },
        Event::ThinkingLevelChanged(ThinkingLevel::High),
        Event::SessionInfoChanged(None),
        Event::Fault {
            source: "s".into(),
            during: "d".into(),
            error: "e".into(),
        },
        Event::Settled { aborted: false },
    ]
}
