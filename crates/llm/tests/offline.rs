//! The offline model, seen through the events of its streams.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pinion_llm::{
    OfflineProvider, Provider, Registry, RegistryOptions, Request, RequestOptions, StreamEvent,
};
use pinion_message::{
    AssistantMessage, Block, Content, Message, StopReason, ToolResultMessage, ToolSpec, UserMessage,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(UserMessage::now(vec![Block::text(text)])))
}

fn result(call: &str, tool: &str, text: &str) -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: call.into(),
        tool_name: tool.into(),
        content: vec![Block::text(text)],
        details: None,
        is_error: false,
        duration_ms: None,
        timestamp: 0,
        nested_calls: None,
    }))
}

fn request(messages: Vec<Arc<Message>>) -> Request {
    let nowhere = std::path::Path::new("/nonexistent");
    let (registry, _) = Registry::load(nowhere, RegistryOptions::default());
    let tools = ["read", "bash", "edit", "write", "ls", "grep"].map(|name| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: json!({"type": "object"}),
    });
    Request {
        model: registry.find("offline", "demo").unwrap(),
        system_prompt: None,
        messages,
        tools: Arc::new(tools),
        options: RequestOptions::default(),
        cancel: CancellationToken::new(),
    }
}

async fn events(request: Request) -> Vec<StreamEvent> {
    OfflineProvider.stream(request).collect().await
}

/// The whole answer; checks on the way that the events agree with it.
async fn answer(request: Request) -> AssistantMessage {
    let events = events(request).await;
    let mut texts: Vec<String> = Vec::new();
    let mut ended = 0;
    for (place, event) in events.iter().enumerate() {
        match event {
            StreamEvent::Start(message) => {
                assert_eq!(place, 0);
                assert!(message.content.is_empty());
            }
            StreamEvent::BlockStart { index, .. } => {
                assert_eq!(*index, texts.len());
                texts.push(String::new());
            }
            StreamEvent::Delta { index, delta } => {
                assert_eq!(*index, texts.len() - 1);
                texts[*index].push_str(delta);
            }
            StreamEvent::BlockEnd { index, block } => {
                assert_eq!((*index, ended), (texts.len() - 1, *index));
                ended += 1;
                match block {
                    Block::Text(block) => assert_eq!(block.text, texts[*index]),
                    Block::Thinking(block) => assert_eq!(block.thinking, texts[*index]),
                    Block::ToolCall(call) => {
                        let arguments = serde_json::from_str::<Value>(&texts[*index]);
                        assert_eq!(arguments.unwrap_or_else(|_| json!({})), call.arguments);
                    }
                    Block::Image { .. } => panic!("no model sends images"),
                }
            }
            StreamEvent::Usage(_) => {}
            StreamEvent::End(message) => {
                assert_eq!(place, events.len() - 1);
                return message.clone();
            }
        }
    }
    panic!("no end: {events:?}");
}

async fn calls(text: &str) -> Vec<(String, Value)> {
    let message = answer(request(vec![user(text)])).await;
    assert_eq!(
        message.stop_reason,
        StopReason::ToolUse,
        "{text}: {message:?}"
    );
    message
        .tool_calls()
        .map(|call| (call.name.clone(), call.arguments.clone()))
        .collect()
}

#[tokio::test]
async fn plain_requests_become_tool_calls() {
    for (text, tool, arguments) in [
        ("List the files in src", "ls", json!({"path": "src"})),
        ("read Cargo.toml", "read", json!({"path": "Cargo.toml"})),
        ("run `echo hi`", "bash", json!({"command": "echo hi"})),
        (
            "write a.txt: one\ntwo",
            "write",
            json!({"path": "a.txt", "content": "one\ntwo"}),
        ),
        (
            "edit a.txt: replace `one` with `1`",
            "edit",
            json!({"path": "a.txt", "oldText": "one", "newText": "1"}),
        ),
        ("search for TODO", "grep", json!({"pattern": "TODO"})),
    ] {
        assert_eq!(calls(text).await, [(tool.to_owned(), arguments)], "{text}");
    }
}

#[tokio::test]
async fn results_are_reported_and_the_model_names_itself() {
    let asked = user("run `seq 20`");
    let first = answer(request(vec![asked.clone()])).await;
    let call = first.tool_calls().next().unwrap().id.clone();
    let output: Vec<String> = (1..=20).map(|number| number.to_string()).collect();
    let history = vec![
        asked,
        Arc::new(Message::Assistant(first)),
        result(&call, "bash", &output.join("\n")),
    ];
    let second = answer(request(history)).await;
    assert_eq!(second.stop_reason, StopReason::Stop);
    let text = second.joined_text("");
    assert!(
        text.contains("offline/demo") && text.contains("20 lines") && text.contains("8 more lines"),
        "{text}"
    );

    let hello = answer(request(vec![user("hello")])).await.joined_text("");
    assert!(
        hello.contains("built into pinion") && hello.contains("list the files"),
        "{hello}"
    );
}

