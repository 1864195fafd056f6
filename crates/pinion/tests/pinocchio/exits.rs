//! L6, L7: the process ends after its last frame, with a code that shows how; only `--stdin-rpc` waits for standard
//! input. Times are guards against hanging, not measurements.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use pinion_testkit::fault::proc;
use pinion_testkit::{Exit, ModelServer, Signal};
use serde_json::json;

use crate::rules;
use crate::stage::{Home, names};
use crate::support::{HANG, args, pinion, script};

const APPEND: [&str; 2] = ["--patch-mode", "append"];

#[test]
fn l6_an_open_silent_input_holds_up_nothing() {
    let home = Home::offline();
    let what = script(&json!({"text": "here I am"}));
    for output in ["jsonl", "text", "json", "yaml"] {
        // The pipe stays open as long as the process is watched.
        let arguments = [
            "run-command",
            "say.yaml",
            "--output",
            output,
            "--what",
            &what,
        ];
        let mut process = home
            .program(pinion())
            .start(&home.sandbox, &args(&arguments));
        assert_eq!(
            process.wait(HANG),
            Some(Exit::Code(0)),
            "{output}: {}",
            process.stderr()
        );
        process.drain(HANG);
        let told: String = process
            .lines()
            .iter()
            .map(|line| line.value.to_string())
            .collect();
        assert!(told.contains("here I am"), "{output}: {told}");
    }
}

#[test]
fn l7_a_closed_input_holds_up_nothing() {
    let home = Home::offline();
    let what = script(&json!({"text": "here I am"}));
    let mut command = home.program(pinion()).command(
        &home.sandbox,
        &args(&["run-command", "say.yaml", "--rpc", "--what", &what]),
    );
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(Exit::of(output.status), Exit::Code(0));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("here I am") && told.ends_with("\"done\":{\"status\":\"ok\"}}\n"),
        "{told}"
    );
}

#[test]
fn l7_codes_say_how_it_ended() {
    let home = Home::offline();
    let ok = script(&json!({"text": "fine"}));
    let failed = script(&json!({"error": "400 no"}));
    for (what, code, status) in [(&ok, 0, "ok"), (&failed, 1, "failed")] {
        let told = home.say(what, &[]);
        assert_eq!((told.exit, told.status()), (Exit::Code(code), status));
        let shown = home.run(&["run-command", "say.yaml", "--what", what]);
        assert_eq!(shown.exit, Exit::Code(code), "{shown:?}");
    }
    let errors = home.run(&["run-command", "say.yaml", "--what", &failed]);
    assert!(errors.stderr.contains("400 no"), "{errors:?}");
    // A conversation is not over because a run in it failed.
    let mut talk = home.talk(&[]);
    assert_eq!(talk.say("a", &failed), "failed");
    assert_eq!(talk.finish(), Exit::Code(0));
}

#[test]
fn l7_what_cannot_begin_prints_no_frame() {
    let home = Home::offline();
    home.write("broken.yaml", "name: broken\nprompt: [\n");
    home.write(
        "wrong.yaml",
        "name: wrong\nshort: Wrong\nprompt: |\n  fine\n  {{ joinn \",\" .x }}\n",
    );
    home.write("needs.yaml", "name: needs\nshort: Needs\nflags:\n  - name: file\n    type: string\n    required: true\nprompt: x\n");
    let pipe = home.sandbox.work().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let cases: [(&[&str], &str); 15] = [
        (&["missing.yaml", "--rpc"], "missing.yaml"),
        (&["broken.yaml", "--rpc"], "broken.yaml"),
        (&["wrong.yaml", "--rpc"], "wrong.yaml:5:6"),
        (&["wrong.yaml", "--stdin-rpc"], "wrong.yaml:5:6"),
        (&["needs.yaml", "--rpc"], "file"),
        (&["say.yaml", "--rpc", "--nonsense"], "--nonsense"),
        (&["say.yaml", "--output", "nonsense"], "nonsense"),
        (&["say.yaml", "--rpc", "--log-to-stdout"], "--log-to-stdout"),
        (
            &["say.yaml", "--stdin-rpc", "--log-to-stdout"],
            "--log-to-stdout",
        ),
        (&["say.yaml", "--rpc", "--tools", "nonsense"], "nonsense"),
        (
            &["say.yaml", "--rpc", "--images", "missing.png"],
            "missing.png",
        ),
        (
            &["say.yaml", "--rpc", "--debug-events-jsonl", "/proc/none/x"],
            "/proc/none/x",
        ),
        (
            &["say.yaml", "--rpc", "--debug-events-jsonl", "pipe"],
            "pipe: is a FIFO, not a regular file",
        ),
        (
            &["say.yaml", "--rpc", "--log-file", "pipe"],
            "pipe: is a FIFO, not a regular file",
        ),
        (
            &["say.yaml", "--rpc", "--images", "/dev/zero"],
            "/dev/zero: is a device, not a regular file",
        ),
    ];
    for (arguments, words) in cases {
        let ran = home.run(&[&["run-command"], arguments].concat());
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Exit::Code(1), ""),
            "{arguments:?}: {ran:?}"
        );
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

