//! The session file: entries before their events, and file systems that do not answer.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use pinion_agent::{Answer, Command, Origin};
use pinion_message::ThinkingLevel;
use pinion_testkit::fault::disk::SilentMount;
use tokio::time::Instant;

use crate::bench::{Bench, Parts, bench, bench_with};
use crate::events::{ends_once, only};
use crate::provider::{Turn, says};

/// Time that commands wait for a file system that does not answer.
const HOLD: Duration = Duration::from_secs(1);
/// Time after which the engine no longer waits for it.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns a directory and the mount over it that never answers; `None` if mounting is not permitted.
fn silent_mount() -> Option<(tempfile::TempDir, SilentMount)> {
    let directory = tempfile::tempdir().unwrap();
    match SilentMount::mount(directory.path()) {
        Ok(mount) => Some((directory, mount)),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

fn bench_at(file: PathBuf, script: Vec<Turn>) -> Bench {
    let parts = Parts {
        file: Some(file),
        ..Parts::default()
    };
    bench_with(script, parts)
}

fn switch(path: PathBuf) -> Command {
    Command::SwitchSession {
        path,
        origin: Origin::Client,
    }
}

#[tokio::test]
async fn entries_are_in_the_file_before_their_events_and_answers() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.jsonl");
    let stored = |wanted: &str| fs::read_to_string(&file).unwrap().contains(wanted);
    let mut bench = bench_at(file.clone(), vec![says("an answer").waits("end")]);
    bench.ask(Command::SetName("a name".into())).await.unwrap();
    assert!(stored("a name"));
    let level = Command::SetThinkingLevel(Some(ThinkingLevel::High));
    let model = Command::SetModel {
        provider: "bench".into(),
        id: "thinker".into(),
    };
    bench.ask(model).await.unwrap();
    bench.ask(level).await.unwrap();
    assert!(stored("thinker") && stored("\"high\""));
    bench.prompt("a question").await;
    bench.until("message end user: a question").await;
    assert!(stored("a question"));
    bench.gates.open("end");
    bench.until("message end stop assistant: an answer").await;
    assert!(stored("an answer"));
    bench.settled().await;
    assert_eq!(only(&bench.news(), &["fault"]), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_file_system_does_not_answer_continues_in_memory() {
    let Some((directory, _mount)) = silent_mount() else {
        return;
    };
    let script = vec![says("one"), says("two")];
    let mut bench = bench_at(directory.path().join("s.jsonl"), script);
    let start = Instant::now();
    bench.prompt("first").await;
    bench.until("turn start").await;
    assert!(bench.state().await.is_streaming);
    assert_eq!(start.elapsed().as_secs(), HOLD.as_secs());
    // A released save holds no further command.
    bench.state().await;
    assert_eq!(start.elapsed().as_secs(), HOLD.as_secs());
    let lines = bench.settled().await;
    ends_once(&[vec!["agent start".to_owned()], lines.clone()].concat());
    assert_eq!(start.elapsed().as_secs(), LIMIT.as_secs());
    let faults = only(&lines, &["fault"]);
    assert_eq!(faults.len(), 2, "one for each message: {faults:#?}");
    assert!(
        faults[0].contains("did not answer within 60 s"),
        "{faults:#?}"
    );
    assert!(faults[1].contains("2 entries wait"), "{faults:#?}");
    // Later entries do not wait.
    bench.run("second").await;
    bench.ask(Command::SetName("a name".into())).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), LIMIT.as_secs());
    let conversation = bench.conversation().await;
    assert_eq!(conversation.len(), 4, "{conversation:?}");
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_the_wait_for_a_file_system_that_does_not_answer() {
    let Some((directory, _mount)) = silent_mount() else {
        return;
    };
    let mut bench = bench_at(directory.path().join("s.jsonl"), vec![says("one")]);
    let start = Instant::now();
    let named = bench.send(Command::SetName("a name".into())).await;
    bench.abort().await;
    assert!(named.await.unwrap().is_ok());
    assert_eq!(start.elapsed().as_secs(), HOLD.as_secs());
    let faults = only(&bench.news(), &["fault"]);
    assert!(faults[0].contains("could not save"), "{faults:#?}");
    bench.run("go").await;
    assert_eq!(start.elapsed().as_secs(), HOLD.as_secs());
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_a_run_that_waits_for_its_file_system() {
    let Some((directory, _mount)) = silent_mount() else {
        return;
    };
    let mut bench = bench_at(directory.path().join("s.jsonl"), vec![says("one")]);
    let start = Instant::now();
    bench.prompt("go").await;
    bench.until("message start user").await;
    bench.abort().await;
    let lines = bench.settled().await;
    assert_eq!(lines.last().unwrap(), "settled aborted=true");
    assert_eq!(start.elapsed().as_secs(), HOLD.as_secs());
}

#[tokio::test(start_paused = true)]
async fn commands_wait_a_second_for_a_switch_which_fails_after_a_minute() {
    let Some((directory, _mount)) = silent_mount() else {
        return;
    };
    let mut bench = bench(vec![says("one"), says("still here")]);
    bench.run("first").await;
    let start = Instant::now();
    let switched = bench.send(switch(directory.path().join("x.jsonl"))).await;
    assert_eq!(bench.state().await.message_count, 2);
    assert_eq!(start.elapsed().as_secs(), HOLD.as_secs());
    let error = switched.await.unwrap().unwrap_err();
    assert_eq!(start.elapsed().as_secs(), LIMIT.as_secs());
    assert_eq!(
        error.to_string(),
        "The session was not changed: the file system did not answer within 60 s"
    );
    bench.assert_continues("still here").await;
}

#[tokio::test]
async fn a_session_that_cannot_be_read_again_does_not_change() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.jsonl");
    let mut bench = bench_at(file.clone(), vec![says("one"), says("two")]);
    bench.run("first").await;
    let before = bench.state().await;
    fs::write(&file, "something else\n").unwrap();
    let error = bench.refused(switch(file.clone())).await;
    assert_eq!(error.code(), "not_a_session", "{error}");
    let after = bench.state().await;
    assert_eq!(after.session_file, before.session_file);
    assert_eq!(after.session_id, before.session_id);
    assert_eq!(after.message_count, 2);
    bench.assert_continues("two").await;
    assert!(fs::read_to_string(&file).unwrap().contains("\"two\""));
}

#[tokio::test]
async fn a_switch_to_the_own_file_shows_what_other_programs_appended() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.jsonl");
    let mut bench = bench_at(file.clone(), vec![says("one"), says("two")]);
    bench.run("first").await;
    let line = r#"{"type":"session_info","id":"cccc0001","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","name":"by pi"}"#;
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}{line}\n")).unwrap();
    let answer = bench.ask(switch(file)).await;
    assert!(matches!(answer, Ok(Answer::Cancelled(false))), "{answer:?}");
    assert_eq!(bench.state().await.session_name.as_deref(), Some("by pi"));
}
