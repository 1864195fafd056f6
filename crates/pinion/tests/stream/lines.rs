//! Lines of the protocol: their content, their length, and their writers.

use std::process::Stdio;
use std::time::Duration;

use pinion_testkit::fault::pipe::write_torn;
use pinion_testkit::{Exit, ModelServer};
use serde_json::{Value, json};

use crate::support::{Client, Random, answers_by_id, args, offline_sandbox, pinion, script};

#[test]
fn s1_what_children_write_to_descriptor_1_does_not_reach_the_protocol() {
    let mut client = Client::offline();
    let pid = client.process.id();
    // To its own output, to its parent's, to the program's: by name and by inheritance.
    let command = format!(
        "echo mine; echo torn-a > /proc/$PPID/fd/1; printf torn-b > /proc/{pid}/fd/1; \
         echo torn-c > /proc/{pid}/fd/2; for fd in 3 4 5 6 7 8 9; do (echo torn-d >&$fd) 2>/dev/null; done; true"
    );
    let from = client.prompt(&script(&json!({"turns": [
        {"tool": "bash", "args": {"command": command}}, {"text": "still in order"}]})));
    let messages = client.wait_end(from);
    assert_eq!(
        messages[3]["content"][0]["text"], "still in order",
        "{messages:?}"
    );
    let answer = client
        .process
        .ask(json!({"type": "bash", "command": command}));
    assert_eq!(answer["success"], true, "{answer}");
    client.finish();
    for line in client.lines() {
        assert!(line.get("__unparsed").is_none(), "a torn record: {line}");
        // The words themselves appear in the commands; they must not be the output of another process.
        assert!(line["type"].is_string(), "{line}");
    }
    assert!(
        client.process.stderr().contains("torn-b"),
        "{}",
        client.process.stderr()
    );
}

#[test]
fn s2_only_a_line_feed_ends_a_line() {
    let odd = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\u{1c}g";
    let server = ModelServer::start(json!({"turns": [{"steps": [{"text": odd, "chunk": 1}]}]}));
    let mut client = Client::of(&server, &json!({}));
    // Sent raw, not escaped, where JSON allows it.
    let line =
        "{\"id\":\"x\u{2028}y\",\"type\":\"prompt\",\"message\":\"in\u{2028}\u{2029}\u{85}out\"}";
    client.process.send_text(line);
    let messages = client.wait_end(0);
    assert_eq!(
        messages[0]["content"][0]["text"],
        "in\u{2028}\u{2029}\u{85}out"
    );
    assert_eq!(messages[1]["content"][0]["text"], odd);
    client.wait_answer("x\u{2028}y");
    client.finish();
    assert!(
        client
            .lines()
            .iter()
            .all(|line| line.get("__unparsed").is_none())
    );
}

#[test]
fn s2_lines_may_arrive_in_pieces_of_any_size_and_several_at_once() {
    let commands: String = (0..40)
        .map(|n| {
            format!(
                "{{\"id\":\"n{n}ü\u{2028}😀\",\"type\":\"get_state\"}}{}\n",
                if n % 3 == 0 { "\r" } else { "" }
            )
        })
        .collect();
    for size in [1, 2, 3, 7, 64, 100_000] {
        let sandbox = offline_sandbox(&json!({}));
        let mut command = pinion().command(
            &sandbox,
            &args(&["--mode", "rpc", "--model", "offline/demo"]),
        );
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        write_torn(&mut stdin, commands.as_bytes(), size, Duration::ZERO).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.ends_with('\n'));
        let lines: Vec<Value> = text
            .split_terminator('\n')
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let ids: Vec<String> = lines
            .iter()
            .map(|line| line["id"].as_str().unwrap().to_owned())
            .collect();
        let expected: Vec<String> = (0..40).map(|n| format!("n{n}ü\u{2028}😀")).collect();
        assert_eq!(ids, expected, "in pieces of {size}");
    }
}

const LIMIT: usize = 64 * 1024 * 1024;

fn padded(id: &str, length: usize) -> Vec<u8> {
    let mut line = format!("{{\"id\":\"{id}\",\"type\":\"get_state\",\"pad\":\"").into_bytes();
    line.resize(length - 2, b'x');
    line.extend_from_slice(b"\"}");
    assert_eq!(line.len(), length);
    line
}

#[test]
fn s3_a_line_of_64_mib_works_and_a_longer_one_costs_one_error() {
    let mut client = Client::offline();
    for line in [
        padded("long", LIMIT),
        padded("longer", LIMIT + 1),
        padded("endless", LIMIT * 2),
    ] {
        client.process.send_bytes(&line);
        client.process.send_bytes(b"\n");
    }
    client
        .process
        .send(&json!({"id": "good", "type": "get_state"}));
    client.wait_answer("good");
    assert_eq!(client.finish(), Exit::Code(0));
    let lines = client.lines();
    assert_eq!(lines.len(), 4, "{}", client.report(0));
    assert_eq!(
        (&lines[0]["id"], &lines[0]["success"]),
        (&json!("long"), &json!(true))
    );
    for refused in &lines[1..3] {
        assert_eq!(refused["success"], false);
        let error = refused["error"].as_str().unwrap();
        // The limit is stated in the error.
        assert!(error.contains(&LIMIT.to_string()), "{error}");
    }
    assert_eq!(lines[3]["success"], true);
}

