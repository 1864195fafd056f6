//! Several processes, and processes that are killed.
//!
//! The child is this test program; an environment variable selects its role.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pinion_history::{
    Rebuild, StoreChoice, TimelineStore, TurnStore, check_timeline, check_turns, open_timeline,
    open_turns, rebuild,
};
use pinion_testkit::fault::disk::SmallDisk;
use support::timeline::project;
use support::{change, entity, event, save, turn};

const ROLE: &str = "PINION_HISTORY_TEST_ROLE";
const FILE: &str = "PINION_HISTORY_TEST_FILE";

fn file(path: &Path) -> StoreChoice<'_> {
    StoreChoice {
        db: path.to_str().unwrap(),
        ..StoreChoice::default()
    }
}

fn timeline(path: &Path) -> Box<dyn TimelineStore> {
    open_timeline(&file(path)).unwrap()
}

fn turns(path: &Path) -> Box<dyn TurnStore> {
    open_turns(&file(path)).unwrap().unwrap()
}

fn start_with(program: &str, arguments: &[&str], role: &str, path: &Path) -> Child {
    Command::new(program)
        .args(arguments)
        .env(ROLE, role)
        .env(FILE, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

const CHILD: [&str; 3] = ["--exact", "be_the_child", "--nocapture"];

fn start(role: &str, path: &Path) -> Child {
    let this = std::env::current_exe().unwrap();
    start_with(this.to_str().unwrap(), &CHILD, role, path)
}

/// Runs the role of a child process; as a test it does nothing.
#[test]
fn be_the_child() {
    let (Ok(role), Ok(file)) = (std::env::var(ROLE), std::env::var(FILE)) else {
        return;
    };
    let path = PathBuf::from(file);
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("append", session) => append_forever(&path, session),
        ("append-some", session) => append(&mut *timeline(&path), session, 1..=200),
        ("save", _) => save_forever(&path),
        ("fill", _) => fill(&path),
        (other, _) => panic!("unknown role {other}"),
    }
}

fn append(store: &mut dyn TimelineStore, session: &str, ordinals: impl Iterator<Item = u64>) {
    for ordinal in ordinals {
        let first = ordinal * 3 - 2;
        let events: Vec<_> = (first..first + 3)
            .map(|ordinal| event(ordinal, "Say"))
            .collect();
        let text = "x".repeat(ordinal as usize % 4000);
        let changes = [
            change(first, entity("m", "a", &text)),
            change(first + 2, entity("m", "b", "{}")),
        ];
        store.append(session, &events, &changes).unwrap();
        println!("@{}", first + 2);
    }
}

fn append_forever(path: &Path, session: &str) {
    append(&mut *timeline(path), session, 1..);
}

fn save_forever(path: &Path) {
    let mut store = turns(path);
    let mut said = vec!["hello".to_owned()];
    for at in 1.. {
        said.push(format!("{at} {}", "y".repeat(at as usize % 900)));
        let texts: Vec<&str> = said.iter().map(String::as_str).collect();
        store.save(&save(&turn("t", &texts), at)).unwrap();
        println!("@{at}");
    }
}

/// Writes until the disk is full; prints the error and whether the store can still be read.
fn fill(path: &Path) {
    let mut store = timeline(path);
    let payload = "z".repeat(3000);
    for ordinal in 1..100_000 {
        let made = change(ordinal, entity("m", &ordinal.to_string(), &payload));
        if let Err(error) = store.append("s", &[event(ordinal, "E")], &[made]) {
            println!(
                "@{} {} {}",
                ordinal - 1,
                error.code(),
                store.cursor("s").unwrap()
            );
            return;
        }
    }
    println!("@never full 0");
}

/// Returns the lines of a child that are not from the test harness.
fn output_lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .filter_map(|line| line.split_once('@').map(|(_, said)| said.to_owned()))
}

/// Waits for `count` reports of a child, then kills it; returns the last number it reported.
fn killed_after(count: usize, role: &str, path: &Path) -> u64 {
    let mut child = start(role, path);
    let mut lines = output_lines(&mut child);
    let mut last = lines.by_ref().take(count).last().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    if let Some(later) = lines.last() {
        last = later;
    }
    last.parse().unwrap()
}

