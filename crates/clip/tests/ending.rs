//! Tests of the end of processes: no process outlives its owner, and every call ends once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{PROBE, SHELL, TestClip, call, eventually};
use futures_util::StreamExt;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinion_clip::{CallError, Code};
use serde_json::json;

/// Returns the processes whose command line contains `tag`.
fn tagged(tag: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_tag = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(tag)
    };
    pids.filter(has_tag).collect()
}

#[tokio::test]
async fn kill_minus_nine_of_the_owner_leaves_no_descendants() {
    let tag = format!("600.{:07}7", std::process::id());
    let body = format!(
        "{SHELL}
trap '' TERM HUP INT
register; next
sleep {tag} &
nohup setsid sleep {tag} >/dev/null 2>&1 &
(setsid bash -c 'sleep {tag} & sleep {tag} & disown -a' >/dev/null 2>&1 &)
(env -i /usr/bin/setsid /bin/bash -c '(sleep {tag} &) ; exit' >/dev/null 2>&1 &)
sleep 0.5
result '\"up\"'
while :; do sleep {tag}; done"
    );
    let place = TestClip::script(common::EXEC, &body);
    let mut owner = Command::new(PROBE)
        .args(["own", place.directory().to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut output = BufReader::new(owner.stdout.take().unwrap());
    output.read_line(&mut said).unwrap();
    assert_eq!(said, "\"up\"\n");
    eventually("its children", || tagged(&tag).len() >= 6).await;
    kill(Pid::from_raw(owner.id() as i32), Signal::SIGKILL).unwrap();
    owner.wait().unwrap();
    eventually("their end", || tagged(&tag).is_empty()).await;
    let directory = place.directory();
    eventually("the end of the clip", || {
        tagged(directory.to_str().unwrap()).is_empty()
    })
    .await;
}

/// Kills 200 processes under load: every call ends exactly once, with its own answer or as unavailable.
#[tokio::test]
async fn two_hundred_kills_under_load() {
    let mut place = TestClip::probe();
    // Each start is a new process to kill; the delay after crashes is not tested here.
    place.limits.backoff = Duration::ZERO;
    place.limits.idle = None;
    let clip = Arc::new(place.clip());
    let over = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let lost = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let (clip, over) = (clip.clone(), over.clone());
            let (answered, lost) = (answered.clone(), lost.clone());
            tokio::spawn(async move {
                let mut number = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    number += 1;
                    let streams = number.is_multiple_of(3);
                    let mut stream = if streams {
                        call(&clip, "count", &json!({"to": 5}))
                    } else {
                        call(&clip, "echo", &json!({"n": number, "caller": caller}))
                    };
                    let mut parts = Vec::new();
                    let mut ends = 0;
                    while let Some(item) = stream.next().await {
                        assert_eq!(ends, 0, "something came after the end");
                        match item {
                            Ok(output) => parts.push(output),
                            Err(error) => {
                                let CallError::Unanswered(failure) = error else {
                                    panic!("{error}")
                                };
                                assert_eq!(failure.code, Code::Unavailable, "{failure}");
                                ends += 1;
                            }
                        }
                    }
                    assert!(stream.next().await.is_none());
                    if ends == 1 {
                        lost.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                    let parts: Vec<serde_json::Value> = parts
                        .iter()
                        .map(|part| serde_json::from_slice(part).unwrap())
                        .collect();
                    if streams {
                        let numbers: Vec<_> = parts.iter().map(|part| part["n"].as_u64()).collect();
                        assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
                    } else {
                        assert_eq!(parts, [json!({"n": number, "caller": caller})]);
                    }
                }
            })
        })
        .collect();
    let mut random = std::process::id();
    let mut kills: HashMap<&str, usize> = HashMap::new();
    let directory = place.directory();
    let probe = directory.join("probe");
    let mut done = 0_usize;
    while done < 200 {
        // On a busy machine, a process may be killed before it can answer. A pause now and then lets some answer.
        if done.is_multiple_of(20) {
            let before = answered.load(Ordering::Relaxed);
            eventually("an answer between kills", || {
                answered.load(Ordering::Relaxed) > before
            })
            .await;
        }
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        tokio::time::sleep(Duration::from_micros(u64::from(random % 8000))).await;
        let signal =
            [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGSEGV][(random >> 16) as usize % 3];
        for pid in tagged(probe.to_str().unwrap()) {
            if kill(Pid::from_raw(pid), signal).is_ok() {
                done += 1;
                *kills.entry(signal.as_str()).or_default() += 1;
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        tokio::time::timeout(Duration::from_secs(60), caller)
            .await
            .unwrap()
            .unwrap();
    }
    let (answered, lost) = (
        answered.load(Ordering::Relaxed),
        lost.load(Ordering::Relaxed),
    );
    assert!(
        answered > 0 && lost > 0,
        "{answered} answered, {lost} lost, {kills:?}"
    );
    clip.retire().await;
    eventually("the last end", || {
        tagged(probe.to_str().unwrap()).is_empty()
    })
    .await;
}