#[test]
fn s3_a_large_prompt_goes_through_to_the_model() {
    let server = ModelServer::start(json!({"turns": [{"steps": ["seen"]}]}));
    let mut client = Client::of(&server, &json!({}));
    let data = "QUJD".repeat(1024 * 1024);
    let text = "grüße 🦀 ".repeat(100_000);
    let from = client.process.line_count();
    client
        .process
        .send(&json!({"type": "prompt", "message": text,
        "images": [{"type": "image", "data": data, "mimeType": "image/png"}]}));
    let messages = client.wait_end(from);
    assert_eq!(
        messages[0]["content"][1]["data"].as_str().unwrap().len(),
        data.len()
    );
    assert_eq!(messages[1]["stopReason"], "stop", "{}", messages[1]);
    let body = server.requests()[0]["body"].to_string();
    assert!(body.contains(&data) && body.contains(text.trim_end()));
}

/// Returns bytes that may be anything but a line feed, often nearly a command.
fn any_line(random: &mut Random) -> Vec<u8> {
    let seeds: [&[u8]; 14] = [
        br#"{"id":1,"type":"get_state"}"#,
        br#"{"id":"a","type":"prompt","message":"hi","images":[{"type":"image"}]}"#,
        br#"{"type":"set_model","provider":1e999,"modelId":-0}"#,
        br#"{"type":"fork","entryId":{"a":[1,2,{"b":null}]}}"#,
        br#"{"type":"set_thinking_level","level":123456789012345678901234567890}"#,
        br#"{"type":"get_state","type":"get_state","id":1,"id":2}"#,
        br#"{"type":"\ud800"}"#,
        br#"{"type":"set_session_name","name":"\u0000\ud83d"}"#,
        b"[[[[[[[[[[",
        b"\"\\u12",
        b"\xff\xfe\xfd",
        b"\0\0\0",
        b"\xef\xbb\xbf{\"type\":\"get_state\"}",
        b"{}",
    ];
    let mut line = random.pick(&seeds).to_vec();
    for _ in 0..random.below(6) {
        let at = random.below(line.len() as u64 + 1) as usize;
        match random.below(4) {
            0 if at < line.len() => line[at] = random.next() as u8,
            1 => line.insert(at, random.next() as u8),
            2 => line.truncate(at.max(1)),
            _ => {
                let copy = line.clone();
                line.splice(at..at, copy);
            }
        }
    }
    line.retain(|byte| *byte != b'\n');
    line
}

#[test]
fn s4_a_bad_line_costs_one_error_and_nothing_else() {
    let mut random = Random::new(4);
    let mut client = Client::offline();
    let mut sent = 0;
    let deep = [b"[".repeat(200_000), br#"{"a":"#.repeat(100_000)].map(|line| line.to_vec());
    let digits = format!(r#"{{"id":{},"type":"get_state"}}"#, "9".repeat(5000)).into_bytes();
    for line in deep.into_iter().chain([digits]) {
        client.process.send_bytes(&line);
        client.process.send_bytes(b"\n");
        sent += 1;
    }
    for _ in 0..1500 {
        let line = any_line(&mut random);
        // Prompts would start runs; this test is only about lines.
        let text = String::from_utf8_lossy(&line).into_owned();
        if text.contains("prompt") || text.contains("extension_ui_response") {
            continue;
        }
        client.process.send_bytes(&line);
        client.process.send_bytes(b"\n");
        sent += 1;
    }
    client
        .process
        .send(&json!({"id": "the last", "type": "get_state"}));
    let at = client.wait_answer("the last");
    assert_eq!(client.line(at)["success"], true);
    assert_eq!(
        client.finish(),
        Exit::Code(0),
        "{}",
        client.process.stderr()
    );
    let lines = client.lines();
    let answers: usize = answers_by_id(&lines).values().sum();
    assert_eq!(answers, sent + 1, "{}", client.report(0));
    assert!(
        lines.iter().all(|line| line["type"] == "response"),
        "{}",
        client.report(0)
    );
}

#[test]
fn s4_members_of_every_wrong_type_are_refused_or_read_but_never_fatal() {
    let members = [
        ("prompt", "message"),
        ("prompt", "images"),
        ("prompt", "streamingBehavior"),
        ("steer", "message"),
        ("follow_up", "images"),
        ("set_model", "provider"),
        ("set_thinking_level", "level"),
        ("set_steering_mode", "mode"),
        ("set_auto_retry", "enabled"),
        ("compact", "customInstructions"),
        ("bash", "command"),
        ("switch_session", "sessionPath"),
        ("fork", "entryId"),
        ("set_session_name", "name"),
        ("export_html", "outputPath"),
        ("new_session", "parentSession"),
        ("get_entries", "since"),
    ];
    let values = [
        json!(null),
        json!(true),
        json!(-1.5e300),
        json!([]),
        json!([[]]),
        json!({"a": {}}),
        json!([7]),
    ];
    let mut client = Client::offline();
    let mut sent = 0;
    for (command, member) in members {
        for value in &values {
            let from = client.process.line_count();
            let answer = client.process.ask(json!({"type": command, member: value}));
            assert_eq!(answer["command"], command, "{answer}");
            sent += 1;
            if command == "prompt" && answer["success"] == true {
                client.wait_end(from);
            }
        }
    }
    assert_eq!(client.finish(), Exit::Code(0));
    let answers: usize = answers_by_id(&client.lines()).values().sum();
    assert_eq!(answers, sent);
}

#[test]
fn s4_the_end_of_input_in_the_middle_of_a_character_is_an_error_too() {
    let mut client = Client::offline();
    client
        .process
        .send_bytes(b"{\"type\":\"get_state\",\"id\":\"\xc3");
    assert_eq!(client.finish(), Exit::Code(0));
    let lines = client.lines();
    assert_eq!(lines.len(), 1, "{}", client.report(0));
    assert_eq!(lines[0]["success"], false);
}
