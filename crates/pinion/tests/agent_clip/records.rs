//! Topics, agents and sessions: their visibility, and the data that is never shown.

use std::os::unix::fs::PermissionsExt;

use pinion_testkit::{ModelServer, Sandbox};
use serde_json::{Value, json};

use crate::stage::{Stage, kinds, root, text};
use crate::support::script;

fn code(answer: Result<Value, Value>) -> String {
    answer.unwrap_err()["code"].as_str().unwrap().to_owned()
}

#[test]
fn the_agent_is_listed_with_its_commands() {
    let stage = Stage::new();
    let (_, listed) = stage.call(&stage.token, "ListClips", &json!({}));
    let clips = listed["clips"].as_array().unwrap();
    let agent = clips.iter().find(|clip| clip["name"] == "agent").unwrap();
    assert_eq!(
        (
            &agent["package"],
            &agent["version"],
            &agent["domain"],
            &agent["provider"]
        ),
        (
            &json!("@pinix/agent"),
            &json!("1.0.0"),
            &json!("ai"),
            &json!("builtin")
        )
    );
    for command in agent["commands"].as_array().unwrap() {
        let schema: Value = serde_json::from_str(command["input"].as_str().unwrap()).unwrap();
        assert_eq!(schema["type"], "object", "{command}");
    }
    let unknown = stage.try_ask(&stage.token, "format disk", &json!({}));
    assert_eq!(code(unknown), "not_found");
    assert_eq!(
        code(stage.try_ask(&stage.token, "chat", &json!({}))),
        "invalid_argument"
    );
    assert!(stage.ask("--help", &json!({}))["commands"].is_array());
}

#[test]
fn an_input_in_parts_is_collected() {
    let stage = Stage::new();
    let message = script(&json!({"text": "Heard."}));
    let events = stage.chat_in_parts(&json!({ "message": message })).rest();
    assert_eq!(text(&events), "Heard.");
}

