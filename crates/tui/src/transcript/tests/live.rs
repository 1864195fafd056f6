//! Tests of runs in progress.

use pinion_agent::{BashOutcome, CompactionReason, CompactionResult, SavedCompaction};
use serde_json::json;

use super::*;

/// A run with everything in progress.
fn running(now: Instant) -> Transcript {
    let mut transcript = Transcript::new();
    let test = call("1", "bash", json!({"command": "cargo test"}));
    let read = call("2", "read", json!({"path": "a.rs"}));
    let both = answer(
        vec![
            thinking("I see."),
            Block::text("Both at once."),
            test.clone(),
            read,
        ],
        StopReason::ToolUse,
        None,
    );
    apply(&mut transcript, said(&user("Go")));
    apply(&mut transcript, streamed(&both));
    let made = TestCall::new(&test, output("", None), false);
    transcript.apply_at(&made.start(), now);
    transcript.apply(&made.update("one\ntwo\nthree\nfour\nfive\nsix\nseven\n"));
    transcript
}

#[test]
fn a_running_tool_shows_the_end_of_its_output() {
    let mut test_look = TestLook::new();
    let mut transcript = running(test_look.now);
    test_look.now += Duration::from_secs(75);
    assert!(transcript.is_lively());
    insta::assert_snapshot!(whole(&mut transcript, 40, &test_look), @r"
    > Go

    thinking … 1 line (Ctrl-T)

    Both at once.

    • bash $ cargo test · running 1 min 15 s
    three
    four
    five
    six
    seven

    • read a.rs · waiting
    ");
    transcript.apply(&Event::Settled { aborted: true });
    assert!(!transcript.is_lively());
    let text = whole(&mut transcript, 40, &test_look);
    assert!(
        text.ends_with("✗ bash $ cargo test · stopped\n✗ read a.rs · stopped"),
        "{text}"
    );
}

#[test]
fn thinking_shows_its_tail_while_it_grows() {
    let long =
        "I weigh one thing against another, and the other against the first, for quite a while. ";
    let message = answer(vec![thinking(&long.repeat(4))], StopReason::Stop, None);
    let events = streamed(&message);
    let mut transcript = Transcript::new();
    apply(&mut transcript, events[..20].iter().cloned());
    let test_look = TestLook::new();
    let tail = whole(&mut transcript, 40, &test_look);
    insta::assert_snapshot!(tail, @r"
    thinking … 1 line
    the other against the first, for quite a
    while. I weigh one thing against
    another, and
    ");
    apply(&mut transcript, events[20..].iter().cloned());
    assert_eq!(
        whole(&mut transcript, 40, &test_look),
        "thinking … 1 line (Ctrl-T)"
    );
}

#[test]
fn a_call_is_readable_while_it_is_written() {
    let content = "x".repeat(3000);
    let block = call(
        "1",
        "write",
        json!({"path": "src/long.rs", "content": content}),
    );
    let events = streamed(&answer(vec![block], StopReason::ToolUse, None));
    let mut transcript = Transcript::new();
    apply(&mut transcript, events[..3].iter().cloned());
    let test_look = TestLook::new();
    assert_eq!(whole(&mut transcript, 80, &test_look), "• write · …");
    apply(&mut transcript, events[3..300].iter().cloned());
    assert_eq!(
        whole(&mut transcript, 80, &test_look),
        "• write src/long.rs (1 line) · 2.0 KB"
    );
}

#[test]
fn a_retry_counts_down_and_goes_away() {
    let failed = answer(vec![], StopReason::Error, Some("529 Overloaded"));
    let mut transcript = Transcript::new();
    apply(&mut transcript, said(&user("Hello")));
    apply(&mut transcript, streamed(&failed));
    let test_look = TestLook::new();
    let advised = whole(&mut transcript, 80, &test_look);
    assert!(advised.contains("The provider is busy."), "{advised}");
    let mut test_look = test_look;
    let retry = Event::RetryStart {
        attempt: 1,
        max_attempts: 3,
        delay: Duration::from_secs(4),
        error: "529 Overloaded".into(),
    };
    transcript.apply_at(&retry, test_look.now);
    assert!(transcript.is_lively());
    insta::assert_snapshot!(whole(&mut transcript, 80, &test_look), @r"
    > Hello

    The request failed: 529 Overloaded

    Trying again in 4 s (retry 1 of 3; Esc stops)
    ");
    test_look.now += Duration::from_secs(10);
    assert!(whole(&mut transcript, 80, &test_look).contains("Trying again now (retry 1 of 3"));
    transcript.apply(&Event::AgentStart);
    assert!(!transcript.is_lively());
    let text = whole(&mut transcript, 80, &test_look);
    assert_eq!(text, "> Hello\n\nThe request failed: 529 Overloaded");
    transcript.apply(&Event::RetryEnd {
        success: false,
        attempt: 3,
        final_error: Some("529 Overloaded".into()),
    });
    let text = whole(&mut transcript, 80, &test_look);
    assert!(
        text.ends_with("Retried 3 times without success. Giving up."),
        "{text}"
    );
}

#[test]
fn a_compaction_ends_as_a_summary_or_with_words() {
    let test_look = TestLook::new();
    let mut transcript = Transcript::new();
    let start = Event::CompactionStart {
        reason: CompactionReason::Threshold,
    };
    let end = |result, aborted, error: Option<&str>| Event::CompactionEnd {
        reason: CompactionReason::Threshold,
        result,
        aborted,
        will_retry: false,
        error: error.map(str::to_owned),
    };
    transcript.apply(&start);
    insta::assert_snapshot!(whole(&mut transcript, 80, &test_look), @"Summarising the conversation, which is close to the model's limit … (Esc stops)");
    transcript.apply(&end(None, true, None));
    assert_eq!(
        whole(&mut transcript, 80, &test_look),
        "Summarising was stopped."
    );
    transcript.apply(&start);
    transcript.apply(&end(None, false, Some("no")));
    let short = "Nothing to compact (session too small)";
    transcript.apply(&end(None, false, Some(short)));
    let result = CompactionResult {
        summary: "All of it.".into(),
        first_kept_entry_id: "x".into(),
        tokens_before: 9_000,
        estimated_tokens_after: 100,
        usage: None,
        details: None,
        saved: SavedCompaction::default(),
    };
    transcript.apply(&start);
    transcript.apply(&end(Some(Arc::new(result)), false, None));
    insta::assert_snapshot!(whole(&mut transcript, 80, &test_look), @r"
    Summarising was stopped.

    Summarising failed: no
    The conversation is unchanged. Use /compact to try again.

    There is nothing to summarise yet: the conversation is short.

    Summary of the earlier conversation (9,000 tokens) … 1 line (Ctrl-O)
    ");
}

#[test]
fn a_command_of_the_user_is_followed() {
    let test_look = TestLook::new();
    let mut transcript = Transcript::new();
    let id = transcript.shell_start("make all", false);
    assert!(transcript.is_lively());
    transcript.shell_output(id, "one\ntwo\nthr");
    transcript.shell_output(id, "ee\n");
    let text = whole(&mut transcript, 40, &test_look);
    assert_eq!(text, "! make all · running\none\ntwo\nthree");
    let outcome = BashOutcome {
        output: "one\ntwo\nthree".into(),
        exit_code: Some(2),
        cancelled: false,
        truncated: false,
        full_output_path: None,
    };
    transcript.shell_end(id, Ok(&outcome));
    assert!(!transcript.is_lively());
    let text = whole(&mut transcript, 40, &test_look);
    assert_eq!(text, "! make all · exit code 2\none\ntwo\nthree");

    let id = transcript.shell_start("secret", true);
    transcript.shell_end(id, Err("no shell"));
    let text = whole(&mut transcript, 40, &test_look);
    assert!(text.ends_with("!! secret · failed\nno shell"), "{text}");
}

#[test]
fn a_run_is_followed_after_the_list_was_made_anew() {
    let test_look = TestLook::new();
    let test = call("1", "bash", json!({"command": "cargo test"}));
    let made = TestCall::new(&test, output("fine", None), false);
    let first = answer(vec![test], StopReason::ToolUse, None);
    let second = answer(vec![Block::text("It is fine.")], StopReason::Stop, None);
    let mut transcript = Transcript::new();
    transcript.load(&[user("Go"), Arc::clone(&first)]);
    transcript.apply_at(&made.update("so far"), test_look.now);
    assert!(transcript.is_lively());
    let text = whole(&mut transcript, 40, &test_look);
    assert_eq!(text, "> Go\n\n• bash $ cargo test · running\nso far");
    apply(&mut transcript, made.events().into_iter().skip(1));

    let events = streamed(&second);
    let messages = [user("Go"), first, made.message()];
    transcript.load(&messages);
    apply(&mut transcript, events[1..3].iter().cloned());
    let text = whole(&mut transcript, 40, &test_look);
    assert!(text.ends_with("\n\nIt is f"), "{text}");
    apply(&mut transcript, events[3..].iter().cloned());
    assert_eq!(transcript.last_answer().as_deref(), Some("It is fine."));
}
