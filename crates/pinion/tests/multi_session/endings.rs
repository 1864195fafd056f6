//! Sessions end one by one, or all together with the process, and leave nothing behind.

use nix::sys::signal::Signal;
use pinion_testkit::Exit;
use pinion_testkit::fault::proc;
use serde_json::{Value, json};

use super::{MultiSession, last_text};
use crate::support::{HANG, answers_by_id, offline_sandbox, script};

#[test]
fn l11_a_session_is_closed_while_another_streams() {
    let mut client = MultiSession::start();
    let (a, b) = (client.open(json!({})), client.open(json!({})));
    let stream = script(&json!([{"deltas": 200, "size": 10, "paceMs": 5}]));
    let from = client.prompt(&a, &stream);
    client.prompt(&b, &stream);
    for session in [&a, &b] {
        client.0.wait_for(
            from,
            &json!({"type": "message_update", "sessionId": session}),
        );
    }
    client.data(json!({"type": "close_session", "sessionId": a}));
    let words = client.refusal(json!({"type": "get_state", "sessionId": a}));
    assert!(words.contains("there is no session"), "{words}");
    let messages = client.wait_end(&b, from);
    assert_eq!(last_text(&messages).len(), 2000);
    assert_eq!(messages.last().unwrap()["stopReason"], "stop");
    // The one that was closed ended as a run that is stopped does, before its closing was answered.
    assert_eq!(client.runs_of(&a), 1);
    let last = client.lines_of(&a).pop().unwrap();
    assert_eq!(last["command"], "close_session", "{last}");
    assert_eq!(client.0.finish(), Exit::Code(0));
}