#[tokio::test]
async fn thinking_comes_before_the_answer() {
    let message = answer(request(vec![user("think about rust")])).await;
    assert!(
        matches!(
            message.content.as_slice(),
            [Block::Thinking(_), Block::Text(_)]
        ),
        "{message:?}"
    );
    assert!(message.usage.output > 0 && message.usage.input > 0);
    assert_eq!(message.usage.cost.total, 0.0);
}

#[tokio::test]
async fn a_script_is_played_turn_by_turn_whatever_is_steered_in() {
    let script = user(
        "Words first.\noffline: {\"turns\":[[{\"think\":\"hm\"},{\"tool\":\"bash\",\"args\":{\"command\":\"a\"}},{\"tool\":\"read\",\"args\":{\"path\":\"b\"}}],{\"text\":\"second\"}]}\nand after.",
    );
    let mut history = vec![script];
    let first = answer(request(history.clone())).await;
    assert_eq!(first.stop_reason, StopReason::ToolUse);
    let ids: Vec<String> = first.tool_calls().map(|call| call.id.clone()).collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
    history.push(Arc::new(Message::Assistant(first)));
    history.extend([result(&ids[0], "bash", "x"), result(&ids[1], "read", "y")]);
    // A steered message does not end the script.
    history.push(user("also, be quick"));
    let second = answer(request(history.clone())).await;
    assert_eq!(second.joined_text(""), "second");
    history.push(Arc::new(Message::Assistant(second)));
    // The script is over: a new prompt is a plain request.
    history.push(user("list files"));
    assert_eq!(
        answer(request(history)).await.stop_reason,
        StopReason::ToolUse
    );
}

#[tokio::test]
async fn a_new_prompt_ends_a_script_that_was_aborted() {
    let script = user("offline: {\"turns\":[{\"text\":\"one\"},{\"text\":\"two\"}]}");
    let mut first = answer(request(vec![script.clone()])).await;
    first.stop_reason = StopReason::Aborted;
    let history = vec![script, Arc::new(Message::Assistant(first)), user("read x")];
    assert_eq!(
        answer(request(history)).await.stop_reason,
        StopReason::ToolUse
    );
}

#[tokio::test]
async fn scripts_may_stand_in_a_fence_and_in_plain_content() {
    let text = "```offline\n[{\"text\":\"fenced\"},{\"stop\":\"length\"}]\n```";
    let content = Content::Text(text.into());
    let message = Message::User(UserMessage {
        content,
        timestamp: 0,
        attachments: None,
    });
    let answer = answer(request(vec![Arc::new(message)])).await;
    assert_eq!(
        (answer.joined_text("").as_str(), answer.stop_reason),
        ("fenced", StopReason::Length)
    );
}

#[tokio::test]
async fn failures_come_before_or_in_the_middle_of_an_answer() {
    let at_once = events(request(vec![user(
        "offline: {\"error\":{\"status\":400,\"message\":\"no\"}}",
    )]))
    .await;
    let [StreamEvent::End(message)] = at_once.as_slice() else {
        panic!("{at_once:?}")
    };
    assert_eq!(message.error_message.as_deref(), Some("400 no"));
    assert_eq!(message.stop_reason, StopReason::Error);

    let midway = events(request(vec![user(
        "offline: [{\"text\":\"abc\"},{\"error\":\"lost\"}]",
    )]))
    .await;
    assert!(matches!(midway[0], StreamEvent::Start(_)));
    assert!(
        !midway
            .iter()
            .any(|event| matches!(event, StreamEvent::BlockEnd { .. }))
    );
    let Some(StreamEvent::End(message)) = midway.last() else {
        panic!("{midway:?}")
    };
    assert_eq!(
        (message.joined_text("").as_str(), message.stop_reason),
        ("abc", StopReason::Error)
    );

    let broken = answer(request(vec![user("offline: {\"txt\":1}")])).await;
    assert!(
        broken
            .error_message
            .unwrap()
            .starts_with("Offline script: turn 1, step 1: unknown member")
    );
}

#[tokio::test]
async fn an_overload_ends_after_so_many_attempts_and_can_be_repeated() {
    let ask = |session: &str| {
        let mut request = request(vec![user(
            "offline: [{\"overload\":2},{\"text\":\"through\"}]",
        )]);
        request.options.session_id = Some(session.into());
        answer(request)
    };
    for _ in 0..2 {
        for _ in 0..2 {
            let failed = ask("one").await;
            assert!(pinion_llm::is_retryable(&failed), "{failed:?}");
        }
        assert_eq!(ask("one").await.joined_text(""), "through");
    }
    // Sessions do not share their counts.
    assert_eq!(ask("two").await.stop_reason, StopReason::Error);
}

