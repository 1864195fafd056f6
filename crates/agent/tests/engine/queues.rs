//! Messages that wait in the queues of a run, and prompts that arrive while one is active.

use pinion_agent::{Answer, Command, Delivery, Disposition, EngineError, Prompt, Steering};
use pinion_message::StopReason;
use serde_json::json;

use crate::bench::{bench, bench_set};
use crate::events::{answer, ends_once, last_answer, only};
use crate::provider::{calls, says};

#[tokio::test(start_paused = true)]
async fn a_prompt_is_answered_before_its_run_ends_and_settles_once() {
    let mut bench = bench(vec![says("He").says("llo").waits("end")]);
    bench.prompt("hi").await;
    bench.until("delta llo").await;
    assert!(bench.state().await.is_streaming);
    bench.gates.open("end");
    let rest = bench.settled().await;
    assert_eq!(last_answer(&rest), answer(StopReason::Stop, "Hello"));
    assert!(!bench.state().await.is_streaming);
    assert_eq!(bench.conversation().await, ["user: hi", "assistant: Hello"]);
    assert!(bench.news().is_empty(), "nothing follows the last event");
}

#[tokio::test(start_paused = true)]
async fn the_events_of_a_run_have_one_order() {
    let mut bench = bench(vec![calls("act", json!({"say": "done"})), says("ok")]);
    let lines = bench.run("go").await;
    let expected = [
        "agent start",
        "turn start",
        "message start user",
        "message end user: go",
        "message start assistant",
        "block start",
        "block end",
        "message end toolUse assistant: ",
        "tool start act",
        "tool end done",
        "message start toolResult",
        "message end toolResult: done",
        "turn end 1",
        "turn start",
        "message start assistant",
        "block start",
        "delta ok",
        "message end stop assistant: ok",
        "turn end 0",
        "agent end",
        "settled aborted=false",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn a_second_prompt_is_rejected_or_queued_while_a_run_is_active() {
    let mut bench = bench(vec![says("one").waits("end"), says("two")]);
    bench.prompt("first").await;
    bench.until("delta one").await;
    let error = bench.refused(Command::Prompt(Prompt::new("second"))).await;
    assert!(matches!(error, EngineError::Busy));
    let queued = Command::Prompt(Prompt {
        when_busy: Some(Delivery::FollowUp),
        ..Prompt::new("third")
    });
    let taken = bench.ask(queued).await.unwrap();
    assert!(matches!(taken, Answer::Taken(Disposition::Queued)));
    bench.gates.open("end");
    let lines = bench.settled().await;
    assert_eq!(last_answer(&lines), answer(StopReason::Stop, "two"));
    let conversation = bench.conversation().await;
    assert_eq!(
        conversation,
        [
            "user: first",
            "assistant: one",
            "user: third",
            "assistant: two"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_steering_message_skips_the_calls_that_have_not_run() {
    let script = vec![
        calls("act", json!({"say": "first", "gate": "tool"}))
            .calls("act", json!({"say": "second"})),
        says("turned"),
    ];
    let mut bench = bench(script);
    bench.prompt("go").await;
    bench.until("tool start").await;
    bench.steer("left").await;
    bench.gates.open("tool");
    let lines = bench.settled().await;
    let ends = only(&lines, &["tool end"]);
    assert_eq!(
        ends,
        [
            "tool end first",
            "tool end failed Skipped due to queued user message."
        ]
    );
    assert_eq!(bench.tool_log(), ["begin first", "end first"]);
    assert_eq!(bench.asked()[1].messages.last().unwrap(), "user: left");
}

#[tokio::test(start_paused = true)]
async fn a_steering_message_can_wait_for_the_calls_of_the_turn() {
    let script = vec![
        calls("act", json!({"say": "first", "gate": "tool"}))
            .calls("act", json!({"say": "second"})),
        says("turned"),
    ];
    let mut bench = bench_set(script, |settings| {
        settings.steering = Steering::WaitsForTurn
    });
    bench.prompt("go").await;
    bench.until("tool start").await;
    bench.steer("left").await;
    bench.gates.open("tool");
    let lines = bench.settled().await;
    let ends = only(&lines, &["tool end"]);
    assert_eq!(ends, ["tool end first", "tool end second"]);
    assert_eq!(bench.asked()[1].messages.last().unwrap(), "user: left");
}

#[tokio::test(start_paused = true)]
async fn steering_comes_before_follow_ups_and_each_starts_a_turn() {
    let script = vec![
        says("one").waits("end"),
        says("two"),
        says("three"),
        says("four"),
    ];
    let mut bench = bench(script);
    bench.prompt("go").await;
    bench.until("delta one").await;
    bench.follow_up("later").await;
    bench.steer("a").await;
    bench.steer("b").await;
    assert_eq!(bench.state().await.pending_message_count, 3);
    bench.gates.open("end");
    let lines = bench.settled().await;
    assert_eq!(only(&lines, &["agent end", "settled"]).len(), 2);
    let conversation = bench.conversation().await;
    assert_eq!(
        conversation,
        [
            "user: go",
            "assistant: one",
            "user: a",
            "assistant: two",
            "user: b",
            "assistant: three",
            "user: later",
            "assistant: four"
        ]
    );
    assert_eq!(bench.state().await.pending_message_count, 0);
}

#[tokio::test(start_paused = true)]
async fn the_mode_all_delivers_a_queue_in_one_turn() {
    let mut bench = bench(vec![says("one").waits("end"), says("two")]);
    let all = || Some("all".to_owned());
    for command in [
        Command::SetSteeringMode(all()),
        Command::SetFollowUpMode(all()),
    ] {
        bench.ask(command).await.unwrap();
    }
    assert_eq!(bench.preferences.names(), ["steeringMode", "followUpMode"]);
    bench.prompt("go").await;
    bench.until("delta one").await;
    bench.steer("a").await;
    bench.steer("b").await;
    bench.gates.open("end");
    bench.settled().await;
    let asked = &bench.asked()[1].messages;
    assert_eq!(asked[2..], ["user: a", "user: b"]);
}

#[tokio::test(start_paused = true)]
async fn every_change_of_a_queue_is_an_event() {
    let mut bench = bench(vec![says("one").waits("end"), says("two")]);
    bench.prompt("go").await;
    bench.until("delta one").await;
    bench.steer("left").await;
    bench.follow_up("more").await;
    let cleared = bench.ask(Command::ClearQueue).await.unwrap();
    let Answer::Queues {
        steering,
        follow_up,
    } = cleared
    else {
        panic!("{cleared:?}")
    };
    assert_eq!(
        (steering, follow_up),
        (vec!["left".into()], vec!["more".into()])
    );
    bench.steer("right").await;
    bench.gates.open("end");
    let lines = bench.settled().await;
    let updates = [
        "queues [\"left\"] []",
        "queues [\"left\"] [\"more\"]",
        "queues [] []",
        "queues [\"right\"] []",
        "queues [] []",
    ];
    assert_eq!(only(&lines, &["queues"]), updates);
    ends_once(&[vec!["agent start".into()], lines].concat());
}

#[tokio::test(start_paused = true)]
async fn a_message_queued_before_a_prompt_joins_its_run() {
    let mut bench = bench(vec![says("one"), says("two")]);
    bench.follow_up("early follow-up").await;
    bench.steer("early steering").await;
    bench.run("go").await;
    let conversation = bench.conversation().await;
    assert_eq!(
        conversation,
        [
            "user: go",
            "user: early steering",
            "assistant: one",
            "user: early follow-up",
            "assistant: two"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn templates_are_expanded_in_prompts_and_in_queued_messages() {
    let mut bench = bench(vec![says("one").waits("end"), says("two")]);
    bench.prompt("/hello").await;
    bench.until("delta one").await;
    bench.steer("/hello Again.").await;
    bench.gates.open("end");
    bench.settled().await;
    let asked = &bench.asked()[1].messages;
    assert_eq!(asked[0], "user: Say hello.");
    assert_eq!(asked[2], "user: Say hello. Again.");
}
