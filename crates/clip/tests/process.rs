//! Tests of a clip's process: its start, its input, its end, and the errors that callers receive.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::{DIRECT, EXEC, SHELL, TestClip, ask, call, eventually, messages, part, within};
use futures_util::future::{BoxFuture, join_all};
use pinion_clip::codec::DetectedDialect;
use pinion_clip::data::{DataAnswer, DataRequest};
use pinion_clip::{
    CallError, Clip, ClipError, ClipState, Code, CrossCall, CrossCalls, Invocation, Listing, Token,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn script(clip_json: &str, body: &str) -> TestClip {
    TestClip::script(clip_json, &format!("{SHELL}\n{body}"))
}

#[tokio::test]
async fn a_clip_sleeps_until_it_is_called_and_wakes_again() {
    let clip = TestClip::probe();
    let clip = clip.clip();
    assert_eq!(clip.status().state, ClipState::Sleeping);
    assert_eq!(
        ask(&clip, "echo", &json!({"a": 1})).await.unwrap(),
        json!({"a": 1})
    );
    assert_eq!(
        (clip.status().state, clip.detected_dialect()),
        (ClipState::Running, Some(DetectedDialect::Register))
    );
    assert_eq!(clip.manifest().commands.len(), 4);
    clip.stop().await;
    assert_eq!(clip.status().state, ClipState::Sleeping);
    assert_eq!(
        clip.manifest().commands.len(),
        4,
        "it is known while it sleeps"
    );
    assert_eq!(ask(&clip, "echo", &json!(2)).await.unwrap(), 2);
    let unknown = call(&clip, "nope", &json!({})).output().await;
    let Err(CallError::Answered(unknown)) = unknown else {
        panic!("{unknown:?}")
    };
    assert_eq!(unknown.code, Code::NotFound);
    clip.retire().await;
    let gone = clip.invoke(Invocation::new("echo", common::raw(&json!({}))));
    assert_eq!(gone.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn numbers_pass_unchanged_both_ways() {
    let place = script(
        EXEC,
        r#"register; while next; do input=${line#*'"input":'}; result "${input%\}}"; done"#,
    );
    let clip = place.clip();
    let exact = r#"{"big":123456789012345678901234567890,"small":1.10,"e":1E5}"#;
    let pretty = exact.replace(',', ",\n\t");
    let input = pretty.clone();
    let output = clip
        .invoke(Invocation::new("a", input))
        .unwrap()
        .output()
        .await
        .unwrap();
    assert_eq!(output, pretty.replace('\n', " "));
}

#[tokio::test]
async fn input_that_is_not_json_is_rejected() {
    let place = TestClip::probe();
    let clip = place.clip();
    for input in [
        &b"{"[..],
        b"{} {}",
        b"nothing",
        b"\"\xff\"",
        b"{}\n{\"type\":\"invoke\"}",
        b"\0",
        b"'a'",
        b"[1,]",
    ] {
        let refused = clip.invoke(Invocation::new("echo", input));
        assert_eq!(refused.unwrap_err().code, Code::InvalidArgument);
    }
    assert_eq!(
        clip.status().state,
        ClipState::Sleeping,
        "it was not started"
    );
    for nothing in ["", " \n"] {
        let echo = clip.invoke(Invocation::new("echo", nothing)).unwrap();
        assert_eq!(echo.output().await.unwrap(), "{}");
    }
}

#[tokio::test]
async fn a_clip_inherits_the_environment_without_secrets() {
    let place = TestClip::probe();
    let mut config = place.config();
    config.tokens = Some(Arc::new(Token::new("clip-token-1")));
    config.hub_url = "http://127.0.0.1:1234".into();
    config.variables = vec![
        ("CARGO_REGISTRY_TOKEN".into(), "given on purpose".into()),
        ("PINIX_URL".into(), "http://elsewhere".into()),
    ];
    assert!(!format!("{config:?}").contains("clip-token-1"));
    let log = Arc::new(pinion_clip::logs::ClipLog::in_memory());
    let clip = pinion_clip::Clip::new(config, log, place.cross_calls.clone());
    let seen = ask(&clip, "environment", &json!({})).await.unwrap();
    let variable = |name: &str| seen["variables"][name].as_str();
    assert_eq!(variable("PINIX_URL"), Some("http://127.0.0.1:1234"));
    assert_eq!(variable("PINIX_CLIP_ALIAS"), Some("lab"));
    assert_eq!(variable("PINIX_TOKEN"), Some("clip-token-1"));
    assert_eq!(variable("PINIX_DATA_DIR"), place.path("data").to_str());
    assert!(place.path("data").is_dir());
    assert_eq!(
        variable("PATH").map(str::to_owned),
        std::env::var("PATH").ok()
    );
    assert_eq!(variable("CARGO_REGISTRY_TOKEN"), Some("given on purpose"));
    assert_eq!(
        seen["cwd"].as_str(),
        place.directory().canonicalize().unwrap().to_str()
    );
    assert_eq!(seen["arguments"], json!(["--ipc"]));
}

#[tokio::test]
async fn calls_overlap_and_answers_find_their_callers() {
    let clip = TestClip::probe();
    let clip = clip.clip();
    let slow = call(&clip, "sleep", &json!({"ms": 300, "who": "slow"}));
    let calls = (0..600).map(|number| call(&clip, "echo", &json!(number)).output());
    let answers = join_all(calls.collect::<Vec<_>>()).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), number.to_string());
    }
    assert!(
        std::str::from_utf8(&slow.output().await.unwrap())
            .unwrap()
            .contains("slow")
    );
}

