//! The recorded streams in `tests/pinocchio`, made again by the binary: the same frames in the same order with the same
//! fields.
//!
//! | recorded | engine there | engine here | compared |
//! |---|---|---|---|
//! | 01, 04 | chat completions | scripted server | everything; the tool of 04 is `bash`, because there is no `weather` |
//! | 03 | messages | scripted server | everything |
//! | 05, 06, 11, 12, 14, 15 | none that answers | built-in, scripted server, or none | everything |
//! | 02, 08, 09, 13, 18 | one that answers as a whole | chat completions, built-in | all but pieces and provider calls, which such an engine has not |
//! | 07, 10 | one that sends pieces only | built-in | all but provider calls |
//! | 16 | one that sends pieces only | built-in | all but provider calls |
//!
//! No model here answers as a whole or without a provider call, so the additional events of pinion's streams are
//! removed before they are compared (`normal::reduced`). An answer begins here before the provider has sent its id, so
//! a number stands for that id in the names of segments, and the call of 03 is named after the run. The crate
//! `pinion-pinocchio` makes those streams to the letter from events. 17 is not a stream but lines for codecs, which
//! `pinion-proto` reads and writes.

use pinion_testkit::frames::{self, Frames};
use pinion_testkit::{Exit, ModelServer};
use serde_json::{Value, json};

use crate::normal::{Silent, as_snapshots, normal, reduced};
use crate::rules;
use crate::stage::{Home, Talk, lines, of_request, said};
use crate::support::HANG;

fn recorded(name: &str, end: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/pinocchio");
    std::fs::read_to_string(format!("{folder}/{name}.{end}.jsonl")).unwrap()
}

fn vector(name: &str) -> Vec<Value> {
    lines(&recorded(name, "stdout"))
}

