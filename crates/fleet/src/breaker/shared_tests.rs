//! Tests of breakers that several processes share.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Admission, BreakerRules, BreakerState, Permit, RunBreakers};
use crate::Breakers;

const S: fn(u64) -> Duration = Duration::from_secs;

struct TempFile(tempfile::TempDir);

impl TempFile {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("fleet/breakers.json")
    }

    fn run_breakers(&self) -> RunBreakers {
        RunBreakers::new(BreakerRules::default(), Some(self.file()))
    }

    fn contents(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap()
    }

    fn write(&self, text: &str) {
        fs::create_dir_all(self.file().parent().unwrap()).unwrap();
        fs::write(self.file(), text).unwrap();
    }
}

fn admit(run_breakers: &mut RunBreakers, now: u64) -> Admission {
    let (admission, warning) =
        run_breakers.update(S(now), |breakers| breakers.of("m").admit(S(now)));
    assert_eq!(warning, None);
    admission
}

fn go(run_breakers: &mut RunBreakers, now: u64) -> Permit {
    match admit(run_breakers, now) {
        Admission::Granted(permit) => permit,
        other => panic!("{other:?} at {now}"),
    }
}

fn fail(run_breakers: &mut RunBreakers, permit: Permit, now: u64) -> Option<String> {
    run_breakers
        .update(S(now), |breakers| breakers.of("m").failed(permit, S(now)))
        .1
}

/// Opens the breaker with three failures at this time.
fn open(run_breakers: &mut RunBreakers, now: u64) {
    for _ in 0..3 {
        let permit = go(run_breakers, now);
        assert_eq!(fail(run_breakers, permit, now), None);
    }
}

#[test]
fn a_failure_seen_by_one_process_counts_for_all() {
    let temp = TempFile::new();
    let (mut one, mut other) = (temp.run_breakers(), temp.run_breakers());
    let permit = go(&mut one, 100);
    assert!(!temp.file().exists(), "nothing is known yet");
    fail(&mut one, permit, 100);
    for now in [101, 102] {
        let permit = go(&mut other, now);
        fail(&mut other, permit, now);
    }
    assert_eq!(admit(&mut one, 103), Admission::NotBefore(S(222)));
    let mut probe = go(&mut one, 222);
    assert!(probe.is_probe());
    assert_eq!(admit(&mut other, 223), Admission::Probing);
    one.update(S(224), |breakers| breakers.of("m").succeeded(&mut probe));
    assert!(!go(&mut other, 225).is_probe());
}

#[test]
fn the_file_is_written_only_after_a_change() {
    let temp = TempFile::new();
    let mut run_breakers = temp.run_breakers();
    open(&mut run_breakers, 100);
    let before = fs::metadata(temp.file()).unwrap().modified().unwrap();
    for now in 101..120 {
        admit(&mut run_breakers, now);
    }
    let after = fs::metadata(temp.file()).unwrap().modified().unwrap();
    assert_eq!(before, after);
}

#[test]
fn the_probe_of_a_dead_process_is_given_up() {
    let temp = TempFile::new();
    let prober = |pid: u32| {
        json!({"version": 1, "written": 1000, "models": {"m": {
            "period": 2, "state": "half_open", "prober": {"pid": pid, "started": 1},
        }}})
    };
    // A process with this pid exists, but started at another time.
    temp.write(&prober(std::process::id()).to_string());
    let probe = go(&mut temp.run_breakers(), 1);
    assert!(probe.is_probe());
    let kept = &temp.contents()["models"]["m"]["prober"];
    assert_eq!(kept["pid"], std::process::id());
    assert_ne!(kept["started"], 1);
    assert_eq!(admit(&mut temp.run_breakers(), 2), Admission::Probing);
}

#[test]
fn an_invalid_file_is_moved_aside_with_one_warning() {
    let whole = r#"{"version":1,"written":5,"models":{"m":{"period":1,"changed":5,"state":"open","until":120000}}}"#;
    let torn = (0..whole.len()).map(|end| whole[..end].to_owned());
    let foreign = [
        "{}",
        "[]",
        "hello",
        "{\"version\":1}",
        "\0\0\0",
        "{\"version\":\"1\"}",
    ];
    for text in torn.chain(foreign.map(str::to_owned)) {
        let temp = TempFile::new();
        temp.write(&text);
        let mut run_breakers = temp.run_breakers();
        let (admission, warning) =
            run_breakers.update(S(1), |breakers| breakers.of("m").admit(S(1)));
        assert!(matches!(admission, Admission::Granted(_)), "{text:?}");
        assert!(warning.unwrap().contains("breakers.json.damaged"));
        let aside = temp.file().with_extension("json.damaged");
        assert_eq!(fs::read_to_string(aside).unwrap(), text);
        temp.write(&text);
        open(&mut run_breakers, 2);
        assert_eq!(
            admit(&mut temp.run_breakers(), 3),
            Admission::NotBefore(S(122))
        );
    }
    let temp = TempFile::new();
    temp.write(whole);
    assert_eq!(
        admit(&mut temp.run_breakers(), 3),
        Admission::NotBefore(S(120))
    );
}

