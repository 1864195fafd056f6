//! Usage is reported per request and in total, and the requests add up to the total. Test names begin with the number
//! of the promise they show.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod support;

use pinion_testkit::{Exit, ModelServer, Sandbox};
use serde_json::{Value, json};

use support::{Client, script};

const MODELS: [&str; 4] = [
    "mock/mock-1",
    "mock-chat/chat-1",
    "mock-resp/resp-1",
    "mock-gem/gem-1",
];
const KINDS: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];

/// Returns the usage of every answer that was reported as complete.
fn told(lines: &[Value]) -> Vec<Value> {
    let ended = lines.iter().filter(|line| line["type"] == "message_end");
    let answers = ended.filter(|line| line["message"]["role"] == "assistant");
    answers
        .map(|line| line["message"]["usage"].clone())
        .collect()
}

/// Adds up the usage of requests.
fn total(usages: &[Value]) -> Value {
    let sum = |kind: &str| {
        usages
            .iter()
            .map(|usage| usage[kind].as_u64().unwrap())
            .sum::<u64>()
    };
    let [input, output, read, write] = KINDS.map(sum);
    json!({"input": input, "output": output, "cacheRead": read, "cacheWrite": write,
           "total": input + output + read + write})
}

fn cost(usages: &[Value]) -> f64 {
    usages
        .iter()
        .map(|usage| usage["cost"]["total"].as_f64().unwrap())
        .sum()
}

/// Checks that the numbers of one request agree with each other.
fn consistent(usage: &Value) {
    let sum: u64 = KINDS
        .iter()
        .map(|kind| usage[*kind].as_u64().unwrap())
        .sum();
    assert_eq!(usage["totalTokens"].as_u64().unwrap(), sum, "{usage}");
    let parts: f64 = KINDS
        .iter()
        .map(|kind| usage["cost"][*kind].as_f64().unwrap())
        .sum();
    let whole = usage["cost"]["total"].as_f64().unwrap();
    assert!((parts - whole).abs() < 1e-12, "{usage}");
}

fn agree(stats: &Value, usages: &[Value], where_: &str) {
    usages.iter().for_each(consistent);
    assert_eq!(stats["tokens"], total(usages), "{where_}: {stats}");
    let (told, sum) = (stats["cost"].as_f64().unwrap(), cost(usages));
    assert!((told - sum).abs() < 1e-9, "{where_}: {told} and {sum}");
}

#[test]
fn m1_the_requests_add_up_to_the_total() {
    for model in MODELS {
        let used = |input: u64, output: u64, read: u64| json!({"input": input, "output": output, "cache_read": read});
        let server = ModelServer::start(json!({"turns": [
            {"steps": [{"text": "Look", "chunk": 1}, {"tool": "bash", "args": {"command": "echo hi"}}],
             "usage": used(1000, 11, 5)},
            {"steps": [{"tool": "bash", "args": {"command": "echo a"}}, {"tool": "bash", "args": {"command": "echo b"}}],
             "usage": used(2000, 23, 0)},
            {"steps": ["Done."], "usage": used(3, 7, 1999)},
            {"steps": ["Again."], "usage": used(31, 1, 0)},
            {"steps": ["And again."], "usage": used(37, 2, 0)},
        ]}));
        let sandbox = Sandbox::new(server.port());
        let mut client = Client::start(sandbox, &["--mode", "rpc", "--model", model]);
        let from = client.prompt("go");
        client
            .process
            .ask(json!({"type": "follow_up", "message": "again"}));
        client.wait_end(from);
        let from = client.prompt("and again");
        client.wait_end(from);
        let usages = told(&client.lines());
        assert_eq!(usages.len(), 5, "{model}");
        // One answer to the client per request to the model: nothing is counted per block.
        assert_eq!(server.request_count(), 5, "{model}");
        let stats = client.data("get_session_stats");
        agree(&stats, &usages, model);
        assert_eq!(stats["tokens"]["output"], 44, "{model}: {stats}");
        assert!(stats["cost"].as_f64().unwrap() > 0.0, "{model}: {stats}");
        // The same after a restart, from the file alone.
        assert_eq!(client.finish(), Exit::Code(0));
        let mut client = client.restart(&["--mode", "rpc", "--model", model, "--continue"]);
        let again = client.data("get_session_stats");
        agree(&again, &usages, model);
        assert_eq!(again["assistantMessages"], 5);
        assert_eq!(again["toolCalls"], 3);
    }
}

