//! S1 to S4: frames arrive whole whatever other processes write, and lines are read whatever bytes they contain.

use pinion_testkit::Exit;
use pinion_testkit::fault::pipe::write_torn;
use pinion_testkit::frames;
use serde_json::{Value, json};

use crate::rules;
use crate::stage::{Home, lines, payloads};
use crate::support::{Random, pinion, script};

#[test]
fn s1_a_child_that_writes_to_standard_output_cannot_tear_frames() {
    let home = Home::offline();
    // Descriptor 1 of the program itself, by every way a child could know of.
    let write = "for fd in /proc/$PPID/fd/1 /dev/stdout; do echo torn > $fd; done; echo torn >&2; (sleep 0.1; echo late) & true";
    let what = script(&json!({"turns": [
        [{"tool": "bash", "args": {"command": write}}, {"tool": "bash", "args": {"command": "printf 'no line feed'"}}],
        {"deltas": 500, "size": 20}]}));
    let told = home.say(&what, &["--tools", "bash", "--patch-mode", "append"]);
    assert_eq!((told.status(), told.exit), ("ok", Exit::Code(0)));
    let results = payloads(&told.lines, "ChatToolResultReady");
    let mut results = results.iter().filter_map(|it| it["result"].as_str());
    assert!(results.any(|result| result == "\"no line feed\""));
}

#[test]
fn s1_standard_error_never_reaches_standard_output() {
    let home = Home::offline();
    home.write(
        "odd.yaml",
        "name: odd\nshort: Odd\nsystem_prompt: misspelt\nprompt: hello\n",
    );
    let ran = home.run(&["run-command", "odd.yaml", "--rpc"]);
    assert!(ran.stderr.contains("system_prompt"), "{}", ran.stderr);
    assert_eq!(ran.told().status(), "ok");
}

#[test]
fn s2_separators_that_are_no_line_feed_stay_inside_a_line() {
    let text = "a\u{2028}b\u{2029}c\u{85}d\re\u{b}f\u{c}g\u{0}h\u{1}i\u{7f}j\"k\\l😀";
    let home = Home::playing(&json!({"text": text, "chunk": 1}));
    let told = home.say(&format!("say {}", "\u{2028}"), &["--patch-mode", "append"]);
    assert_eq!(
        payloads(&told.lines, "ChatTextSegmentFinished")[0]["content"],
        text
    );
    assert_eq!(
        told.lines[2]["uiEvent"]["payload"]["text"], "say",
        "a prompt is trimmed"
    );
}

#[test]
fn s2_requests_may_come_in_pieces_of_any_size() {
    let prompt = script(&json!({"text": "ünd\u{2028}so 😀"}));
    let mut input = Vec::new();
    for value in [
        json!({"requestId": "ü1\u{2028}", "sessionId": "ß", "submit": {"prompt": prompt}}),
        json!({"requestId": "b", "shutdown": {}}),
    ] {
        input.extend(value.to_string().into_bytes());
        input.extend(b"\r\n");
    }
    let mut results: Vec<Vec<Value>> = Vec::new();
    for size in [1, 2, 3, 7, 4096] {
        let home = Home::offline();
        let arguments = [
            "run-command",
            "seed.yaml",
            "--stdin-rpc",
            "--patch-mode",
            "append",
        ];
        let mut command = home
            .program(pinion())
            .command(&home.sandbox, &crate::support::args(&arguments));
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        write_torn(
            &mut stdin,
            &input,
            size,
            std::time::Duration::from_micros(200),
        )
        .unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        frames::check(&output.stdout);
        let told = lines(std::str::from_utf8(&output.stdout).unwrap());
        rules::check(&told).unwrap();
        assert_eq!(told.last().unwrap()["done"]["status"], "shutdown", "{size}");
        results.push(crate::normal::normal(&told));
    }
    for other in &results[1..] {
        assert_eq!(other, &results[0]);
    }
}

/// Returns lines that are not requests; each must be reported as such, once.
fn broken() -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = [
        "not json",
        "{",
        "}",
        "[]",
        "null",
        "1",
        "\"x\"",
        "{}{}",
        "{\"version\":1} x",
        "{\"version\":1.5}",
        "{\"version\":\"x\"}",
        "{\"version\":99999999999}",
        "{\"version\":-1}",
        "{\"version\":1e400}",
        "{\"sessionId\":1}",
        "{\"sessionId\":{}}",
        "{\"requestId\":[]}",
        "{\"submit\":1}",
        "{\"submit\":[]}",
        "{\"submit\":{\"prompt\":1}}",
        "{\"submit\":{\"prompt\":{}}}",
        "{\"submit\":{},\"cancel\":{}}",
        "{\"snapshot\":{},\"snapshot\":{}}",
        "{\"requestId\":\"a\",\"requestId\":\"b\"}",
        "{\"requestId\":\"a\",\"request_id\":\"b\"}",
        "{\"requestId\":\"\\ud800\"}",
        "{\"requestId\":\"\\x\"}",
        "{'requestId':'a'}",
        "{\"requestId\":\"a\",}",
        "{\"requestId\":NaN}",
        "\u{feff}{\"snapshot\":{}}",
        "{\"requestId\":\"tab\there\"}",
    ]
    .map(|line| line.as_bytes().to_vec())
    .to_vec();
    lines.push(b"{\"requestId\":\"\xff\",\"snapshot\":{}}".to_vec());
    lines.push(b"\x00".to_vec());
    lines.push(b"{\"snapshot\":{}}\x00".to_vec());
    lines.push(format!("{{\"x\":{}", "[".repeat(100_000)).into_bytes());
    lines.push("[".repeat(200_000).into_bytes());
    lines
}