/// Waits until a tool has begun.
fn begun(home: &Home) {
    let end = Instant::now() + HANG;
    while !home.sandbox.work().join("begun").exists() {
        assert!(Instant::now() < end, "the tool does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn l7_signals_end_with_a_clean_done_and_take_the_children_along() {
    let call = json!({"tool": "bash", "args": {"command": "touch begun; sleep 600"}});
    let what = script(&call);
    for (signal, code) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
    ] {
        for mode in ["--rpc", "--stdin-rpc"] {
            let home = Home::offline();
            let arguments = [
                "run-command",
                "say.yaml",
                mode,
                "--what",
                &what,
                "--tools",
                "bash",
            ];
            let mut process = home.start(&arguments);
            if mode == "--stdin-rpc" {
                process.send(&json!({"requestId": "run", "submit": {"prompt": what}}));
            }
            begun(&home);
            process.signal(signal);
            assert_eq!(
                process.wait(HANG),
                Some(Exit::Code(code)),
                "{mode} {signal}: {}",
                process.stderr()
            );
            process.drain(HANG);
            let lines: Vec<_> = process.lines().into_iter().map(|line| line.value).collect();
            rules::check(&lines).unwrap();
            assert_eq!(
                lines.last().unwrap()["done"]["status"],
                "stopped",
                "{mode} {signal}"
            );
            assert!(names(&lines).contains(&"ChatRunStopped"), "{mode} {signal}");
            assert_eq!(
                proc::left_behind(home.sandbox.marker(), HANG),
                [],
                "{mode} {signal}"
            );
        }
    }
}

#[test]
fn l7_a_signal_ends_text_output_and_its_children() {
    let what = script(&json!({"tool": "bash", "args": {"command": "touch begun; sleep 600"}}));
    let home = Home::offline();
    let arguments = args(&[
        "run-command",
        "say.yaml",
        "--what",
        &what,
        "--tools",
        "bash",
    ]);
    let mut process = home.program(pinion()).start(&home.sandbox, &arguments);
    begun(&home);
    process.signal(Signal::SIGTERM);
    assert_eq!(
        process.wait(HANG),
        Some(Exit::Code(143)),
        "{}",
        process.stderr()
    );
    assert_eq!(proc::left_behind(home.sandbox.marker(), HANG), []);
}

#[test]
fn l7_a_signal_while_nothing_is_asked_ends_a_conversation() {
    let mut talk = Home::offline().talk(&[]);
    talk.ask("a", "snapshot");
    talk.done("a");
    talk.process.signal(Signal::SIGTERM);
    assert_eq!(talk.end(), Exit::Code(143));
}

#[test]
fn l7_a_signal_answers_what_was_put_off() {
    let mut talk = Home::offline().talk(&APPEND);
    talk.submit("run", &script(&json!([{"text": "a"}, {"stall": 600_000}])));
    talk.event("run", "ChatTextPatch");
    talk.ask("look", "snapshot");
    talk.ask("bye", "shutdown");
    talk.submit("late", "x");
    // The line after them is refused at once, so they have been read.
    talk.process.send_text("{");
    talk.wait(&json!({"error": {"code": "invalid_request_json"}}));
    talk.process.signal(Signal::SIGINT);
    assert_eq!(talk.end(), Exit::Code(130));
    assert_eq!(talk.done("run"), "stopped");
    for id in ["look", "bye", "late"] {
        assert_eq!(talk.done(id), "failed", "{id}");
    }
}

#[test]
fn l7_a_reader_that_goes_away_ends_the_process_and_its_children() {
    let call =
        json!([{"text": "wait"}, {"tool": "bash", "args": {"command": "touch begun; sleep 600"}}]);
    let what = script(&call);
    for (mode, until) in [
        ("--rpc", "ChatToolExecutionStarted"),
        ("--output=text", "wait"),
    ] {
        let home = Home::offline();
        let arguments = [
            "run-command",
            "say.yaml",
            mode,
            "--what",
            &what,
            "--tools",
            "bash",
        ];
        let mut command = home
            .program(pinion())
            .command(&home.sandbox, &args(&arguments));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains(until) {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "{mode}");
        }
        begun(&home);
        drop(stdout);
        let end = Instant::now() + HANG;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < end,
                "{mode}: still running without a reader"
            );
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(Exit::of(status), Exit::Code(1), "{mode}");
        assert_eq!(proc::left_behind(home.sandbox.marker(), HANG), [], "{mode}");
    }
}

#[test]
fn l7_a_server_that_hangs_does_not_keep_the_process() {
    let turn = json!({"steps": [{"text": ["a", {"stall": true}]}]});
    let server = ModelServer::start(json!({"turns": [turn]}));
    let mut talk = Home::of(&server, "openai").talk(&APPEND);
    talk.submit("run", "go");
    talk.event("run", "ChatTextPatch");
    talk.ask("stop", "cancel");
    assert_eq!(talk.finish(), Exit::Code(0));
    assert_eq!(talk.done("run"), "stopped");
}