#[test]
fn l11_a_closed_session_is_saved_and_its_commands_are_gone() {
    let mut client = MultiSession::start();
    let marker = client.0.sandbox.marker().to_owned();
    let opened = client.data(json!({"type": "open_session"}));
    let id = opened["sessionId"].as_str().unwrap().to_owned();
    let from = client.prompt(&id, &script(&json!([{"text": "kept"}])));
    client.wait_end(&id, from);
    let from = client.prompt(
        &id,
        &script(&json!([
        {"tool": "bash", "args": {"command": "(setsid sleep 611 &); sleep 612"}}])),
    );
    client.0.wait_for(
        from,
        &json!({"type": "tool_execution_start", "sessionId": id}),
    );
    let sleeps = |marker: &str| {
        let found = proc::marked(marker).into_iter();
        found
            .filter(|found| found.command.starts_with("sleep"))
            .count()
    };
    let end = std::time::Instant::now() + HANG;
    while sleeps(&marker) < 2 {
        assert!(
            std::time::Instant::now() < end,
            "{:?}",
            proc::marked(&marker)
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    client.data(json!({"type": "close_session", "sessionId": id}));
    assert_eq!(sleeps(&marker), 0, "{:?}", proc::marked(&marker));
    let file = std::fs::read_to_string(opened["sessionFile"].as_str().unwrap()).unwrap();
    assert!(
        file.contains("kept") && file.contains("sleep 612"),
        "{file}"
    );
}

#[test]
fn l11_what_commands_left_in_the_background_ends_with_their_session() {
    let mut client = MultiSession::start();
    let marker = client.0.sandbox.marker().to_owned();
    let ids: Vec<String> = (0..2).map(|_| client.open(json!({}))).collect();
    for (id, seconds) in ids.iter().zip([615, 616]) {
        let command = format!("setsid sleep {seconds} >/dev/null 2>&1 & echo $PINION_SESSION_ID");
        let done = client.data(json!({"type": "bash", "sessionId": id, "command": command}));
        assert_eq!(done["output"], format!("{id}\n"));
    }
    let sleeps = || -> Vec<String> {
        let found = proc::marked(&marker).into_iter();
        let sleeps = found.filter(|found| found.command.starts_with("sleep"));
        sleeps.map(|found| found.command).collect()
    };
    let until = |count: usize| {
        let end = std::time::Instant::now() + HANG;
        while sleeps().len() != count && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        sleeps()
    };
    assert_eq!(until(2).len(), 2);
    client.data(json!({"type": "close_session", "sessionId": ids[0]}));
    assert_eq!(until(1), ["sleep 616"]);
    assert_eq!(client.0.finish(), Exit::Code(0));
    assert_eq!(proc::left_behind(&marker, HANG), []);
}

#[test]
fn l11_at_the_end_of_input_everything_is_finished() {
    let mut client = MultiSession::start();
    let ids: Vec<String> = (0..5).map(|_| client.open(json!({}))).collect();
    let from = client.0.process.line_count();
    let stream = script(&json!([{"deltas": 50, "size": 10, "paceMs": 5}]));
    for id in &ids {
        client
            .0
            .send(json!({"type": "prompt", "sessionId": id, "message": stream}));
    }
    client.0.send(json!({"type": "open_session"}));
    assert_eq!(client.0.finish(), Exit::Code(0));
    for id in &ids {
        assert_eq!(last_text(&client.wait_end(id, from)).len(), 500);
        assert_eq!(client.runs_of(id), 1);
    }
    let answers = answers_by_id(&client.0.lines());
    assert!(answers.values().all(|count| *count == 1), "{answers:?}");
    let opened = client
        .0
        .lines()
        .into_iter()
        .filter(|line| line["command"] == "open_session");
    assert_eq!(opened.count(), 6);
}

#[test]
fn l11_exit_on_eof_stops_every_session() {
    let mut client = MultiSession::with(offline_sandbox(&json!({})), &["--exit-on-eof"]);
    let marker = client.0.sandbox.marker().to_owned();
    let ids: Vec<String> = (0..3).map(|_| client.open(json!({}))).collect();
    let wait = script(&json!([{"tool": "bash", "args": {"command": "sleep 613"}}]));
    for id in &ids {
        let from = client.prompt(id, &wait);
        client.0.wait_for(
            from,
            &json!({"type": "tool_execution_start", "sessionId": id}),
        );
    }
    assert_eq!(client.0.finish(), Exit::Code(0));
    for id in &ids {
        assert_eq!(client.runs_of(id), 1, "every run ends");
    }
    assert_eq!(proc::left_behind(&marker, HANG), []);
}

#[test]
fn l11_a_signal_saves_every_session_and_leaves_nothing_behind() {
    for (signal, exit) in [
        (Signal::SIGTERM, Exit::Code(143)),
        (Signal::SIGKILL, Exit::Signal(9)),
    ] {
        let mut client = MultiSession::start();
        let marker = client.0.sandbox.marker().to_owned();
        let mut files = Vec::new();
        for number in 0..3 {
            let opened = client.data(json!({"type": "open_session"}));
            let id = opened["sessionId"].as_str().unwrap();
            let talk = script(&json!({"turns": [
                [{"text": format!("said {number}")}, {"tool": "bash", "args": {"command": "sleep 614"}}]]}));
            let from = client.prompt(id, &talk);
            client.0.wait_for(
                from,
                &json!({"type": "tool_execution_start", "sessionId": id}),
            );
            files.push(opened["sessionFile"].as_str().unwrap().to_owned());
        }
        client.0.process.signal(signal);
        assert_eq!(client.0.process.wait(HANG), Some(exit));
        assert_eq!(proc::left_behind(&marker, HANG), []);
        for (number, file) in files.iter().enumerate() {
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.contains(&format!("said {number}")), "{text}");
            let lines: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            assert!(lines.len() >= 4, "{text}");
        }
    }
}

#[test]
fn l11_every_line_is_answered_once_whatever_is_closed_meanwhile() {
    let mut client = MultiSession::start();
    let mut asked = Vec::new();
    for _ in 0..20 {
        let id = client.open(json!({}));
        for _ in 0..20 {
            asked.push(client.0.send(json!({"type": "get_state", "sessionId": id})));
        }
        asked.push(
            client
                .0
                .send(json!({"type": "prompt", "sessionId": id, "message": "hello"})),
        );
        asked.push(
            client
                .0
                .send(json!({"type": "close_session", "sessionId": id})),
        );
        asked.push(client.0.send(json!({"type": "get_state", "sessionId": id})));
        asked.push(client.0.send(json!({"type": "list_sessions"})));
    }
    assert_eq!(client.0.finish(), Exit::Code(0));
    let answers = answers_by_id(&client.0.lines());
    for id in asked {
        assert_eq!(answers.get(&json!(id).to_string()), Some(&1), "{id}");
    }
}
