//! The recorded streams in `tests/pinocchio`, reproduced from the engine's events.

use pinion_agent::Event;
use pinion_jsonl::Coalesce;
use pinion_pinocchio::{
    Activity, Binding, Control, DoneStatus, ErrorCode, LINE_TOO_LONG, Refusal, RequestKind, RunEnd,
    RunStart, Surface, Terminal, Text, decode,
};
use serde_json::{Value, json};

use crate::stage::{self, Stage};

fn vector(name: &str) -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/pinocchio");
    let text = std::fs::read_to_string(format!("{folder}/{name}.stdout.jsonl")).unwrap();
    stage::lines(&text)
}

fn requests(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/pinocchio");
    std::fs::read_to_string(format!("{folder}/{name}.stdin.jsonl")).unwrap()
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the ids of the runs of a stream, in order.
fn runs(expected: &[Value]) -> Vec<RunStart> {
    let payloads = || expected.iter().map(|line| &line["uiEvent"]["payload"]);
    let named = |name: &'static str| {
        move |payload: &&Value| text_of(&payload["@type"]).ends_with(&format!(".{name}"))
    };
    // All engine events of a stream belong to one run.
    let engine = payloads()
        .find(|payload| {
            let run = text_of(&payload["correlation"]["runId"]);
            !run.is_empty() && !run.starts_with("chat-msg-")
        })
        .map_or(Value::Null, |payload| payload["correlation"].clone());
    payloads()
        .filter(named("ChatRunStarted"))
        .map(|started| RunStart {
            session_id: Text::new(text_of(&started["correlation"]["sessionId"])),
            root: Text::new(text_of(&started["messageId"])),
            inference_id: Text::new(text_of(&engine["runId"])),
            turn_id: Text::new(text_of(&engine["turnId"])),
            prompt: Text::new(text_of(&started["prompt"])),
        })
        .collect()
}

fn assert_same(outs: Stage, expected: &[Value]) {
    let printed = stage::printed(outs.outs, stage::append(), Coalesce::Never);
    let printed = stage::lines(&printed);
    for (at, (printed, expected)) in printed.iter().zip(expected).enumerate() {
        assert_eq!(printed, expected, "line {}", at + 1);
    }
    assert_eq!(printed.len(), expected.len());
}

/// Checks a stream of one run: `play` provides the events of the engine.
fn one_shot(name: &str, end: RunEnd, play: impl FnOnce(&mut Stage)) {
    let expected = vector(name);
    let start = runs(&expected).remove(0);
    let session = start.session_id.to_string();
    let mut stage = Stage::new();
    stage.hello(&session, Surface::OneShot);
    stage.control(&session, "", Control::Snapshot);
    stage.begin(start, "");
    play(&mut stage);
    stage.end(end, Terminal::Yes);
    assert_same(stage, &expected);
}

fn answer(api: &str, response: &str, content: Value, stop: &str) -> Value {
    json!({"role":"assistant","content":content,"api":api,"provider":"openai","model":"m",
        "responseId":response,"stopReason":stop})
}

#[test]
fn plain_text() {
    let text = "Red, yellow and blue.";
    let mut answer = answer(
        "openai-completions",
        "chatcmpl-A1",
        json!([{"type":"text","text":text}]),
        "stop",
    );
    answer["usage"] = json!({"input":14,"output":7});
    one_shot("01-oneshot-plain-text", RunEnd::Finished, |stage| {
        stage.answer_begins(&answer);
        stage.block(0, &answer, &["Red, ", "yellow ", "and blue."]);
        stage.wait(412);
        stage.block_ends(0, &answer);
        stage.answer_ends(&answer);
    });
}

#[test]
fn an_answer_as_a_whole() {
    let answer = answer(
        "",
        "",
        json!([{"type":"text","text":"hello there"}]),
        "stop",
    );
    let name = "02-oneshot-nonstreaming-fallback";
    one_shot(name, RunEnd::Finished, |stage| {
        stage.answer_begins(&answer);
        stage.answer_ends(&answer);
    });
}

#[test]
fn thinking() {
    let content = json!([{"type":"thinking","thinking":"7 × 13 = 91."},
        {"type":"text","text":"No: 7 × 13 = 91."}]);
    let mut answer = answer("anthropic-messages", "msg_B1", content, "stop");
    answer["usage"] = json!({"input":11,"output":29,"cacheRead":4});
    one_shot("03-oneshot-thinking", RunEnd::Finished, |stage| {
        stage.answer_begins(&answer);
        stage.block(0, &answer, &["7 × 13", " = 91."]);
        stage.block_ends(0, &answer);
        stage.block(1, &answer, &["No: ", "7 × 13 = 91."]);
        stage.block_ends(1, &answer);
        stage.wait(903);
        stage.answer_ends(&answer);
    });
}

