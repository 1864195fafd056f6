//! Breakers that several processes have in common.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Admission, Board, BreakerRules, BreakerState, Pass};
use crate::Breakers;

const S: fn(u64) -> Duration = Duration::from_secs;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("fleet/breakers.json")
    }

    fn board(&self) -> Board {
        Board::new(BreakerRules::default(), Some(self.file()))
    }

    fn contents(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap()
    }

    fn write(&self, text: &str) {
        fs::create_dir_all(self.file().parent().unwrap()).unwrap();
        fs::write(self.file(), text).unwrap();
    }
}

fn admit(board: &mut Board, now: u64) -> Admission {
    let (admission, warning) = board.act(S(now), |breakers| breakers.of("m").admit(S(now)));
    assert_eq!(warning, None);
    admission
}

fn go(board: &mut Board, now: u64) -> Pass {
    match admit(board, now) {
        Admission::Go(pass) => pass,
        other => panic!("{other:?} at {now}"),
    }
}

fn fail(board: &mut Board, pass: Pass, now: u64) -> Option<String> {
    board
        .act(S(now), |breakers| breakers.of("m").failed(pass, S(now)))
        .1
}

/// Three failures at this time.
fn open(board: &mut Board, now: u64) {
    for _ in 0..3 {
        let pass = go(board, now);
        assert_eq!(fail(board, pass, now), None);
    }
}

#[test]
fn what_one_learns_all_know() {
    let place = Place::new();
    let (mut one, mut other) = (place.board(), place.board());
    let pass = go(&mut one, 100);
    assert!(!place.file().exists(), "nothing is known yet");
    fail(&mut one, pass, 100);
    for now in [101, 102] {
        let pass = go(&mut other, now);
        fail(&mut other, pass, now);
    }
    assert_eq!(admit(&mut one, 103), Admission::NotBefore(S(222)));
    let mut probe = go(&mut one, 222);
    assert!(probe.is_probe());
    assert_eq!(admit(&mut other, 223), Admission::Probing);
    one.act(S(224), |breakers| breakers.of("m").succeeded(&mut probe));
    assert!(!go(&mut other, 225).is_probe());
}

#[test]
fn only_a_change_is_written() {
    let place = Place::new();
    let mut board = place.board();
    open(&mut board, 100);
    let before = fs::metadata(place.file()).unwrap().modified().unwrap();
    for now in 101..120 {
        admit(&mut board, now);
    }
    let after = fs::metadata(place.file()).unwrap().modified().unwrap();
    assert_eq!(before, after);
}

#[test]
fn the_probe_of_a_dead_process_is_given_up() {
    let place = Place::new();
    let prober = |pid: u32| {
        json!({"version": 1, "written": 1000, "models": {"m": {
            "period": 2, "state": "half_open", "prober": {"pid": pid, "started": 1},
        }}})
    };
    // A process of this number is there, and began at another time.
    place.write(&prober(std::process::id()).to_string());
    let probe = go(&mut place.board(), 1);
    assert!(probe.is_probe());
    let kept = &place.contents()["models"]["m"]["prober"];
    assert_eq!(kept["pid"], std::process::id());
    assert_ne!(kept["started"], 1);
    assert_eq!(admit(&mut place.board(), 2), Admission::Probing);
}

#[test]
fn what_makes_no_sense_is_moved_aside_and_told_once() {
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
        let place = Place::new();
        place.write(&text);
        let mut board = place.board();
        let (admission, warning) = board.act(S(1), |breakers| breakers.of("m").admit(S(1)));
        assert!(matches!(admission, Admission::Go(_)), "{text:?}");
        assert!(warning.unwrap().contains("breakers.json.damaged"));
        let aside = place.file().with_extension("json.damaged");
        assert_eq!(fs::read_to_string(aside).unwrap(), text);
        place.write(&text);
        open(&mut board, 2);
        assert_eq!(admit(&mut place.board(), 3), Admission::NotBefore(S(122)));
    }
    let place = Place::new();
    place.write(whole);
    assert_eq!(admit(&mut place.board(), 3), Admission::NotBefore(S(120)));
}

#[test]
fn a_file_of_a_newer_program_is_left_alone() {
    let place = Place::new();
    let newer = r#"{"version":2,"rows":[]}"#;
    place.write(newer);
    let mut board = place.board();
    let (_, warning) = board.act(S(1), |breakers| breakers.of("m").admit(S(1)));
    assert!(warning.unwrap().contains("newer"));
    open(&mut board, 2);
    assert_eq!(fs::read_to_string(place.file()).unwrap(), newer);
}

