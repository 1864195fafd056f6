//! `GetLogs`: reading old lines, and filters.

use jiff::Timestamp;
use pinion_clip::logs::{Level, Origin};
use serde_json::{Value, json};

use super::common::Running;
use super::provider::{Received, Stream, Wire};
use super::{eventually, hub};

/// Reads a log. Returns the lines and the end of the stream.
fn logs(hub: &Running, request: Value) -> (Vec<Value>, Result<(), (String, String)>) {
    let mut stream = Stream::open(hub, "GetLogs", Wire::ConnectJson);
    stream.send(request);
    stream.finish();
    let mut lines = Vec::new();
    loop {
        match stream.came() {
            Received::Message(line) => lines.push(line),
            Received::End(end) => return (lines, end),
            Received::Broken => panic!("the connection broke"),
        }
    }
}

fn texts(lines: &[Value]) -> Vec<&str> {
    let texts = lines.iter();
    texts.map(|it| it["message"].as_str().unwrap()).collect()
}

#[test]
fn older_lines_are_read_from_files() {
    let hub = hub();
    let log = hub.hub.log();
    for number in 0..4000 {
        log.push(Level::Info, Origin::System, &format!("line {number}"));
    }
    let (lines, end) = logs(&hub, json!({"system": true, "tail": 10_000}));
    assert_eq!(end, Ok(()));
    let wanted: Vec<String> = (0..4000).map(|number| format!("line {number}")).collect();
    let lines = texts(&lines);
    assert_eq!(lines[lines.len() - 4000..], wanted);
    let (lines, _) = logs(&hub, json!({"system": true, "tail": 2500}));
    assert_eq!(texts(&lines), wanted[1500..]);
    let (lines, _) = logs(&hub, json!({"system": true}));
    assert_eq!(texts(&lines), wanted[3950..]);
}

#[test]
fn the_tail_counts_lines_after_filtering() {
    let hub = hub();
    let log = hub.hub.log();
    for number in 0..3 {
        log.push(Level::Error, Origin::System, &format!("error {number}"));
    }
    for _ in 0..2000 {
        log.push(Level::Info, Origin::System, "fine");
    }
    let (lines, _) = logs(
        &hub,
        json!({"system": true, "tail": 2, "minLevel": "ERROR"}),
    );
    assert_eq!(texts(&lines), ["error 1", "error 2"]);
    let now = Timestamp::now().as_millisecond() + 1;
    let later = json!({"system": true, "sinceUnixMs": now.to_string()});
    assert_eq!(logs(&hub, later).0, Vec::<Value>::new());
    // The filter applies to followed lines too.
    let mut reader = Stream::open(&hub, "GetLogs", Wire::ConnectJson);
    reader.send(json!({"system": true, "tail": 2, "minLevel": "error", "follow": true}));
    reader.finish();
    assert_eq!(reader.message()["message"], "error 1");
    assert_eq!(reader.message()["message"], "error 2");
    log.push(Level::Warn, Origin::System, "hm");
    log.push(Level::Error, Origin::System, "error 3");
    assert_eq!(reader.message()["message"], "error 3");
    let (lines, end) = logs(&hub, json!({"system": true, "minLevel": "loud"}));
    assert!(lines.is_empty());
    let (code, message) = end.unwrap_err();
    assert_eq!(code, "invalid_argument");
    assert!(message.contains("loud"), "{message}");
}

#[test]
fn lines_of_a_provider_have_its_time() {
    let hub = hub();
    let stream = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "a"}]));
    let typed = Stream::typed(&hub, "two", json!([{"alias": "b"}]));
    let now = Timestamp::now().as_millisecond();
    let hour = 3_600_000;
    for time in [now - hour, now + hour, 1, -1, i64::MAX, 0] {
        let log = json!({"alias": "a", "message": "x", "timestampUnixMs": time.to_string()});
        stream.send(json!({ "log": log }));
        typed.send(json!({"type": "Log", "alias": "b", "message": "x", "timestampUnixMs": time}));
    }
    for clip in ["a", "b"] {
        let mut lines = Vec::new();
        eventually("all lines are there", || {
            lines = logs(&hub, json!({"clipName": clip})).0;
            lines.len() == 6
        });
        let time = |line: &Value| -> i64 {
            let time = line["timestampUnixMs"].as_str().unwrap();
            time.parse().unwrap()
        };
        assert_eq!(time(&lines[0]), now - hour);
        // An impossible time is replaced by the time of arrival.
        for line in &lines[1..] {
            assert!((now..now + hour / 2).contains(&time(line)), "{line}");
        }
    }
}
