//! The process ends when its work has, with a code that shows how, and never with 0 if it did nothing. Times are guards
//! against hanging, not measurements.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use pinion_testkit::fault::proc;
use pinion_testkit::{Exit, ModelServer, Sandbox, Signal};
use serde_json::{Value, json};

use crate::support::{Client, HANG, args, offline_sandbox, pinion, script};

/// Runs with an input and returns exit, standard output and standard error.
fn run(sandbox: &Sandbox, arguments: &[&str], input: &str) -> (Exit, String, String) {
    let mut command = pinion().command(sandbox, &args(arguments));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that does not read its input may be gone by now.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        Exit::of(output.status),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn l6_a_prompt_on_the_command_line_does_not_wait_for_a_silent_pipe() {
    for mode in ["text", "json"] {
        let sandbox = offline_sandbox(&json!({}));
        let prompt = script(&json!({"text": "here I am"}));
        // The pipe stays open as long as the process is watched.
        let mut process = pinion().start(
            &sandbox,
            &args(&["--model", "offline/demo", "--mode", mode, "-p", &prompt]),
        );
        let exit = process.wait(HANG);
        process.drain(HANG);
        assert_eq!(exit, Some(Exit::Code(0)), "{mode}: {}", process.stderr());
        let output: String = process
            .lines()
            .iter()
            .map(|line| line.value.to_string())
            .collect();
        assert!(output.contains("here I am"), "{mode}: {output}");
        assert!(
            process
                .stderr()
                .contains("standard input is open but silent"),
            "{}",
            process.stderr()
        );
    }
}

#[test]
fn l6_waiting_for_standard_input_is_said() {
    let sandbox = offline_sandbox(&json!({}));
    let mut process = pinion().start(&sandbox, &args(&["--model", "offline/demo", "-p"]));
    let end = std::time::Instant::now() + HANG;
    while !process.stderr().contains("Waiting for the prompt") {
        assert!(
            std::time::Instant::now() < end,
            "nothing is said: {}",
            process.stderr()
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    process.send_text(&script(&json!({"text": "at last"})));
    process.close_stdin();
    assert_eq!(process.wait(HANG), Some(Exit::Code(0)));
}

#[test]
fn l6_what_is_piped_in_goes_before_the_prompt() {
    let sandbox = offline_sandbox(&json!({}));
    let (exit, output, _) = run(
        &sandbox,
        &[
            "--model",
            "offline/demo",
            "--mode",
            "json",
            "-p",
            "and this",
        ],
        "the piped part\n",
    );
    assert_eq!(exit, Exit::Code(0));
    assert!(
        output.contains(r#""text":"the piped part\nand this""#),
        "{output}"
    );
}

#[test]
fn l7_the_answer_is_printed_and_the_exit_is_0() {
    let sandbox = offline_sandbox(&json!({}));
    let prompt = script(&json!({"text": "forty-two"}));
    let (exit, output, _) = run(&sandbox, &["--model", "offline/demo", "-p", &prompt], "");
    assert_eq!((exit, output.as_str()), (Exit::Code(0), "forty-two\n"));
    let (exit, output, _) = run(
        &sandbox,
        &["--model", "offline/demo", "--mode", "json", &prompt],
        "",
    );
    assert_eq!(exit, Exit::Code(0));
    let last: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "agent_settled");
}

#[test]
fn l7_a_failure_is_never_0() {
    let sandbox = offline_sandbox(&json!({}));
    let fails = script(&json!({"error": "400 no such luck"}));
    for mode in ["text", "json"] {
        let (exit, output, errors) = run(
            &sandbox,
            &["--model", "offline/demo", "--mode", mode, "-p", &fails],
            "",
        );
        assert_eq!(exit, Exit::Code(1), "{mode}: {errors}");
        assert!(
            format!("{output}{errors}").contains("no such luck"),
            "{mode}: {output} {errors}"
        );
    }
    // Nothing to do is a mistake in the command line.
    let (exit, output, errors) = run(&sandbox, &["--model", "offline/demo", "-p"], "");
    assert_eq!((exit, output.as_str()), (Exit::Code(2), ""), "{errors}");
    assert!(errors.contains("no prompt"), "{errors}");
}

#[test]
fn l7_a_wrong_command_line_says_so_with_code_2_or_1() {
    let sandbox = offline_sandbox(&json!({}));
    for (arguments, code) in [
        (&["--nonsense"][..], 2),
        (&["--mode", "nonsense"][..], 2),
        (&["--model"][..], 2),
        (&["--model", "nonsense/none", "-p", "x"][..], 2),
        (&["--mode", "rpc", "@file"][..], 1),
        (&["--session", "nobody", "-p", "x"][..], 1),
        (&["@missing-file", "-p", "x"][..], 1),
    ] {
        let (exit, output, errors) = run(&sandbox, arguments, "");
        assert_eq!(exit, Exit::Code(code), "{arguments:?}: {errors}");
        assert_eq!(output, "", "{arguments:?}");
        assert!(errors.len() > 10, "{arguments:?}: {errors}");
    }
}

#[test]
fn l7_rpc_ends_with_0_when_its_input_ends_idle_or_after_the_run() {
    let mut client = Client::offline();
    assert_eq!(client.finish(), Exit::Code(0));

    let mut client = Client::offline();
    let from = client.prompt(&script(&json!({"turns": [
        {"tool": "bash", "args": {"command": "sleep 0.3; echo done"}}, {"text": "over"}]})));
    client.wait_for(from, &json!({"type": "tool_execution_start"}));
    assert_eq!(client.finish(), Exit::Code(0));
    let lines = client.lines();
    let [.., end, settled] = &lines[..] else {
        panic!("{}", client.report(0));
    };
    assert_eq!(
        (&end["type"], &settled["type"]),
        (&json!("agent_end"), &json!("agent_settled"))
    );
    assert_eq!(end["messages"][3]["content"][0]["text"], "over");
}

#[test]
fn l7_a_last_line_without_a_line_feed_counts() {
    let mut client = Client::offline();
    client
        .process
        .send_bytes(br#"{"id":"last","type":"get_state"}"#);
    assert_eq!(client.finish(), Exit::Code(0));
    client.wait_answer("last");
}

#[test]
fn l7_rpc_ends_at_once_at_the_end_of_input_when_asked_to() {
    let sandbox = offline_sandbox(&json!({}));
    let mut client = Client::start(
        sandbox,
        &["--mode", "rpc", "--model", "offline/demo", "--exit-on-eof"],
    );
    let from = client.prompt(&script(
        &json!({"tool": "bash", "args": {"command": "sleep 600"}}),
    ));
    client.wait_for(from, &json!({"type": "tool_execution_start"}));
    assert_eq!(client.finish(), Exit::Code(0));
    assert_eq!(proc::left_behind(client.sandbox.marker(), HANG), []);
}

#[test]
fn l7_signals_end_every_mode_with_their_code_and_take_the_children_along() {
    for (signal, exit) in [
        (Signal::SIGTERM, Exit::Code(143)),
        (Signal::SIGHUP, Exit::Code(129)),
        (Signal::SIGINT, Exit::Signal(2)),
    ] {
        for mode in ["rpc", "json", "text"] {
            let sandbox = offline_sandbox(&json!({}));
            let command = json!({"tool": "bash", "args": {"command": "touch begun; sleep 600"}});
            let prompt = script(&command);
            let arguments = ["--model", "offline/demo", "--mode", mode];
            let mut arguments = args(&arguments);
            if mode != "rpc" {
                arguments.push(prompt.clone());
            }
            let mut process = pinion().start(&sandbox, &arguments);
            if mode == "rpc" {
                process.send(&json!({"type": "prompt", "message": prompt}));
            }
            let end = std::time::Instant::now() + HANG;
            while !sandbox.work().join("begun").exists() {
                assert!(
                    std::time::Instant::now() < end,
                    "{mode}: {}",
                    process.stderr()
                );
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            process.signal(signal);
            assert_eq!(
                process.wait(HANG),
                Some(exit),
                "{mode} {signal}: {}",
                process.stderr()
            );
            assert_eq!(
                proc::left_behind(sandbox.marker(), HANG),
                [],
                "{mode} {signal}"
            );
        }
    }
}

#[test]
fn l7_a_signal_ends_a_process_whose_last_words_nobody_reads() {
    let sandbox = offline_sandbox(&json!({}));
    let mut command = pinion().command(
        &sandbox,
        &args(&["--mode", "rpc", "--model", "offline/demo"]),
    );
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let prompt = script(&json!({"deltas": 400, "size": 1000}));
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", json!({"type": "prompt", "message": prompt})).unwrap();
    drop(stdin);
    // More than a pipe holds has been written, the input has ended, and the output is not read.
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 1000]).unwrap();
    // Time to fill the pipe; a signal before that has the same result.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let pid = nix_pid(&child);
    let _ = nix::sys::signal::kill(pid, Signal::SIGTERM);
    let end = std::time::Instant::now() + HANG;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if std::time::Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("SIGTERM does not end a process that waits for its reader");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert_eq!(Exit::of(status), Exit::Code(143));
}

fn nix_pid(child: &Child) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap())
}

#[test]
fn l7_a_run_that_ends_while_its_server_hangs_does_not_keep_the_process() {
    let turn = json!({"steps": ["a", {"stall": true}]});
    let server = ModelServer::start(json!({"turns": [turn]}));
    let mut client = Client::of(&server, &json!({}));
    let from = client.prompt("go");
    client.wait_for(from, &json!({"type": "message_update"}));
    let abort = client.send(json!({"type": "abort"}));
    client.wait_answer(&abort);
    assert_eq!(client.finish(), Exit::Code(0));
}

#[test]
fn l7_a_signal_after_the_end_of_input_stops_the_run_in_order() {
    let mut client = Client::offline();
    let from = client.prompt(&script(&json!({"text": "the first answer"})));
    client.wait_end(from);
    let from = client.prompt(&script(&json!({"deltas": 10_000, "size": 5, "paceMs": 5})));
    client.wait_for(from, &json!({"type": "message_update"}));
    client.process.close_stdin();
    // Time to notice the end of the input; a signal before that has the same result.
    std::thread::sleep(std::time::Duration::from_millis(100));
    client.process.signal(Signal::SIGTERM);
    assert_eq!(client.process.wait(HANG), Some(Exit::Code(143)));
    client.process.drain(HANG);
    let last = client.wait_end(from).pop().unwrap();
    assert_eq!(last["stopReason"], "aborted", "{last}");
    let mut client = client.restart(&["--mode", "rpc", "--model", "offline/demo", "--continue"]);
    let saved = client.data("get_messages");
    assert_eq!(saved["messages"][3]["stopReason"], "aborted", "{saved}");
}

#[test]
fn l7_the_reason_is_on_stderr_when_standard_output_ends() {
    for _ in 0..20 {
        let sandbox = offline_sandbox(&json!({}));
        sandbox.add_files(&json!({"broken.ts": "export default {"}));
        let stderr = sandbox.work().join("stderr");
        let mut command = pinion().command(
            &sandbox,
            &args(&[
                "--mode",
                "rpc",
                "--model",
                "offline/demo",
                "-e",
                "broken.ts",
            ]),
        );
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let mut output = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut output).unwrap();
        let reason = std::fs::read_to_string(&stderr).unwrap();
        assert!(reason.contains("broken.ts"), "{reason:?}");
        assert_eq!(Exit::of(child.wait().unwrap()), Exit::Code(1));
    }
}
