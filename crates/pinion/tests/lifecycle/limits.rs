//! Limits that the system sets: a failure is an answer or an exit code, never a panic or a death by a signal.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Output, Stdio};

use serde_json::json;

use crate::support::{args, offline_sandbox, pinion, script};

/// Runs in RPC mode with `input`, after `prepare` in the new process.
fn run(prepare: fn(), input: &str) -> Output {
    let sandbox = offline_sandbox(&json!({}));
    let mut command = pinion().command(
        &sandbox,
        &args(&["--mode", "rpc", "--model", "offline/demo"]),
    );
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: `prepare` makes system calls only.
    unsafe {
        command.pre_exec(move || {
            prepare();
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    // A program that does not start does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn limit(what: libc::__rlimit_resource_t, most: libc::rlim_t) {
    let limit = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: the structure is valid.
    unsafe { libc::setrlimit(what, &limit) };
}

#[test]
fn a_limit_on_file_sizes_is_reported_and_ends_nothing() {
    fn small_files() {
        // SAFETY: the default is what users have; a test runner may ignore it.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
        limit(libc::RLIMIT_FSIZE, 4096);
    }
    let long = script(&json!({"text": "x".repeat(20_000)}));
    let input = format!(
        "{}\n{}\n",
        json!({"id": 1, "type": "bash", "command": "grep SigIgn /proc/self/status"}),
        json!({"id": 2, "type": "prompt", "message": long}),
    );
    let output = run(small_files, &input);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(text.contains(r#""type":"agent_end""#), "{errors}");
    // Commands have the usual disposition of the signal.
    let mask = text.split("SigIgn:").nth(1).unwrap();
    let mask: String = mask
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(16)
        .collect();
    let mask = u64::from_str_radix(&mask, 16).unwrap();
    assert_eq!(mask & (1 << (libc::SIGXFSZ - 1)), 0, "{mask:x}");
}

#[test]
fn too_few_descriptors_are_an_error_with_what_to_do() {
    fn few() {
        limit(libc::RLIMIT_NOFILE, 8);
    }
    let output = run(few, "");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("the limit of open files is too low") && errors.contains("ulimit -n"),
        "{errors}"
    );
}

#[test]
fn a_message_that_cannot_be_printed_is_not_a_panic() {
    let sandbox = offline_sandbox(&json!({}));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = pinion().command(&sandbox, &args(&["--no-such-flag"]));
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(full)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn an_output_that_takes_nothing_is_exit_1_with_the_reason() {
    // The fault showed in two of three runs.
    for _ in 0..5 {
        let sandbox = offline_sandbox(&json!({}));
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = pinion().command(
            &sandbox,
            &args(&["--mode", "rpc", "--model", "offline/demo"]),
        );
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let request = json!({"id": 1, "type": "get_state"});
        // The program may have ended already.
        let _ = writeln!(child.stdin.take().unwrap(), "{request}");
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(!errors.trim().is_empty());
    }
}
