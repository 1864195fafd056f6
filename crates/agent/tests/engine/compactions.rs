//! Compactions: at the threshold, after an overflow, on request, and their failures.

use pinion_agent::{Answer, Command};
use pinion_message::StopReason;

use crate::bench::{Bench, bench_set};
use crate::events::{answer, last_answer, only};
use crate::provider::{Turn, fails, says};

fn bench(script: Vec<Turn>) -> Bench {
    bench_set(script, |settings| settings.keep_recent_tokens = 1)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_fills_the_window_is_followed_by_a_compaction() {
    let script = vec![says("one").uses(190_000), says("the summary"), says("on")];
    let mut bench = bench(script);
    let lines = bench.run("go").await;
    let starts = ["agent end", "compaction start", "settled"];
    let expected = [
        "agent end",
        "compaction start Threshold",
        "settled aborted=false",
    ];
    assert_eq!(only(&lines, &starts), expected);
    let end = only(&lines, &["compaction end"]).pop().unwrap();
    assert!(end.starts_with("compaction end aborted=false retry=false"));
    assert!(end.ends_with("the summary"), "{end}");
    let summary = &bench.asked()[1];
    assert!(summary.tools.is_empty(), "a summary needs no tools");
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn below_the_threshold_nothing_is_compacted() {
    // 16384 tokens of the window are reserved.
    let mut bench = bench(vec![says("one").uses(183_000), says("on")]);
    let lines = bench.run("go").await;
    assert!(only(&lines, &["compaction"]).is_empty(), "{lines:#?}");
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn an_overflow_compacts_and_asks_again() {
    let script = vec![
        says("one"),
        fails("prompt is too long"),
        says("the summary"),
        says("on"),
    ];
    let mut bench = bench(script);
    bench.run("first").await;
    let lines = bench.run("second").await;
    let lines_of = only(
        &lines,
        &["agent end", "compaction start", "retry", "settled"],
    );
    let expected = [
        "agent end will retry",
        "compaction start Overflow",
        "agent end",
        "settled aborted=false",
    ];
    assert_eq!(lines_of, expected);
    assert_eq!(last_answer(&lines), answer(StopReason::Stop, "on"));
}

#[tokio::test(start_paused = true)]
async fn a_second_overflow_in_a_row_is_not_compacted_again() {
    let script = vec![
        says("one"),
        fails("prompt is too long"),
        says("the summary"),
        fails("prompt is too long"),
        says("on"),
    ];
    let mut bench = bench(script);
    bench.run("first").await;
    let lines = bench.run("second").await;
    assert_eq!(only(&lines, &["compaction start"]).len(), 1);
    let end = only(&lines, &["compaction end"]).pop().unwrap();
    assert!(end.contains("Context overflow recovery failed"), "{end}");
    assert_eq!(bench.asked().len(), 4);
    assert_eq!(lines.last().unwrap(), "settled aborted=false");
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_leaves_the_conversation_as_it_is() {
    let script = vec![says("one").uses(190_000), fails("400 no")];
    let mut bench = bench(script);
    let lines = bench.run("go").await;
    let end = only(&lines, &["compaction end"]).pop().unwrap();
    assert!(end.contains("Auto-compaction failed"), "{end}");
    assert_eq!(bench.conversation().await, ["user: go", "assistant: one"]);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_on_request_is_answered_with_its_result() {
    let script = vec![
        says("one"),
        says("two"),
        says("the summary"),
        says("the last turn"),
        says("on"),
    ];
    let mut bench = bench(script);
    bench.run("first").await;
    bench.run("second").await;
    let instructions = Some("Mention the weather.".to_owned());
    let result = bench.ask(Command::Compact { instructions }).await;
    let Ok(Answer::Compacted(result)) = result else {
        panic!("{result:?}")
    };
    assert!(result.summary.contains("the summary"), "{result:?}");
    let request = bench.asked()[2].messages.join("\n");
    assert!(request.contains("Mention the weather."), "{request}");
    let again = bench.refused(Command::Compact { instructions: None }).await;
    assert_eq!(again.to_string(), "Already compacted");
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn messages_queued_during_a_compaction_start_a_run_after_it() {
    let script = vec![
        says("one").uses(190_000),
        says("the summary").waits("summary"),
        says("on"),
    ];
    let mut bench = bench(script);
    bench.prompt("go").await;
    bench.until("compaction start").await;
    bench.follow_up("then").await;
    bench.gates.open("summary");
    let lines = bench.settled().await;
    assert_eq!(only(&lines, &["agent start"]).len(), 1);
    assert_eq!(last_answer(&lines), answer(StopReason::Stop, "on"));
    assert_eq!(bench.asked()[2].messages.last().unwrap(), "user: then");
}

#[tokio::test(start_paused = true)]
async fn automatic_compaction_can_be_switched_off() {
    let mut bench = bench(vec![says("one").uses(190_000), says("on")]);
    bench.ask(Command::SetAutoCompaction(false)).await.unwrap();
    let lines = bench.run("go").await;
    assert!(only(&lines, &["compaction"]).is_empty());
    bench.assert_continues("on").await;
}
