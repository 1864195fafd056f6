//! The switches with which a session records its prompt, its measurements and the answers that it leaves out.

use pinion_agent::{Answer, Command, EngineBehaviour};
use pinion_message::{Message, ThinkingLevel};
use serde_json::{Value, json};

use crate::bench::{Bench, bench, bench_set};
use crate::events::only;
use crate::provider::{Turn, calls, fails, says};

fn bench_as(script: Vec<Turn>, change: impl FnOnce(&mut EngineBehaviour)) -> Bench {
    bench_set(script, |settings| {
        settings.keep_recent_tokens = 1;
        change(&mut settings.behaviour);
    })
}

async fn messages(bench: &Bench) -> Vec<std::sync::Arc<Message>> {
    match bench.ask(Command::GetMessages).await {
        Ok(Answer::Messages(messages)) => messages,
        other => panic!("{other:?}"),
    }
}

async fn entries(bench: &Bench) -> Vec<Value> {
    match bench.ask(Command::GetEntries { since: None }).await {
        Ok(Answer::Entries { entries, .. }) => entries
            .iter()
            .map(|entry| serde_json::from_str(entry.get()).unwrap())
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_prompt_is_recorded_once_and_sent_outside_the_conversation() {
    let mut bench = bench_as(vec![says("one"), says("two")], |behaviour| {
        behaviour.record_system_prompt = true;
    });
    let lines = bench.run("first").await;
    let starts = only(&lines, &["turn start", "message start"]);
    let expected = ["turn start", "message start system", "message start user"];
    assert_eq!(starts[..3], expected);
    let lines = bench.run("second").await;
    assert!(
        only(&lines, &["message start system"]).is_empty(),
        "{lines:#?}"
    );
    for asked in bench.asked() {
        assert!(asked.messages[0].starts_with("user: "), "{asked:?}");
        assert_eq!(asked.system_prompt, "Be brief.");
    }
    let first = messages(&bench).await.remove(0);
    let Message::System(system) = &*first else {
        panic!("{first:?}")
    };
    assert_eq!(json!(system.sections), json!({"preamble": "Be brief."}));
    let tools: Vec<&str> = system.tools_added.iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["act", "act_alone"]);
    assert_eq!(bench.state().await.message_count, 5);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_preserves_the_recorded_prompt() {
    let script = vec![says("one"), says("two"), says("the summary"), says("on")];
    let mut bench = bench_as(script, |behaviour| behaviour.record_system_prompt = true);
    bench.run("first").await;
    bench.run("second").await;
    bench
        .ask(Command::Compact { instructions: None })
        .await
        .unwrap();
    let roles: Vec<&str> = messages(&bench).await.iter().map(|m| m.role()).collect();
    assert_eq!(roles[..2], ["system", "compactionSummary"]);
    let compaction = entries(&bench).await.pop().unwrap();
    assert_eq!(compaction["systemMessage"]["role"], "system");
    let lines = bench.run("third").await;
    assert!(
        only(&lines, &["message start system"]).is_empty(),
        "{lines:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_switch_a_conversation_has_no_prompt() {
    let mut bench = bench(vec![says("one")]);
    bench.run("go").await;
    assert_eq!(bench.conversation().await, ["user: go", "assistant: one"]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_answer_is_left_out_by_an_entry() {
    let mut bench = bench_as(vec![fails("529 overloaded"), says("on")], |behaviour| {
        behaviour.record_omitted_answers = true;
    });
    let lines = bench.run("go").await;
    let expected = [
        "retry 1 in 2 s",
        "entry \"context_edit\" null",
        "retry end true ",
    ];
    assert_eq!(only(&lines, &["retry", "entry"]), expected);
    let entries = entries(&bench).await;
    let edit = entries
        .iter()
        .find(|entry| entry["type"] == "context_edit")
        .unwrap();
    let failed = entries
        .iter()
        .find(|entry| entry["id"] == edit["targetId"])
        .unwrap();
    assert_eq!(failed["message"]["stopReason"], "error");
    assert_eq!(bench.conversation().await, ["user: go", "assistant: on"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_output_limit_cut_off_leaves_the_conversation() {
    let mut bench = bench_as(vec![says("half").cut_off(), says("on")], |behaviour| {
        behaviour.record_omitted_answers = true;
    });
    let lines = bench.run("go").await;
    let expected = [
        "agent end",
        "entry \"context_edit\" null",
        "settled aborted=false",
    ];
    assert_eq!(only(&lines, &["agent end", "entry", "settled"]), expected);
    assert_eq!(bench.conversation().await, ["user: go"]);
}

#[tokio::test(start_paused = true)]
async fn calls_of_an_answer_that_was_cut_off_fail() {
    let script = vec![calls("act", json!({"say": "done"})).cut_off(), says("on")];
    let mut bench = bench_as(script, |behaviour| behaviour.reject_cut_off_calls = true);
    let lines = bench.run("go").await;
    let end = only(&lines, &["tool end"]).pop().unwrap();
    assert!(
        end.contains("failed Tool call \"act\" was not executed"),
        "{end}"
    );
    assert!(bench.tool_log().is_empty(), "the tool does not run");
    assert_eq!(bench.conversation().await.last().unwrap(), "assistant: on");
}

#[tokio::test(start_paused = true)]
async fn a_compaction_runs_between_two_turns() {
    let script = vec![
        calls("act", json!({"say": "done"})).uses(190_000),
        says("the summary"),
        says("on"),
    ];
    let mut bench = bench_as(script, |behaviour| behaviour.compact_between_turns = true);
    let lines = bench.run("go").await;
    let starts = ["turn", "compaction start", "agent end"];
    let expected = [
        "turn start",
        "turn end 1",
        "compaction start Threshold",
        "turn start",
        "turn end 0",
        "agent end",
    ];
    assert_eq!(only(&lines, &starts), expected);
}

#[tokio::test(start_paused = true)]
async fn an_overflow_summarises_everything_and_does_not_announce_the_next_run() {
    let script = vec![
        says("one"),
        fails("prompt is too long"),
        says("the summary"),
        says("the turn"),
        says("on"),
    ];
    let mut bench = bench_as(script, |behaviour| {
        behaviour.summarise_all_on_overflow = true;
        behaviour.hide_run_after_overflow = true;
        behaviour.record_omitted_answers = true;
    });
    bench.run("first").await;
    let lines = bench.run("second").await;
    let expected = [
        "agent end",
        "entry \"context_edit\" null",
        "compaction start Overflow",
        "agent end",
    ];
    assert_eq!(
        only(&lines, &["agent end", "entry", "compaction start"]),
        expected
    );
    let end = only(&lines, &["compaction end"]).pop().unwrap();
    assert!(
        end.contains("the summary") && end.contains("the turn"),
        "{end}"
    );
    assert_eq!(bench.asked().last().unwrap().messages.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn measurements_are_recorded_only_with_the_switch() {
    for recorded in [false, true] {
        let script = vec![calls("act", json!({"say": "done"})), says("on")];
        let mut bench = bench_as(script, |behaviour| behaviour.record_measurements = recorded);
        bench.run("go").await;
        for message in messages(&bench).await {
            let (duration, level) = match &*message {
                Message::Assistant(answer) => (answer.duration_ms, answer.thinking_level),
                Message::ToolResult(result) => (result.duration_ms, Some(ThinkingLevel::Off)),
                _ => continue,
            };
            assert_eq!(duration.is_some(), recorded, "{message:?}");
            let is_answer = message.as_assistant().is_some();
            assert_eq!(level.is_some(), recorded || !is_answer, "{message:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn choices_may_stay_in_the_session() {
    let bench = bench_as(Vec::new(), |behaviour| {
        behaviour.keep_choices_in_session = true
    });
    let chosen = Command::SetModel {
        provider: "bench".to_owned(),
        id: "thinker".to_owned(),
    };
    bench.ask(chosen).await.unwrap();
    bench
        .ask(Command::SetThinkingLevel(Some(ThinkingLevel::High)))
        .await
        .unwrap();
    assert!(bench.preferences.names().is_empty());
    let state = bench.state().await;
    assert_eq!(
        (&*state.model.unwrap().id, state.thinking_level),
        ("thinker", ThinkingLevel::High)
    );
}

#[tokio::test(start_paused = true)]
async fn an_aborted_wait_for_a_retry_is_answered_before_the_session_settles() {
    let mut bench = bench_as(vec![fails("529 overloaded")], |behaviour| {
        behaviour.answer_retry_abort_at_once = true;
    });
    bench.prompt("go").await;
    bench.until("retry 1").await;
    bench.ask(Command::AbortRetry).await.unwrap();
    assert_eq!(
        bench.settled().await.last().unwrap(),
        "settled aborted=false"
    );
}

#[tokio::test(start_paused = true)]
async fn strings_and_queues_follow_their_switches() {
    let mut bench = bench_as(Vec::new(), |behaviour| {
        behaviour.fold_session_names = true;
        behaviour.announce_every_cleared_queue = true;
    });
    bench
        .ask(Command::SetName("  a\n name ".to_owned()))
        .await
        .unwrap();
    bench.ask(Command::ClearQueue).await.unwrap();
    assert_eq!(bench.news(), ["name Some(\"a name\")", "queues [] []"]);
}

#[tokio::test(start_paused = true)]
async fn an_aborted_answer_has_the_text_of_the_switch() {
    let mut bench = bench_as(vec![says("half").hangs()], |behaviour| {
        behaviour.abort_text = Some("stopped");
    });
    bench.prompt("go").await;
    bench.until("delta").await;
    bench.abort().await;
    let last = messages(&bench).await.pop().unwrap();
    assert_eq!(
        last.as_assistant().unwrap().error_message.as_deref(),
        Some("stopped")
    );
}
