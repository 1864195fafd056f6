//! Every line follows the published schema.

use pinion_testkit::schema::Schema;
use pinion_testkit::{ModelServer, Sandbox};
use serde_json::{Value, json};

use crate::support::{Client, args, offline_sandbox, pinion, script};

fn check(schema: Schema, lines: &[Value]) {
    let complaints = schema.complaints(lines);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn s9_every_line_of_a_busy_session_is_as_the_schema_says() {
    busy_session(Schema::PiClassic, "auto_compaction_end");
}

#[test]
fn s9_every_line_of_a_busy_modern_session_is_as_the_schema_says() {
    busy_session(Schema::PiModern, "compaction_end");
}

fn busy_session(schema: Schema, summarised: &str) {
    let mut client = Client::offline_with(&json!({"retry": {"baseDelayMs": 10, "maxRetries": 1},
                                                  "compaction": {"keepRecentTokens": 1},
                                                  "rpcDialect": schema.dialect()}));
    client
        .sandbox
        .add_agent_files(&json!({"prompts/greet.md": "hello $1"}));
    let prompts = [
        json!({"turns": [
            [{"think": "Two things.", "signature": "s"}, {"text": "Look:"},
             {"tool": "bash", "args": {"command": "echo a; echo b >&2; exit 3"}},
             {"tool": "read", "args": {"path": "none"}},
             {"tool": "bash", "rawArgs": "{\"command\": \"ec"}],
            {"text": "Done."}]}),
        json!({"tool": "write", "args": {"path": "x.txt", "content": "one\n"}}),
        json!({"tool": "edit", "args": {"path": "x.txt", "oldText": "one", "newText": "two"}}),
        json!({"tool": "bash", "args": {"command": "seq 1 5000"}}),
        json!({"error": "400 broken"}),
        json!({"overload": 9}),
        json!([{"text": "cut"}, {"stop": "length"}]),
        json!({"steps": [{"text": "much"}], "usage": {"input": 1_000_000, "output": 10}}),
    ];
    for prompt in &prompts {
        let from = client.prompt(&script(prompt));
        client.wait_end(from);
    }
    client.wait_for(0, &json!({"type": "auto_retry_end"}));
    client.wait_for(0, &json!({"type": summarised}));
    for command in [
        "get_state",
        "get_messages",
        "get_session_stats",
        "get_commands",
        "get_available_models",
        "cycle_model",
        "cycle_thinking_level",
        "get_available_thinking_levels",
        "get_fork_messages",
        "get_last_assistant_text",
        "clear_queue",
        "get_entries",
        "get_tree",
        "compact",
        "abort",
        "abort_retry",
        "abort_bash",
        "clone",
        "export_html",
        "nonsense",
    ] {
        client.process.ask(json!({"type": command}));
    }
    for command in [
        json!({"type": "bash", "command": "seq 1 5000; kill -9 $$"}),
        json!({"type": "bash", "command": "true"}),
        json!({"type": "set_model", "provider": "offline", "modelId": "demo"}),
        json!({"type": "set_model", "provider": "offline", "modelId": "none"}),
        json!({"type": "set_thinking_level", "level": "high"}),
        json!({"type": "set_steering_mode", "mode": "all"}),
        json!({"type": "set_session_name", "name": "a name"}),
        json!({"type": "steer", "message": "left"}),
        json!({"type": "follow_up", "message": "right"}),
        json!({"type": 7}),
        json!([]),
        json!({"type": "get_state"}),
        json!({"type": "get_session_stats"}),
        json!({"type": "get_messages"}),
        json!({"type": "new_session"}),
        json!({"type": "get_state"}),
        json!({"type": "get_last_assistant_text"}),
        json!({"type": "get_tree"}),
        json!({"type": "fork", "entryId": "none"}),
    ] {
        match command.is_object() {
            true => drop(client.process.ask(command)),
            false => client.process.send(&command),
        }
    }
    client.finish();
    let lines = client.lines();
    assert!(lines.len() > 150);
    check(schema, &lines);
}

#[test]
fn s9_every_line_is_as_the_schema_says_whatever_the_provider() {
    for model in [
        "mock/mock-1",
        "mock-chat/chat-1",
        "mock-resp/resp-1",
        "mock-gem/gem-1",
    ] {
        let turns = json!([
            {"steps": [{"thinking": "Hm.", "signature": "c2ln"}, {"text": "Words", "chunk": 2},
                       {"tool": "bash", "args": {"command": "echo hi"}, "chunk": 3}],
             "usage": {"input": 7, "output": 3, "cache_read": 2}},
            {"steps": ["Over."], "usage": {"input": 9, "output": 1}},
            {"http": {"status": 400, "body": {"error": {"message": "no"}}}},
            {"steps": ["a", {"disconnect": true}]},
        ]);
        let server = ModelServer::start(json!({"turns": turns}));
        let settings = json!({"retry": {"enabled": false, "provider": {"maxRetries": 0}}});
        let sandbox = Sandbox::with_settings(server.port(), &settings);
        let mut client = Client::start(sandbox, &["--mode", "rpc", "--model", model]);
        for _ in 0..3 {
            let from = client.prompt("go");
            client.wait_end(from);
        }
        client.data("get_messages");
        client.data("get_session_stats");
        client.finish();
        check(Schema::PiClassic, &client.lines());
    }
}

#[test]
fn s9_json_mode_writes_a_header_and_then_events() {
    let sandbox = offline_sandbox(&json!({}));
    let prompt = script(
        &json!({"turns": [{"tool": "bash", "args": {"command": "echo hi"}}, {"text": "over"}]}),
    );
    let command = pinion()
        .command(
            &sandbox,
            &args(&["--mode", "json", "--model", "offline/demo", &prompt]),
        )
        .output()
        .unwrap();
    let text = String::from_utf8(command.stdout).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["type"], "session");
    assert_eq!(lines.last().unwrap()["type"], "agent_settled");
    check(Schema::PiClassic, &lines);
}

