//! Abort settles everything below it, in a defined order, and is answered last. Queued messages stay in their queues
//! for the next prompt.

use pinion_testkit::fault::proc;
use pinion_testkit::{Exit, ModelServer};
use serde_json::{Value, json};

use crate::support::{Client, check_runs, script};

/// Aborts and returns the kinds of the lines from `from` up to the answer.
fn abort(client: &mut Client, from: usize) -> Vec<String> {
    let id = client.send(json!({"type": "abort"}));
    let at = client.wait_answer(&id);
    let mut kinds = client.kinds(from);
    kinds.truncate(at + 1 - from);
    kinds
}

/// Checks that the session is idle, consistent, and accepts another prompt.
fn goes_on(mut client: Client, next: &str) {
    let state = client.data("get_state");
    assert_eq!(state["isStreaming"], false, "{state}");
    assert_eq!(state["isCompacting"], false, "{state}");
    let from = client.prompt(next);
    let last = client.wait_end(from).pop().unwrap();
    assert_eq!(last["stopReason"], "stop", "{last}");
    assert_eq!(client.finish(), Exit::Code(0));
    check_runs(&client.lines()).unwrap();
}

#[test]
fn l5_abort_in_the_middle_of_a_text() {
    let turn = json!({"steps": [{"text": ["kept ", {"gate": "never"}, "lost"]}]});
    let server = ModelServer::start(json!({"turns": [turn, {"steps": ["on"]}]}));
    let mut client = Client::of(&server, &json!({}));
    let from = client.prompt("go");
    let seen = client.wait_for(
        from,
        &json!({"type": "message_update", "assistantMessageEvent": {"delta": "kept "}}),
    );
    let mut after = abort(&mut client, seen + 1);
    after.retain(|kind| kind != "message_update");
    assert_eq!(
        after,
        [
            "message_end:assistant",
            "turn_end",
            "agent_end",
            "agent_settled",
            "abort:response"
        ]
    );
    let last = client.wait_end(from).pop().unwrap();
    assert_eq!(last["stopReason"], "aborted");
    assert_eq!(last["content"][0]["text"], "kept ");
    assert!(
        last["errorMessage"]
            .as_str()
            .unwrap()
            .starts_with("Request was aborted"),
        "{last}"
    );
    goes_on(client, "again");
}

#[test]
fn l5_abort_before_the_first_byte() {
    let server = ModelServer::start(json!({"turns": [{"pre_gate": "never"}, {"steps": ["on"]}]}));
    let mut client = Client::of(&server, &json!({}));
    let from = client.prompt("go");
    let seen = client.wait_for(from, &json!({"type": "message_end"}));
    assert!(server.wait_for_requests(1, crate::support::HANG));
    let after = abort(&mut client, seen + 1);
    let expected = [
        "message_start:assistant",
        "message_end:assistant",
        "turn_end",
        "agent_end",
        "agent_settled",
        "abort:response",
    ];
    assert_eq!(after, expected);
    let last = client.wait_end(from).pop().unwrap();
    assert_eq!(last["stopReason"], "aborted");
    assert_eq!(last["content"], json!([]));
    goes_on(client, "again");
}

