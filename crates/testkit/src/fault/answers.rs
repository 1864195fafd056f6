//! Failing answers of a model, for tests of a run's reaction.

use serde_json::{Value, json};

/// Turns that fail: refused, answered with an error or with nonsense, and cut at many positions.
pub fn faults() -> Vec<Value> {
    let mut turns = vec![
        json!({"refuse": true}),
        json!({"http": {"status": 400, "body": {"error": {"message": "no"}}}}),
        json!({"http": {"status": 401, "body": {"error": {"message": "who?"}}}}),
        json!({"http": {"status": 500, "body": "<html>"}}),
        json!({"http": {"status": 529}}),
        json!({"http": {"status": 200, "body": "this is no stream"}}),
        json!({"steps": ["a", {"error": {"type": "overloaded_error", "message": "Overloaded"}}]}),
        json!({"steps": ["a", {"raw": "data: {not json\n\n"}]}),
        json!({"steps": ["a", {"raw_bytes": [255, 254, 10, 10]}]}),
        json!({"steps": ["a", {"stall": true}]}),
        json!({"steps": []}),
    ];
    for at in [
        json!("connect"),
        json!("headers"),
        json!("utf8"),
        json!({"event": 1}),
        json!({"event": 4}),
        json!({"event": 9}),
        json!({"byte": 1}),
        json!({"byte": 200}),
    ] {
        for then in ["stall", "disconnect", "reset"] {
            turns.push(cut(&at, then));
        }
    }
    turns
}

/// Returns a turn that is cut at a position; `then` is the kind of end.
fn cut(at: &Value, then: &str) -> Value {
    json!({"steps": [{"thinking": "Hm, ünd"}, {"text": "some wörds, and möre wörds than anyone needs", "chunk": 3},
                     {"tool": "bash", "args": {"command": "echo never >> ran"}}],
           "fault": {"at": at, "then": then}})
}