#[test]
fn s9_the_schema_refuses_what_is_wrong() {
    let usage = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    let answer = json!({"role": "assistant", "content": [], "api": "a", "provider": "p", "model": "m",
        "usage": usage, "stopReason": "stop", "timestamp": 1});
    let mut odd = answer.clone();
    odd["partialJson"] = json!("{");
    let mut timeless = answer.clone();
    timeless["timestamp"] = json!(1.5);
    let good = [
        json!({"type": "agent_start"}),
        json!({"type": "message_start", "message": answer}),
        json!({"id": {"any": []}, "type": "response", "command": "abort", "success": true}),
        json!({"type": "response", "success": false, "error": "Unknown command: undefined"}),
    ];
    let bad = [
        json!({"type": "agent_begin"}),
        json!({"type": "agent_start", "id": 1}),
        json!({"type": "message_start", "message": odd}),
        json!({"type": "message_start", "message": timeless}),
        json!({"type": "message_update", "message": answer}),
        json!({"type": "response", "command": "abort", "success": true, "data": {}}),
        json!({"type": "response", "command": "get_state", "success": true}),
        json!({"type": "response", "command": "abort", "success": false}),
        json!({"type": "auto_retry_end", "success": false, "attempt": 1}),
        json!([]),
    ];
    assert_eq!(Schema::PiClassic.complaints(&good), Vec::<String>::new());
    for line in &bad {
        assert!(Schema::PiClassic.complaint(line).is_some(), "{line}");
    }
}