#[test]
fn l5_abort_in_the_middle_of_a_tool_ends_its_children_and_the_calls_after_it() {
    let mut client = Client::offline();
    let calls = json!({"turns": [[
        {"tool": "bash", "args": {"command": "(setsid sleep 600 &) ; sleep 601 & echo begun; sleep 602"}},
        {"tool": "bash", "args": {"command": "echo second >> ran"}},
        {"tool": "read", "args": {"path": "ran"}}]]});
    let from = client.prompt(&script(&calls));
    let begun = json!({"type": "tool_execution_update", "partialResult": {"content": [{"text": "begun\n"}]}});
    let seen = client.wait_for(from, &begun);
    let after = abort(&mut client, seen + 1);
    let call = [
        "tool_execution_end",
        "message_start:toolResult",
        "message_end:toolResult",
    ];
    let mut expected: Vec<&str> = call.to_vec();
    for _ in 0..2 {
        expected.push("tool_execution_start");
        expected.extend(call);
    }
    expected.extend([
        "turn_end",
        "turn_start",
        "message_start:assistant",
        "message_end:assistant",
        "turn_end",
        "agent_end",
        "agent_settled",
        "abort:response",
    ]);
    assert_eq!(after, expected, "{}", client.report(seen));
    let results: Vec<Value> = client
        .wait_end(from)
        .into_iter()
        .filter(|m| m["role"] == "toolResult")
        .collect();
    let texts: Vec<&str> = results
        .iter()
        .map(|r| r["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts[0], "begun\n\n\nCommand aborted", "{texts:?}");
    assert!(
        texts[1].contains("aborted") && texts[2].contains("aborted"),
        "{texts:?}"
    );
    assert!(results.iter().all(|result| result["isError"] == true));
    assert!(
        !client.sandbox.work().join("ran").exists(),
        "a call after the abort was made"
    );
    let sleeping: Vec<_> = proc::marked(client.sandbox.marker())
        .into_iter()
        .filter(|process| process.command.starts_with("sleep"))
        .collect();
    assert!(sleeping.is_empty(), "{sleeping:?}");
    goes_on(client, &script(&json!({"text": "on"})));
}

#[test]
fn l5_abort_in_the_middle_of_a_retry() {
    let server =
        ModelServer::start(json!({"turns": [{"http": {"status": 529}}, {"steps": ["on"]}]}));
    let settings = json!({"retry": {"baseDelayMs": 600_000, "provider": {"maxRetries": 0}}});
    let mut client = Client::of(&server, &settings);
    let from = client.prompt("go");
    let seen = client.wait_for(from, &json!({"type": "auto_retry_start"}));
    assert_eq!(client.data("get_state")["isStreaming"], false);
    let mut after = abort(&mut client, seen + 1);
    after.retain(|kind| kind != "get_state:response");
    assert_eq!(after, ["auto_retry_end", "agent_settled", "abort:response"]);
    let told = client.wait_for(from, &json!({"type": "auto_retry_end"}));
    assert_eq!(client.line(told)["finalError"], "Retry cancelled");
    goes_on(client, "again");
}

#[test]
fn l5_a_modern_client_reads_that_an_abort_ended_the_wait_for_a_retry() {
    let settings = json!({"retry": {"baseDelayMs": 600_000}, "rpcDialect": "modern"});
    let mut client = Client::offline_with(&settings);
    let from = client.prompt(&script(&json!([{"overload": 1}, {"text": "on"}])));
    client.wait_for(from, &json!({"type": "agent_end", "willRetry": true}));
    let seen = client.wait_for(from, &json!({"type": "auto_retry_start"}));
    let settled = |client: &Client| -> Vec<Value> {
        let lines = client.lines().into_iter();
        lines
            .filter(|line| line["type"] == "agent_settled")
            .collect()
    };
    assert!(settled(&client).is_empty(), "{}", client.report(from));
    let after = abort(&mut client, seen + 1);
    // The failed answer leaves the context.
    assert_eq!(
        after,
        [
            "entry_appended",
            "auto_retry_end",
            "agent_settled",
            "abort:response"
        ]
    );
    let aborted = json!({"type": "agent_settled", "aborted": true});
    assert_eq!(settled(&client), [aborted]);

    let from = client.prompt(&script(&json!({"text": "on"})));
    client.wait_for(from, &json!({"type": "agent_settled", "aborted": false}));
    assert_eq!(client.finish(), Exit::Code(0));
}

#[test]
fn l5_abort_in_the_middle_of_a_wait_that_the_provider_asked_for() {
    let busy = json!({"http": {"status": 429, "headers": {"retry-after": "50"}}});
    let server = ModelServer::start(json!({"turns": [busy, {"steps": ["on"]}]}));
    let mut client = Client::of(&server, &json!({"retry": {"provider": {"maxRetries": 3}}}));
    let from = client.prompt("go");
    assert!(server.wait_for_requests(1, crate::support::HANG));
    assert!(server.wait_until_idle(crate::support::HANG));
    let after = abort(&mut client, from);
    assert_eq!(after.last().unwrap(), "abort:response");
    assert_eq!(server.request_count(), 1);
    goes_on(client, "again");
}

#[test]
fn l5_abort_in_the_middle_of_a_compaction_the_client_asked_for() {
    let summary =
        json!({"match": {"no_tools": true}, "steps": [{"text": ["half", {"gate": "never"}]}]});
    let server =
        ModelServer::start(json!({"turns": [{"steps": ["one"]}, summary, {"steps": ["on"]}]}));
    let settings = json!({"compaction": {"keepRecentTokens": 1}});
    let mut client = Client::of(&server, &settings);
    let from = client.prompt("go");
    client.wait_end(from);
    let compact = client.send(json!({"type": "compact"}));
    assert!(server.wait_for_requests(2, crate::support::HANG));
    assert_eq!(client.data("get_state")["isCompacting"], true);
    let abort = client.send(json!({"type": "abort"}));
    let (compacted, aborted) = (client.wait_answer(&compact), client.wait_answer(&abort));
    assert!(
        compacted < aborted,
        "what was stopped is answered before what stopped it"
    );
    assert_eq!(client.line(compacted)["error"], "Compaction cancelled");
    assert_eq!(client.line(aborted)["success"], true);
    goes_on(client, "again");
}

#[test]
fn l5_abort_in_the_middle_of_a_compaction_that_was_due() {
    let summary =
        json!({"match": {"no_tools": true}, "steps": [{"text": ["half", {"gate": "never"}]}]});
    let large = json!({"steps": ["one"], "usage": {"input": 190_000, "output": 10}});
    let server = ModelServer::start(json!({"turns": [large, summary, {"steps": ["on"]}]}));
    let settings = json!({"compaction": {"keepRecentTokens": 1}});
    let mut client = Client::of(&server, &settings);
    let from = client.prompt("go");
    let seen = client.wait_for(from, &json!({"type": "auto_compaction_start"}));
    assert!(server.wait_for_requests(2, crate::support::HANG));
    let after = abort(&mut client, seen + 1);
    assert_eq!(
        after,
        ["auto_compaction_end", "agent_settled", "abort:response"]
    );
    let told = client.wait_for(from, &json!({"type": "auto_compaction_end"}));
    assert_eq!(client.line(told)["aborted"], true);
    assert_eq!(client.line(told)["result"], Value::Null);
    // The context is still too large, so the next prompt begins with another attempt.
    let off = client
        .process
        .ask(json!({"type": "set_auto_compaction", "enabled": false}));
    assert_eq!(off["success"], true);
    goes_on(client, "again");
}

#[test]
fn l5_what_waits_in_the_queues_outlives_an_abort() {
    let turn = json!({"steps": [{"text": ["a", {"gate": "never"}]}]});
    let server =
        ModelServer::start(json!({"turns": [turn, {"steps": ["on"]}, {"steps": ["and on"]}]}));
    let mut client = Client::of(&server, &json!({}));
    let from = client.prompt("go");
    client.wait_for(from, &json!({"type": "message_update"}));
    client
        .process
        .ask(json!({"type": "steer", "message": "steered"}));
    client
        .process
        .ask(json!({"type": "follow_up", "message": "followed"}));
    abort(&mut client, from);
    assert_eq!(client.data("get_state")["pendingMessageCount"], 2);
    let from = client.prompt("next");
    let texts: Vec<String> = client
        .wait_end(from)
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["next", "steered", "followed"]);
    assert_eq!(client.data("get_state")["pendingMessageCount"], 0);
}

#[test]
fn l5_an_abort_of_nothing_is_answered_at_once_and_so_are_several_at_a_time() {
    let mut client = Client::offline();
    assert_eq!(
        client.process.ask(json!({"type": "abort"}))["success"],
        true
    );
    let from = client.prompt(&script(&json!({"deltas": 1000, "size": 5, "paceMs": 5})));
    client.wait_for(from, &json!({"type": "message_update"}));
    let ids: Vec<String> = (0..5)
        .map(|_| client.send(json!({"type": "abort"})))
        .collect();
    let end = client.wait_for(from, &json!({"type": "agent_end"}));
    for id in ids {
        assert!(client.wait_answer(&id) > end);
    }
    goes_on(client, &script(&json!({"text": "on"})));
}

#[test]
fn l5_replacing_the_session_ends_the_run_before_it_is_answered() {
    for command in [
        json!({"type": "new_session"}),
        json!({"type": "switch_session", "sessionPath": "other.jsonl"}),
    ] {
        let mut client = Client::offline();
        let from = client.prompt(&script(&json!({"deltas": 1000, "size": 5, "paceMs": 5})));
        client.wait_for(from, &json!({"type": "message_update"}));
        client
            .process
            .ask(json!({"type": "steer", "message": "too late"}));
        let id = client.send(command);
        let answered = client.wait_answer(&id);
        assert_eq!(client.line(answered)["data"]["cancelled"], false);
        let ended = client.wait_for(from, &json!({"type": "agent_end"}));
        assert!(ended < answered);
        let state = client.data("get_state");
        assert_eq!(state["messageCount"], 0, "{state}");
        assert_eq!(state["pendingMessageCount"], 0, "{state}");
        goes_on(client, &script(&json!({"text": "on"})));
    }
}

/// Returns a session whose compaction does not end by itself, with a prompt that waits for it, and the prompt's id.
fn held_prompt() -> (ModelServer, Client, String) {
    let summary = json!({"match": {"no_tools": true}, "sticky": true,
        "steps": [{"text": ["half", {"gate": "never"}]}]});
    let large = json!({"steps": ["one"], "usage": {"input": 190_000, "output": 10}});
    let endless = json!({"steps": [{"text": ["b", {"gate": "never"}]}]});
    let server = ModelServer::start(json!({"turns": [large, summary, endless]}));
    let mut client = Client::of(&server, &json!({"compaction": {"keepRecentTokens": 1}}));
    let from = client.prompt("go");
    client.wait_for(from, &json!({"type": "auto_compaction_start"}));
    let held = client.send(json!({"type": "prompt", "message": "held"}));
    (server, client, held)
}

#[test]
fn l5_an_abort_reaches_a_prompt_that_waits_for_a_compaction() {
    let (_server, mut client, held) = held_prompt();
    let abort = client.send(json!({"type": "abort"}));
    client.wait_answer(&abort);
    client.wait_answer(&held);
    assert_eq!(client.data("get_state")["isStreaming"], false);
    assert_eq!(client.finish(), Exit::Code(0));
    check_runs(&client.lines()).unwrap();
}

#[test]
fn l5_a_prompt_that_waits_for_a_compaction_does_not_hold_up_a_new_session() {
    for command in ["new_session", "compact", "clone"] {
        let (_server, mut client, held) = held_prompt();
        let id = client.send(json!({"type": command}));
        if command == "compact" {
            // This one is endless itself, once it has begun.
            client.wait_answer(&held);
            let abort = client.send(json!({"type": "abort"}));
            client.wait_answer(&abort);
        }
        client.wait_answer(&id);
        client.wait_answer(&held);
        let abort = client.send(json!({"type": "abort"}));
        client.wait_answer(&abort);
        assert_eq!(client.finish(), Exit::Code(0), "{command}");
        check_runs(&client.lines()).unwrap();
    }
}