#[test]
fn s3_lines_that_are_no_requests_are_told_as_such_and_nothing_else_happens() {
    let mut talk = Home::offline().talk(&[]);
    let broken = broken();
    talk.wait(&json!({"hello": {}}));
    for line in &broken {
        let from = talk.process.line_count();
        talk.process.send_bytes(&[line, &b"\n"[..]].concat());
        let told = talk
            .process
            .find(from, 1, crate::support::HANG, |_| true)
            .unwrap();
        let told = talk.process.line(told).unwrap().value;
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert_eq!(
            told["error"]["code"], "invalid_request_json",
            "{shown}: {told}"
        );
        assert_eq!(told.get("requestId"), None, "{shown}: {told}");
    }
    // None of them has bound the session.
    talk.ask("a", "snapshot");
    assert_eq!(talk.done("a"), "ok");
    assert_eq!(talk.finish(), Exit::Code(0));
    assert_eq!(talk.lines().len(), broken.len() + 3);
}

#[test]
fn s3_deep_fields_nobody_knows_are_passed_over_or_refused() {
    let mut talk = Home::offline().talk(&[]);
    for (id, depth) in [("shallow", 50), ("deep", 100_000)] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        talk.process.send_text(&format!(
            "{{\"requestId\":\"{id}\",\"x\":{nested},\"snapshot\":{{}}}}"
        ));
    }
    talk.process
        .send(&json!({"requestId": "after", "snapshot": {}}));
    assert_eq!(talk.done("shallow"), "ok");
    assert_eq!(talk.done("after"), "ok");
    assert_eq!(talk.finish(), Exit::Code(0));
}

#[test]
fn s4_random_bytes_never_end_the_process() {
    let mut random = Random::new(5);
    let seeds = [
        "{\"requestId\":\"a\",\"sessionId\":\"s\",\"submit\":{\"prompt\":\"\"}}",
        "{\"version\":1,\"snapshot\":{}}",
        "{\"cancel\":{}}",
    ];
    let mut talk = Home::offline().talk(&[]);
    // Binds the session, so that chance does not.
    talk.ask("first", "snapshot");
    let mut input = Vec::new();
    for _ in 0..3000 {
        let mut line = random.pick(&seeds).as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(line.len() as u64 + 1) as usize;
            match random.below(3) {
                0 => line.insert(at, random.below(256) as u8),
                1 if at < line.len() => {
                    line.remove(at);
                }
                _ if at < line.len() => line[at] = random.below(256) as u8,
                _ => {}
            }
        }
        // A request to run or to end would be another test.
        let text = String::from_utf8_lossy(&line).into_owned();
        if !text.contains("shutdown") {
            input.extend(line);
            input.push(b'\n');
        }
    }
    talk.process.send_bytes(&input);
    talk.ask("last", "snapshot");
    assert_eq!(talk.done("last"), "ok");
    talk.process.close_stdin();
    assert_eq!(talk.process.wait(crate::support::HANG), Some(Exit::Code(0)));
}

/// Returns a request of exactly this number of bytes.
fn request_of(id: &str, bytes: usize) -> Vec<u8> {
    let around = json!({"requestId": id, "sessionId": "s1", "submit": {"prompt": ""}}).to_string();
    let prompt = "x".repeat(bytes - around.len());
    json!({"requestId": id, "sessionId": "s1", "submit": {"prompt": prompt}})
        .to_string()
        .into_bytes()
}

#[test]
fn s4_the_longest_line_is_read_and_one_byte_more_is_not() {
    const LIMIT: usize = 10 * 1024 * 1024;
    let mut talk = Home::playing(&json!({"text": "long"})).talk(&["--patch-mode", "append"]);
    let line = request_of("a", LIMIT - 1);
    assert_eq!(line.len(), LIMIT - 1);
    talk.process.send_bytes(&[&line, &b"\n"[..]].concat());
    assert_eq!(talk.done("a"), "ok");
    talk.process
        .send_bytes(&[&request_of("b", LIMIT), &b"\n"[..]].concat());
    talk.ask("c", "snapshot");
    assert_eq!(talk.end(), Exit::Code(1));
    let told = talk.lines();
    let [error, done] = &told[told.len() - 2..] else {
        unreachable!()
    };
    assert_eq!(error["error"]["code"], "stdin_read_failed");
    assert_eq!(error["error"]["message"], "bufio.Scanner: token too long");
    assert_eq!(error["error"]["terminal"], true);
    assert_eq!(error["sessionId"], told[0]["sessionId"]);
    assert_eq!(done["done"]["status"], "failed");
    assert!(
        told.iter()
            .all(|line| line["requestId"] != "b" && line["requestId"] != "c")
    );
}

#[test]
fn s4_a_line_that_is_too_long_waits_for_the_run() {
    let mut talk = Home::offline().talk(&["--patch-mode", "append"]);
    talk.submit(
        "run",
        &script(&json!({"deltas": 40, "size": 4, "paceMs": 5})),
    );
    talk.event("run", "ChatTextPatch");
    talk.process.send_bytes(&vec![b' '; 10_500_000]);
    assert_eq!(talk.end(), Exit::Code(1));
    assert_eq!(talk.done("run"), "ok");
    let told = talk.lines();
    assert_eq!(told[told.len() - 2]["error"]["code"], "stdin_read_failed");
}