#[test]
fn s9_the_schemas_tell_the_dialects_apart() {
    let usage = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    let answer = json!({"role": "assistant", "content": [], "api": "a", "provider": "p", "model": "m",
        "usage": usage, "stopReason": "stop", "timestamp": 1});
    let mut pending = answer.clone();
    pending["stopReason"] = json!("pending");
    let update = json!({"type": "text_delta", "contentIndex": 0, "delta": "x"});
    let mut repeating = update.clone();
    repeating["partial"] = answer.clone();
    let ended =
        json!({"type": "tool_execution_end", "toolCallId": "c", "toolName": "t", "isError": true});
    let with = |base: &Value, more: Value| {
        let mut line = base.clone();
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        line
    };
    let result = json!({"content": []});
    for (line, dialects) in [
        (
            json!({"type": "message_update", "usage": usage, "assistantMessageEvent": update}),
            "modern",
        ),
        (
            json!({"type": "message_update", "assistantMessageEvent": repeating, "message": answer}),
            "early classic",
        ),
        (
            json!({"type": "message_start", "message": answer}),
            "early classic modern",
        ),
        (
            json!({"type": "message_start", "message": pending}),
            "modern",
        ),
        (
            json!({"type": "agent_end", "messages": []}),
            "early classic",
        ),
        (
            json!({"type": "agent_end", "messages": [], "willRetry": false}),
            "modern",
        ),
        (
            json!({"type": "agent_end", "messages": [], "willRetry": null}),
            "",
        ),
        (
            json!({"type": "agent_settled", "aborted": false}),
            "classic modern",
        ),
        (
            json!({"type": "auto_compaction_start", "reason": "threshold"}),
            "classic",
        ),
        (
            json!({"type": "auto_compaction_start", "reason": "manual"}),
            "",
        ),
        (
            json!({"type": "compaction_start", "reason": "manual"}),
            "classic modern",
        ),
        (
            with(&ended, json!({"result": result})),
            "early classic modern",
        ),
        (
            with(&ended, json!({"result": result, "durationMs": 5})),
            "modern",
        ),
        (with(&ended, json!({"result": "words"})), "early"),
        (json!({"type": "error", "error": "words"}), "early"),
        (
            json!({"type": "response", "command": "abort", "success": true}),
            "classic modern",
        ),
        (
            json!({"type": "response", "command": "prompt", "success": true}),
            "",
        ),
        (
            json!({"type": "response", "command": "prompt", "success": true, "data": {"disposition": "queued"}}),
            "classic modern",
        ),
        (
            json!({"type": "extension_ui_request", "id": "1", "method": "setTitle", "title": "t"}),
            "classic modern",
        ),
    ] {
        let fits = Schema::PI
            .into_iter()
            .filter(|schema| schema.complaint(&line).is_none());
        let fits: Vec<&str> = fits.map(Schema::dialect).collect();
        assert_eq!(fits.join(" "), dialects, "{line}");
    }
}

#[test]
fn s9_the_schemas_describe_what_clients_write() {
    for (line, dialects) in [
        (json!({"type": "abort"}), "early classic modern"),
        (json!({"type": "abort", "id": 1}), "classic modern"),
        (
            json!({"type": "prompt", "message": "x"}),
            "early classic modern",
        ),
        (
            json!({"type": "prompt", "message": "x", "streamingBehavior": "steer"}),
            "classic modern",
        ),
        (
            json!({"type": "prompt", "message": "x", "streamingBehaviour": "steer"}),
            "",
        ),
        (
            json!({"type": "prompt", "message": "x", "attachments": []}),
            "early",
        ),
        (json!({"type": "prompt", "message": 5}), ""),
        (json!({"type": "set_thinking_level", "level": "hard"}), ""),
        (
            json!({"type": "extension_ui_response", "id": "1", "cancelled": true}),
            "classic modern",
        ),
        (
            json!({"type": "extension_ui_response", "id": "1", "cancelled": false}),
            "",
        ),
    ] {
        let fits = Schema::PI
            .into_iter()
            .filter(|schema| schema.input_complaint(&line).is_none());
        let fits: Vec<&str> = fits.map(Schema::dialect).collect();
        assert_eq!(fits.join(" "), dialects, "{line}");
    }
}

#[test]
fn s9_a_complaint_names_the_place_in_the_kind_that_was_meant() {
    let line = json!({"type": "message_start", "message": {"role": "user", "content": [], "timestamp": "now"}});
    let complaint = Schema::PiClassic.complaint(&line).unwrap();
    assert!(
        complaint.contains("at \"/message/timestamp\""),
        "{complaint}"
    );
    let line = json!({"type": "bash", "command": 5});
    let complaint = Schema::PiModern.input_complaint(&line).unwrap();
    assert!(complaint.contains("at \"/command\""), "{complaint}");
}

#[test]
fn s9_the_program_prints_the_published_schemas() {
    let sandbox = offline_sandbox(&json!({}));
    for (dialect, published) in [
        (
            "early",
            include_str!("../../../../docs/schemas/pi-early.schema.json"),
        ),
        (
            "classic",
            include_str!("../../../../docs/schemas/pi-classic.schema.json"),
        ),
        (
            "modern",
            include_str!("../../../../docs/schemas/pi-modern.schema.json"),
        ),
    ] {
        let arguments = args(&["schema", "pi", "--dialect", dialect]);
        let printed = pinion().command(&sandbox, &arguments).output().unwrap();
        assert!(printed.status.success());
        assert!(printed.stdout == published.as_bytes(), "{dialect}");
    }
}
