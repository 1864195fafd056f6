//! The order of events, for every kind of engine.

use std::sync::Arc;
use std::time::Duration;

use pinion_agent::{Event, Listener};
use pinion_jsonl::{Coalesce, Queue};
use pinion_pinocchio::{
    ActiveRun, ChatEvent, ChatListener, Closing, EventFrame, Frames, Out, PatchMode, RunEnd,
    Terminal,
};
use serde_json::{Value, json};

use crate::client::Client;
use crate::properties::start;
use crate::stage::{self, Stage};

fn answer(api: &str, content: Value, stop: &str) -> Value {
    json!({"role":"assistant","content":content,"api":api,"provider":"openai","model":"m",
        "usage":{"input":1,"output":1},"stopReason":stop})
}

/// Returns the payloads between the first two events of a run and its end.
fn events_between(play: impl FnOnce(&mut Stage), end: RunEnd) -> Vec<Value> {
    let mut stage = Stage::new();
    stage.begin(start(0), "r");
    play(&mut stage);
    stage.end(end, Terminal::No);
    let printed = stage::printed(stage.outs, stage::append(), Coalesce::Never);
    let lines = stage::lines(&printed);
    Client::of(&lines);
    let events = lines.iter().filter_map(|line| line.get("uiEvent"));
    events.skip(2).cloned().collect()
}

/// Returns the names of events in a short form.
fn names(events: &[Value]) -> Vec<String> {
    let name = |event: &Value| event["name"].as_str().unwrap().replace("Chat", "");
    let name = |event| name(event).replace("ProviderCall", "Call");
    events.iter().map(name).collect()
}

fn thinks_and_answers(api: &str) -> Vec<Value> {
    let content = json!([{"type":"thinking","thinking":"hm"},{"type":"text","text":"yes"}]);
    let answer = answer(api, content, "stop");
    // Completions end all blocks at the end of the answer.
    let late = api == "openai-completions";
    let play = |stage: &mut Stage| {
        stage.answer_begins(&answer);
        stage.block(0, &answer, &["hm"]);
        if !late {
            stage.block_ends(0, &answer);
        }
        stage.block(1, &answer, &["yes"]);
        if late {
            stage.block_ends(0, &answer);
        }
        stage.block_ends(1, &answer);
        stage.answer_ends(&answer);
    };
    events_between(play, RunEnd::Finished)
}

#[test]
fn thinking_and_text() {
    let at_once = [
        "CallStarted",
        "ReasoningSegmentStarted",
        "ReasoningPatch",
        "ReasoningSegmentFinished",
        "TextSegmentStarted",
        "TextPatch",
        "TextSegmentFinished",
    ];
    let completions = [
        "CallStarted",
        "ReasoningSegmentStarted",
        "ReasoningPatch",
        "TextSegmentStarted",
        "TextPatch",
        "CallMetadataUpdated",
        "CallMetadataUpdated",
        "ReasoningSegmentFinished",
        "TextSegmentFinished",
        "CallFinished",
        "RunFinished",
    ];
    assert_eq!(
        names(&thinks_and_answers("openai-completions")),
        completions
    );
    let claude = [
        &at_once[..],
        &["CallMetadataUpdated", "CallFinished", "RunFinished"],
    ]
    .concat();
    assert_eq!(names(&thinks_and_answers("anthropic-messages")), claude);
    let others = [&at_once[..], &["CallFinished", "RunFinished"]].concat();
    for api in [
        "openai-responses",
        "google-vertex",
        "offline",
        "of-an-extension",
    ] {
        assert_eq!(names(&thinks_and_answers(api)), others, "{api}");
    }
    let plain = [&at_once[1..], &["RunFinished"]].concat();
    assert_eq!(names(&thinks_and_answers("")), plain);
}

#[test]
fn sources_reasons_and_names() {
    for (api, source, reason, class, segment) in [
        (
            "openai-completions",
            "provider",
            "stop",
            Some("completed"),
            "openai-chat:response-1:choice:0:content",
        ),
        (
            "anthropic-messages",
            "thinking",
            "content_block_stop",
            None,
            "claude:claude:inference-0:provider-call:0:block:1:text",
        ),
        (
            "openai-responses",
            "summary",
            "completed",
            Some("completed"),
            "openai_responses:response-1:output:1",
        ),
        (
            "google-generative-ai",
            "provider",
            "stop",
            Some("completed"),
            "gemini:inference-0:provider-call:0:segment:1:text",
        ),
        (
            "offline",
            "thinking",
            "stop",
            Some("completed"),
            "offline:response-1:output:1",
        ),
    ] {
        let events = thinks_and_answers(api);
        let of = |name: &str| {
            let event = events.iter().find(|event| event["name"] == name);
            event.unwrap()["payload"].clone()
        };
        assert_eq!(of("ChatReasoningPatch")["source"], source);
        let text = of("ChatTextSegmentFinished");
        assert_eq!(text["finishReason"], reason);
        assert_eq!(text["correlation"]["segmentId"], segment);
        assert_eq!(text["messageId"], format!("chat-msg-0:text:{segment}"));
        let finished = of("ChatProviderCallFinished");
        assert_eq!(finished["finishClass"].as_str(), class, "{api}");
    }
}