#[test]
fn m1_what_a_stopped_answer_cost_is_counted_as_far_as_the_provider_told() {
    let server = ModelServer::start(json!({"turns": [
        {"steps": [{"text": ["a", {"gate": "never"}, "b"]}], "usage": {"input": 500, "output": 9}},
        {"steps": ["fine"], "usage": {"input": 70, "output": 3}},
    ]}));
    let mut client = Client::of(&server, &json!({}));
    let from = client.prompt("go");
    client.wait_for(
        from,
        &json!({"type": "message_update", "assistantMessageEvent": {"delta": "a"}}),
    );
    let abort = client.send(json!({"type": "abort"}));
    client.wait_answer(&abort);
    let from = client.prompt("on");
    client.wait_end(from);
    let usages = told(&client.lines());
    assert_eq!(usages.len(), 2);
    assert_eq!(
        usages[0]["input"], 500,
        "what was told before the abort counts"
    );
    let stats = client.data("get_session_stats");
    agree(&stats, &usages, "abort");
}

#[test]
fn m1_totals_say_what_they_cover_after_a_retry_and_a_compaction() {
    let server = ModelServer::start(json!({"turns": [
        {"steps": ["half", {"error": {"type": "overloaded_error", "message": "Overloaded"}}], "usage": {"input": 900}},
        {"steps": ["whole"], "usage": {"input": 100, "output": 4}},
        {"match": {"no_tools": true}, "steps": ["a summary"], "usage": {"input": 50, "output": 6}},
        {"steps": ["after"], "usage": {"input": 10, "output": 2}},
    ]}));
    let settings = json!({"retry": {"baseDelayMs": 10, "provider": {"maxRetries": 0}},
                          "compaction": {"keepRecentTokens": 1}});
    let mut client = Client::of(&server, &settings);
    let from = client.prompt("go");
    client.wait_for(from, &json!({"type": "auto_retry_end", "success": true}));
    client.wait_for(
        from,
        &json!({"type": "agent_end", "messages": [{"stopReason": "stop"}]}),
    );
    in_context(&mut client, "after a retry");
    let compacted = client.process.ask(json!({"type": "compact"}));
    assert_eq!(compacted["success"], true, "{compacted}");
    in_context(&mut client, "after a compaction");
    let from = client.prompt("on");
    client.wait_end(from);
    in_context(&mut client, "after the next answer");
}

/// Checks that the classic totals cover the messages in the context, and report their number.
fn in_context(client: &mut Client, where_: &str) {
    let messages = client.data("get_messages");
    let messages = messages["messages"].as_array().unwrap();
    let answers: Vec<Value> = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .map(|message| message["usage"].clone())
        .collect();
    let stats = client.data("get_session_stats");
    agree(&stats, &answers, where_);
    assert_eq!(stats["assistantMessages"], answers.len(), "{where_}");
    assert_eq!(stats["totalMessages"], messages.len(), "{where_}");
}

#[test]
fn m1_random_conversations_add_up() {
    let mut random = support::Random::new(31);
    let client = Client::offline();
    client.sandbox.add_agent_files(&json!({"models.json": {"providers": {"offline": {
        "modelOverrides": {"demo": {"cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}}}}}}}));
    let mut client = client.restart(&["--mode", "rpc", "--model", "offline/demo"]);
    for _ in 0..25 {
        let used = json!({"input": random.below(100_000), "output": random.below(5000),
            "cacheRead": random.below(100_000), "cacheWrite": random.below(9000)});
        let turn = json!({"steps": [{"text": "x"}], "usage": used});
        let call = json!({"steps": [{"tool": "bash", "args": {"command": "true"}}], "usage": used});
        let turns = if random.below(2) == 0 {
            json!([turn])
        } else {
            json!([call, call, turn])
        };
        client
            .process
            .ask(json!({"type": "set_auto_compaction", "enabled": false}));
        let from = client.prompt(&script(&json!({"turns": turns})));
        client.wait_end(from);
        let usages = told(&client.lines());
        let stats = client.data("get_session_stats");
        agree(&stats, &usages, "random");
    }
}
