//! Several processes that use one session, and processes that are killed.
//!
//! The child is this same test program; an environment variable selects its role.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::*;
use pinion_session::{SessionError, Store};

const ROLE: &str = "PINION_SESSION_TEST_ROLE";
const FILE: &str = "PINION_SESSION_TEST_FILE";

fn command(program: &str, arguments: &[&str], role: &str, file: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env(ROLE, role)
        .env(FILE, file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

fn start(role: &str, file: &Path) -> Child {
    let this = std::env::current_exe().unwrap();
    command(
        this.to_str().unwrap(),
        &["--exact", "processes::be_the_child", "--nocapture"],
        role,
        file,
    )
    .spawn()
    .unwrap()
}

/// Runs the role of a child process; without one it does nothing.
#[test]
fn be_the_child() {
    let (Ok(role), Ok(file)) = (std::env::var(ROLE), std::env::var(FILE)) else {
        return;
    };
    let path = PathBuf::from(file);
    match role.as_str() {
        "hold" => {
            let _held = Store::open(&path, Path::new("/")).unwrap();
            println!("@holding");
            drop(std::io::stdin().read_to_end(&mut Vec::new()));
        }
        "append" => {
            let mut store = Store::open(&path, Path::new("/")).unwrap().store;
            for count in 0.. {
                let text = format!("{count} {}", "x".repeat(count % 5000));
                let id = store.append(user(&text)).unwrap();
                println!("@{id}");
            }
        }
        "fill" => fill(&path),
        other => panic!("unknown role {other}"),
    }
}

/// Returns the lines of a child without those of the test harness.
fn marked_lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .filter_map(|line| line.split_once('@').map(|(_, s)| s.to_owned()))
}

#[test]
fn a_second_process_gets_the_pid_of_the_writer_and_may_read_or_fork() {
    let home = tempfile::tempdir().unwrap();
    let path = two_turns(home.path()).file().unwrap().to_owned();
    let mut holder = start("hold", &path);
    assert_eq!(marked_lines(&mut holder).next().as_deref(), Some("holding"));

    let refused = Store::open(&path, Path::new("/")).unwrap_err();
    let SessionError::Locked { pid, .. } = &refused else {
        panic!("{refused}")
    };
    if let Some(pid) = *pid {
        assert_eq!(pid, holder.id());
    }
    assert!(refused.to_string().contains("--fork"), "{refused}");
    let mut reader = Store::open_read_only(&path, Path::new("/")).unwrap().store;
    assert_eq!(texts(&reader).len(), 4);
    assert_eq!(
        reader.append(user("no")).unwrap_err().code(),
        "session_read_only"
    );
    let mut fork = reader.clone_to_leaf().unwrap().save().unwrap();
    fork.append(user("yes")).unwrap();

    holder.kill().unwrap();
    holder.wait().unwrap();
    let mut store = Store::open(&path, Path::new("/")).unwrap().store;
    store.append(user("mine now")).unwrap();
    assert_eq!(
        fs::read_dir(home.path()).unwrap().count(),
        2,
        "no lock files are left"
    );
}

#[test]
fn what_was_acknowledged_survives_kill() {
    let home = tempfile::tempdir().unwrap();
    let path = two_turns(home.path()).file().unwrap().to_owned();
    let mut acknowledged = Vec::new();
    for round in 1..=8 {
        let mut writer = start("append", &path);
        acknowledged.extend(marked_lines(&mut writer).take(round * 37));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let opened = Store::open(&path, Path::new("/")).unwrap();
        for id in &acknowledged {
            assert!(
                opened.store.entry(id).is_some(),
                "round {round}: {id} is lost"
            );
        }
        let torn_only = opened
            .notices
            .iter()
            .all(|notice| notice.code == "session_tail_torn");
        assert!(torn_only, "{:?}", opened.notices);
    }
}

#[test]
fn one_process_holds_a_session_once_and_may_read_it_again() {
    let home = tempfile::tempdir().unwrap();
    let store = two_turns(home.path());
    let path = store.file().unwrap().to_owned();
    assert_eq!(
        Store::open(&path, Path::new("/")).unwrap_err().code(),
        "session_locked"
    );
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let line =
        r#"{"type":"session_info","id":"cccc0001","parentId":null,"timestamp":"t","name":"by pi"}"#;
    writeln!(file, "{line}").unwrap();
    let before = store;
    let store = before.reload().unwrap().run().unwrap().store;
    assert_eq!(store.name(), Some("by pi"));
    drop(before);
    assert_eq!(
        Store::open(&path, Path::new("/")).unwrap_err().code(),
        "session_locked"
    );
    drop(store);
    assert!(Store::open(&path, Path::new("/")).is_ok());
}

#[test]
fn a_file_that_cannot_be_read_again_leaves_the_session_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    let path = store.file().unwrap().to_owned();
    fs::write(&path, "something else").unwrap();
    let error = store.reload().unwrap().run().unwrap_err();
    assert_eq!(error.code(), "not_a_session", "{error}");
    assert_eq!(store.entries().count(), 4);
    assert_eq!(
        Store::open(&path, Path::new("/")).unwrap_err().code(),
        "session_locked"
    );
    // Another file at the path is read in its place.
    fs::remove_file(&path).unwrap();
    let other = tempfile::tempdir().unwrap();
    let named = two_turns(other.path()).file().unwrap().to_owned();
    fs::rename(named, &path).unwrap();
    store = store.reload().unwrap().run().unwrap().store;
    assert_eq!(store.entries().count(), 4);
}