fn call(api: &str) -> Value {
    let content = json!([
        {"type":"toolCall","id":"c1","name":"a","arguments":{"x":1}},
        {"type":"toolCall","id":"c2","name":"b","arguments":{}}]);
    answer(api, content, "toolUse")
}

#[test]
fn several_calls_are_requested_before_any_is_made() {
    let order = |api: &str| {
        let call = call(api);
        let play = |stage: &mut Stage| {
            stage.answer_begins(&call);
            for at in [0, 1] {
                stage.block(at, &call, &["{}"]);
                stage.block_ends(at, &call);
            }
            stage.answer_ends(&call);
            stage.tool("c1", "a", json!({"x":1}), "1");
            stage.tool("c2", "b", json!({}), "2");
        };
        names(&events_between(play, RunEnd::Finished))
    };
    let made = [
        "ToolExecutionStarted",
        "ToolResultReady",
        "ToolCallFinished",
        "ToolExecutionStarted",
        "ToolResultReady",
        "ToolCallFinished",
        "RunFinished",
    ];
    let begun = ["ToolCallStarted", "ToolArgumentsPatch"];
    let responses = [
        &["CallStarted"],
        &begun[..],
        &begun[..],
        &["ToolCallRequested", "ToolCallRequested", "CallFinished"],
        &made[..],
    ];
    assert_eq!(order("openai-responses"), responses.concat());
    let requested = ["ToolCallStarted", "ToolArgumentsPatch", "ToolCallRequested"];
    let claude = [
        &["CallStarted"],
        &requested[..],
        &requested[..],
        &["CallMetadataUpdated", "CallFinished"],
        &made[..],
    ];
    assert_eq!(order("anthropic-messages"), claude.concat());
}

fn half(api: &str, stage: &mut Stage, stop: &str) {
    let mut broken = answer(api, json!([{"type":"text","text":"half"}]), stop);
    broken["errorMessage"] = json!("broken");
    stage.answer_begins(&broken);
    stage.block(0, &broken, &["half"]);
    stage.answer_ends(&broken);
}

#[test]
fn a_broken_answer_ends_what_it_began() {
    let end = || RunEnd::Failed("broken".into());
    for (api, status) in [
        ("openai-completions", "finished"),
        ("anthropic-messages", "failed"),
        ("openai-responses", "failed"),
    ] {
        let events = events_between(|stage| half(api, stage, "error"), end());
        let expected = [
            "CallStarted",
            "TextSegmentStarted",
            "TextPatch",
            "TextSegmentFinished",
            "RunFailed",
            "CallFinished",
        ];
        assert_eq!(names(&events), expected);
        let text = &events[3]["payload"];
        assert_eq!(text["status"], status);
        assert_eq!(text["finishReason"], "error");
        assert_eq!(text["content"], "half");
        assert_eq!(events[5]["payload"]["stopReason"], "error");
        assert_eq!(events[5]["payload"]["finishClass"], "failed");
    }
}

#[test]
fn a_cancel_is_never_a_failure() {
    for stop in ["aborted", "error"] {
        let play = |stage: &mut Stage| half("openai-completions", stage, stop);
        let events = events_between(play, RunEnd::Stopped);
        assert_eq!(
            names(&events)[3..],
            ["TextSegmentFinished", "RunStopped", "CallFinished"]
        );
        assert_eq!(events[3]["payload"]["status"], "stopped");
        assert_eq!(events[4]["payload"]["error"], Value::Null);
        assert_eq!(events[5]["payload"]["stopReason"], "cancelled");
    }
}