#[test]
fn a_tool_call() {
    let api = "openai-completions";
    let arguments = json!({"city":"Oslo"});
    let call = json!([{"type":"toolCall","id":"call_1","name":"weather","arguments":arguments}]);
    let call = answer(api, "chatcmpl-C1", call, "toolUse");
    let text = json!([{"type":"text","text":"Minus three degrees."}]);
    let text = answer(api, "chatcmpl-C2", text, "stop");
    one_shot("04-oneshot-tool-call", RunEnd::Finished, |stage| {
        stage.answer_begins(&call);
        stage.block(0, &call, &["{\"city\":", "\"Oslo\"}"]);
        stage.wait(240);
        stage.block_ends(0, &call);
        stage.answer_ends(&call);
        stage.tool("call_1", "weather", arguments, "{\"celsius\":-3}");
        stage.answer_begins(&text);
        stage.block(0, &text, &["Minus three ", "degrees."]);
        stage.wait(310);
        stage.block_ends(0, &text);
        stage.answer_ends(&text);
    });
}

#[test]
fn a_failure_before_anything() {
    let end = RunEnd::Failed("runtime boom".into());
    one_shot("05-oneshot-runtime-failure", end, |stage| {
        let mut failed = answer("openai-completions", "", json!([]), "error");
        failed["errorMessage"] = json!("runtime boom");
        stage.event(Event::MessageStart(stage::message(&failed)));
        stage.answer_ends(&failed);
    });
}

#[test]
fn an_engine_that_cannot_be_made() {
    let expected = vector("06-oneshot-engine-init-failure");
    let session = text_of(&expected[0]["sessionId"]);
    let mut stage = Stage::new();
    stage.hello(session, Surface::OneShot);
    stage.control(session, "", Control::Snapshot);
    let error = Control::Error {
        code: ErrorCode::EngineInitFailed,
        message: "failed to create engine: boom".into(),
        terminal: Terminal::Yes,
    };
    stage.control(session, "", error);
    stage.control(session, "", Control::Done(DoneStatus::Failed));
    assert_same(stage, &expected);
}

#[test]
fn a_failure_after_some_text() {
    let content = json!([{"type":"text","text":"Once upon"}]);
    let mut broken = answer("", "", content, "error");
    broken["errorMessage"] = json!("stream exploded");
    let end = RunEnd::Failed("stream exploded".into());
    one_shot("07-oneshot-failure-after-partial-text", end, |stage| {
        stage.answer_begins(&broken);
        stage.block(0, &broken, &["Once upon"]);
        stage.answer_ends(&broken);
    });
}

