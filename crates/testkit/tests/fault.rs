//! The faults, on well-known programs.

#![allow(clippy::expect_used, reason = "a test")]

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pinion_testkit::fault::disk::{SmallDisk, full_file};
use pinion_testkit::fault::limits::{Limit, limited};
use pinion_testkit::fault::pipe::{Reader, Reading, write_torn};
use pinion_testkit::fault::proc::{end, left_behind, marked, open_files, resident_bytes};
use pinion_testkit::{Exit, Program, Sandbox};

const LONG: Duration = Duration::from_secs(10);

fn shell(script: &str) -> Program {
    Program::from_command(["sh", "-c", script])
}

#[test]
fn a_reader_that_stops_holds_up_the_writer_and_can_go_on() {
    let mut child = Command::new("seq")
        .arg("100000")
        .stdout(Stdio::piped())
        .spawn()
        .expect("seq");
    let reader = Reader::start(child.stdout.take().expect("a pipe"), Reading::StopAfter(10));
    let end = Instant::now() + LONG;
    while reader.bytes().len() < 10 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
    // Time to read too much.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(reader.bytes(), b"1\n2\n3\n4\n5\n");
    assert!(
        child.try_wait().expect("a child").is_none(),
        "the writer should wait"
    );
    reader.go_on();
    let all = reader.finish(LONG);
    assert!(all.ends_with(b"\n100000\n"));
    assert!(child.wait().expect("a child").success());
}

#[test]
fn a_reader_that_goes_away_ends_the_writer() {
    let mut child = Command::new("yes")
        .stdout(Stdio::piped())
        .spawn()
        .expect("yes");
    let reader = Reader::start(child.stdout.take().expect("a pipe"), Reading::CloseAfter(4));
    assert_eq!(reader.finish(LONG), b"y\ny\n");
    let status = child.wait().expect("a child");
    assert_eq!(Exit::of(status), Exit::Signal(13));
}

#[test]
fn a_slow_reader_takes_its_time() {
    let begun = Instant::now();
    let reader = Reader::start(&b"0123456789abcdefghij"[..], Reading::Slow(100));
    assert_eq!(reader.finish(LONG).len(), 20);
    assert!(begun.elapsed() >= Duration::from_millis(150));
}

#[test]
fn torn_input_arrives_whole() {
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat");
    let mut stdin = child.stdin.take().expect("a pipe");
    write_torn(
        &mut stdin,
        "grüße\n".as_bytes(),
        1,
        Duration::from_millis(1),
    )
    .expect("a write");
    drop(stdin);
    let mut text = String::new();
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut text)
        .expect("text");
    child.wait().expect("a child");
    assert_eq!(text, "grüße\n");
}

#[test]
fn a_file_limit_makes_writes_fail_without_ending_the_program() {
    let sandbox = Sandbox::new(1);
    let program = shell("head -c 2000 /dev/zero >big 2>/dev/null; echo survived >small");
    let mut process = limited(&program, &[Limit::FileBlocks(1)]).start(&sandbox, &[]);
    assert_eq!(process.wait(LONG), Some(Exit::Code(0)));
    assert_eq!(
        std::fs::metadata(sandbox.work().join("big"))
            .expect("big")
            .len(),
        512
    );
    assert!(sandbox.work().join("small").exists());
}

#[test]
fn a_limit_on_open_files_is_reached() {
    let sandbox = Sandbox::new(1);
    let program = limited(&shell("ulimit -n"), &[Limit::OpenFiles(20)]);
    let mut process = program.start(&sandbox, &[]);
    process.wait(LONG);
    process.drain(LONG);
    assert_eq!(process.lines()[0].value, 20);
}

#[test]
fn a_full_file_takes_nothing() {
    let sandbox = Sandbox::new(1);
    let path = sandbox.work().join("full");
    full_file(&path).expect("a link");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(path)
        .expect("it opens");
    let error = file.write_all(b"x").expect_err("it takes nothing");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn a_small_disk_fills_up_and_can_be_emptied() {
    let sandbox = Sandbox::new(1);
    let disk = match SmallDisk::mount(&sandbox.work(), 64 * 1024) {
        Ok(disk) => disk,
        // The rest requires the right to mount.
        Err(reason) => return assert!(!reason.is_empty()),
    };
    disk.fill();
    let path = sandbox.work().join("late");
    let written = std::fs::write(&path, [0; 8192]);
    assert_eq!(
        written.expect_err("it is full").kind(),
        std::io::ErrorKind::StorageFull
    );
    disk.empty();
    std::fs::write(&path, [0; 8192]).expect("there is room again");
}

#[test]
fn children_are_found_wherever_they_went() {
    let sandbox = Sandbox::new(1);
    let script =
        "setsid sleep 60 >/dev/null 2>&1 </dev/null & (nohup sleep 60 >/dev/null 2>&1 &) ; cat";
    let mut process = shell(script).start(&sandbox, &[]);
    let sleeping = || {
        marked(sandbox.marker())
            .iter()
            .filter(|p| p.command == "sleep 60")
            .count()
    };
    let latest = Instant::now() + LONG;
    while sleeping() < 2 && Instant::now() < latest {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(sleeping(), 2);
    assert!(open_files(process.id()) >= 3);
    assert!(resident_bytes(process.id()) > 0);
    process.close_stdin();
    process.wait(LONG);
    let left = left_behind(sandbox.marker(), Duration::from_millis(50));
    assert_eq!(left.len(), 2, "{left:?}");
    for found in left {
        end(found.pid);
    }
    assert_eq!(left_behind(sandbox.marker(), LONG), []);
}
