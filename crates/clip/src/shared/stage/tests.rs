use super::*;
use crate::Code;

/// Every stage in the order in which a process reaches it; the last two differ in whether the process was ready.
const STAGES: [&str; 6] = [
    "asleep",
    "supervised",
    "starting",
    "ready",
    "shutting down before ready",
    "shutting down",
];

fn stage(name: &str) -> ProcessStage {
    let mut stage = ProcessStage::default();
    if name == "asleep" {
        return stage;
    }
    assert_eq!(stage.supervise(), Start::Needed);
    if name == "supervised" {
        return stage;
    }
    stage.started(Arc::default());
    if matches!(name, "ready" | "shutting down") {
        assert!(stage.ready());
    }
    if name.starts_with("shutting down") {
        stage.shut_down();
    }
    stage
}

fn name(stage: &ProcessStage) -> &'static str {
    match &stage.0 {
        Stage::Asleep => "asleep",
        Stage::Supervised => "supervised",
        Stage::Starting(_) => "starting",
        Stage::Ready(_) => "ready",
        Stage::ShuttingDown {
            was_ready: false, ..
        } => "shutting down before ready",
        Stage::ShuttingDown { .. } => "shutting down",
    }
}

/// Applies a transition to every stage and returns the stages that it leads to, in the order of [`STAGES`].
fn after(transition: impl Fn(&mut ProcessStage)) -> [&'static str; 6] {
    STAGES.map(|from| {
        let mut stage = stage(from);
        transition(&mut stage);
        name(&stage)
    })
}

fn process() -> ClipProcess {
    ClipProcess::new(Arc::default())
}

fn fatal(message: &'static str) -> FatalError {
    FatalError {
        error: ClipError::new(Code::Unavailable, message),
        shutdown: Shutdown::Immediate,
    }
}

#[test]
fn supervise_changes_only_a_sleeping_clip() {
    let expected = [
        "supervised",
        "supervised",
        "starting",
        "ready",
        "shutting down before ready",
        "shutting down",
    ];
    let changed = after(|stage| {
        let was_asleep = stage.is_asleep();
        assert_eq!(stage.supervise() == Start::Needed, was_asleep);
    });
    assert_eq!(changed, expected);
}

#[test]
fn sleep_changes_only_a_supervised_clip_without_a_process() {
    let expected = [
        "asleep",
        "asleep",
        "starting",
        "ready",
        "shutting down before ready",
        "shutting down",
    ];
    assert_eq!(after(ProcessStage::sleep), expected);
}

#[test]
fn a_process_starts_only_under_supervision_and_only_once() {
    let expected = [
        "asleep",
        "starting",
        "starting",
        "ready",
        "shutting down before ready",
        "shutting down",
    ];
    assert_eq!(after(|stage| stage.started(Arc::default())), expected);
    let mut running = stage("ready");
    let outbox = running.process().unwrap().outbox.clone();
    running.started(Arc::default());
    assert!(Arc::ptr_eq(&running.process().unwrap().outbox, &outbox));
}

#[test]
fn only_a_starting_process_becomes_ready() {
    let expected = [
        "asleep",
        "supervised",
        "ready",
        "ready",
        "shutting down before ready",
        "shutting down",
    ];
    let changed = after(|stage| {
        let was_starting = stage.is_starting();
        assert_eq!(stage.ready(), was_starting);
    });
    assert_eq!(changed, expected);
}

#[test]
fn a_shutdown_remembers_if_the_process_was_ready() {
    let expected = [
        "asleep",
        "supervised",
        "shutting down before ready",
        "shutting down",
        "shutting down before ready",
        "shutting down",
    ];
    assert_eq!(after(ProcessStage::shut_down), expected);
    let ready = STAGES.map(|name| stage(name).was_ready());
    assert_eq!(ready, [false, false, false, true, false, true]);
}

#[test]
fn the_end_of_a_process_leaves_its_supervisor() {
    let expected = [
        "asleep",
        "supervised",
        "supervised",
        "supervised",
        "supervised",
        "supervised",
    ];
    let changed = after(|stage| {
        let had_process = stage.process().is_some();
        assert_eq!(stage.ended().is_some(), had_process);
    });
    assert_eq!(changed, expected);
}

#[test]
fn there_is_a_process_from_its_start_to_its_end() {
    let running = STAGES.map(|name| {
        let mut stage = stage(name);
        assert_eq!(stage.process().is_some(), stage.process_mut().is_some());
        stage.process().is_some()
    });
    assert_eq!(running, [false, false, true, true, true, true]);
}

#[test]
fn calls_are_written_to_a_ready_process_until_it_has_exited() {
    let accepting = STAGES.map(|name| stage(name).accepting().is_some());
    assert_eq!(accepting, [false, false, false, true, false, false]);
    let mut stage = stage("ready");
    stage.process_mut().unwrap().close_stdin();
    assert!(stage.accepting().is_some(), "the supervisor shuts it down");
    stage.process_mut().unwrap().exit();
    assert!(stage.accepting().is_none());
    assert!(stage.is_ready(), "its last lines are still read");
}

#[test]
fn a_closed_stdin_matters_only_before_the_exit() {
    let mut process = process();
    assert!(!process.is_stdin_closed());
    process.close_stdin();
    assert!(process.is_stdin_closed());
    process.exit();
    assert!(!process.is_stdin_closed());
    process.close_stdin();
    assert!(!process.is_stdin_closed());
}

#[test]
fn only_the_first_understood_line_is_the_first() {
    let mut process = process();
    assert!(process.understood());
    assert!(!process.understood());
    assert!(!process.is_registered());
    process.register();
    assert!(process.is_registered());
    assert!(!process.understood());
    assert!(process.is_registered(), "a later line changes nothing");
}

#[test]
fn the_supervisor_receives_the_first_error_once() {
    let mut process = process();
    process.fail(fatal("first"));
    process.fail(fatal("second"));
    assert!(process.has_failed());
    assert_eq!(process.take_fatal(), Some(fatal("first")));
    assert!(!process.has_failed());
    assert_eq!(process.take_fatal(), None);
}

#[test]
fn the_strongest_request_to_end_takes_effect() {
    let mut process = process();
    assert_eq!(process.requested(), None);
    process.request(Shutdown::Immediate);
    process.request(Shutdown::Graceful);
    assert_eq!(process.requested(), Some(Shutdown::Immediate));
}

#[test]
fn the_next_process_inherits_nothing() {
    let mut stage = stage("ready");
    let process = stage.process_mut().unwrap();
    process.understood();
    process.register();
    process.fail(fatal("old"));
    process.request(Shutdown::Immediate);
    process.make_stale();
    process.exit();
    assert!(stage.ended().is_some_and(|process| process.is_stale()));
    stage.started(Arc::default());
    let process = stage.process_mut().unwrap();
    assert!(process.understood() && !process.is_registered() && !process.is_stale());
    assert_eq!((process.take_fatal(), process.requested()), (None, None));
    assert!(stage.ready() && stage.accepting().is_some());
}
