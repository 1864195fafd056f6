//! Lines in and lines out: torn, huge, senseless, and read by someone slow.

#![allow(clippy::expect_used, reason = "a test")]

use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use pinion_testkit::fault::pipe::{Reader, Reading, write_torn};
use pinion_testkit::fault::proc::peak_resident_bytes;
use pinion_testkit::{Exit, Stage};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_pinion");
const PATIENCE: Duration = Duration::from_secs(60);

/// A process whose output is read by `manner`.
struct Piped {
    child: Child,
    stdin: Option<ChildStdin>,
    reader: Reader,
}

fn piped(stage: &Stage, args: &[&str], manner: Reading) -> Piped {
    let mut child = stage
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program");
    let stdin = child.stdin.take();
    let reader = Reader::start(child.stdout.take().expect("a pipe"), manner);
    Piped {
        child,
        stdin,
        reader,
    }
}

impl Piped {
    fn write(&mut self, bytes: &[u8]) {
        self.stdin
            .as_mut()
            .expect("open")
            .write_all(bytes)
            .expect("a write");
    }

    fn send(&mut self, value: &Value) {
        self.write(format!("{value}\n").as_bytes());
    }

    /// Ends the input and gives back all lines, each of which must be JSON.
    fn finish(mut self) -> Vec<Value> {
        self.stdin = None;
        let bytes = self.reader.finish(PATIENCE);
        let status = self.child.wait().expect("a child");
        assert_eq!(Exit::of(status), Exit::Code(0));
        assert_eq!(bytes.last(), Some(&b'\n'), "the last line is whole");
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).expect("a line of JSON"))
            .collect()
    }
}

fn responses(lines: &[Value]) -> Vec<&Value> {
    lines
        .iter()
        .filter(|line| line["type"] == "response")
        .collect()
}

#[test]
fn input_may_be_torn_at_any_byte() {
    let stage = Stage::new(BINARY, json!({}));
    for size in [1, 2, 3, 7] {
        let mut process = piped(&stage, &["--no-session"], Reading::Steady);
        let input =
            "{\"id\":\"grüße 🦀\",\"type\":\"get_state\"}\r\n{\"id\":2,\"type\":\"abort\"}\n";
        let stdin = process.stdin.as_mut().expect("open");
        write_torn(stdin, input.as_bytes(), size, Duration::from_micros(200)).expect("a write");
        let lines = process.finish();
        assert_eq!(lines.len(), 2, "pieces of {size}: {lines:?}");
        assert_eq!(lines[0]["id"], "grüße 🦀");
        assert_eq!(lines[1]["id"], 2);
    }
}

