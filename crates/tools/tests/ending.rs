//! No process outlives pinion: neither running commands nor background processes nor those that try
//! to escape.
//!
//! Processes are counted by a number in their command line, which no environment, session or parent
//! hides.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{PROBE, Workspace, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinion_tools::ToolSettings;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(10);

/// Identifies the processes of one test by the seconds they sleep.
struct Tag(String);

impl Tag {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("600.{:07}{next:03}", std::process::id()))
    }

    /// Commands that leave `sleep` processes behind, each in its own way; and their number.
    fn escapes(&self) -> Vec<(String, usize)> {
        let tag = &self.0;
        vec![
            (format!("sleep {tag} & echo $!"), 1),
            (format!("nohup sleep {tag} >/dev/null 2>&1 &"), 1),
            (format!("setsid sleep {tag} >/dev/null 2>&1 &"), 1),
            (
                format!("(setsid sh -c 'sleep {tag} & sleep {tag} &' >/dev/null 2>&1 &)"),
                2,
            ),
            (
                format!("(env -i setsid sh -c 'sleep {tag} & exit' >/dev/null 2>&1 &)"),
                1,
            ),
            (
                format!("trap '' TERM HUP INT; (trap '' TERM HUP INT; sleep {tag}) &"),
                1,
            ),
        ]
    }

    fn count(&self) -> usize {
        self.pids().len()
    }

    fn pids(&self) -> Vec<i32> {
        let sleeps = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"sleep\0") && line[6..].starts_with(self.0.as_bytes())
        };
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(sleeps).collect()
    }

    #[track_caller]
    fn wait_for(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.count() != count {
            assert!(
                Instant::now() < deadline,
                "{} processes, expected {count}",
                self.count()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        for pid in self.pids() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Starts the probe in its own group and waits until it prints `line`.
fn probe(arguments: &[&str], line: &str) -> Child {
    let mut child = Command::new(PROBE)
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(said.map_while(Result::ok).any(|said| said == line));
    child
}

fn guardian_of(pid: u32) -> i32 {
    let children = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = children.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_guardian = |found: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{found}/stat")).unwrap_or_default();
        stat.contains("(guardian) ")
            && stat.split(") ").nth(1).unwrap()[2..].starts_with(&format!("{pid} "))
    };
    pids.find(is_guardian).unwrap()
}

#[test]
fn kill_minus_nine_ends_everything() {
    let tag = Tag::new();
    for (command, count) in tag.escapes() {
        let mut probe = probe(&[&command], "done");
        tag.wait_for(count);
        probe.kill().unwrap();
        probe.wait().unwrap();
        tag.wait_for(0);
    }
}

#[test]
fn kill_minus_nine_ends_what_is_running() {
    let tag = Tag::new();
    let command = format!("sleep {0} & setsid sleep {0} & sleep {0}", tag.0);
    let mut probe = probe(&[&command], "running");
    tag.wait_for(3);
    probe.kill().unwrap();
    probe.wait().unwrap();
    tag.wait_for(0);
}

#[test]
fn a_signal_to_the_whole_group_does_not_spare_them() {
    let tag = Tag::new();
    let mut probe = probe(&[&tag.escapes()[2].0], "done");
    tag.wait_for(1);
    kill(Pid::from_raw(-(probe.id() as i32)), Signal::SIGKILL).unwrap();
    probe.wait().unwrap();
    tag.wait_for(0);
}

#[test]
fn a_normal_end_takes_the_background_along() {
    let tag = Tag::new();
    for (command, count) in tag.escapes() {
        let mut probe = probe(&[&command], "done");
        tag.wait_for(count);
        drop(probe.stdin.take());
        assert!(probe.wait().unwrap().success());
        tag.wait_for(0);
    }
}

#[test]
fn kill_all_returns_when_they_are_gone() {
    let tag = Tag::new();
    for (command, count) in tag.escapes() {
        let mut probe = probe(&[&command, "kill-all"], "done");
        tag.wait_for(count);
        drop(probe.stdin.take());
        let mut said = String::new();
        probe
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!((said.as_str(), tag.count()), ("killed\n", 0), "{command}");
        probe.wait().unwrap();
    }
}

#[test]
fn what_survived_both_is_swept_by_the_next() {
    let tag = Tag::new();
    let mut first = probe(&[&tag.escapes()[3].0], "done");
    tag.wait_for(2);
    let guardian = Pid::from_raw(guardian_of(first.id()));
    kill(guardian, Signal::SIGSTOP).unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    kill(guardian, Signal::SIGKILL).unwrap();
    // No process ends them until a guardian starts.
    let mut second = probe(&["true"], "done");
    tag.wait_for(0);
    drop(second.stdin.take());
    second.wait().unwrap();
}

#[tokio::test]
async fn an_abort_ends_what_the_command_started() {
    let tag = Tag::new();
    for (command, count) in tag.escapes() {
        let workspace = Workspace::new(&[]);
        let call = workspace.error("bash", json!({"command": format!("{command}\nsleep 60")}));
        let abort = async {
            while tag.count() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            workspace.cancel.cancel();
        };
        let (error, ()) = tokio::join!(call, abort);
        assert!(error.ends_with("Command aborted"), "{error}");
        if !command.contains("env -i") {
            tag.wait_for(0);
        }
        pinion_process::kill_all();
        tag.wait_for(0);
    }
}

#[tokio::test]
async fn an_abort_amid_forks_ends_what_the_command_started() {
    let tag = Tag::new();
    for round in 0..30 {
        let workspace = Workspace::new(&[]);
        let forks = format!("for n in {{1..40}}; do setsid sleep {} & done; wait", tag.0);
        let call = workspace.error("bash", json!({"command": forks}));
        let abort = async {
            while tag.count() == 0 {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
            tokio::time::sleep(Duration::from_micros(300 * round)).await;
            workspace.cancel.cancel();
        };
        let (error, ()) = tokio::join!(call, abort);
        assert!(error.ends_with("Command aborted"), "{error}");
        tag.wait_for(0);
    }
}

#[tokio::test]
async fn a_timeout_ends_what_the_command_started() {
    let (tag, workspace) = (Tag::new(), Workspace::new(&[]));
    let line = format!("setsid sleep {0} & sleep {0}", tag.0);
    let error = workspace
        .error("bash", json!({"command": line, "timeout": 0.5}))
        .await;
    assert_eq!(error, "Command timed out after 0.5 seconds");
    tag.wait_for(0);
}

#[tokio::test]
async fn a_dropped_call_ends_what_the_command_started() {
    let (tag, workspace) = (Tag::new(), Workspace::new(&[]));
    let line = format!("setsid sleep {0} & sleep {0}", tag.0);
    let call = workspace.call("bash", json!({"command": line}));
    let dropped = tokio::time::timeout(Duration::from_millis(500), call).await;
    assert!(dropped.is_err());
    tag.wait_for(0);
}

#[tokio::test]
async fn a_good_command_may_leave_a_server_behind_until_the_end() {
    let (tag, workspace) = (Tag::new(), Workspace::new(&[]));
    let line = format!("sleep {} >/dev/null 2>&1 & echo started", tag.0);
    assert_eq!(
        workspace.text("bash", json!({"command": line})).await,
        "started\n"
    );
    for _ in 0..5 {
        workspace.text("bash", json!({"command": "true"})).await;
    }
    assert_eq!(tag.count(), 1);
    pinion_process::kill_all();
    assert_eq!(tag.count(), 0);
    assert_eq!(
        workspace
            .text("bash", json!({"command": "echo again"}))
            .await,
        "again\n"
    );
}

#[tokio::test]
async fn a_command_whose_guardian_is_killed_fails_and_the_next_one_works() {
    let (tag, workspace) = (Tag::new(), Workspace::new(&[]));
    workspace.text("bash", json!({"command": "true"})).await;
    let line = format!("setsid sleep {0} & sleep {0}", tag.0);
    let call = workspace.error("bash", json!({"command": line}));
    let murder = async {
        while tag.count() != 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        kill(
            Pid::from_raw(guardian_of(std::process::id())),
            Signal::SIGKILL,
        )
        .unwrap();
    };
    let (error, ()) = tokio::join!(call, murder);
    assert!(
        error.contains("was killed, and the command with it"),
        "{error}"
    );
    tag.wait_for(0);
    assert_eq!(
        workspace
            .text("bash", json!({"command": "echo again"}))
            .await,
        "again\n"
    );
}

/// While one command loses its guardian, others start at that moment: they run, once, to their end.
#[tokio::test]
async fn commands_started_while_a_guardian_dies_are_not_harmed() {
    for round in 0..20 {
        let workspace = Workspace::new(&[]);
        workspace.text("bash", json!({"command": "true"})).await;
        let guardian = Pid::from_raw(guardian_of(std::process::id()));
        let victim = workspace.call("bash", json!({"command": "sleep 30"}));
        let others = async {
            tokio::time::sleep(Duration::from_millis(round * 3)).await;
            kill(guardian, Signal::SIGKILL).unwrap();
            let mut outputs = Vec::new();
            for number in 0..10 {
                tokio::time::sleep(Duration::from_millis(2)).await;
                let line = format!("sleep 0.02; echo {number}");
                outputs.push(workspace.call("bash", json!({"command": line})).await);
            }
            outputs
        };
        let (victim, outputs) = tokio::join!(victim, async {
            let outputs = others.await;
            workspace.cancel.cancel();
            outputs
        });
        drop(victim);
        for (number, output) in outputs.into_iter().enumerate() {
            assert_eq!(
                text(&output.unwrap()),
                format!("{number}\n"),
                "round {round}"
            );
        }
    }
}

#[tokio::test]
async fn a_command_that_kills_its_guardian_runs_once_and_the_next_one_works() {
    let workspace = Workspace::new(&[]);
    for round in 1..=10 {
        let line = "echo run >> runs; kill -9 $PPID; sleep 5";
        let error = workspace.error("bash", json!({"command": line})).await;
        assert!(
            error.contains("watches over commands was killed"),
            "{error}"
        );
        let line = "wc -l < runs";
        let runs = workspace.text("bash", json!({"command": line})).await;
        assert_eq!(runs.trim(), round.to_string());
    }
}

#[tokio::test]
async fn without_a_guardian_commands_still_run_and_end() {
    let workspace = Workspace::new(&[]);
    pinion_process::set_guardian("/bin/false".into(), Vec::new());
    assert_eq!(
        workspace
            .text("bash", json!({"command": "echo hello"}))
            .await,
        "hello\n"
    );
    pinion_process::kill_all();
    let (tag, workspace) = (Tag::new(), Workspace::new(&[]));
    let line = format!(
        "(setsid sh -c 'sleep {0} & sleep {0} &' &); sleep {0}",
        tag.0
    );
    let call = workspace.error("bash", json!({"command": line}));
    let abort = async {
        while tag.count() != 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        workspace.cancel.cancel();
    };
    let (error, ()) = tokio::join!(call, abort);
    assert_eq!(error, "Command aborted");
    tag.wait_for(0);
}

#[tokio::test]
async fn a_binary_that_cannot_be_a_guardian_does_without() {
    // By default this test binary is tried, which cannot be a guardian.
    let cwd = std::env::temp_dir();
    let settings = ToolSettings::default();
    let never = Default::default();
    let outcome = pinion_tools::user_bash("echo $PINION_GUARDIAN.", &cwd, &settings, None, &never);
    assert_eq!(outcome.await.unwrap().output, ".\n");
}

#[tokio::test]
async fn a_command_gets_no_descriptor_of_ours() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let inheritable = nix::unistd::dup(&file).unwrap();
    let workspace = Workspace::new(&[]);
    for guardian in [PROBE, "/bin/false"] {
        pinion_process::kill_all();
        pinion_process::set_guardian(
            guardian.into(),
            vec![pinion_process::GUARDIAN_ARGUMENT.into()],
        );
        let line = "for name in /proc/$$/fd/*; do readlink $name; done; true";
        let shown = workspace.text("bash", json!({"command": line})).await;
        assert_eq!(shown.lines().count(), 3, "{shown}");
    }
    drop(inheritable);
}

#[tokio::test]
async fn a_command_sees_no_terminal_and_no_foreign_group() {
    let workspace = Workspace::new(&[]);
    let settings = ToolSettings {
        shell_path: Some("/bin/sh".into()),
        ..ToolSettings::default()
    };
    let line = "ps -o pid=,pgid=,sid= -p $$ 2>/dev/null || cut -d' ' -f1,5,6 /proc/$$/stat; (exec </dev/tty) 2>&1 | head -1";
    let output = workspace
        .call_with("bash", json!({"command": line}), settings)
        .await
        .unwrap();
    let shown = text(&output);
    let ids: Vec<&str> = shown.lines().next().unwrap().split_whitespace().collect();
    assert!(
        ids.len() == 3 && ids.iter().all(|id| *id == ids[0]),
        "leads its group and session: {shown}"
    );
    assert!(
        shown.lines().count() > 1,
        "there is no terminal to open: {shown}"
    );
}