#[test]
fn a_file_of_a_newer_program_is_left_alone() {
    let temp = TempFile::new();
    let newer = r#"{"version":2,"rows":[]}"#;
    temp.write(newer);
    let mut run_breakers = temp.run_breakers();
    let (_, warning) = run_breakers.update(S(1), |breakers| breakers.of("m").admit(S(1)));
    assert!(warning.unwrap().contains("newer"));
    open(&mut run_breakers, 2);
    assert_eq!(fs::read_to_string(temp.file()).unwrap(), newer);
}

#[test]
fn a_run_that_cannot_write_continues_without_sharing() {
    let temp = TempFile::new();
    let (mut one, mut other) = (temp.run_breakers(), temp.run_breakers());
    let permit = go(&mut one, 100);
    for now in [100, 101] {
        fail(&mut one, permit, now);
    }
    let permit = go(&mut other, 102);
    // Root may write everywhere, but not over a directory, so a directory replaces the file after it was read.
    let file = temp.file();
    let aside = file.with_extension("aside");
    let (_, warning) = other.update(S(102), |breakers| {
        fs::rename(&file, &aside).unwrap();
        fs::create_dir(&file).unwrap();
        breakers.of("m").failed(permit, S(102))
    });
    fs::remove_dir(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    let warning = warning.unwrap();
    assert!(
        warning.contains("no longer shares its breakers") && warning.contains("breakers.json"),
        "{warning}"
    );
    assert!(!other.is_shared());
    assert_eq!(admit(&mut other, 103), Admission::NotBefore(S(222)));
    assert!(matches!(admit(&mut one, 103), Admission::Granted(_)));
    let mut nowhere = RunBreakers::new(
        BreakerRules::default(),
        Some("/proc/nowhere/breakers.json".into()),
    );
    let (admission, warning) = nowhere.update(S(1), |breakers| breakers.of("m").admit(S(1)));
    assert!(matches!(admission, Admission::Granted(_)) && warning.is_some());
    open(&mut nowhere, 2);
    assert_eq!(admit(&mut nowhere, 3), Admission::NotBefore(S(122)));
}

#[test]
fn a_run_that_stops_sharing_does_not_wait_for_other_probes() {
    let temp = TempFile::new();
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.id())).unwrap();
    let started: u64 = stat
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .nth(19)
        .unwrap()
        .parse()
        .unwrap();
    let half_open = json!({"version": 1, "written": 1, "models": {"m": {
        "period": 2, "state": "half_open", "prober": {"pid": sleeper.id(), "started": started},
    }}});
    temp.write(&half_open.to_string());
    let mut run_breakers = temp.run_breakers();
    assert_eq!(admit(&mut run_breakers, 1), Admission::Probing);
    temp.write("{\"version\":9}");
    let (admission, warning) = run_breakers.update(S(2), |breakers| breakers.of("m").admit(S(2)));
    assert!(warning.is_some());
    assert!(matches!(admission, Admission::Granted(permit) if permit.is_probe()));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn a_clock_set_back_does_not_prolong_the_cooldown() {
    let temp = TempFile::new();
    let mut run_breakers = temp.run_breakers();
    open(&mut run_breakers, 10_000);
    assert_eq!(
        admit(&mut run_breakers, 10_001),
        Admission::NotBefore(S(10_120))
    );
    // The clock is set back by an hour. At most 1 s of the 120 s had passed at the last write.
    assert_eq!(
        admit(&mut run_breakers, 6_400),
        Admission::NotBefore(S(6_520))
    );
    assert_eq!(
        admit(&mut run_breakers, 6_410),
        Admission::NotBefore(S(6_520))
    );
    assert!(go(&mut run_breakers, 6_520).is_probe());
    // A process that waited for the lock has a time slightly before the one in the file.
    let temp = TempFile::new();
    let mut run_breakers = temp.run_breakers();
    open(&mut run_breakers, 10_000);
    assert_eq!(
        admit(&mut run_breakers, 9_996),
        Admission::NotBefore(S(10_120))
    );
}

