//! Tool calls: their order, their failures and their limits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_agent::{Admission, Gate, ToolOrder, Verdict};
use pinion_message::StopReason;
use serde_json::json;

use crate::bench::{Parts, bench, bench_set, bench_with};
use crate::events::{answer, ends_once, last_answer, only};
use crate::provider::{Turn, calls, says};

/// Two calls of `tool`, of which the first ends only when the gate opens, then a text.
fn two(tool: &'static str) -> Vec<Turn> {
    let first = json!({"say": "slow", "gate": "slow"});
    let turn = calls("act", first).calls(tool, json!({"say": "quick"}));
    vec![turn, says("over")]
}

#[tokio::test(start_paused = true)]
async fn sequential_calls_run_one_after_another() {
    let mut bench = bench(two("act"));
    bench.prompt("go").await;
    bench.until("tool start").await;
    bench.gates.open("slow");
    bench.settled().await;
    let expected = ["begin slow", "end slow", "begin quick", "end quick"];
    assert_eq!(bench.tool_log(), expected);
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_overlap_and_their_results_stay_in_call_order() {
    let mut bench = bench_set(two("act"), |settings| {
        settings.tool_order = ToolOrder::Parallel;
    });
    bench.prompt("go").await;
    bench.until("tool end quick").await;
    assert_eq!(bench.tool_log(), ["begin slow", "begin quick", "end quick"]);
    bench.gates.open("slow");
    let lines = bench.settled().await;
    assert_eq!(
        only(&lines, &["message end toolResult"]),
        [
            "message end toolResult: slow",
            "message end toolResult: quick"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn one_sequential_tool_makes_all_calls_sequential() {
    let mut bench = bench_set(two("act_alone"), |settings| {
        settings.tool_order = ToolOrder::Parallel;
    });
    bench.prompt("go").await;
    bench.until("tool start").await;
    bench.gates.open("slow");
    bench.settled().await;
    let expected = ["begin slow", "end slow", "begin quick", "end quick"];
    assert_eq!(bench.tool_log(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_model_sees_the_errors_of_calls() {
    let cases = [
        (
            calls("act", json!({"fail": "no such file"})),
            "no such file",
        ),
        (
            calls("act", json!({"panic": true})),
            "Tool act failed unexpectedly",
        ),
        (calls("nonsense", json!({})), "Tool nonsense not found"),
    ];
    for (turn, error) in cases {
        let mut bench = bench(vec![turn, says("over")]);
        let lines = bench.run("go").await;
        ends_once(&lines);
        assert_eq!(
            only(&lines, &["tool end"]),
            [format!("tool end failed {error}")]
        );
        assert_eq!(last_answer(&lines), answer(StopReason::Stop, "over"));
        let seen = bench.asked()[1].messages.last().unwrap().clone();
        assert_eq!(seen, format!("toolResult: {error}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_one_of_several_parallel_calls_fails_only_that_call() {
    let turn = calls("act", json!({"panic": true})).calls("act", json!({"say": "fine"}));
    let mut bench = bench_set(vec![turn, says("over")], |settings| {
        settings.tool_order = ToolOrder::Parallel;
    });
    let lines = bench.run("go").await;
    let results = only(&lines, &["message end toolResult"]);
    let expected = [
        "message end toolResult: Tool act failed unexpectedly",
        "message end toolResult: fine",
    ];
    assert_eq!(results, expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_time_limit_also_if_the_tool_ignores_it() {
    for (stubborn, seconds) in [(false, 60), (true, 63)] {
        let turn = calls("act", json!({"gate": "never", "stubborn": stubborn}));
        let mut bench = bench_set(vec![turn, says("over")], |settings| {
            settings.tool_timeout = Duration::from_secs(60);
        });
        let before = tokio::time::Instant::now();
        let lines = bench.run("go").await;
        assert_eq!(before.elapsed().as_secs(), seconds);
        let ends = only(&lines, &["tool end failed"]);
        assert_eq!(ends.len(), 1, "{lines:#?}");
        assert_eq!(last_answer(&lines), answer(StopReason::Stop, "over"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_progress_of_a_call_precedes_its_end() {
    let turn = calls("act", json!({"update": ["a", "ab"], "say": "abc"}));
    let mut bench = bench(vec![turn, says("over")]);
    let lines = bench.run("go").await;
    let expected = [
        "tool start act",
        "tool update a",
        "tool update ab",
        "tool end abc",
    ];
    assert_eq!(only(&lines, &["tool"]), expected);
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_when_every_call_of_an_answer_asks_for_it() {
    let all = calls("act", json!({"say": "a", "terminate": true}));
    let mut bench = bench(vec![all, says("on")]);
    let lines = bench.run("go").await;
    ends_once(&lines);
    assert_eq!(bench.asked().len(), 1);
    bench.assert_continues("on").await;

    let some = calls("act", json!({"say": "a", "terminate": true})).calls("act", json!({}));
    let mut bench = crate::bench::bench(vec![some, says("over")]);
    let lines = bench.run("go").await;
    assert_eq!(last_answer(&lines), answer(StopReason::Stop, "over"));
}

/// Refuses every call.
struct Refusal;

impl Gate for Refusal {
    fn begin(&self) {}

    fn settled(&self) {}

    fn admit<'a>(&'a self, call: Admission<'a>) -> BoxFuture<'a, Verdict> {
        let text = format!("{} is not permitted", call.run.name);
        let details = json!({});
        Box::pin(std::future::ready(Verdict::Refuse { text, details }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_refuses_a_call_fails_it_and_the_run_continues() {
    let script = vec![calls("act", json!({"say": "x"})), says("over")];
    let parts = Parts {
        gate: Some(Arc::new(Refusal)),
        ..Parts::default()
    };
    let mut bench = bench_with(script, parts);
    let lines = bench.run("go").await;
    assert_eq!(
        only(&lines, &["tool end"]),
        ["tool end failed act is not permitted"]
    );
    assert!(bench.tool_log().is_empty());
    assert_eq!(last_answer(&lines), answer(StopReason::Stop, "over"));
}

/// A call that makes two others, the first of which ends only when the gate opens.
fn nested() -> Vec<Turn> {
    let first = json!({"say": "slow", "gate": "slow"});
    let nested = json!({"say": "outer", "nested": [first, {"say": "quick", "fail": "no"}]});
    vec![calls("act", nested), says("over")]
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_tool_overlap_and_are_no_messages() {
    let mut bench = bench_set(nested(), |settings| {
        settings.tool_order = ToolOrder::Parallel;
    });
    bench.prompt("go").await;
    bench.until("tool end failed no").await;
    bench.gates.open("slow");
    let lines = bench.settled().await;
    let expected = [
        "begin outer",
        "begin slow",
        "begin quick",
        "end quick",
        "end slow",
    ];
    assert_eq!(bench.tool_log(), expected);
    let results = only(&lines, &["message end toolResult"]);
    assert_eq!(results, ["message end toolResult: slow,no"]);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_tool_run_one_after_another_where_calls_of_the_model_do() {
    let mut bench = bench(nested());
    bench.prompt("go").await;
    bench.until("tool start").await;
    bench.gates.open("slow");
    bench.settled().await;
    let expected = [
        "begin outer",
        "begin slow",
        "end slow",
        "begin quick",
        "end quick",
    ];
    assert_eq!(bench.tool_log(), expected);
}

#[tokio::test(start_paused = true)]
async fn calls_within_calls_have_a_limit() {
    let mut innermost = json!({"say": "inside"});
    for _ in 0..20 {
        innermost = json!({"nested": [innermost]});
    }
    let mut bench = bench(vec![calls("act", innermost), says("over")]);
    bench.prompt("go").await;
    let lines = bench.settled().await;
    let results = only(&lines, &["message end toolResult"]);
    assert_eq!(results, ["message end toolResult: too deep"]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_calls_of_a_tool_that_ignore_it() {
    let stubborn = json!({"say": "slow", "gate": "never", "stubborn": true});
    let outer = json!({"say": "outer", "nested": [stubborn]});
    let mut bench = bench(vec![calls("act", outer)]);
    bench.prompt("go").await;
    bench.until("tool start").await;
    bench.abort().await;
    let lines = bench.settled().await;
    assert_eq!(only(&lines, &["tool end"]).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn details_of_calls_are_reported_where_a_front_requests_them() {
    let turns = || {
        let call = json!({"say": "done", "print": "text", "change": "a.txt"});
        vec![calls("act", call), says("over")]
    };
    let details = [
        "preview",
        "block end",
        "tool start",
        "admitted",
        "printed",
        "tool end",
    ];
    let mut bench = bench_set(turns(), |settings| settings.report_call_details = true);
    bench.prompt("go").await;
    let lines = bench.settled().await;
    let shown: Vec<String> = only(&lines, &details)
        .iter()
        .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        shown,
        ["preview", "block", "tool", "admitted", "printed", "tool"]
    );
    let mut bench = bench_set(turns(), |_| ());
    bench.prompt("go").await;
    let lines = bench.settled().await;
    assert!(
        only(&lines, &["preview", "admitted", "printed"]).is_empty(),
        "{lines:?}"
    );
}