#[tokio::test]
async fn more_calls_than_a_process_may_have_wait() {
    let mut place = script(
        EXEC,
        "register; n=0; while next; do n=$((n+1)); result $n; done",
    );
    place.limits.pending = 2;
    place.limits.waiting = 5;
    let clip = place.clip();
    let calls: Vec<_> = (0..5).map(|_| call(&clip, "a", &json!({}))).collect();
    let refused = clip.invoke(Invocation::new("a", common::raw(&json!({}))));
    assert_eq!(refused.unwrap_err().code, Code::ResourceExhausted);
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.output().await.unwrap(), (number + 1).to_string());
    }
}

#[tokio::test]
async fn a_long_stream_is_slowed_down_by_its_only_reader() {
    let mut place = TestClip::probe();
    place.limits.chunks = 4;
    place.limits.chunk_bytes = 64 * 1024;
    let clip = place.clip();
    let mut stream = call(&clip, "count", &json!({"to": 500, "size": 4000}));
    for number in 0..500_u32 {
        if number.is_multiple_of(100) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(part(&mut stream).await.unwrap().unwrap()["n"], number);
    }
    assert!(part(&mut stream).await.is_none());
}

#[tokio::test]
async fn a_slow_reader_gets_the_last_lines_after_the_process_has_exited() {
    let body = "register; next; for n in 1 2 3 4 5 6 7 8; do chunk $n; done; done_; exit 0";
    let mut place = script(EXEC, body);
    place.limits.chunks = 2;
    let clip = place.clip();
    let mut stream = call(&clip, "a", &json!({}));
    for number in 1..=8 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_eq!(part(&mut stream).await.unwrap().unwrap(), number);
    }
    assert!(part(&mut stream).await.is_none());
}

#[tokio::test]
async fn a_caller_that_does_not_read_loses_only_its_own_call() {
    let mut place = TestClip::probe();
    place.limits.chunks = 4;
    let clip = place.clip();
    let mut stuck = call(&clip, "count", &json!({"to": 100_000, "size": 100}));
    assert_eq!(part(&mut stuck).await.unwrap().unwrap()["n"], 0);
    for number in 0..20 {
        assert_eq!(ask(&clip, "echo", &json!(number)).await.unwrap(), number);
    }
    let mut read = 0;
    let error = loop {
        match part(&mut stuck).await.unwrap() {
            Ok(_) => read += 1,
            Err(error) => break error,
        }
    };
    let CallError::Unanswered(failure) = error else {
        panic!("{error}")
    };
    assert_eq!((failure.code, read), (Code::ResourceExhausted, 4));
    assert!(part(&mut stuck).await.is_none());
    assert_eq!(clip.status().state, ClipState::Running);
}