#[test]
fn the_last_line_needs_no_end() {
    let stage = Stage::new(BINARY, json!({}));
    let mut process = piped(&stage, &["--no-session"], Reading::Steady);
    process.write(br#"{"id":1,"type":"get_state"}"#);
    assert_eq!(process.finish()[0]["id"], 1);
}

#[test]
fn long_lines_are_read_and_too_long_ones_cost_one_error() {
    let stage = Stage::new(BINARY, json!({}));
    let mut process = piped(&stage, &["--no-session"], Reading::Steady);
    let mut line = |id: &str, megabytes: usize| {
        let filler = "x".repeat(megabytes << 20);
        process.send(&json!({"id": id, "type": "get_state", "ignored": filler}));
    };
    line("long", 16);
    line("too long", 65);
    line("short", 0);
    let lines = process.finish();
    assert_eq!(lines.len(), 3, "one answer each");
    assert_eq!(lines[0]["id"], "long");
    assert_eq!(lines[0]["success"], true);
    assert_eq!(lines[1]["success"], false);
    assert_eq!(lines[2]["id"], "short");
    assert_eq!(lines[2]["success"], true);
}

#[test]
fn a_long_prompt_reaches_the_model_whole() {
    let stage = Stage::new(BINARY, json!({"turns": [{"steps": ["Read."]}]}));
    let mut process = stage.start(&["--no-session"]);
    let text = "grüße 🦀 ".repeat(300_000);
    process.ask(json!({"type": "prompt", "message": text}));
    process.expect(0, &json!({"type": "agent_end"}));
    let body = stage.server.requests()[0]["body"].to_string();
    assert!(body.contains(&text));
}

#[test]
fn senseless_lines_are_answered_one_by_one_and_the_session_lives() {
    let stage = Stage::new(BINARY, json!({}));
    let mut process = piped(&stage, &["--no-session"], Reading::Steady);
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let deep_object = format!("{}1{}", "{\"a\":".repeat(20_000), "}".repeat(20_000));
    let senseless: Vec<Vec<u8>> = vec![
        b"\xff\xfe\xfd".to_vec(),
        b"{\"type\":\"get_state\",\"id\":\"\xc3\"}".to_vec(),
        b"\0\0\0".to_vec(),
        b"{".to_vec(),
        b"}".to_vec(),
        b"\"".to_vec(),
        b"null".to_vec(),
        b"1e999999".to_vec(),
        b"{\"type\":\"get_state\",\"id\":1e400}".to_vec(),
        b"{\"type\":null}".to_vec(),
        b"{\"type\":{}}".to_vec(),
        b"{\"type\":\"prompt\",\"message\":{}}".to_vec(),
        b"{\"type\":\"prompt\",\"message\":\"x\",\"images\":7}".to_vec(),
        b"{\"type\":\"set_model\",\"provider\":[],\"modelId\":{}}".to_vec(),
        b"{\"type\":\"\\ud800\"}".to_vec(),
        b"[{\"type\":\"get_state\"}]".to_vec(),
        b"\xef\xbb\xbf{\"type\":\"get_state\"}".to_vec(),
        deep.into_bytes(),
        deep_object.into_bytes(),
    ];
    let count = senseless.len();
    for line in senseless {
        process.write(&line);
        process.write(b"\n");
    }
    process.send(&json!({"id": "alive", "type": "get_state"}));
    let lines = process.finish();
    let answers = responses(&lines);
    assert_eq!(answers.len(), count + 1, "{answers:#?}");
    assert_eq!(
        answers
            .iter()
            .filter(|a| a["id"] == "alive" && a["success"] == true)
            .count(),
        1
    );
}

fn many_deltas(count: usize) -> Value {
    json!({"flush": "block", "turns": [{"steps": [{"text": {"delta": "word{i} ", "count": count}}]}]})
}

#[test]
fn a_reader_that_stops_costs_no_memory_and_loses_no_answer() {
    let stage = Stage::new(BINARY, many_deltas(4000));
    let mut process = piped(&stage, &["--no-session"], Reading::StopAfter(2000));
    process.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    assert!(stage.server.wait_for_requests(1, PATIENCE));
    for id in 0..50 {
        process.send(&json!({"id": id, "type": "get_state"}));
    }
    // Time for a program that does not care to fill its memory: all partial messages are 70 MB.
    std::thread::sleep(Duration::from_secs(2));
    let peak = peak_resident_bytes(process.child.id());
    assert!(peak < 64 << 20, "{peak} bytes");
    process.reader.go_on();
    let lines = process.finish();
    let mut answered: Vec<i64> = responses(&lines)
        .iter()
        .filter_map(|r| r["id"].as_i64())
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, (0..50).collect::<Vec<i64>>());
    whole_answer(&lines, 4000);
}

#[test]
fn a_slow_reader_gets_everything_that_matters() {
    let stage = Stage::new(BINARY, many_deltas(1000));
    let mut process = piped(&stage, &["--no-session"], Reading::Slow(200_000));
    process.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    assert!(stage.server.wait_for_requests(1, PATIENCE));
    let lines = process.finish();
    assert_eq!(responses(&lines).len(), 1);
    whole_answer(&lines, 1000);
}

/// Deltas may be merged, but together they are the answer, and the end is told once.
fn whole_answer(lines: &[Value], count: usize) {
    let expected: String = (0..count).map(|i| format!("word{i} ")).collect();
    let deltas: String = lines
        .iter()
        .map(|line| &line["assistantMessageEvent"])
        .filter(|event| event["type"] == "text_delta")
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert!(deltas == expected, "the deltas are the answer");
    let ends: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "agent_end")
        .collect();
    assert_eq!(ends.len(), 1);
    assert!(ends[0]["messages"][1]["content"][0]["text"] == expected);
}

#[test]
fn a_child_cannot_write_into_the_protocol() {
    let stage = Stage::new(BINARY, json!({}));
    let mut process = stage.start(&["--no-session"]);
    let pid = process.id();
    let command = format!("echo torn > /proc/{pid}/fd/1; echo torn >&2; echo kept");
    let answer = process.ask(json!({"type": "bash", "command": command}));
    assert_eq!(answer["data"]["exitCode"], 0, "{answer}");
    process.ask(json!({"type": "get_state"}));
    process.close_stdin();
    process.wait(PATIENCE);
    process.drain(PATIENCE);
    assert!(
        process
            .lines()
            .iter()
            .all(|line| line.value["type"] == "response")
    );
    assert!(process.stderr().contains("torn"));
}