#[test]
fn a_disk_that_cannot_be_written_leaves_the_run_alone_with_what_it_knows() {
    let place = Place::new();
    let (mut one, mut other) = (place.board(), place.board());
    let pass = go(&mut one, 100);
    for now in [100, 101] {
        fail(&mut one, pass, now);
    }
    let pass = go(&mut other, 102);
    // Root may write everywhere, but not over a directory: one takes the place of the file after it was read.
    let file = place.file();
    let aside = file.with_extension("aside");
    let (_, warning) = other.act(S(102), |breakers| {
        fs::rename(&file, &aside).unwrap();
        fs::create_dir(&file).unwrap();
        breakers.of("m").failed(pass, S(102))
    });
    fs::remove_dir(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    let warning = warning.unwrap();
    assert!(
        warning.contains("not shared with other runs any more")
            && warning.contains("breakers.json"),
        "{warning}"
    );
    assert!(!other.is_shared());
    assert_eq!(admit(&mut other, 103), Admission::NotBefore(S(222)));
    assert!(matches!(admit(&mut one, 103), Admission::Go(_)));
    let mut nowhere = Board::new(
        BreakerRules::default(),
        Some("/proc/nowhere/breakers.json".into()),
    );
    let (admission, warning) = nowhere.act(S(1), |breakers| breakers.of("m").admit(S(1)));
    assert!(matches!(admission, Admission::Go(_)) && warning.is_some());
    open(&mut nowhere, 2);
    assert_eq!(admit(&mut nowhere, 3), Admission::NotBefore(S(122)));
}

#[test]
fn who_is_alone_does_not_wait_for_the_probes_of_others() {
    let place = Place::new();
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
    place.write(&half_open.to_string());
    let mut board = place.board();
    assert_eq!(admit(&mut board, 1), Admission::Probing);
    place.write("{\"version\":9}");
    let (admission, warning) = board.act(S(2), |breakers| breakers.of("m").admit(S(2)));
    assert!(warning.is_some());
    assert!(matches!(admission, Admission::Go(pass) if pass.is_probe()));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn a_clock_that_was_put_back_prolongs_nothing() {
    let place = Place::new();
    let mut board = place.board();
    open(&mut board, 10_000);
    assert_eq!(admit(&mut board, 10_001), Admission::NotBefore(S(10_120)));
    // An hour earlier; 1 s of the 120 s had passed when the file was last written at the latest.
    assert_eq!(admit(&mut board, 6_400), Admission::NotBefore(S(6_520)));
    assert_eq!(admit(&mut board, 6_410), Admission::NotBefore(S(6_520)));
    assert!(go(&mut board, 6_520).is_probe());
    // Who had to wait for the file comes with a time that is a little older than what is in it.
    let place = Place::new();
    let mut board = place.board();
    open(&mut board, 10_000);
    assert_eq!(admit(&mut board, 9_996), Admission::NotBefore(S(10_120)));
}

#[test]
fn what_is_a_day_old_is_forgotten_unless_somebody_waits_for_it() {
    let place = Place::new();
    let mut board = place.board();
    open(&mut board, 100);
    let day = 24 * 60 * 60;
    board.act(S(200), |breakers| {
        let Admission::Go(pass) = breakers.of("other").admit(S(200)) else {
            panic!("it is new");
        };
        breakers.of("other").failed(pass, S(200));
    });
    let names = |contents: &Value| -> Vec<String> {
        contents["models"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(names(&place.contents()), ["m", "other"]);
    // Trying it keeps it.
    let probe = go(&mut board, day + 150);
    assert!(probe.is_probe());
    assert_eq!(names(&place.contents()), ["m", "other"]);
    let mut probe = probe;
    board.act(S(2 * day), |breakers| {
        breakers.of("m").succeeded(&mut probe)
    });
    assert_eq!(names(&place.contents()), ["m"]);
}

/// Where the test below tells its helpers that they are some.
const HAMMER: &str = "PINION_TEST_BREAKERS";
const PROCESSES: usize = 8;
const FAILURES: usize = 40;

/// Rules that never open anything.
fn patient() -> BreakerRules {
    BreakerRules {
        failures: u32::MAX,
        window: S(3600),
        cooldown: S(1),
    }
}

/// Fails again and again, where the test below asks for it.
#[test]
fn a_process_that_hammers() {
    let Some(file) = std::env::var_os(HAMMER) else {
        return;
    };
    let mut board = Board::new(patient(), Some(file.into()));
    for number in 0..FAILURES {
        let now = S(1_000) + Duration::from_millis(number as u64);
        let (_, warning) = board.act(now, |breakers| {
            let Admission::Go(pass) = breakers.of("m").admit(now) else {
                panic!("it never opens");
            };
            breakers.of("m").failed(pass, now);
        });
        assert_eq!(warning, None);
    }
}

#[test]
fn many_processes_at_once_lose_no_failure() {
    let place = Place::new();
    let itself = std::env::current_exe().unwrap();
    let start = |_| {
        let mut command = Command::new(&itself);
        command.args(["--exact", "breaker::shared_tests::a_process_that_hammers"]);
        command.env(HAMMER, place.file()).spawn().unwrap()
    };
    let hammers: Vec<_> = (0..PROCESSES).map(start).collect();
    for mut hammer in hammers {
        assert!(hammer.wait().unwrap().success());
    }
    let failures = &place.contents()["models"]["m"]["failures"];
    assert_eq!(failures.as_array().unwrap().len(), PROCESSES * FAILURES);
    let beside: Vec<_> = fs::read_dir(place.file().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(beside.len(), 2, "the file and its lock: {beside:?}");
}

#[test]
fn processes_killed_at_any_moment_tear_nothing() {
    let place = Place::new();
    let itself = std::env::current_exe().unwrap();
    let mut board = Board::new(patient(), Some(place.file()));
    for round in 0..12u64 {
        let mut command = Command::new(&itself);
        command.args(["--exact", "breaker::shared_tests::a_process_that_hammers"]);
        let mut hammers: Vec<_> = (0..2)
            .map(|_| command.env(HAMMER, place.file()).spawn().unwrap())
            .collect();
        // Killed while they start, while they write, when they have ended already; the last two are not.
        std::thread::sleep(Duration::from_millis(3 * round));
        for hammer in &mut hammers {
            if round < 11 {
                hammer.kill().unwrap();
            }
            hammer.wait().unwrap();
        }
        let now = S(1_000) + Duration::from_millis(round);
        let (_, warning) = board.act(now, |breakers| {
            let Admission::Go(pass) = breakers.of("ours").admit(now) else {
                panic!("it never opens");
            };
            breakers.of("ours").failed(pass, now);
        });
        assert_eq!(warning, None, "round {round}");
    }
    let contents = place.contents();
    let ours: Vec<u64> = (1_000_000..1_000_012).collect();
    assert_eq!(contents["models"]["ours"]["failures"], json!(ours));
    let theirs = contents["models"]["m"]["failures"].as_array().unwrap();
    assert!(!theirs.is_empty() && theirs.len() <= 12 * 2 * FAILURES);
}

#[test]
fn a_fifo_instead_of_a_file_neither_blocks_nor_is_replaced() {
    for name in ["breakers.json", "breakers.json.lock"] {
        let place = Place::new();
        let fifo = place.file().with_file_name(name);
        fs::create_dir_all(fifo.parent().unwrap()).unwrap();
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut board = place.board();
        let (_, warning) = board.act(S(101), |breakers| breakers.of("m").admit(S(101)));
        let warning = warning.unwrap();
        assert!(
            warning.contains("is a FIFO, not a regular file"),
            "{warning}"
        );
        assert!(!board.is_shared() && !fifo.is_file());
    }
}

#[test]
fn nobody_waits_for_ever_for_somebody_who_keeps_the_file() {
    let place = Place::new();
    open(&mut place.board(), 100);
    let lock = fs::File::open(place.file().with_extension("json.lock")).unwrap();
    lock.lock().unwrap();
    let mut board = place.board();
    let (admission, warning) = board.act(S(101), |breakers| breakers.of("m").admit(S(101)));
    assert!(matches!(admission, Admission::Go(_)), "it is alone");
    assert!(warning.unwrap().contains("another process has held it"));
    assert!(!board.is_shared());
}

/// What happens, and to which of the processes.
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

fn board_at(path: &Path) -> Board {
    Board::new(BreakerRules::default(), Some(path.to_owned()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Three boards over one file are like one set of breakers in memory.
    #[test]
    fn sharing_through_a_file_changes_nothing(acts in acts()) {
        let place = Place::new();
        let mut boards = [board_at(&place.file()), board_at(&place.file()), board_at(&place.file())];
        let mut alone = Breakers::new(BreakerRules::default());
        let mut now = S(1_000);
        let mut held: Vec<(usize, Pass, Pass)> = Vec::new();
        for (who, which, act) in acts {
            let model = ["m0", "m1"][which];
            let board = &mut boards[who];
            match act {
                Act::Wait(seconds) => now += S(seconds),
                Act::Admit => {
                    let (shared, warning) = board.act(now, |breakers| breakers.of(model).admit(now));
                    prop_assert_eq!(warning, None);
                    let expected = alone.of(model).admit(now);
                    prop_assert_eq!(shared, expected);
                    if let (Admission::Go(shared), Admission::Go(expected)) = (shared, expected) {
                        held.push((which, shared, expected));
                    }
                }
                Act::Succeed(index) => if let Some((which, shared, expected)) = held.get_mut(index) {
                    let model = ["m0", "m1"][*which];
                    board.act(now, |breakers| breakers.of(model).succeeded(shared));
                    alone.of(model).succeeded(expected);
                },
                Act::Fail(index) => if let Some((which, shared, expected)) = held.get(index).copied() {
                    let model = ["m0", "m1"][which];
                    board.act(now, |breakers| breakers.of(model).failed(shared, now));
                    alone.of(model).failed(expected, now);
                },
                Act::Abandon(index) => if index < held.len() {
                    let (which, shared, expected) = held.swap_remove(index);
                    let model = ["m0", "m1"][which];
                    board.act(now, |breakers| breakers.of(model).abandoned(shared));
                    alone.of(model).abandoned(expected);
                },
            }
            let (seen, warning) = boards[(who + 1) % 3].act(now, |breakers| states(breakers, now));
            prop_assert_eq!(warning, None);
            prop_assert_eq!(seen, states(&alone, now));
        }
    }
}
