//! Several processes that write the same file, and are killed while they do.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pinion_access::{Gate, Grant, Mode, NewToken, Peer, TOKENS, TokenStore};
use tempfile::tempdir;

const ROOT: &str = "PINION_ACCESS_TEST_ROOT";
const COUNT: &str = "PINION_ACCESS_TEST_COUNT";

/// Creates tokens and records each one after the call returned. The other tests start it as a process of its own.
#[test]
#[ignore = "started by the other tests"]
fn a_writer() {
    let Ok(root) = std::env::var(ROOT) else {
        return;
    };
    let count: usize = std::env::var(COUNT).unwrap().parse().unwrap();
    let root = Path::new(&root);
    let store = TokenStore::open(root).unwrap();
    for _ in 0..count {
        let minted = store.mint(NewToken::new(Grant::Super)).unwrap();
        let mut told = OpenOptions::new()
            .append(true)
            .create(true)
            .open(root.join("told"))
            .unwrap();
        told.write_all(format!("{}\n", minted.token.reveal()).as_bytes())
            .unwrap();
    }
}

fn start_writer(root: &Path, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_writer", "--ignored", "--test-threads=1"])
        .env(ROOT, root)
        .env(COUNT, count.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the recorded tokens, without an incomplete last line.
fn told(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("told")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

fn all_are_good(root: &Path) {
    let gate = Gate::new(Mode::Secured, TokenStore::open(root).unwrap());
    for token in told(root) {
        gate.authenticate(Some(&token), Peer::LOCAL).unwrap();
    }
    let listed = gate.store().list().unwrap();
    let ids: HashSet<_> = listed.iter().map(|record| &record.id).collect();
    assert_eq!(ids.len(), listed.len());
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let root = tempdir().unwrap();
    let writers: Vec<_> = (0..4).map(|_| start_writer(root.path(), 15)).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    assert_eq!(told(root.path()).len(), 60);
    all_are_good(root.path());
    assert_eq!(
        TokenStore::open(root.path()).unwrap().list().unwrap().len(),
        60
    );
}

#[test]
fn a_killed_writer_leaves_a_good_file() {
    let root = tempdir().unwrap();
    for round in 0..25 {
        let before = told(root.path()).len();
        let mut writers = [
            start_writer(root.path(), 10_000),
            start_writer(root.path(), 10_000),
        ];
        while told(root.path()).len() < before + 1 + round % 4 {
            let running = writers[0].try_wait().unwrap().is_none();
            assert!(running, "a writer ended by itself");
            std::thread::sleep(Duration::from_micros(300));
        }
        std::thread::sleep(Duration::from_micros(170 * (round as u64 % 13)));
        for writer in &mut writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        all_are_good(root.path());
    }
    TokenStore::open(root.path())
        .unwrap()
        .mint(NewToken::new(Grant::Super))
        .unwrap();
}

#[test]
fn what_a_dead_writer_left_is_cleared_away_and_never_read() {
    let root = tempdir().unwrap();
    let store = TokenStore::open(root.path()).unwrap();
    let first = store.mint(NewToken::new(Grant::Super)).unwrap();
    let unfinished = root.path().join(".tokens.json.unfinished");
    fs::write(&unfinished, r#"{"version":1,"tok"#).unwrap();
    let another = TokenStore::open(root.path()).unwrap();
    assert_eq!(another.list().unwrap().len(), 1);
    another.mint(NewToken::new(Grant::Super)).unwrap();
    assert!(!unfinished.exists());
    Gate::new(Mode::Secured, another)
        .authenticate(Some(first.token.reveal()), Peer::LOCAL)
        .unwrap();
}

/// Creates a directory below `root` whose path has `length` bytes.
fn directory_of_length(root: &Path, length: usize) -> PathBuf {
    let mut path = root.canonicalize().unwrap();
    loop {
        match length - path.as_os_str().len() {
            0 => break,
            left @ 2..=200 => path.push("x".repeat(left - 1)),
            _ => path.push("x".repeat(100)),
        }
    }
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn a_write_that_fails_changes_nothing() {
    let root = tempdir().unwrap();
    let store = TokenStore::open(root.path()).unwrap();
    let minted = store.mint(NewToken::new(Grant::Super)).unwrap();
    let before = fs::read(root.path().join(TOKENS)).unwrap();
    // The file and its lock can be opened here; the path of the copy that replaces it is too long for the kernel.
    let deep = directory_of_length(root.path(), 4075);
    fs::copy(root.path().join(TOKENS), deep.join(TOKENS)).unwrap();
    let store = TokenStore::open(&deep).unwrap();
    store.mint(NewToken::new(Grant::Super)).unwrap_err();
    store.revoke(&minted.record.id).unwrap_err();
    assert_eq!(fs::read(deep.join(TOKENS)).unwrap(), before);
    assert_eq!(store.list().unwrap().len(), 1);
    Gate::new(Mode::Secured, store)
        .authenticate(Some(minted.token.reveal()), Peer::LOCAL)
        .unwrap();
}
