//! Output for people and scripts.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use pinion_agent::Event;
use pinion_jsonl::{Coalesce, Queue, Writer};
use pinion_pinocchio::{Metadata, Out, RunEnd, Surface, Terminal, TextFormat, TextPrinter};
use serde_json::{Value, json};

use crate::properties::start;
use crate::stage::Stage;

fn printed(outs: Vec<Out>, format: TextFormat, metadata: Metadata) -> String {
    let queue = Queue::new(Coalesce::Never);
    for out in outs {
        queue.push(out);
    }
    queue.close();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let descriptor = File::from(OwnedFd::from(writer));
    let printer = TextPrinter::new(format, metadata);
    let writer = Writer::spawn(descriptor, printer, queue).unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    writer.join();
    text
}

/// A run that thinks, calls a tool and answers.
fn conversation(end: RunEnd) -> Vec<Out> {
    let answer = |content: Value, stop: &str| {
        json!({"role":"assistant","content":content,"api":"anthropic-messages","provider":"p",
            "model":"m","usage":{"input":3,"output":4},"stopReason":stop})
    };
    let arguments = json!({"city":"Oslo"});
    let call = answer(
        json!([{"type":"thinking","thinking":"Hm."},
            {"type":"toolCall","id":"c","name":"weather","arguments":arguments}]),
        "toolUse",
    );
    let text = answer(json!([{"type":"text","text":"It is\ncold."}]), "stop");
    let mut stage = Stage::new();
    stage.hello("s", Surface::OneShot);
    stage.begin(start(0), "");
    stage.answer_begins(&call);
    stage.block(0, &call, &["H", "m."]);
    stage.block_ends(0, &call);
    stage.block(1, &call, &["{\"city\":\"Oslo\"}"]);
    stage.block_ends(1, &call);
    stage.answer_ends(&call);
    stage.tool("c", "weather", arguments, "{\"celsius\":-3}");
    stage.event(Event::Fault {
        source: "x.ts".into(),
        during: "load".into(),
        error: "broken".into(),
    });
    stage.answer_begins(&text);
    stage.block(0, &text, &["It is\n", "cold."]);
    stage.wait(5);
    stage.block_ends(0, &text);
    stage.answer_ends(&text);
    stage.end(end, Terminal::Yes);
    stage.outs
}

#[test]
fn text_streams_and_everything_else_has_its_own_lines() {
    let outs = conversation(RunEnd::Failed("too bad".into()));
    let expected = "\
Hm.
id: c
name: weather
input: '{\"city\":\"Oslo\"}'
id: c
name: weather
result: '{\"celsius\":-3}'
status: success
[info] x.ts: broken
It is
cold.
[error] too bad
";
    assert_eq!(printed(outs, TextFormat::Text, Metadata::None), expected);
}

#[test]
fn metadata_follows_the_text() {
    let text = printed(
        conversation(RunEnd::Finished),
        TextFormat::Text,
        Metadata::Short,
    );
    let expected = "\
It is
cold.
Metadata:
    provider: p
    model: m
    stop_reason: content_block_stop
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn an_answer_as_a_whole_is_printed_once() {
    let whole = json!({"role":"assistant","content":[{"type":"text","text":"hello"}],
        "stopReason":"stop"});
    let mut stage = Stage::new();
    stage.begin(start(0), "");
    stage.answer_begins(&whole);
    stage.answer_ends(&whole);
    stage.end(RunEnd::Finished, Terminal::Yes);
    let text = printed(stage.outs, TextFormat::Text, Metadata::None);
    assert_eq!(text, "hello\n");
}

#[test]
fn thinking_that_ends_with_the_text_is_printed_once_and_apart_from_it() {
    let answer = json!({"role":"assistant","content":[{"type":"thinking","thinking":"3×4"},
        {"type":"text","text":"12."}],"api":"openai-completions","stopReason":"stop"});
    let mut stage = Stage::new();
    stage.begin(start(0), "");
    stage.answer_begins(&answer);
    stage.block(0, &answer, &["3×", "4"]);
    stage.block(1, &answer, &["12", "."]);
    stage.block_ends(0, &answer);
    stage.block_ends(1, &answer);
    stage.answer_ends(&answer);
    stage.end(RunEnd::Finished, Terminal::Yes);
    let text = printed(stage.outs, TextFormat::Text, Metadata::None);
    assert_eq!(text, "3×4\n12.\n");
}

#[test]
fn every_event_is_an_object() {
    let text = printed(
        conversation(RunEnd::Stopped),
        TextFormat::Json,
        Metadata::None,
    );
    let objects: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<&str> = objects
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    let expected = [
        "provider-call-started",
        "reasoning-segment-started",
        "reasoning-delta",
        "reasoning-delta",
        "reasoning-segment-finished",
        "tool-call-started",
        "tool-call-arguments-delta",
        "tool-call-requested",
        "provider-call-metadata-updated",
        "provider-call-finished",
        "tool-execution-started",
        "tool-result-ready",
        "tool-call-finished",
        "log",
        "provider-call-started",
        "text-segment-started",
        "text-delta",
        "text-delta",
        "text-segment-finished",
        "provider-call-metadata-updated",
        "provider-call-finished",
        "interrupt",
    ];
    assert_eq!(types, expected);
    assert_eq!(objects[4]["content"], "Hm.");
    let call = json!({"id":"c","name":"weather","input":"{\"city\":\"Oslo\"}"});
    assert_eq!(
        objects[7],
        json!({"type":"tool-call-requested","content":call})
    );
    assert_eq!(objects[21], json!({"type":"interrupt"}));
}

#[test]
fn metadata_is_short_or_full() {
    let find = |metadata| {
        let text = printed(conversation(RunEnd::Finished), TextFormat::Json, metadata);
        let objects = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut objects = objects.filter(|it: &Value| it["type"] == "text-segment-finished");
        objects.next().unwrap()
    };
    let short = find(Metadata::Short);
    assert_eq!(short["content"]["final"], "It is\ncold.");
    assert_eq!(short["content"]["meta"]["model"], "m");
    assert_eq!(short["content"]["meta"]["duration_ms"], 5);
    assert_eq!(short["metadata"]["session_id"], Value::Null);
    let full = find(Metadata::Full);
    assert_eq!(full["content"], "It is\ncold.");
    assert_eq!(full["metadata"]["session_id"], "s");
}

#[test]
fn yaml_documents_are_the_same_objects() {
    let json = printed(
        conversation(RunEnd::Finished),
        TextFormat::Json,
        Metadata::Full,
    );
    let yaml = printed(
        conversation(RunEnd::Finished),
        TextFormat::Yaml,
        Metadata::Full,
    );
    let documents: Vec<&str> = yaml.split_terminator("\n\n").collect();
    assert_eq!(documents.len(), json.lines().count());
    assert!(documents[0].starts_with("type: provider-call-started"));
}
