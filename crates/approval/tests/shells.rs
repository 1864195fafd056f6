//! Runs random commands that the rules permit in real shells: with only `echo` allowed, none may create a file.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use pinion_agent::{Admission, Gate, Maker, ToolRun, Verdict};
use pinion_approval::{Approvals, Mode, Origin, Policy, Rule, Unattended};
use serde_json::json;

/// The pieces of the random commands; `M` is the file that must not be created.
const PIECES: &[&str] = &[
    "echo",
    "echo",
    "echo ",
    "echo a",
    "touch M",
    "touch M",
    " touch M ",
    "a",
    " ",
    " ",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "\n",
    "'",
    "\"",
    "\\",
    "$",
    "$(",
    "(",
    ")",
    "{ ",
    "; }",
    "`",
    "#",
    "!",
    "if ",
    "then ",
    "; fi",
    "do ",
    "; done",
    "for x in ",
    "while ",
    "<<E\n",
    "\nE\n",
    "<",
    ">",
    ">M",
    "2>&1",
    ">/dev/null",
    "&>/dev/null",
    "A=",
    "${",
    "}",
    "$((",
    "))",
    "[[ ",
    "=",
    "\\\n",
    "$'",
    "*",
    "~",
    "[",
    "]",
    "case a in a)",
    ";;",
    "f()",
    "<(",
    "$x",
    "\t",
    "\r",
    "é",
    "time ",
    "in ",
    "|&",
    ";&",
    "<>",
    ">&",
    "<&",
    "2>",
    "1",
    "-",
    "until ",
    "select x in ",
    "${x}",
    "{a,",
    "a=(",
    "@(",
    "\\'",
    "function f ",
    "coproc ",
];

/// A deterministic random number generator, so that a failure can be reproduced.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn is_permitted(gate: &Approvals, command: &str, cwd: &Path) -> bool {
    let arguments = json!({"command": command});
    let run = ToolRun {
        call_id: "c".into(),
        name: "bash".into(),
        arguments: arguments.clone(),
        parent_call_id: None,
    };
    let admission = Admission {
        run: &run,
        arguments: &arguments,
        maker: Maker::BuiltIn,
        cwd,
    };
    gate.admit(admission).now_or_never() == Some(Verdict::Run)
}

fn run(shell: &str, command: &str, cwd: &Path) {
    let mut child = Command::new(shell)
        .args(["-c", command])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // `while echo` never ends by itself; 400 ms are enough for its effects.
    for _ in 0..200 {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn permitted_commands_create_no_file() {
    let gate = Approvals::new(
        Policy {
            mode: Mode::Deny,
            answer_timeout: Duration::from_secs(1),
            allow: vec![Rule::parse("bash(echo *)", Origin::Flag).unwrap()],
            deny: Vec::new(),
        },
        Arc::new(Unattended),
    );
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("M");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut made, mut with_touch) = (0, 0);
    for _ in 0..60_000 {
        let mut command = String::from(if numbers.below(2) == 0 { "echo " } else { "" });
        for _ in 0..=numbers.below(9) {
            command += PIECES[numbers.below(PIECES.len())];
        }
        // Only what mentions the file can make it.
        if !command.contains('M') || !is_permitted(&gate, &command, dir.path()) {
            continue;
        }
        made += 1;
        with_touch += usize::from(command.contains("touch"));
        for shell in ["bash", "sh"] {
            run(shell, &command, dir.path());
            assert!(!mark.exists(), "{shell} made the file: {command:?}");
        }
    }
    assert!(
        made > 100 && with_touch > 100,
        "{made} {with_touch}: too few to show anything"
    );
}