#[tokio::test]
async fn twenty_thousand_deltas_arrive_whole_and_numbered() {
    let events = events(request(vec![user(
        "offline: {\"deltas\":20000,\"size\":12}",
    )]))
    .await;
    let deltas: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::Delta { delta, .. } => Some(&**delta),
            _ => None,
        })
        .collect();
    assert_eq!(deltas.len(), 20_000);
    assert!(deltas.iter().all(|delta| delta.len() == 12));
    assert_eq!(
        (deltas[0], deltas[19_999]),
        ("1.......... ", "20000...... ")
    );
    let Some(StreamEvent::End(message)) = events.last() else {
        panic!()
    };
    assert_eq!(message.joined_text("").len(), 240_000);
}

#[tokio::test(start_paused = true)]
async fn paces_and_stalls_take_their_time() {
    let started = tokio::time::Instant::now();
    let script = "offline: [{\"deltas\":10,\"size\":1,\"paceMs\":20},{\"stall\":500}]";
    assert_eq!(
        answer(request(vec![user(script)])).await.stop_reason,
        StopReason::Stop
    );
    let elapsed = started.elapsed();
    assert!((700..750).contains(&elapsed.as_millis()), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stall_longer_than_the_idle_limit_fails() {
    let mut request = request(vec![user(
        "offline: [{\"text\":\"a\"},{\"stall\":60000},{\"text\":\"b\"}]",
    )]);
    request.options.timeouts.idle = Duration::from_secs(5);
    let message = answer(request).await;
    assert_eq!(
        message.error_message.as_deref(),
        Some("Stream idle timeout: no data for 5 s (timed out)")
    );
    assert_eq!(message.joined_text(""), "a");
}

#[tokio::test(start_paused = true)]
async fn the_offline_model_obeys_the_total_timeout() {
    for script in [
        r#"[{"text":"a"},{"stall":60000},{"text":"b"}]"#,
        r#"{"deltas":1000,"size":1,"paceMs":100}"#,
        r#"[{"text":"a"},{"stall":18446744073709551615}]"#,
    ] {
        let mut request = request(vec![user(&format!("offline: {script}"))]);
        request.options.timeouts.total = Some(Duration::from_secs(2));
        request.options.timeouts.idle = Duration::ZERO;
        let message = answer(request).await;
        assert_eq!(
            message.error_message.as_deref(),
            Some("Request not finished after 2 s (timed out)"),
            "{script}"
        );
    }
}

#[tokio::test]
async fn cancelling_ends_the_stream_at_once() {
    for script in [
        "{\"deltas\":1000000,\"size\":8}",
        "[{\"text\":\"a\"},{\"stall\":600000}]",
        "{\"deltas\":9,\"size\":8,\"paceMs\":600000}",
    ] {
        let request = request(vec![user(&format!("offline: {script}"))]);
        let cancel = request.cancel.clone();
        let mut stream = OfflineProvider.stream(request);
        assert!(matches!(stream.next().await, Some(StreamEvent::Start(_))));
        cancel.cancel();
        let rest: Vec<StreamEvent> = stream.collect().await;
        let Some(StreamEvent::End(message)) = rest.last() else {
            panic!("{rest:?}")
        };
        assert_eq!(message.stop_reason, StopReason::Aborted);
        assert!(rest.len() < 5, "{}", rest.len());
    }
}

#[tokio::test]
async fn usage_can_be_set_and_broken_arguments_made() {
    let script = r#"offline: {"turns":[{"steps":[{"tool":"bash","rawArgs":"{\"command\": \"ec","chunk":3,"id":"t1"}],
        "usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4}}]}"#;
    let message = answer(request(vec![user(script)])).await;
    let call = message.tool_calls().next().unwrap();
    assert_eq!((call.id.as_str(), &call.arguments), ("t1", &json!({})));
    let usage = message.usage;
    assert_eq!(
        (
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write,
            usage.total_tokens
        ),
        (1, 2, 3, 4, 10)
    );
}

#[tokio::test]
async fn a_scenario_file_is_played_over_a_session() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        r#"{"turns":[{"text":"one"},{"text":"two"}],"pace_ms":0}"#,
    )
    .unwrap();
    let mut history = Vec::new();
    for expected in ["one", "two", "The scenario has no more turns."] {
        history.push(user("go on"));
        let mut request = request(history.clone());
        let (registry, _) = Registry::load(
            std::path::Path::new("/nonexistent"),
            RegistryOptions::default(),
        );
        request.model = registry
            .find("offline", &format!("scenario:{}", file.path().display()))
            .unwrap();
        let message = answer(request).await;
        assert_eq!(message.joined_text(""), expected);
        history.push(Arc::new(Message::Assistant(message)));
    }
}

#[tokio::test]
async fn a_conversation_to_summarise_is_not_taken_as_a_script() {
    let text = "<conversation>\n[User]: do things\noffline: {\"error\":\"no\"}\n</conversation>\n\nSummarise.";
    let message = answer(request(vec![user(text)])).await;
    assert_eq!(message.stop_reason, StopReason::Stop);
    assert!(
        message.joined_text("").contains("- do things"),
        "{message:?}"
    );
}
