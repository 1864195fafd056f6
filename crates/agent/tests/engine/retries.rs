//! Failed requests: retries with growing pauses, their limit, and errors that are not retried.

use std::time::Duration;

use pinion_agent::{Command, Prompt};
use pinion_message::StopReason;
use serde_json::json;
use tokio::time::Instant;

use crate::bench::{bench, bench_set};
use crate::events::{answer, ends_once, last_answer, only};
use crate::provider::{Turn, calls, fails, says};

#[tokio::test(start_paused = true)]
async fn the_pause_before_a_retry_doubles_with_each_attempt() {
    let script = vec![
        fails("529 overloaded"),
        fails("503 unavailable"),
        fails("socket hang up"),
        says("at last"),
    ];
    let mut bench = bench(script);
    let before = Instant::now();
    let lines = bench.run("go").await;
    assert_eq!(before.elapsed(), Duration::from_secs(2 + 4 + 8));
    let expected = [
        "agent end will retry",
        "retry 1 in 2 s",
        "agent end will retry",
        "retry 2 in 4 s",
        "agent end will retry",
        "retry 3 in 8 s",
        "retry end true ",
        "agent end",
        "settled aborted=false",
    ];
    assert_eq!(only(&lines, &["agent end", "retry", "settled"]), expected);
    assert_eq!(last_answer(&lines), answer(StopReason::Stop, "at last"));
    let conversation = bench.conversation().await;
    assert_eq!(conversation, ["user: go", "assistant: at last"]);
}

#[tokio::test(start_paused = true)]
async fn the_last_retry_reports_the_error_and_the_next_prompt_has_all_retries_again() {
    let script = vec![
        fails("529 overloaded"),
        fails("529 overloaded again"),
        fails("529 overloaded"),
        says("on"),
    ];
    let mut bench = bench_set(script, |settings| settings.max_retries = 1);
    let lines = bench.run("go").await;
    let expected = [
        "agent end will retry",
        "retry 1 in 2 s",
        "agent end",
        "retry end false 529 overloaded again",
        "settled aborted=false",
    ];
    assert_eq!(only(&lines, &["agent end", "retry", "settled"]), expected);
    let lines = bench.run("again").await;
    assert_eq!(
        only(&lines, &["retry"]),
        ["retry 1 in 2 s", "retry end true "]
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_request_is_not_retried() {
    let mut bench = bench(vec![fails("400 invalid request"), says("on")]);
    let lines = bench.run("go").await;
    ends_once(&lines);
    assert_eq!(last_answer(&lines), answer(StopReason::Error, ""));
    assert!(only(&lines, &["retry"]).is_empty());
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn retries_can_be_switched_off() {
    let mut bench = bench(vec![fails("529 overloaded"), says("on")]);
    bench.ask(Command::SetAutoRetry(false)).await.unwrap();
    assert_eq!(bench.preferences.names(), ["retry.enabled"]);
    let lines = bench.run("go").await;
    ends_once(&lines);
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_replaces_a_retry_that_has_not_begun() {
    let mut bench = bench(vec![fails("529 overloaded"), says("on")]);
    bench.prompt("go").await;
    bench.until("retry 1").await;
    let before = Instant::now();
    bench
        .ask(Command::Prompt(Prompt::new("instead")))
        .await
        .unwrap();
    let first = bench.settled().await;
    assert_eq!(
        only(&first, &["retry"]),
        ["retry end false Retry cancelled"]
    );
    let second = bench.settled().await;
    assert_eq!(last_answer(&second), answer(StopReason::Stop, "on"));
    assert!(before.elapsed().is_zero(), "nothing waits for the retry");
    assert_eq!(bench.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_retry_can_be_ended_alone() {
    let mut bench = bench(vec![fails("529 overloaded"), says("on")]);
    bench.ask(Command::AbortRetry).await.unwrap();
    bench.prompt("go").await;
    bench.until("retry 1").await;
    bench.ask(Command::AbortRetry).await.unwrap();
    let expected = ["retry end false Retry cancelled", "settled aborted=false"];
    assert_eq!(bench.news(), expected);
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_repeats_the_request_with_the_results_of_the_calls_before() {
    let script = vec![
        calls("act", json!({"say": "done"})),
        says("half").fails("connection lost"),
        says("whole"),
    ];
    let mut bench = bench(script);
    bench.run("go").await;
    let asked = bench.asked();
    assert_eq!(asked[1].messages, asked[2].messages);
    assert_eq!(asked[2].messages.last().unwrap(), "toolResult: done");
    assert_eq!(
        bench.tool_log(),
        ["begin done", "end done"],
        "calls run once"
    );
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_or_breaks_off_is_retried_as_a_failure() {
    for broken in [
        Turn::default().panics(),
        says("half").panics(),
        Turn::default().breaks_off(),
        says("half").breaks_off(),
    ] {
        let mut bench = bench(vec![broken, says("on")]);
        let lines = bench.run("go").await;
        assert_eq!(
            only(&lines, &["retry"]),
            ["retry 1 in 2 s", "retry end true "]
        );
        assert_eq!(last_answer(&lines), answer(StopReason::Stop, "on"));
    }
}