#[tokio::test]
async fn many_streams_at_once_lose_nothing() {
    let clip = TestClip::probe();
    let clip = clip.clip();
    let streams = (0..32).map(|_| {
        let mut stream = call(&clip, "count", &json!({"to": 2000}));
        async move {
            for number in 0..2000 {
                assert_eq!(part(&mut stream).await.unwrap().unwrap()["n"], number);
            }
            assert!(part(&mut stream).await.is_none());
        }
    });
    join_all(streams.collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_deadline_ends_the_call_and_late_lines_are_dropped() {
    let place = TestClip::probe();
    let clip = place.clip();
    let late = clip.invoke(within(
        Duration::from_millis(100),
        "sleep",
        &json!({"ms": 400}),
    ));
    let error = late.unwrap().output().await.unwrap_err();
    assert_eq!(error.failure().code, Code::DeadlineExceeded);
    assert_eq!(
        ask(&clip, "sleep", &json!({"ms": 600})).await.unwrap()["ms"],
        600
    );
    assert_eq!(clip.status().state, ClipState::Running);
}

/// Makes a call that takes the probe a minute, with a deadline of a millisecond.
async fn too_short(clip: &Clip) {
    let input = json!({"ms": 60_000});
    let late = clip.invoke(within(Duration::from_millis(1), "sleep", &input));
    let error = late.unwrap().output().await.unwrap_err();
    assert_eq!(error.failure().code, Code::DeadlineExceeded);
}

#[tokio::test]
async fn short_deadlines_of_one_caller_do_not_end_the_calls_of_others() {
    let mut place = TestClip::probe();
    place.limits.late_time = Duration::from_millis(300);
    let clip = place.clip();
    let patient = call(&clip, "sleep", &json!({"ms": 2500}));
    for _ in 0..4 {
        too_short(&clip).await;
    }
    // Long after the deadlines of these calls, the process has still printed nothing.
    assert_eq!(patient.output().await.unwrap(), r#"{"ms":2500}"#);
    // Progress of other calls protects the process too.
    for _ in 0..20 {
        assert_eq!(
            ask(&clip, "sleep", &json!({"ms": 50})).await.unwrap()["ms"],
            50
        );
    }
    assert_eq!(clip.status().state, ClipState::Running);
}

#[tokio::test]
async fn a_process_that_hangs_is_ended_and_the_next_call_starts_another() {
    let mut place = TestClip::probe();
    place.limits.late_time = Duration::from_millis(200);
    place.limits.hung_time = Duration::from_millis(800);
    let clip = place.clip();
    assert_eq!(ask(&clip, "echo", &json!(0)).await.unwrap(), 0);
    for _ in 0..2 {
        too_short(&clip).await;
    }
    // Time to end the process, if two late calls were enough.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(
        clip.status().state,
        ClipState::Running,
        "two late calls are not enough"
    );
    too_short(&clip).await;
    eventually("the end of a process that nobody waits for", || {
        clip.status().state == ClipState::Error
    })
    .await;
    assert_eq!(ask(&clip, "echo", &json!(1)).await.unwrap(), 1);
    for _ in 0..3 {
        too_short(&clip).await;
    }
    let waiting = call(&clip, "sleep", &json!({"ms": 60_000}));
    let error = waiting.output().await.unwrap_err();
    assert_eq!(error.failure().code, Code::Unavailable);
    assert!(
        error
            .failure()
            .message
            .contains("3 calls passed their deadline")
    );
    assert_eq!(ask(&clip, "echo", &json!(2)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_deadline_counts_while_waiting_for_a_process() {
    let mut place = script(EXEC, "exit 3");
    place.limits.backoff = Duration::from_secs(60);
    place.limits.longest_backoff = Duration::from_secs(60);
    let clip = place.clip();
    for _ in 0..2 {
        let error = ask(&clip, "a", &json!({})).await.unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert_eq!(error.message, "clip process crashed: exit code 3");
    }
    let late = clip
        .invoke(within(Duration::from_millis(50), "a", &json!({})))
        .unwrap();
    assert_eq!(
        late.output().await.unwrap_err().failure().code,
        Code::DeadlineExceeded
    );
    assert_eq!(clip.status().state, ClipState::Error);
}

#[tokio::test]
async fn a_crash_reports_the_last_lines_of_stderr() {
    let body = r#"register; next; for n in 1 2 3 4 5 6 7 8 9 10 11; do echo "line $n" >&2; done; echo >&2; printf 'ValueError: many' >&2; exit 1"#;
    let place = script(EXEC, body);
    let clip = place.clip();
    let error = ask(&clip, "a", &json!({})).await.unwrap_err();
    let lines: Vec<&str> = error.message.lines().collect();
    assert_eq!(lines[0], "clip process crashed: exit code 1");
    assert_eq!(
        (lines.len(), lines[1], lines[10]),
        (11, "line 3", "ValueError: many")
    );
    assert_eq!(clip.status().message, lines[0]);
}

#[tokio::test]
async fn direct_clips_receive_cancel_when_a_call_is_dropped() {
    let body = r#"while read -r line; do echo "$line" >&2; done"#;
    let place = script(DIRECT, body);
    let clip = place.clip();
    let cancel = CancellationToken::new();
    let mut invocation = Invocation::new("a", common::raw(&json!({})));
    invocation.cancel = Some(cancel.clone());
    let cancelled = clip.invoke(invocation).unwrap();
    let dropped = call(&clip, "b", &json!({}));
    eventually("the call", || {
        messages(&clip).iter().any(|line| line.contains("\"b\""))
    })
    .await;
    cancel.cancel();
    assert_eq!(
        cancelled.output().await.unwrap_err().failure().code,
        Code::Canceled
    );
    drop(dropped);
    eventually("the news", || {
        let log = messages(&clip);
        let told = |id: &str| {
            let canceled = "\"reason\":\"canceled\"";
            log.iter().any(|line| {
                line.contains("\"cancel\"") && line.contains(id) && line.contains(canceled)
            })
        };
        told("\"id\":\"1\"") && told("\"id\":\"2\"")
    })
    .await;
}

#[tokio::test]
async fn a_silent_clip_is_called_all_the_same() {
    let body = r#"next; say '{"type":"log","level":"warn","message":"awake"}'; say '{"type":"response","id":"'$id'","output":1}'; next"#;
    let mut place = script(EXEC, body);
    place.limits.first_line = Duration::from_millis(50);
    let clip = place.clip();
    assert_eq!(ask(&clip, "a", &json!({})).await.unwrap(), 1);
    assert_eq!(clip.detected_dialect(), Some(DetectedDialect::Direct));
    assert!(messages(&clip).contains(&"awake".to_owned()));
}

#[tokio::test]
async fn a_clip_that_only_answers_needs_no_registration() {
    let mut place = script(EXEC, "while next; do result 1; done");
    place.limits.first_line = Duration::from_millis(50);
    let clip = place.clip();
    assert_eq!(ask(&clip, "a", &json!({})).await.unwrap(), 1);
    assert_eq!(clip.detected_dialect(), Some(DetectedDialect::Bare));
}

#[tokio::test]
async fn registration_has_a_time_limit_and_happens_once() {
    let declared = r#"{"runtime":"exec","main":"run.sh","ipc":"register"}"#;
    let mut late = script(declared, "sleep 600");
    late.limits.registration = Duration::from_millis(200);
    let clip = late.clip();
    let error = ask(&clip, "a", &json!({})).await.unwrap_err();
    assert_eq!(error.message, "wait for clip lab register: timed out");
    assert_eq!(error.code, Code::Unavailable);
    for (body, reason) in [
        ("register; register; sleep 600", "registered twice"),
        (
            "say '{\"type\":\"register\"}'; sleep 600",
            "without a manifest",
        ),
        ("id=1; result 1; sleep 600", "did not register first"),
    ] {
        let place = script(declared, body);
        let clip = place.clip();
        let error = ask(&clip, "a", &json!({})).await.unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.message.contains(reason), "{}", error.message);
        eventually("the status", || clip.status().state == ClipState::Error).await;
    }
}

#[tokio::test]
async fn stray_lines_are_logged_and_a_flood_of_them_ends_the_process() {
    let few = "register; next; for n in {1..99}; do echo stray $n; done; result 1; for n in {1..99}; do echo '{\"type\":\"what\"}'; done; next; result 2";
    let place = script(EXEC, few);
    let clip = place.clip();
    assert_eq!(ask(&clip, "a", &json!({})).await.unwrap(), 1);
    assert_eq!(ask(&clip, "a", &json!({})).await.unwrap(), 2);
    assert!(messages(&clip).contains(&"stray 99".to_owned()));
    let place = script(
        EXEC,
        "register; next; for n in {1..100}; do echo stray $n; done; result 1; sleep 600",
    );
    let clip = place.clip();
    let error = ask(&clip, "a", &json!({})).await.unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("100 lines"), "{}", error.message);
}

#[tokio::test]
async fn lines_have_a_length_limit_also_when_they_never_end() {
    let fits = "register; next; head -c 900000 /dev/zero | tr '\\0' ' '; result 1; next";
    let ends = "register; next; head -c 2000000 /dev/zero | tr '\\0' ' '; result 1; sleep 600";
    let endless = "register; next; tr '\\0' ' ' </dev/zero";
    for (body, is_fine) in [(fits, true), (ends, false), (endless, false)] {
        let mut place = script(EXEC, body);
        place.limits.line_in = 1_000_000;
        let clip = place.clip();
        match ask(&clip, "a", &json!({})).await {
            Ok(output) => assert!(is_fine && output == 1),
            Err(error) => assert!(!is_fine && error.code == Code::ResourceExhausted, "{error}"),
        }
    }
    let clip = TestClip::probe();
    let clip = clip.clip();
    let long = json!("x".repeat(9 * 1024 * 1024));
    let refused = clip.invoke(Invocation::new("echo", common::raw(&long)));
    assert_eq!(refused.unwrap_err().code, Code::ResourceExhausted);
    let long = json!("x".repeat(7 * 1024 * 1024));
    assert_eq!(ask(&clip, "echo", &long).await.unwrap(), long);
}

/// Creates a clip that exits with `code` without answering its first call, and answers the next.
fn leaver(code: u8, before: &str) -> TestClip {
    let body = format!(
        "register; next; if [ -e left ]; then result 1; next; else {before} touch left; exit {code}; fi"
    );
    script(EXEC, &body)
}

#[tokio::test]
async fn a_call_is_sent_again_only_after_a_clean_exit_without_an_answer() {
    let place = leaver(0, "");
    assert_eq!(ask(&place.clip(), "a", &json!({})).await.unwrap(), 1);
    let place = leaver(3, "");
    let clip = place.clip();
    assert_eq!(
        ask(&clip, "a", &json!({})).await.unwrap_err().code,
        Code::Unavailable
    );
    assert_eq!(ask(&clip, "a", &json!({})).await.unwrap(), 1);
    let place = leaver(0, "chunk 7;");
    let clip = place.clip();
    let mut stream = call(&clip, "a", &json!({}));
    assert_eq!(part(&mut stream).await.unwrap().unwrap(), 7);
    assert_eq!(
        part(&mut stream).await.unwrap().unwrap_err().failure().code,
        Code::Unavailable
    );
    // The call is sent again only once.
    let place = script(EXEC, "register; next; echo x >>starts; exit 0");
    let error = ask(&place.clip(), "a", &json!({})).await.unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    let starts = std::fs::read_to_string(place.directory().join("starts")).unwrap();
    assert_eq!(starts, "x\nx\n");
}

#[tokio::test]
async fn a_clip_that_leaves_as_soon_as_it_is_idle_is_called_in_time() {
    // The clip handles a call only if the call has arrived already.
    let body = "sleep 0.2; register; if read -r -t 0 line && next; then result 1; fi; exit 0";
    let place = script(EXEC, body);
    let clip = place.clip();
    for _ in 0..3 {
        assert_eq!(ask(&clip, "a", &json!({})).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn crashes_in_a_row_delay_the_next_start() {
    let mut place = script(EXEC, "date +%s%N >>starts; exit 1");
    place.limits.backoff = Duration::from_millis(200);
    let clip = place.clip();
    for _ in 0..4 {
        assert!(ask(&clip, "a", &json!({})).await.is_err());
    }
    let starts = std::fs::read_to_string(place.directory().join("starts")).unwrap();
    let starts: Vec<u64> = starts.lines().map(|line| line.parse().unwrap()).collect();
    let delays: Vec<u64> = starts
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / 1_000_000)
        .collect();
    assert!(delays[1] >= 190 && delays[2] >= 390, "{delays:?}");
}

#[tokio::test]
async fn an_idle_process_is_ended_and_a_stubborn_one_killed() {
    let mut place = TestClip::probe();
    place.limits.idle = Some(Duration::from_millis(150));
    let clip = place.clip();
    assert_eq!(
        ask(&clip, "sleep", &json!({"ms": 400})).await.unwrap()["ms"],
        400
    );
    eventually("its end", || clip.status().state == ClipState::Sleeping).await;
    assert_eq!(ask(&clip, "echo", &json!(1)).await.unwrap(), 1);

    let stubborn =
        "trap 'echo told >&2' TERM; register; next; result $$; while :; do sleep 0.05; done";
    let mut place = script(EXEC, stubborn);
    place.limits.shutdown_time = Duration::from_millis(200);
    let clip = place.clip();
    let pid = ask(&clip, "a", &json!({})).await.unwrap();
    clip.stop().await;
    assert_eq!(clip.status().state, ClipState::Sleeping);
    assert!(
        messages(&clip).contains(&"told".to_owned()),
        "{:?}",
        messages(&clip)
    );
    eventually("its end", || {
        !std::path::Path::new(&format!("/proc/{pid}")).exists()
    })
    .await;
}

#[tokio::test]
async fn a_renewed_process_finishes_what_it_does_first() {
    let place = TestClip::probe();
    let clip = place.clip();
    clip.renew();
    assert_eq!(clip.status().state, ClipState::Sleeping, "nothing to renew");
    let busy = call(&clip, "sleep", &json!({"ms": 300}));
    eventually("the process is there", || clip.is_running()).await;
    clip.renew();
    busy.output().await.unwrap();
    eventually("it has ended", || !clip.is_running()).await;
    assert_eq!(clip.status().state, ClipState::Sleeping);
    ask(&clip, "echo", &json!(1)).await.unwrap();
    clip.renew();
    eventually("it has ended again", || !clip.is_running()).await;
    assert_eq!(ask(&clip, "echo", &json!(2)).await.unwrap(), 2);
    assert!(clip.is_running(), "the next process stays");
}

#[tokio::test]
async fn stopping_lets_a_call_finish() {
    let place = script(EXEC, "register; next; sleep 0.3; result 1");
    let clip = place.clip();
    let last = call(&clip, "a", &json!({}));
    eventually("the process", || clip.is_running()).await;
    clip.stop().await;
    assert_eq!(last.output().await.unwrap(), "1");
}

#[tokio::test]
async fn descendants_of_a_process_end_with_it() {
    let body =
        "register; next; (setsid sleep 600 >/dev/null 2>&1 & echo $! >child); result 1; exit 0";
    let place = script(EXEC, body);
    let clip = place.clip();
    assert_eq!(ask(&clip, "a", &json!({})).await.unwrap(), 1);
    eventually("its end", || !clip.is_running()).await;
    let child = std::fs::read_to_string(place.directory().join("child")).unwrap();
    let child = format!("/proc/{}", child.trim());
    eventually("the end of its child", || {
        !std::path::Path::new(&child).exists()
    })
    .await;
}

#[tokio::test]
async fn a_clip_whose_program_cannot_run_reports_why() {
    let place = TestClip::new();
    place.write("clip.json", r#"{"runtime":"exec","main":"run.sh"}"#);
    let error = ask(&place.clip(), "a", &json!({})).await.unwrap_err();
    assert_eq!(error.code, Code::FailedPrecondition);
    assert!(error.message.contains("run.sh"), "{}", error.message);
    std::fs::write(place.directory().join("run.sh"), "x").unwrap();
    let error = ask(&place.clip(), "a", &json!({})).await.unwrap_err();
    assert!(error.message.contains("chmod +x"), "{}", error.message);
    place.write("run.sh", "#!/no/such/interpreter\n");
    let clip = place.clip();
    let error = ask(&clip, "a", &json!({})).await.unwrap_err();
    assert_eq!(
        (error.code, clip.status().state),
        (Code::Unavailable, ClipState::Error)
    );
}

/// Answers calls to other clips late, never, or with a panic.
#[derive(Debug)]
struct Odd;

impl CrossCalls for Odd {
    fn invoke<'a>(
        &'a self,
        from: &'a str,
        call: CrossCall,
    ) -> BoxFuture<'a, Result<Bytes, ClipError>> {
        assert_eq!(from, "lab");
        Box::pin(async move {
            match call.clip.as_str() {
                "panics" => unreachable!("as the test wants it"),
                "hangs" => std::future::pending().await,
                "long" => Ok(common::raw(&json!("x".repeat(9 * 1024 * 1024)))),
                _ => Ok(common::raw(&json!(call.command))),
            }
        })
    }

    fn list_clips<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Listing>, ClipError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn data<'a>(
        &'a self,
        _: &'a str,
        _: DataRequest,
    ) -> BoxFuture<'a, Result<DataAnswer, ClipError>> {
        Box::pin(async { Ok(DataAnswer::Content(Bytes::new())) })
    }
}

#[tokio::test]
async fn every_request_of_a_clip_is_answered() {
    let body = r#"register
while next; do
  say '{"type":"invoke","id":"c1","clip":"'$command'","command":"hello","input":{}}'
  read -r answer
  case $answer in *'"error"'*) answer=${answer#*'"error":'};; *) answer=${answer#*'"output":'};; esac
  result "${answer%\}}"
done"#;
    let mut place = script(EXEC, body);
    place.cross_calls = Arc::new(Odd);
    place.limits.request_time = Duration::from_millis(200);
    let clip = place.clip();
    let said = async |clip_name: &str| ask(&clip, clip_name, &json!({})).await.unwrap();
    assert_eq!(said("other").await, "hello");
    assert_eq!(
        said("panics").await,
        "the request failed because of an internal error in the hub"
    );
    assert_eq!(said("hangs").await, "the request was not answered in time");
    let too_long = said("long").await;
    assert!(
        too_long.as_str().unwrap().contains("bytes long"),
        "{too_long}"
    );
}

#[tokio::test]
async fn requests_without_a_clip_or_a_command_are_refused() {
    let body = r#"register; next
say '{"type":"invoke","id":"c1","command":"hello"}'; read -r one
say '{"type":"invoke","id":2,"clip":"x"}'; read -r two
say '{"type":"data","id":"c3","operation":"burn","path":"a"}'; read -r three
result "[$one,$two,$three]""#;
    let place = script(EXEC, body);
    let answers: Value = ask(&place.clip(), "a", &json!({})).await.unwrap();
    assert_eq!(
        answers[0],
        json!({"type": "error", "id": "c1", "error": "clip is required"})
    );
    assert_eq!(
        answers[1],
        json!({"type": "error", "id": 2, "error": "command is required"})
    );
    assert_eq!(answers[2]["error"]["code"], "invalid_argument");
}

#[tokio::test]
async fn a_dropped_clip_takes_its_process_and_its_callers_with_it() {
    let place = TestClip::probe();
    let clip = place.clip();
    ask(&clip, "echo", &json!(1)).await.unwrap();
    let pending = call(&clip, "sleep", &json!({"ms": 600_000}));
    drop(clip);
    assert_eq!(
        pending.output().await.unwrap_err().failure().code,
        Code::Unavailable
    );
}
