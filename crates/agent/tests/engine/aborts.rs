//! Aborts in every phase of a run: the run ends once, the abort is answered last, and the session continues.

use pinion_agent::{Answer, Command, Delivery, EngineError, Origin, Prompt, ToolOrder};
use pinion_message::StopReason;
use serde_json::json;

use crate::bench::{Bench, bench, bench_set};
use crate::events::{answer, ends_once, last_answer, only};
use crate::provider::{Turn, calls, fails, hangs, says};

/// Compacts after the first prompt: its answer fills the window, and the summary never ends.
fn compacting(rest: Vec<Turn>) -> Bench {
    let mut script = vec![says("one").uses(190_000), says("half").hangs()];
    script.extend(rest);
    bench_set(script, |settings| settings.keep_recent_tokens = 1)
}

#[tokio::test(start_paused = true)]
async fn an_abort_of_an_idle_session_is_answered() {
    let mut bench = bench(vec![says("on")]);
    bench.abort().await;
    assert!(bench.news().is_empty());
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_in_a_text_keeps_the_text() {
    let mut bench = bench(vec![says("kept ").hangs(), says("on")]);
    bench.prompt("go").await;
    bench.until("delta kept").await;
    bench.abort().await;
    let rest = bench.news();
    let expected = [
        "message end aborted assistant: kept ",
        "turn end 0",
        "agent end",
        "settled aborted=true",
    ];
    assert_eq!(rest, expected, "the abort is answered after the last event");
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_before_the_first_byte_announces_an_empty_answer() {
    let mut bench = bench(vec![hangs(), says("on")]);
    bench.prompt("go").await;
    bench.until("message end user").await;
    bench.abort().await;
    let expected = [
        "message start assistant",
        "message end aborted assistant: ",
        "turn end 0",
        "agent end",
        "settled aborted=true",
    ];
    assert_eq!(bench.news(), expected);
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_in_a_tool_cancels_it_and_the_calls_after_it() {
    let script = vec![
        calls("act", json!({"say": "first", "gate": "never"}))
            .calls("act", json!({"say": "second", "gate": "never"})),
        says("on"),
    ];
    let mut bench = bench(script);
    bench.prompt("go").await;
    bench.until("tool start").await;
    bench.abort().await;
    let lines = bench.news();
    let ends = only(&lines, &["tool end"]);
    assert_eq!(ends, ["tool end failed Operation aborted"; 2]);
    assert_eq!(last_answer(&lines), answer(StopReason::Aborted, ""));
    assert_eq!(lines.last().unwrap(), "settled aborted=true");
    assert_eq!(bench.tool_log()[..2], ["begin first", "cancel first"]);
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_in_parallel_calls_cancels_all_of_them() {
    let script = vec![
        calls("act", json!({"say": "a", "gate": "never"}))
            .calls("act", json!({"say": "b", "gate": "never"})),
        says("on"),
    ];
    let mut bench = bench_set(script, |settings| settings.tool_order = ToolOrder::Parallel);
    bench.prompt("go").await;
    bench.until("tool start").await;
    bench.until("tool start").await;
    bench.abort().await;
    let mut log = bench.tool_log();
    log.sort();
    assert_eq!(log, ["begin a", "begin b", "cancel a", "cancel b"]);
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_an_abort_is_dropped_after_its_grace() {
    let script = vec![
        calls("act", json!({"gate": "never", "stubborn": true})),
        says("on"),
    ];
    let mut bench = bench(script);
    bench.prompt("go").await;
    bench.until("tool start").await;
    let before = tokio::time::Instant::now();
    bench.abort().await;
    assert_eq!(before.elapsed().as_secs(), 3);
    let ends = only(&bench.news(), &["tool end"]);
    assert_eq!(ends, ["tool end failed Operation aborted"]);
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_the_wait_for_a_retry() {
    let mut bench = bench(vec![fails("529 overloaded"), says("on")]);
    bench.prompt("go").await;
    bench.until("retry 1").await;
    assert!(!bench.state().await.is_streaming);
    bench.abort().await;
    let expected = ["retry end false Retry cancelled", "settled aborted=true"];
    assert_eq!(bench.news(), expected);
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_a_compaction_that_was_requested_and_answers_it_first() {
    let script = vec![says("one"), hangs(), says("on")];
    let mut bench = bench_set(script, |settings| settings.keep_recent_tokens = 1);
    bench.run("go").await;
    let compact = Command::Compact { instructions: None };
    let compacted = bench.send(compact).await;
    bench.until("compaction start Manual").await;
    assert!(bench.state().await.is_compacting);
    let refused = bench.refused(Command::Prompt(Prompt::new("now"))).await;
    assert!(matches!(refused, EngineError::Compacting));
    bench.abort().await;
    let error = compacted.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "Compaction cancelled");
    assert_eq!(
        bench.news(),
        ["compaction end aborted=true retry=false Compaction cancelled"]
    );
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_a_compaction_that_was_due() {
    let mut bench = compacting(vec![says("on")]);
    bench.prompt("go").await;
    bench.until("compaction start Threshold").await;
    bench.abort().await;
    let expected = [
        "compaction end aborted=true retry=false ",
        "settled aborted=true",
    ];
    assert_eq!(bench.news(), expected);
    // The context is still too large, so the next prompt would begin with another attempt.
    bench.ask(Command::SetAutoCompaction(false)).await.unwrap();
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_refuses_a_prompt_that_waits_for_a_compaction() {
    let mut bench = compacting(Vec::new());
    bench.prompt("go").await;
    bench.until("compaction start").await;
    let waiting = bench.send(Command::Prompt(Prompt::new("held"))).await;
    bench.abort().await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, EngineError::AbortedEarly), "{error}");
    assert!(!bench.state().await.is_streaming);
}

// The new session is made on another thread, which a paused clock would overtake.
#[tokio::test]
async fn a_prompt_that_waits_for_a_compaction_does_not_hold_up_a_new_session() {
    for command in [
        Command::NewSession {
            parent: None,
            prepare: None,
            origin: Origin::Client,
        },
        Command::CloneSession,
    ] {
        let mut bench = compacting(vec![says("on")]);
        bench.prompt("go").await;
        bench.until("compaction start").await;
        let waiting = bench.send(Command::Prompt(Prompt::new("held"))).await;
        let replaced = bench.ask(command).await;
        assert!(
            matches!(replaced, Ok(Answer::Cancelled(false))),
            "{replaced:?}"
        );
        let error = waiting.await.unwrap().unwrap_err();
        assert!(matches!(error, EngineError::AbortedEarly), "{error}");
        bench.ask(Command::SetAutoCompaction(false)).await.unwrap();
        bench.assert_continues("on").await;
    }
}

#[tokio::test(start_paused = true)]
async fn queued_messages_survive_an_abort() {
    let mut bench = bench(vec![says("a").hangs(), says("on"), says("and on")]);
    bench.prompt("go").await;
    bench.until("delta a").await;
    bench.queue("steered", Delivery::Steer).await;
    bench.queue("followed", Delivery::FollowUp).await;
    bench.abort().await;
    assert_eq!(bench.state().await.pending_message_count, 2);
    bench.news();
    let lines = bench.run("next").await;
    ends_once(&lines);
    let users = only(&lines, &["message end user"]);
    let expected = ["next", "steered", "followed"];
    assert_eq!(
        users,
        expected.map(|text| format!("message end user: {text}"))
    );
    assert_eq!(bench.state().await.pending_message_count, 0);
}

#[tokio::test(start_paused = true)]
async fn several_aborts_at_a_time_are_all_answered() {
    let mut bench = bench(vec![says("a").hangs(), says("on")]);
    bench.prompt("go").await;
    bench.until("delta a").await;
    let mut answers = Vec::new();
    for _ in 0..5 {
        answers.push(bench.send(Command::Abort).await);
    }
    for answer in answers {
        assert!(matches!(answer.await.unwrap(), Ok(Answer::Done)));
    }
    assert_eq!(bench.news().last().unwrap(), "settled aborted=true");
    bench.assert_continues("on").await;
}