fn same(told: &[Value], expected: &[Value]) {
    let (told, expected) = (normal(told), normal(expected));
    for (at, (told, expected)) in told.iter().zip(&expected).enumerate() {
        assert_eq!(told, expected, "line {}", at + 1);
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
}

/// Compares the frames of a conversation: frames of different requests may be in any order, except the last one.
fn same_requests(told: &[Value], expected: &[Value]) {
    let (told, expected) = (normal(told), normal(expected));
    let mut ids: Vec<&str> = Vec::new();
    for line in &expected {
        let id = line["requestId"].as_str().unwrap_or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    for id in ids {
        let of = |lines: &[Value]| match id {
            "" => lines
                .iter()
                .filter(|line| line.get("requestId").is_none())
                .cloned()
                .collect(),
            id => of_request(lines, id),
        };
        assert_eq!(of(&told), of(&expected), "request {id:?}");
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    assert_eq!(told.last(), expected.last());
}

/// Returns a text in pieces that are sent one by one, each after the frame of the one before.
fn pieces(pieces: &[&str], first: usize) -> Value {
    let mut list = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        list.push(json!(piece));
        list.push(json!({"gate": format!("g{}", first + at)}));
    }
    Value::Array(list)
}

/// Opens gate n after n patches were printed, so that no two of them are merged.
fn pace(server: &ModelServer, process: &Frames, patches: usize) {
    for count in 1..=patches {
        let told = process.find(0, count, HANG, |line| {
            let name = line["uiEvent"]["name"].as_str();
            name.is_some_and(|name| name.ends_with("Patch"))
        });
        assert!(told.is_some(), "no patch {count}: {}", process.stderr());
        server.release(&format!("g{count}"));
    }
}

const APPEND: [&str; 2] = ["--patch-mode", "append"];

/// Runs a prompt once against a scripted server and returns its frames.
fn paced(api_type: &str, prompt: &str, turns: Value, patches: usize, more: &[&str]) -> Vec<Value> {
    let server = ModelServer::start(json!({"turns": turns}));
    let home = Home::of(&server, api_type);
    home.write(
        "greet.yaml",
        &json!({"name": "greet", "short": "Greets", "prompt": prompt}).to_string(),
    );
    let mut process = home.start(&[&["run-command", "greet.yaml", "--rpc"], more].concat());
    pace(&server, &process, patches);
    assert_eq!(
        process.wait(HANG),
        Some(Exit::Code(0)),
        "{}",
        process.stderr()
    );
    process.drain(HANG);
    let told: Vec<Value> = process.lines().into_iter().map(|line| line.value).collect();
    rules::check(&told).unwrap();
    told
}

/// Compares both patch modes with one recorded stream, which has appending patches.
fn paced_in_both_modes(
    api_type: &str,
    prompt: &str,
    turns: &Value,
    patches: usize,
    more: &[&str],
    expected: &[Value],
) {
    let append = [&APPEND, more].concat();
    same(
        &paced(api_type, prompt, turns.clone(), patches, &append),
        expected,
    );
    same(
        &paced(api_type, prompt, turns.clone(), patches, more),
        &as_snapshots(expected),
    );
}

#[test]
fn v01_plain_text() {
    let text = pieces(&["Red, ", "yellow ", "and blue."], 1);
    let turns = json!([{"steps": [{"text": text}], "usage": {"input": 14, "output": 7, "cache_read": 0, "cache_write": 0}}]);
    let expected = vector("01-oneshot-plain-text");
    paced_in_both_modes(
        "openai",
        "Name three primary colours.",
        &turns,
        3,
        &[],
        &expected,
    );
}

#[test]
fn v02_a_text_as_a_whole() {
    let home = Home::playing(&json!({"text": "hello there"}));
    let told = home.say("say hello", &APPEND);
    assert_eq!(told.exit, Exit::Code(0), "{}", told.stderr);
    let expected = vector("02-oneshot-nonstreaming-fallback");
    same(
        &reduced(&told.lines, Silent::Pieces),
        &reduced(&expected, Silent::Pieces),
    );
    // `--output jsonl` is another word for `--rpc`.
    let again = home.run(&[
        "run-command",
        "say.yaml",
        "--output",
        "jsonl",
        "--patch-mode",
        "append",
        "--what",
        "say hello",
    ]);
    same(&again.told().lines, &told.lines);
}

#[test]
fn v03_thinking() {
    let turns = json!([{"steps": [
        {"thinking": pieces(&["7 × 13", " = 91."], 1), "signature": "s"},
        {"text": pieces(&["No: ", "7 × 13 = 91."], 3)}],
        "usage": {"input": 11, "output": 29, "cache_read": 4, "cache_write": 0}}]);
    let ours = "claude:000003b1-0000-4000-8000-0000000003b1:provider-call:0";
    let expected = recorded("03-oneshot-thinking", "stdout").replace("claude:msg_B1", ours);
    let expected = lines(&expected);
    paced_in_both_modes("claude", "Is 91 prime?", &turns, 4, &[], &expected);
}

#[test]
fn v04_a_tool_call() {
    let arguments = r#"{"command":"printf '{\"celsius\":-3}'"}"#;
    let (first, second) = arguments.split_at(11);
    let nothing = json!({"input": 0, "output": 0, "cache_read": 0, "cache_write": 0});
    // The pieces of arguments have no gates of their own.
    let raw = |index: &str, piece: &str| {
        let chunk = json!({"id": "chatcmpl-000001", "object": "chat.completion.chunk", "created": 1, "model": "some-model",
            "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}, "finish_reason": null}]});
        [
            json!({"raw": format!("data: {chunk}\n\n")}),
            json!({"gate": index}),
        ]
    };
    let mut steps = vec![json!({"tool": "bash", "raw_args": "", "id": "call_1"})];
    steps.extend(raw("g1", first));
    steps.extend(raw("g2", second));
    let turns = json!([
        {"steps": steps, "usage": nothing},
        {"steps": [{"text": pieces(&["Minus three ", "degrees."], 3)}], "usage": nothing}]);
    let expected = recorded("04-oneshot-tool-call", "stdout")
        .replace("weather\"", "bash\"")
        .replace(
            r#"\"city\":\"Oslo\""#,
            &escaped(&arguments[1..arguments.len() - 1]),
        )
        .replace(r#"{\"city\":"#, &escaped(first))
        .replace(r#"\"Oslo\"}"#, &escaped(second))
        .replace(r#""offset":"8""#, r#""offset":"11""#);
    let prompt = "What is the weather in Oslo?";
    paced_in_both_modes(
        "openai",
        prompt,
        &turns,
        4,
        &["--tools", "bash"],
        &lines(&expected),
    );
}

/// Escapes a text as inside a JSON string.
fn escaped(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[test]
fn v05_a_failure_before_anything_was_said() {
    let told = Home::playing(&json!({"error": "runtime boom"})).say("say hello", &APPEND);
    assert_eq!(told.exit, Exit::Code(1));
    same(&told.lines, &vector("05-oneshot-runtime-failure"));
}

#[test]
fn v06_no_engine() {
    let home = Home::offline();
    let told = home.say("x", &["--ai-engine", "gpt-4o"]);
    assert_eq!(told.exit, Exit::Code(1));
    let words = told.lines[2]["error"]["message"].as_str().unwrap();
    let reason = words.strip_prefix("failed to create engine: ").unwrap();
    let expected = recorded("06-oneshot-engine-init-failure", "stdout")
        .replace("engine: boom", &format!("engine: {}", escaped(reason)));
    same(&told.lines, &lines(&expected));
    assert!(told.stderr.contains(reason), "{}", told.stderr);
}

#[test]
fn v07_a_failure_in_the_middle() {
    let home = Home::playing(&json!([{"text": "Once upon"}, {"error": "stream exploded"}]));
    let told = home.say("Tell a story.", &APPEND);
    assert_eq!(told.exit, Exit::Code(1));
    let expected = vector("07-oneshot-failure-after-partial-text");
    let calls = Silent::ProviderCalls;
    same(&reduced(&told.lines, calls), &reduced(&expected, calls));
}

/// Runs a conversation whose requests are sent one after the other, each when the one before is done.
fn in_turn(mut talk: Talk, name: &str) -> (Vec<Value>, Exit) {
    for request in recorded(name, "stdin").lines() {
        let from = talk.process.line_count();
        talk.process.send_text(request);
        let answered = talk.process.find(from, 1, HANG, |line| {
            line.get("done").is_some() || line["error"]["code"] == "invalid_request_json"
        });
        assert!(answered.is_some(), "{request}: {}", talk.process.stderr());
    }
    let exit = talk.finish();
    (talk.lines(), exit)
}

/// Starts a server that answers with the number of user messages, as the engine of the recorded conversations does.
fn counting(counts: &[usize]) -> ModelServer {
    let turns: Vec<Value> = counts
        .iter()
        .map(|count| json!({"steps": [format!("users={count}")]}))
        .collect();
    ModelServer::start(json!({"turns": turns}))
}

/// Returns the number of user messages in each request.
fn users(server: &ModelServer) -> Vec<usize> {
    let count = |request: &Value| {
        said(request)
            .iter()
            .filter(|line| line.starts_with("user: "))
            .count()
    };
    server.requests().iter().map(count).collect()
}

fn conversation(name: &str, counts: &[usize]) {
    let server = counting(counts);
    let (told, exit) = in_turn(Home::of(&server, "openai").talk(&APPEND), name);
    assert_eq!(exit, Exit::Code(0), "{name}");
    assert_eq!(users(&server), counts, "{name}");
    let pieces = Silent::Pieces;
    same_requests(&reduced(&told, pieces), &reduced(&vector(name), pieces));
}

#[test]
fn v08_several_prompts() {
    conversation("08-stdin-multi-turn", &[2, 3]);
}

#[test]
fn v09_another_session() {
    conversation("09-stdin-session-mismatch", &[2]);
}

#[test]
fn v13_ids_left_out_and_the_end_of_input() {
    conversation("13-stdin-defaults-and-eof", &[2]);
}

#[test]
fn v18_the_session_left_out_later() {
    conversation("18-stdin-omitted-session-after-binding", &[2]);
}

#[test]
fn v10_busy_then_stopped() {
    let name = "10-stdin-busy-cancel-shutdown";
    let scenario = json!([{"text": "1 2 3"}, {"stall": 600_000}]);
    let mut talk = Home::playing(&scenario).talk(&APPEND);
    let requests = recorded(name, "stdin");
    let mut requests = requests.lines();
    let mut send = |talk: &mut Talk| talk.process.send_text(requests.next().unwrap());
    send(&mut talk);
    talk.event("run", "ChatTextPatch");
    send(&mut talk);
    assert_eq!(talk.done("busy"), "failed");
    send(&mut talk);
    send(&mut talk);
    assert_eq!(talk.end(), Exit::Code(0));
    let calls = Silent::ProviderCalls;
    same_requests(
        &reduced(&talk.lines(), calls),
        &reduced(&vector(name), calls),
    );
}

#[test]
fn v11_stopped_before_anything_was_said() {
    let name = "11-stdin-cancel-without-text";
    let server = ModelServer::start(json!({"turns": [{"pre_gate": "never"}]}));
    let mut talk = Home::of(&server, "openai").talk(&APPEND);
    let requests = recorded(name, "stdin");
    let mut requests = requests.lines();
    let mut send = |talk: &mut Talk| talk.process.send_text(requests.next().unwrap());
    send(&mut talk);
    talk.event("run", "ChatRunStarted");
    assert!(server.wait_for_requests(1, HANG));
    send(&mut talk);
    assert_eq!(talk.done("cancel"), "ok");
    assert_eq!(talk.done("run"), "stopped");
    send(&mut talk);
    assert_eq!(talk.done("again"), "ok");
    send(&mut talk);
    assert_eq!(talk.end(), Exit::Code(0));
    same_requests(&talk.lines(), &vector(name));
}

#[test]
fn v12_requests_that_are_none() {
    let name = "12-stdin-request-local-errors";
    let (told, exit) = in_turn(Home::offline().talk(&[]), name);
    assert_eq!(exit, Exit::Code(0));
    let words = told[1]["error"]["message"].as_str().unwrap().to_owned();
    let mut expected = vector(name);
    // The words of a JSON parser may differ.
    expected[1]["error"]["message"] = json!(words);
    expected[1]["error"]["detail"] = json!(words);
    same(&told, &expected);
}

#[test]
fn v14_a_failure_in_a_conversation() {
    let name = "14-stdin-run-failure";
    let home = Home::playing(&json!({"error": "runtime boom"}));
    let (told, exit) = in_turn(home.talk(&APPEND), name);
    assert_eq!(exit, Exit::Code(0));
    same(&told, &vector(name));
}

#[test]
fn v15_a_line_that_is_too_long() {
    let name = "15-stdin-oversize-line";
    let mut talk = Home::offline().talk(&[]);
    talk.process.send_text(recorded(name, "stdin").trim_end());
    talk.done("a");
    talk.process.send_bytes(&vec![b'x'; 10_485_760]);
    talk.process.send_bytes(b"\n");
    assert_eq!(talk.end(), Exit::Code(1));
    same(&talk.lines(), &vector(name));
}

#[test]
fn v16_frames_in_a_file_beside_the_text() {
    let home = Home::playing(&json!([{"think": "thinking"}, {"text": "streamed"}]));
    let ran = home.run(&[
        "run-command",
        "say.yaml",
        "--what",
        "say hello",
        "--debug-events-jsonl",
        "out/debug.jsonl",
        "--patch-mode",
        "append",
    ]);
    let printed = (ran.exit, ran.stdout.as_str());
    assert_eq!(printed, (Exit::Code(0), "streamed\n"), "{}", ran.stderr);
    let told = home.read("out/debug.jsonl");
    frames::check(told.as_bytes());
    let told = lines(&told);
    rules::check(&told).unwrap();
    // The built-in model thinks; it makes no summaries.
    let expected = recorded("16-debug-events-file-text-mode", "stdout")
        .replace(r#""source":"summary""#, r#""source":"thinking""#);
    let calls = Silent::ProviderCalls;
    same(&reduced(&told, calls), &reduced(&lines(&expected), calls));
}