#[test]
fn breakers_unchanged_for_a_day_are_removed_unless_in_use() {
    let temp = TempFile::new();
    let mut run_breakers = temp.run_breakers();
    open(&mut run_breakers, 100);
    let day = 24 * 60 * 60;
    run_breakers.update(S(200), |breakers| {
        let Admission::Granted(permit) = breakers.of("other").admit(S(200)) else {
            panic!("it is new");
        };
        breakers.of("other").failed(permit, S(200));
    });
    let names = |contents: &Value| -> Vec<String> {
        contents["models"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(names(&temp.contents()), ["m", "other"]);
    // A probe prevents the removal.
    let probe = go(&mut run_breakers, day + 150);
    assert!(probe.is_probe());
    assert_eq!(names(&temp.contents()), ["m", "other"]);
    let mut probe = probe;
    run_breakers.update(S(2 * day), |breakers| {
        breakers.of("m").succeeded(&mut probe)
    });
    assert_eq!(names(&temp.contents()), ["m"]);
}

/// The variable that marks a process as a helper of the tests below.
const HELPER_VARIABLE: &str = "PINION_TEST_BREAKERS";
const PROCESSES: usize = 8;
const FAILURES: usize = 40;

/// Rules under which a breaker never opens.
fn patient() -> BreakerRules {
    BreakerRules {
        failures: u32::MAX,
        window: S(3600),
        cooldown: S(1),
    }
}

/// Reports failures repeatedly when a test below starts it as a helper.
#[test]
fn a_process_that_fails_repeatedly() {
    let Some(file) = std::env::var_os(HELPER_VARIABLE) else {
        return;
    };
    let mut run_breakers = RunBreakers::new(patient(), Some(file.into()));
    for number in 0..FAILURES {
        let now = S(1_000) + Duration::from_millis(number as u64);
        let (_, warning) = run_breakers.update(now, |breakers| {
            let Admission::Granted(permit) = breakers.of("m").admit(now) else {
                panic!("it never opens");
            };
            breakers.of("m").failed(permit, now);
        });
        assert_eq!(warning, None);
    }
}

#[test]
fn concurrent_processes_lose_no_failure() {
    let temp = TempFile::new();
    let itself = std::env::current_exe().unwrap();
    let start = |_| {
        let mut command = Command::new(&itself);
        command.args([
            "--exact",
            "breaker::shared_tests::a_process_that_fails_repeatedly",
        ]);
        command.env(HELPER_VARIABLE, temp.file()).spawn().unwrap()
    };
    let helpers: Vec<_> = (0..PROCESSES).map(start).collect();
    for mut helper in helpers {
        assert!(helper.wait().unwrap().success());
    }
    let failures = &temp.contents()["models"]["m"]["failures"];
    assert_eq!(failures.as_array().unwrap().len(), PROCESSES * FAILURES);
    let beside: Vec<_> = fs::read_dir(temp.file().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(beside.len(), 2, "the file and its lock: {beside:?}");
}

#[test]
fn processes_killed_at_any_moment_leave_a_valid_file() {
    let temp = TempFile::new();
    let itself = std::env::current_exe().unwrap();
    let mut run_breakers = RunBreakers::new(patient(), Some(temp.file()));
    for round in 0..12u64 {
        let mut command = Command::new(&itself);
        command.args([
            "--exact",
            "breaker::shared_tests::a_process_that_fails_repeatedly",
        ]);
        let mut helpers: Vec<_> = (0..2)
            .map(|_| command.env(HELPER_VARIABLE, temp.file()).spawn().unwrap())
            .collect();
        // Helpers are killed while they start, while they write, or after they ended; those of the last round are not.
        std::thread::sleep(Duration::from_millis(3 * round));
        for helper in &mut helpers {
            if round < 11 {
                helper.kill().unwrap();
            }
            helper.wait().unwrap();
        }
        let now = S(1_000) + Duration::from_millis(round);
        let (_, warning) = run_breakers.update(now, |breakers| {
            let Admission::Granted(permit) = breakers.of("own").admit(now) else {
                panic!("it never opens");
            };
            breakers.of("own").failed(permit, now);
        });
        assert_eq!(warning, None, "round {round}");
    }
    let contents = temp.contents();
    let own: Vec<u64> = (1_000_000..1_000_012).collect();
    assert_eq!(contents["models"]["own"]["failures"], json!(own));
    let theirs = contents["models"]["m"]["failures"].as_array().unwrap();
    assert!(!theirs.is_empty() && theirs.len() <= 12 * 2 * FAILURES);
}

#[test]
fn a_fifo_instead_of_a_file_neither_blocks_nor_is_replaced() {
    for name in ["breakers.json", "breakers.json.lock"] {
        let temp = TempFile::new();
        let fifo = temp.file().with_file_name(name);
        fs::create_dir_all(fifo.parent().unwrap()).unwrap();
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut run_breakers = temp.run_breakers();
        let (_, warning) = run_breakers.update(S(101), |breakers| breakers.of("m").admit(S(101)));
        let warning = warning.unwrap();
        assert!(
            warning.contains("is a FIFO, not a regular file"),
            "{warning}"
        );
        assert!(!run_breakers.is_shared() && !fifo.is_file());
    }
}

#[test]
fn waiting_for_the_lock_has_a_time_limit() {
    let temp = TempFile::new();
    open(&mut temp.run_breakers(), 100);
    let lock = fs::File::open(temp.file().with_extension("json.lock")).unwrap();
    lock.lock().unwrap();
    let mut run_breakers = temp.run_breakers();
    let (admission, warning) =
        run_breakers.update(S(101), |breakers| breakers.of("m").admit(S(101)));
    assert!(matches!(admission, Admission::Granted(_)), "it is alone");
    assert!(
        warning
            .unwrap()
            .contains("another process has held the lock")
    );
    assert!(!run_breakers.is_shared());
}

/// An operation on the breakers of one of the processes.
#[derive(Debug, Clone)]
enum Act {
    Admit,
    Succeed(usize),
    Fail(usize),
    Abandon(usize),
    Wait(u64),
}

fn acts() -> impl Strategy<Value = Vec<(usize, usize, Act)>> {
    let act = prop_oneof![
        3 => Just(Act::Admit),
        2 => (0usize..6).prop_map(Act::Succeed),
        4 => (0usize..6).prop_map(Act::Fail),
        1 => (0usize..6).prop_map(Act::Abandon),
        2 => (1u64..90).prop_map(Act::Wait),
    ];
    proptest::collection::vec((0usize..3, 0usize..2, act), 0..80)
}

fn states(breakers: &Breakers, now: Duration) -> BTreeMap<String, BreakerState> {
    let states = breakers.states(now).into_iter();
    states
        .filter(|(_, state)| *state != BreakerState::Closed)
        .map(|(model, state)| (model.to_owned(), state))
        .collect()
}

fn board_at(path: &Path) -> RunBreakers {
    RunBreakers::new(BreakerRules::default(), Some(path.to_owned()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Three sets of breakers that share one file behave like one set in memory.
    #[test]
    fn sharing_through_a_file_behaves_like_memory(acts in acts()) {
        let temp = TempFile::new();
        let mut boards = [board_at(&temp.file()), board_at(&temp.file()), board_at(&temp.file())];
        let mut alone = Breakers::new(BreakerRules::default());
        let mut now = S(1_000);
        let mut held: Vec<(usize, Permit, Permit)> = Vec::new();
        for (who, which, act) in acts {
            let model = ["m0", "m1"][which];
            let run_breakers = &mut boards[who];
            match act {
                Act::Wait(seconds) => now += S(seconds),
                Act::Admit => {
                    let (shared, warning) = run_breakers.update(now, |breakers| breakers.of(model).admit(now));
                    prop_assert_eq!(warning, None);
                    let expected = alone.of(model).admit(now);
                    prop_assert_eq!(shared, expected);
                    if let (Admission::Granted(shared), Admission::Granted(expected)) = (shared, expected) {
                        held.push((which, shared, expected));
                    }
                }
                Act::Succeed(index) => if let Some((which, shared, expected)) = held.get_mut(index) {
                    let model = ["m0", "m1"][*which];
                    run_breakers.update(now, |breakers| breakers.of(model).succeeded(shared));
                    alone.of(model).succeeded(expected);
                },
                Act::Fail(index) => if let Some((which, shared, expected)) = held.get(index).copied() {
                    let model = ["m0", "m1"][which];
                    run_breakers.update(now, |breakers| breakers.of(model).failed(shared, now));
                    alone.of(model).failed(expected, now);
                },
                Act::Abandon(index) => if index < held.len() {
                    let (which, shared, expected) = held.swap_remove(index);
                    let model = ["m0", "m1"][which];
                    run_breakers.update(now, |breakers| breakers.of(model).abandoned(shared));
                    alone.of(model).abandoned(expected);
                },
            }
            let (seen, warning) = boards[(who + 1) % 3].update(now, |breakers| states(breakers, now));
            prop_assert_eq!(warning, None);
            prop_assert_eq!(seen, states(&alone, now));
        }
    }
}
