//! Lines reach the session they name, and name the session they come from.

use pinion_testkit::Exit;
use pinion_testkit::schema::Schema;
use serde_json::json;

use super::{MultiSession, last_text};
use crate::support::{offline_sandbox, script};

#[test]
fn l11_two_sessions_talk_at_the_same_time() {
    let mut client = MultiSession::start();
    let (a, b) = (client.open(json!({})), client.open(json!({})));
    assert_ne!(a, b);
    let slow = |word: &str| {
        let texts = [format!("{word} one "), format!("{word} two")];
        script(&json!([{"text": texts[0], "paceMs": 20, "chunk": 1},
                       {"text": texts[1], "paceMs": 20, "chunk": 1}]))
    };
    let from = client.prompt(&a, &slow("alpha"));
    client.prompt(&b, &slow("beta"));
    let of_a = client.wait_end(&a, from);
    let of_b = client.wait_end(&b, from);
    assert_eq!(last_text(&of_a), "alpha one alpha two");
    assert_eq!(last_text(&of_b), "beta one beta two");
    assert_eq!((client.runs_of(&a), client.runs_of(&b)), (1, 1));
    // They took turns: the first to begin was not the first to finish.
    let updates: Vec<String> = client
        .0
        .lines()
        .iter()
        .filter(|line| line["type"] == "message_update")
        .map(|line| line["sessionId"].as_str().unwrap().to_owned())
        .collect();
    let first_of_b = updates.iter().position(|id| *id == b).unwrap();
    assert!(updates[first_of_b..].contains(&a), "{updates:?}");
    assert_eq!(client.0.finish(), Exit::Code(0));
}

#[test]
fn l11_lines_of_a_session_are_those_of_the_dialect_with_the_id_in_front() {
    for dialect in ["classic", "modern"] {
        let schema = Schema::of_dialect(dialect).unwrap();
        let mut client =
            MultiSession::with(offline_sandbox(&json!({})), &["--rpc-dialect", dialect]);
        let id = client.open(json!({}));
        let from = client.prompt(&id, &script(&json!([{"think": "hm"}, {"text": "x"}])));
        client.wait_end(&id, from);
        client.data(json!({"type": "get_state", "sessionId": id}));
        client.data(json!({"type": "close_session", "sessionId": id}));
        for line in client.0.lines() {
            let members = line.as_object().unwrap();
            let (name, value) = members.iter().next().unwrap();
            assert_eq!((name.as_str(), value), ("sessionId", &json!(id)), "{line}");
            assert_eq!(Schema::PiSessions.complaint(&line), None);
            let mut without = members.clone();
            without.shift_remove("sessionId");
            let ours = ["open_session", "close_session"].map(|command| json!(command));
            if !ours.contains(&line["command"]) {
                assert_eq!(schema.complaint(&without.into()), None, "{line}");
            }
        }
    }
}

#[test]
fn l11_lines_that_name_no_session_are_refused() {
    let mut client = MultiSession::start();
    let id = client.open(json!({}));
    for (command, words) in [
        (
            json!({"type": "prompt", "message": "x"}),
            "sessionId is missing; open a session with open_session or see list_sessions",
        ),
        (
            json!({"type": "prompt", "message": "x", "sessionId": 1}),
            "sessionId must be a string",
        ),
        (
            json!({"type": "get_state", "sessionId": "nobody"}),
            "there is no session \"nobody\"; list_sessions shows the open ones",
        ),
        (
            json!({"type": "close_session", "sessionId": "nobody"}),
            "there is no session \"nobody\"",
        ),
        (json!({"type": "close_session"}), "sessionId is missing"),
        (
            json!({"type": "open_session", "cwd": "nowhere"}),
            "there is no directory ",
        ),
        (
            json!({"type": "open_session", "cwd": 1}),
            "\"cwd\" must be a string",
        ),
        (
            json!({"type": "open_session", "session": "nobody"}),
            "nobody",
        ),
        (
            json!({"type": "open_session", "model": "no/such"}),
            "no/such",
        ),
        (
            json!({"type": "open_session", "thinkingLevel": "huge"}),
            "unknown thinking level \"huge\"",
        ),
        (
            json!({"type": "nonsense", "sessionId": id}),
            "Unknown command: nonsense",
        ),
    ] {
        let words_of = client.refusal(command.clone());
        assert!(words_of.contains(words), "{command}: {words_of}");
    }
    client.0.process.send_text("{nonsense");
    client.0.wait_for(
        0,
        &json!({"type": "response", "command": "parse", "success": false}),
    );
    // There was no request, so there is no answer.
    client
        .0
        .process
        .send(&json!({"type": "extension_ui_response", "id": "x", "value": "y"}));
    assert_eq!(client.listed().len(), 1);
    assert_eq!(client.0.finish(), Exit::Code(0));
}