#[test]
fn topics_are_made_named_found_and_deleted_in_both_spellings() {
    let stage = Stage::new();
    let made = stage.ask("topic create", &json!({"title": "Plans"}));
    let id = made["id"].as_str().unwrap();
    let events = stage
        .chat(&json!({"topic_id": id, "message": script(&json!({"text": "About elephants."}))}))
        .rest();
    assert_eq!(events[0]["topic_id"], id);
    let shown = stage.ask(&format!("/topics/{id} get"), &json!({}));
    assert_eq!(
        (&shown["title"], &shown["message_count"]),
        (&json!("Plans"), &json!(2))
    );
    assert_eq!(shown["messages"][1]["content"], "About elephants.");
    assert_eq!(shown["messages"][1]["usage"].get("type"), None);
    assert_eq!(
        stage.ask("topic get", &json!({"id": id, "limit": 1}))["messages"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let renamed = stage.ask("topic rename", &json!({"id": id, "title": "Zoo"}));
    assert_eq!(renamed["title"], "Zoo");
    for (query, found) in [("ELEPHANT", 1), ("zoo", 1), ("Plans", 0)] {
        let topics = stage.ask("topic search", &json!({"query": query}))["topics"].clone();
        assert_eq!(topics.as_array().unwrap().len(), found, "{query}");
    }
    let sessions = stage.ask("sessions", &json!({}))["sessions"].clone();
    assert_eq!(
        (&sessions[0]["topic_id"], &sessions[0]["title"]),
        (&json!(id), &json!("Zoo"))
    );
    let session = stage.ask("sessions get", &json!({"topic_id": id}));
    assert_eq!(session["header"]["id"], id);
    assert!(session["entries"].as_array().unwrap().len() >= 2);
    assert_eq!(
        stage.ask(&format!("/topics/{id} delete"), &json!({}))["status"],
        "deleted"
    );
    assert_eq!(stage.ask("/topics list", &json!({}))["topics"], json!([]));
    assert_eq!(
        code(stage.try_ask(&stage.token, "topic get", &json!({"id": id}))),
        "not_found"
    );
    let kept = std::fs::read_dir(root(&stage.sandbox).join("data/agent/sessions")).unwrap();
    assert_eq!(kept.count(), 0);
}

#[test]
fn keys_of_agents_are_used_and_never_shown() {
    const KEY: &str = "sk-abcdefghijklmnopqrstuvwxyz";
    let server = ModelServer::start(json!({"turns": [{"steps": ["From the server."]}]}));
    let stage = Stage::with(Sandbox::new(1), &["--model", "offline/demo"]);
    let made = stage.ask(
        "agent create",
        &json!({"name": "own", "llm_model": "chat-9", "base_url": format!("{}/v1", server.base_url()), "api_key": KEY, "max_tokens": 77, "temperature": 0.25}),
    );
    assert_eq!(made["api_key"], "sk-a...wxyz");
    let events = stage
        .chat(&json!({"message": "hello", "agent_id": made["id"]}))
        .rest();
    assert_eq!(text(&events), "From the server.", "{events:?}");
    let request = server.requests().remove(0).to_string();
    assert!(
        request.contains("77") && request.contains("0.25"),
        "{request}"
    );
    let mut said = vec![made.to_string()];
    for command in [
        "agent list",
        "/agents list",
        "config get",
        "topic list",
        "sessions",
    ] {
        said.push(stage.ask(command, &json!({})).to_string());
    }
    said.push(
        stage
            .ask("agent get", &json!({"id": made["id"]}))
            .to_string(),
    );
    said.extend(events.iter().map(ToString::to_string));
    assert!(said.iter().all(|said| !said.contains(KEY)), "{said:?}");
    let data = root(&stage.sandbox).join("data/agent");
    let file = data.join("agents.json");
    assert!(std::fs::read_to_string(&file).unwrap().contains(KEY));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn who_does_not_own_the_hub_has_topics_of_its_own_and_no_tools_of_the_machine() {
    let stage = Stage::new();
    let other = stage.other_token();
    let mine = stage.ask("topic create", &json!({"title": "Secret"}));
    let ask = |command: &str, input: &Value| stage.try_ask(&other, command, input);
    assert_eq!(
        code(ask("topic get", &json!({"id": mine["id"]}))),
        "not_found"
    );
    assert_eq!(
        code(ask("state", &json!({"topic_id": mine["id"]}))),
        "not_found"
    );
    assert_eq!(ask("topic list", &json!({})).unwrap()["topics"], json!([]));
    for (command, input) in [
        ("agent create", json!({"name": "x"})),
        (
            "agent update",
            json!({"id": "default", "base_url": "http://x"}),
        ),
        ("agent delete", json!({"id": "default"})),
    ] {
        assert_eq!(code(ask(command, &input)), "permission_denied", "{command}");
    }
    let said =
        script(&json!({"turns": [{"tool": "bash", "args": {"command": "id"}}, {"text": "No."}]}));
    let events = stage.chat_as(&other, &json!({"message": said})).rest();
    assert_eq!(kinds(&events).last(), Some(&"result"));
    let result = events
        .iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap();
    assert_eq!(result["content"], "Tool bash not found");
    // The owner of the hub sees all of them.
    let all = stage.ask("topic list", &json!({}))["topics"].clone();
    assert_eq!(all.as_array().unwrap().len(), 2);
}

#[test]
fn the_topics_of_a_deleted_agent_are_not_given_to_another() {
    let stage = Stage::new();
    let made = stage.ask(
        "agent create",
        &json!({"name": "reader", "tools": ["read"]}),
    );
    let begun = stage.chat(&json!({"message": "hello", "agent_id": made["id"]}));
    let topic = begun.rest()[0]["topic_id"].clone();
    stage.ask("agent delete", &json!({"id": made["id"]}));
    let said = script(&json!({"turns": [{"tool": "bash", "args": {"command": "id"}}]}));
    let events = stage
        .chat(&json!({"message": said, "topic_id": topic}))
        .rest();
    let said = events.iter().map(ToString::to_string).collect::<String>();
    assert!(
        said.contains("was deleted") && !said.contains("uid="),
        "{said}"
    );
    // The conversation can still be read.
    assert_eq!(stage.ask("topic get", &json!({"id": topic}))["id"], topic);
}