#[test]
fn a_file_beside_the_text() {
    let expected = vector("16-debug-events-file-text-mode");
    let mut start = runs(&expected).remove(0);
    start.turn_id = Text::default();
    let session = start.session_id.to_string();
    // The recorded engine named a session of its own; pinion has none.
    let text = serde_json::to_string(&expected).unwrap();
    let text = text.replace(
        r#""sessionId":"sid""#,
        &format!(r#""sessionId":"{session}""#),
    );
    let expected: Vec<Value> = serde_json::from_str(&text).unwrap();
    let content = json!([{"type":"thinking","thinking":"thinking"},
        {"type":"text","text":"streamed"}]);
    let answer = answer("", "", content, "stop");
    let mut stage = Stage::new();
    stage.hello(&session, Surface::DebugFile);
    stage.control(&session, "", Control::Snapshot);
    stage.begin(start, "");
    stage.answer_begins(&answer);
    stage.block(0, &answer, &["thinking"]);
    stage.block_ends(0, &answer);
    stage.block(1, &answer, &["streamed"]);
    stage.block_ends(1, &answer);
    stage.answer_ends(&answer);
    stage.end(RunEnd::Finished, Terminal::Yes);
    assert_same(stage, &expected);
}

/// The model's answer to a submit.
enum Reply {
    Whole(&'static str),
    /// The model sends this and then nothing more.
    Hangs(Option<&'static str>),
    Fails(&'static str),
}

/// Checks a stream with requests on standard input.
fn stdin(name: &str, mut replies: Vec<Reply>, too_long: bool) {
    let mut expected = vector(name);
    let mut starts = runs(&expected).into_iter();
    let default = text_of(&expected[0]["sessionId"]).to_owned();
    let mut binding = Binding::new(default.clone());
    let mut stage = Stage::new();
    stage.hello(&default, Surface::Stdin);
    let mut active = Activity::Idle;
    replies.reverse();
    for line in requests(name).lines() {
        let request = match decode(line.as_bytes()) {
            Ok(Some(request)) => request,
            Ok(None) => continue,
            Err(refusal) => {
                rename(&mut expected, "error", &refusal.message);
                let address = binding.default_address();
                stage.outs.extend(refusal.frames(&address));
                continue;
            }
        };
        let address = match binding.check(&request, active) {
            Ok(address) => address,
            Err((address, refusal)) => {
                stage.outs.extend(refusal.frames(&address));
                continue;
            }
        };
        if !line.contains("requestId") {
            rename_request(&mut expected, &address.request_id);
        }
        let (session, request_id) = (&*address.session_id, &*address.request_id);
        match request.kind {
            RequestKind::Submit(_) => {
                stage.begin(starts.next().unwrap(), request_id);
                match replies.pop().unwrap() {
                    Reply::Whole(text) => {
                        let whole = answer("", "", json!([{"type":"text","text":text}]), "stop");
                        stage.answer_begins(&whole);
                        stage.answer_ends(&whole);
                        stage.end(RunEnd::Finished, Terminal::No);
                    }
                    Reply::Fails(error) => stage.end(RunEnd::Failed(error.into()), Terminal::No),
                    Reply::Hangs(text) => {
                        active = Activity::Busy;
                        if let Some(text) = text {
                            let content = json!([{"type":"text","text":text}]);
                            let partial = answer("", "", content, "aborted");
                            stage.answer_begins(&partial);
                            stage.block(0, &partial, &[text]);
                        }
                    }
                }
            }
            RequestKind::Cancel => {
                stage.control(session, request_id, Control::Done(DoneStatus::Ok));
                stage.end(RunEnd::Stopped, Terminal::No);
                active = Activity::Idle;
            }
            RequestKind::Snapshot => {
                stage.control(session, request_id, Control::Snapshot);
                stage.control(session, request_id, Control::Done(DoneStatus::Ok));
            }
            RequestKind::Shutdown => {
                stage.control(session, request_id, Control::Done(DoneStatus::Shutdown));
            }
            RequestKind::Unknown(name) => {
                let refused = Refusal::unknown_request(&name).frames(&address);
                stage.outs.extend(refused);
            }
            RequestKind::Empty => {
                let refused = Refusal::empty_request().frames(&address);
                stage.outs.extend(refused);
            }
        }
    }
    if too_long {
        let error = Control::Error {
            code: ErrorCode::StdinReadFailed,
            message: LINE_TOO_LONG.into(),
            terminal: Terminal::Yes,
        };
        stage.control(&default, "", error);
        stage.control(&default, "", Control::Done(DoneStatus::Failed));
    }
    assert_same(stage, &expected);
}

/// Replaces the message of a malformed line, which differs from the recorded one.
fn rename(expected: &mut [Value], frame: &str, message: &str) {
    let line = expected
        .iter_mut()
        .find(|line| line[frame]["code"] == "invalid_request_json")
        .unwrap();
    line[frame]["message"] = json!(message);
    line[frame]["detail"] = json!(message);
}

/// Replaces a generated id, which differs each time.
fn rename_request(expected: &mut [Value], id: &str) {
    let is_vectors = |line: &&Value| text_of(&line["requestId"]).contains("-0000-4000-8000-");
    let invented = expected.iter().find(is_vectors).unwrap()["requestId"].clone();
    for line in expected.iter_mut() {
        if line["requestId"] == invented {
            line["requestId"] = json!(id);
        }
    }
}

#[test]
fn several_turns() {
    let replies = vec![Reply::Whole("users=2"), Reply::Whole("users=3")];
    stdin("08-stdin-multi-turn", replies, false);
}

#[test]
fn another_session() {
    let name = "09-stdin-session-mismatch";
    stdin(name, vec![Reply::Whole("users=2")], false);
}

#[test]
fn busy_and_cancelled() {
    let name = "10-stdin-busy-cancel-shutdown";
    stdin(name, vec![Reply::Hangs(Some("1 2 3"))], false);
}

#[test]
fn cancelled_before_any_text() {
    let name = "11-stdin-cancel-without-text";
    stdin(name, vec![Reply::Hangs(None)], false);
}

#[test]
fn requests_that_are_refused() {
    stdin("12-stdin-request-local-errors", Vec::new(), false);
}

#[test]
fn nothing_named() {
    let name = "13-stdin-defaults-and-eof";
    stdin(name, vec![Reply::Whole("users=2")], false);
}

#[test]
fn a_run_that_fails() {
    let name = "14-stdin-run-failure";
    stdin(name, vec![Reply::Fails("runtime boom")], false);
}

#[test]
fn a_line_that_is_too_long() {
    stdin("15-stdin-oversize-line", Vec::new(), true);
}

#[test]
fn the_session_may_be_left_out_later() {
    let name = "18-stdin-omitted-session-after-binding";
    stdin(name, vec![Reply::Whole("users=2")], false);
}