#[test]
fn l11_sessions_are_opened_as_asked_and_listed() {
    let sandbox = offline_sandbox(&json!({}));
    std::fs::create_dir(sandbox.work().join("sub")).unwrap();
    let sub = sandbox.work().join("sub");
    let mut client = MultiSession::with(sandbox, &[]);
    let opened = client.data(
        json!({"type": "open_session", "cwd": "sub", "name": "the second",
                                     "thinkingLevel": "high", "noSession": true}),
    );
    assert_eq!(opened["cwd"], json!(sub), "{opened}");
    assert_eq!(opened.get("sessionFile"), None, "{opened}");
    let second = opened["sessionId"].as_str().unwrap().to_owned();
    let third = client.open(json!({}));
    let state = client.data(json!({"type": "get_state", "sessionId": second}));
    assert_eq!(state["sessionName"], "the second");
    let output = client.data(json!({"type": "bash", "sessionId": second, "command": "pwd"}));
    assert_eq!(output["output"], format!("{}\n", sub.display()));
    let from = client.prompt(&third, &script(&json!([{"text": "one"}])));
    client.wait_end(&third, from);
    let from = client.prompt(&third, &script(&json!([{"stall": 60_000}])));
    client
        .0
        .wait_for(from, &json!({"type": "agent_start", "sessionId": third}));
    let listed = client.listed();
    assert_eq!(listed[0]["sessionId"], json!(second));
    assert_eq!(listed[0]["sessionName"], "the second");
    assert_eq!(listed[0]["cwd"], json!(sub));
    assert_eq!(listed[0]["isStreaming"], false);
    assert_eq!(listed[1]["sessionId"], json!(third));
    assert_eq!(listed[1]["isStreaming"], true);
    assert_eq!(
        listed[1]["model"],
        json!({"provider": "offline", "id": "demo"})
    );
    assert!(
        listed[1]["messageCount"].as_u64().unwrap() >= 3,
        "{listed:?}"
    );
    assert!(listed[1]["sessionFile"].is_string(), "{listed:?}");
    client.data(json!({"type": "close_session", "sessionId": third}));
    assert_eq!(client.listed().len(), 1);
}

#[test]
fn l11_a_session_keeps_its_name_when_another_conversation_takes_its_place() {
    let mut client = MultiSession::start();
    let id = client.open(json!({}));
    let from = client.prompt(&id, &script(&json!([{"text": "first"}])));
    client.wait_end(&id, from);
    let state = client.data(json!({"type": "get_state", "sessionId": id}));
    assert_eq!(state["sessionId"], json!(id));
    let first_file = state["sessionFile"].clone();
    client.data(json!({"type": "new_session", "sessionId": id}));
    let state = client.data(json!({"type": "get_state", "sessionId": id}));
    assert_ne!(state["sessionId"], json!(id), "a new conversation");
    // The conversation it has left can be opened beside it, under a name of its own.
    let again = client.data(json!({"type": "open_session", "session": first_file}));
    assert_eq!(again["sessionId"], json!(format!("{id}-2")), "{again}");
    assert_eq!(client.0.finish(), Exit::Code(0));
}

#[test]
fn l11_a_session_file_has_one_writer() {
    let mut client = MultiSession::start();
    let opened = client.data(json!({"type": "open_session"}));
    let id = opened["sessionId"].as_str().unwrap().to_owned();
    let from = client.prompt(&id, &script(&json!([{"text": "kept"}])));
    client.wait_end(&id, from);
    let resume = json!({"type": "open_session", "session": opened["sessionFile"]});
    let words = client.refusal(resume.clone());
    assert!(words.contains("is in use"), "{words}");
    client.data(json!({"type": "close_session", "sessionId": id}));
    let again = client.data(resume);
    assert_eq!(again["sessionId"], json!(id));
    let messages = client.data(json!({"type": "get_messages", "sessionId": id}));
    assert_eq!(
        messages["messages"].as_array().unwrap().len(),
        2,
        "{messages}"
    );
}

#[test]
fn l11_flags_that_name_one_session_do_not_fit() {
    for (flags, words) in [
        (
            &["--continue"][..],
            "--continue does not go with --multi-session",
        ),
        (
            &["--session", "x"],
            "--session does not go with --multi-session",
        ),
        (
            &["--rpc-dialect", "early"],
            "does not go with the early dialect",
        ),
    ] {
        let mut client = MultiSession::with(offline_sandbox(&json!({})), flags);
        assert_eq!(client.0.finish(), Exit::Code(2));
        let errors = client.0.process.stderr();
        assert!(errors.contains(words), "{errors}");
    }
}