#[test]
fn what_was_reported_survives_kill() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("t.db");
    for round in 0..5usize {
        let session = format!("s{round}");
        let reported = killed_after(20 + round * 37, &format!("append {session}"), &path);
        let mut store = timeline(&path);
        let cursor = store.cursor(&session).unwrap();
        assert!(cursor >= reported, "{cursor} {reported}");
        assert_eq!(cursor % 3, 0, "no batch is stored in part");
        let snapshot = store.snapshot(&session, None).unwrap();
        assert_eq!(snapshot.ordinal, cursor);
        assert_eq!(store.projected(&session).unwrap(), cursor);
        let mut numbers = store.events(&session, 0, usize::MAX).unwrap().into_iter();
        assert!((1..=cursor).all(|ordinal| numbers.next().unwrap().ordinal == ordinal));
        store
            .append(&session, &[event(cursor + 1, "More")], &[])
            .unwrap();
        assert_eq!(
            rebuild(&mut *store, &session, Rebuild::FromScratch, project).unwrap(),
            cursor + 1
        );
    }
    assert_eq!(check_timeline(&file(&path)).unwrap(), Vec::<String>::new());
}

#[test]
fn a_saved_turn_survives_kill() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("turns.db");
    for round in 0..3 {
        let path = home.path().join(format!("turns{round}.db"));
        let reported = killed_after(15 + round * 20, "save", &path);
        let found = turns(&path).latest("s", "final").unwrap().unwrap();
        assert!(found.at_ms >= reported as i64);
        assert_eq!(
            found.turn.blocks.len() as i64,
            found.at_ms + 1,
            "all blocks of it"
        );
        assert_eq!(check_turns(&file(&path)).unwrap(), Vec::<String>::new());
    }
    assert!(!path.exists());
}

#[test]
fn two_processes_write_one_database() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("t.db");
    let sessions = ["one", "two", "three"];
    let mut children: Vec<Child> = sessions
        .iter()
        .map(|session| start(&format!("append-some {session}"), &path))
        .collect();
    for child in &mut children {
        assert_eq!(output_lines(child).last().as_deref(), Some("600"));
        assert!(child.wait().unwrap().success());
    }
    let mut store = timeline(&path);
    for session in sessions {
        assert_eq!(store.cursor(session).unwrap(), 600);
        assert_eq!(store.snapshot(session, None).unwrap().ordinal, 600);
    }
}

#[test]
fn two_writers_of_one_session_do_not_mix() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("t.db");
    let (mut first, mut second) = (timeline(&path), timeline(&path));
    first
        .append("s", &[event(1, "A")], &[change(1, entity("m", "x", "1"))])
        .unwrap();
    let other = [change(1, entity("m", "x", "2"))];
    let error = second.append("s", &[event(1, "B")], &other).unwrap_err();
    assert_eq!(error.code(), "history_conflict");
    let kept = second.snapshot("s", None).unwrap();
    assert_eq!(support::described(&kept.entities), ["m/x@1-1 1"]);
    let next = second.cursor("s").unwrap() + 1;
    second.append("s", &[event(next, "B")], &[]).unwrap();
    assert_eq!(first.cursor("s").unwrap(), 2);
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_the_database_still_opens() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("t.db");
    let this = std::env::current_exe().unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 2000; exec '{}' {}",
        this.display(),
        CHILD.join(" ")
    );
    let mut child = start_with("sh", &["-c", &script], "fill", &path);
    reports_full_disk(&output_lines(&mut child).last().unwrap(), &path);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_full_disk_is_an_error_and_the_database_still_opens() {
    let home = tempfile::tempdir().unwrap();
    let disk = match SmallDisk::mount(home.path(), 2 * 1024 * 1024) {
        Ok(disk) => disk,
        Err(why) => return eprintln!("skipped: a small disk cannot be mounted here ({why})"),
    };
    let path = home.path().join("t.db");
    let mut child = start("fill", &path);
    let report = output_lines(&mut child).last().unwrap();
    assert!(child.wait().unwrap().success());
    reports_full_disk(&report, &path);
    drop(disk);
}

/// Checks that everything stored before is there, and nothing that did not fit.
fn reports_full_disk(report: &str, path: &Path) {
    let words: Vec<&str> = report.split(' ').collect();
    let [stored, code, cursor] = words[..] else {
        panic!("{report}")
    };
    assert_eq!(code, "history_full");
    assert_eq!(stored, cursor);
    assert!(stored.parse::<u64>().unwrap() > 10, "{report}");
    let mut store = timeline_read(path);
    assert_eq!(store.cursor("s").unwrap().to_string(), stored);
    assert_eq!(check_timeline(&file(path)).unwrap(), Vec::<String>::new());
}

fn timeline_read(path: &Path) -> Box<dyn TimelineStore> {
    pinion_history::read_timeline(&file(path)).unwrap()
}