#[test]
fn a_program_that_does_not_lock_is_neither_stopped_nor_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    let path = store.file().unwrap().to_owned();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let line =
        r#"{"type":"session_info","id":"cccc0001","parentId":null,"timestamp":"t","name":"by pi"}"#;
    // Without its newline, as during a write.
    write!(file, "{line}").unwrap();
    store.append(user("ours")).unwrap();
    store.append(user("ours too")).unwrap();
    let told: Vec<_> = store
        .take_notices()
        .iter()
        .map(|notice| notice.code)
        .collect();
    assert_eq!(told, ["session_foreign_writer"]);
    let written = lines(&path);
    assert_eq!((written.len(), &written[5]["name"]), (8, &"by pi".into()));
}

#[test]
fn a_removed_file_is_written_again() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    let path = store.file().unwrap().to_owned();
    fs::remove_file(&path).unwrap();
    store.append(user("still here")).unwrap();
    assert_eq!(lines(&path).len(), 6);
    assert_eq!(store.take_notices()[0].code, "session_file_removed");
    // A file of another program at this path must not be overwritten.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "something else").unwrap();
    let error = store.append(user("and now")).unwrap_err();
    assert!(
        matches!(error, SessionError::NotSaved { pending: 6, .. }),
        "{error:?}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "something else");
    fs::remove_file(&path).unwrap();
    store.flush_and_sync().unwrap();
    assert_eq!(lines(&path).len(), 7);
}

/// Fills the disk, makes room again, and prints the results.
fn fill(path: &Path) {
    let mut store = Store::open(path, Path::new("/")).unwrap().store;
    let room = path.with_extension("ballast");
    let mut saved = 0;
    let failed = loop {
        let before = fs::read(path).unwrap();
        match store.append(user(&"y".repeat(3000))) {
            Ok(_) => saved += 1,
            Err(error) => {
                assert_eq!(fs::read(path).unwrap(), before, "the file is as it was");
                break error;
            }
        }
    };
    assert!(saved > 0, "there was room for some");
    let SessionError::NotSaved { pending: 1, .. } = failed else {
        panic!("{failed:?}")
    };
    assert!(failed.to_string().contains("1 entries wait"), "{failed}");
    let failed = store
        .append(user("small"))
        .and_then(|_| store.append(user(&"z".repeat(6000))));
    println!("@{}", failed.is_err());
    // The file opens, in a second process and in this one.
    let reader = Store::open_read_only(path, Path::new("/")).unwrap();
    assert_eq!(reader.notices, []);
    if fs::remove_file(&room).is_ok() {
        let all = store.entries().count();
        store.append(user("room again")).unwrap();
        assert_eq!(store.pending(), 0);
        let reader = Store::open_read_only(path, Path::new("/")).unwrap();
        assert_eq!(
            (reader.notices.len(), reader.store.entries().count()),
            (0, all + 1)
        );
        println!("@recovered");
    }
}

#[test]
fn a_file_that_may_not_grow_stays_whole() {
    let home = tempfile::tempdir().unwrap();
    let path = two_turns(home.path()).file().unwrap().to_owned();
    let this = std::env::current_exe().unwrap();
    let script =
        r#"trap '' XFSZ; ulimit -f 40; exec "$0" --exact processes::be_the_child --nocapture"#;
    let run = command(
        "bash",
        &["-c", script, this.to_str().unwrap()],
        "fill",
        &path,
    );
    let output = { run }.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("@true"), "{text}");
}

#[test]
fn a_full_disk_is_an_error_and_the_entries_are_written_once_there_is_room() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("disk/s.jsonl");
    fs::create_dir(home.path().join("disk")).unwrap();
    let source = two_turns(&home.path().join("from"));
    let this = std::env::current_exe().unwrap();
    // A private mount: other processes do not see it, and it disappears with the process.
    let script = r#"set -e; mount -t tmpfs -o size=64k tmpfs "$1"; cp "$2" "$1/s.jsonl"
        head -c 16000 /dev/zero > "$1/s.ballast"; exec "$0" --exact processes::be_the_child --nocapture"#;
    let disk = home.path().join("disk");
    let arguments = [
        "-rm",
        "bash",
        "-c",
        script,
        this.to_str().unwrap(),
        disk.to_str().unwrap(),
        source.file().unwrap().to_str().unwrap(),
    ];
    let try_mount = [
        "-rm",
        "mount",
        "-t",
        "tmpfs",
        "tmpfs",
        disk.to_str().unwrap(),
    ];
    let tried = Command::new("unshare").args(try_mount).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this system does not permit mounting a small disk");
        return;
    }
    let output = command("unshare", &arguments, "fill", &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("@recovered"), "{text}");
}