#[test]
fn a_request_made_again_is_another_one() {
    let api = "openai-completions";
    let whole = answer(api, json!([{"type":"text","text":"whole"}]), "stop");
    let play = |stage: &mut Stage| {
        half(api, stage, "error");
        stage.event(Event::AgentEnd {
            messages: Arc::new([]),
            will_retry: true,
        });
        stage.event(Event::RetryStart {
            attempt: 1,
            max_attempts: 3,
            delay: Duration::ZERO,
            error: "broken".into(),
        });
        stage.answer_begins(&whole);
        stage.block(0, &whole, &["whole"]);
        stage.block_ends(0, &whole);
        stage.answer_ends(&whole);
    };
    let events = events_between(play, RunEnd::Finished);
    let begun = ["CallStarted", "TextSegmentStarted", "TextPatch"];
    let expected = [
        &begun[..],
        &["TextSegmentFinished", "CallFinished"],
        &begun[..],
        &["CallMetadataUpdated", "CallMetadataUpdated"],
        &["TextSegmentFinished", "CallFinished", "RunFinished"],
    ];
    assert_eq!(names(&events), expected.concat());
    let id = |at: usize| events[at]["payload"]["correlation"]["providerCallId"].clone();
    assert_eq!(id(0), "openai:inference-0:provider-call:0");
    assert_eq!(id(5), "openai:inference-0:provider-call:1");
    assert_ne!(
        events[1]["payload"]["messageId"],
        events[6]["payload"]["messageId"]
    );
}

#[test]
fn too_many_requests_are_warned_of() {
    let end = RunEnd::Failed("max iterations (20) reached".into());
    let events = events_between(|_| {}, end);
    assert_eq!(names(&events), ["TextSegmentFinished", "RunFailed"]);
    let warning = &events[0]["payload"];
    assert_eq!(warning["messageId"], "chat-msg-0:warning");
    assert_eq!(warning["role"], "warning");
    assert!(warning["content"].as_str().unwrap().contains("20"));
}

#[test]
fn a_blank_answer_leaves_nothing() {
    let blank = answer(
        "openai-responses",
        json!([{"type":"text","text":" \n"}]),
        "stop",
    );
    let play = |stage: &mut Stage| {
        stage.answer_begins(&blank);
        stage.answer_ends(&blank);
    };
    let events = events_between(play, RunEnd::Finished);
    assert_eq!(
        names(&events),
        ["CallStarted", "CallFinished", "RunFinished"]
    );
}

#[test]
fn a_run_that_is_dropped_ends_all_the_same() {
    let queue: Queue<Out> = Queue::new(Coalesce::Never);
    let listener = ChatListener::new(queue.clone(), PatchMode::Append);
    let closing = Closing::Request {
        terminal: Terminal::No,
    };
    let run = ActiveRun::begin(&queue, start(0), "r".into(), closing);
    let content = json!([{"type":"text","text":"half"}]);
    let mut beginning = answer("offline", content, "stop");
    beginning["content"] = json!([]);
    let block = stage::block(&json!({"type":"text","text":""}));
    for event in [
        Event::TurnStart,
        Event::MessageStart(stage::message(&beginning)),
        Event::BlockStart { index: 0, block },
        Event::BlockDelta {
            index: 0,
            delta: "half".into(),
        },
    ] {
        listener.notice(1, &event);
    }
    drop(run);
    queue.close();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let descriptor = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
    let front = pinion_pinocchio::Front::new(stage::append());
    let writer = pinion_jsonl::Writer::spawn(descriptor, front, queue).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
    writer.join();
    let client = Client::of(&stage::lines(&text));
    assert_eq!(client.done, ["failed"]);
    assert_eq!(client.errors, ["run_failed"]);
}

#[test]
fn isolated_lines_are_printed_as_they_were() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/pinocchio");
    let path = format!("{folder}/17-codec-samples.stdout.jsonl");
    let mut frames = Frames::new(PatchMode::Append);
    let mut printed = 0;
    for line in stage::lines(&std::fs::read_to_string(path).unwrap()) {
        let (frame, event) = match (line.get("uiEvent"), line.get("backendEvent")) {
            (Some(event), _) => (EventFrame::Ui, event),
            (_, Some(event)) => (EventFrame::Backend, event),
            _ => continue,
        };
        let name = event["name"].as_str().unwrap();
        let mut payload = event["payload"].clone();
        payload.as_object_mut().unwrap().remove("@type");
        // Only hosts create the compact form, and pinion's patches always name their stream.
        if matches!(name, "ChatTextDelta" | "ChatTextPatch") {
            continue;
        }
        let decoded = ChatEvent::decode(name, &payload.to_string()).unwrap();
        let mut again = Vec::new();
        decoded.append_payload(&mut again);
        let address = stage::address(line["sessionId"].as_str().unwrap(), "");
        let ordinal = event["ordinal"].as_str().unwrap().parse().unwrap();
        frames.event(&address, frame, ordinal, &decoded, &again, &mut |slices| {
            let bytes = slices.concat();
            assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), line);
            printed += 1;
        });
    }
    assert!(printed >= 5, "{printed}");
}
