//! S5 to S7: bytes grow with the answer, frames arrive at once at a fast reader, and a slow one loses nothing.

use std::os::fd::AsFd;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use pinion_testkit::fault::pipe::{Reader, Reading};
use pinion_testkit::fault::proc;
use pinion_testkit::{Exit, ModelServer, frames};
use serde_json::{Value, json};

use crate::rules;
use crate::stage::{Home, lines, payloads};
use crate::support::{HANG, args, pinion, script};

#[test]
fn s5_appending_bytes_grow_with_the_answer() {
    let home = Home::offline();
    let bytes = |deltas: u64| {
        let what = script(&json!({"deltas": deltas, "size": 12}));
        let ran = home.run(&[
            "run-command",
            "say.yaml",
            "--rpc",
            "--patch-mode",
            "append",
            "--what",
            &what,
        ]);
        let length = ran.stdout.len();
        let told = ran.told();
        let text = payloads(&told.lines, "ChatTextSegmentFinished")[0]["content"]
            .as_str()
            .unwrap();
        assert_eq!(text.len() as u64, deltas * 12);
        length
    };
    // About a kilobyte a delta. With the square, the second would be hundreds of megabytes.
    for deltas in [2_000, 8_000] {
        let bytes = bytes(deltas);
        assert!(
            bytes < deltas as usize * 1_500 + 100_000,
            "{bytes} bytes for {deltas} deltas"
        );
    }
}

/// Starts the program with a pipe of one page, so that a slow reader is felt at once.
fn start_narrow(home: &Home, arguments: &[&str]) -> Child {
    let mut command = home
        .program(pinion())
        .command(&home.sandbox, &args(arguments));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let stdout = child.stdout.as_ref().unwrap();
    fcntl(stdout.as_fd(), FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    child
}

fn told(bytes: &[u8]) -> Vec<Value> {
    frames::check(bytes);
    let told = lines(std::str::from_utf8(bytes).unwrap());
    rules::check(&told).unwrap();
    told
}

#[test]
fn s5_whole_texts_for_a_slow_reader_grow_with_the_answer_and_not_with_its_square() {
    let home = Home::offline();
    let what = script(&json!({"deltas": 20_000, "size": 12}));
    let mut child = start_narrow(
        &home,
        &[
            "run-command",
            "say.yaml",
            "--rpc",
            "--what",
            &what,
            "--turns-db",
            "turns.db",
        ],
    );
    let reader = Reader::start(child.stdout.take().unwrap(), Reading::StopAfter(20_000));
    // The reader pauses until the whole answer is stored.
    let kept = || {
        let size = |name: &str| {
            let file = std::fs::metadata(home.sandbox.work().join(name));
            file.map_or(0, |file| file.len())
        };
        size("turns.db") + size("turns.db-wal")
    };
    let end = Instant::now() + HANG;
    while kept() < 240_000 {
        let waiting = Instant::now() < end;
        assert!(waiting, "a reader that stands still holds up the model");
        std::thread::sleep(Duration::from_millis(10));
    }
    reader.go_on();
    let bytes = reader.finish(HANG);
    assert_eq!(Exit::of(child.wait().unwrap()), Exit::Code(0));
    let told = told(&bytes);
    let text = &payloads(&told, "ChatTextSegmentFinished")[0]["content"];
    assert_eq!(text.as_str().unwrap().len(), 240_000);
    // In full that would be 20,000 lines and more than two gigabytes.
    assert!(bytes.len() < 20 * 240_000, "{} bytes", bytes.len());
}

#[test]
fn s6_a_frame_can_be_read_before_the_next_thing_happens() {
    let pieces: Vec<Value> = (0..20)
        .flat_map(|n| {
            [
                json!(format!("piece {n};")),
                json!({"gate": format!("g{n}")}),
            ]
        })
        .collect();
    for mode in ["append", "snapshot"] {
        let server = ModelServer::start(json!({"turns": [{"steps": [{"text": pieces}]}]}));
        let home = Home::of(&server, "openai");
        let mut process = home.start(&["run-command", "say.yaml", "--rpc", "--patch-mode", mode]);
        for n in 0..20 {
            let piece = format!("piece {n};");
            let told = process.find(0, 1, HANG, |line| {
                let text = line["uiEvent"]["payload"]["text"].as_str();
                line["uiEvent"]["name"] == "ChatTextPatch"
                    && text.is_some_and(|text| text.ends_with(&piece))
            });
            assert!(told.is_some(), "{mode}: {piece} is held back");
            server.release(&format!("g{n}"));
        }
        assert_eq!(process.wait(HANG), Some(Exit::Code(0)));
    }
}

#[test]
fn s7_a_reader_of_a_few_bytes_a_second_loses_nothing() {
    let home = Home::offline();
    let what = script(&json!({"deltas": 5_000, "size": 40}));
    for mode in ["append", "snapshot"] {
        let arguments = [
            "run-command",
            "say.yaml",
            "--rpc",
            "--patch-mode",
            mode,
            "--what",
            &what,
        ];
        let mut child = start_narrow(&home, &arguments);
        let reader = Reader::start(child.stdout.take().unwrap(), Reading::SlowAtFirst(1024));
        let watched = Instant::now();
        let mut peak = 0;
        while watched.elapsed() < Duration::from_secs(2) {
            peak = proc::resident_bytes(child.id()).max(peak);
            std::thread::sleep(Duration::from_millis(50));
        }
        reader.go_on();
        while child.try_wait().unwrap().is_none() {
            peak = proc::resident_bytes(child.id()).max(peak);
            std::thread::sleep(Duration::from_millis(5));
            assert!(watched.elapsed() < HANG * 2, "{mode}: no end");
        }
        let told = told(&reader.finish(HANG));
        let text = payloads(&told, "ChatTextSegmentFinished")[0]["content"]
            .as_str()
            .unwrap();
        assert_eq!(text.len(), 200_000, "{mode}");
        assert_eq!(
            told.iter()
                .filter(|line| line.get("done").is_some())
                .count(),
            1,
            "{mode}"
        );
        // 200 KB of text; a debug build alone takes some tens of megabytes.
        assert!(peak < 200 << 20, "{mode}: {peak} bytes");
    }
}

#[test]
fn s7_a_conversation_of_many_prompts_does_not_grow_without_bound() {
    let mut talk = Home::offline().talk(&["--patch-mode", "append"]);
    let say = |talk: &mut crate::stage::Talk, from: usize, to: usize| {
        for number in from..to {
            let prompt = script(&json!({"deltas": 200, "size": 20}));
            assert_eq!(talk.say(&format!("r{number}"), &prompt), "ok");
        }
        proc::resident_bytes(talk.process.id())
    };
    let early = say(&mut talk, 0, 10);
    let late = say(&mut talk, 10, 50);
    assert_eq!(talk.finish(), Exit::Code(0));
    // Forty answers of 4 KB and what is shown of them.
    assert!(late < early + (64 << 20), "{early} bytes, then {late}");
}
