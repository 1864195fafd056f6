//! Every way in which a child or a run can end; none leaves anything behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::stage::{Stage, is_alive, script, wait_until};

fn pid_in(stage: &Stage, name: &str) -> Option<i32> {
    let text = fs::read_to_string(stage.sandbox.work().join(name)).ok()?;
    text.trim().parse().ok()
}

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

#[test]
fn a_child_that_is_done_and_stays_is_ended_after_its_grace() {
    let stage = Stage::offline();
    let body = r#"trap '' TERM; echo $$ > pid; echo '{"type":"text","text":"ok"}'; echo '{"type":"done"}'; sleep 1000 & wait; sleep 1000"#;
    let ran = stage.run(&format!(
        "defaults: {{ grace: 300ms }}\nchildren:\n{}",
        script("a", body)
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.child("a")["result"], "ok");
    assert!(!is_alive(pid_in(&stage, "pid").unwrap()));
}

#[test]
fn l8_a_daemon_that_was_left_behind_is_found() {
    let stage = Stage::offline();
    let body = r#"setsid nohup bash -c 'trap "" TERM HUP; echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 & while [ ! -s daemon ]; do sleep 0.01; done; echo '{"type":"done"}'"#;
    let ran = stage.run(&format!("children:\n{}", script("a", body)));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let daemon = pid_in(&stage, "daemon").unwrap();
    wait_until("the end of the daemon", || !is_alive(daemon));
}

#[test]
fn l8_children_end_with_a_fleet_that_is_killed() {
    let stage = Stage::offline();
    let body =
        r#"trap '' TERM; echo $$ > pid; echo '{"type":"tick"}'; while true; do sleep 0.1; done"#;
    let mut fleet = stage.start(&format!("children:\n{}", script("a", body)), &[]);
    wait_until("the child", || pid_in(&stage, "pid").is_some());
    fleet.kill().unwrap();
    fleet.wait().unwrap();
    let child = pid_in(&stage, "pid").unwrap();
    wait_until("the end of the child", || !is_alive(child));
    let directory = stage.run_dir().display().to_string();
    let shown = stage.verb(&["show", &directory]);
    assert!(shown.stdout.contains(": killed ("), "{}", shown.stdout);
    let json = stage.verb(&["show", &directory, "--json"]).stdout;
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["status"], "killed");
}

#[test]
fn an_interrupt_ends_children_that_ignore_it_and_writes_the_report() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let stage = Stage::offline();
        let stubborn = r#"trap '' TERM INT; echo $$ > pid; echo '{"type":"tick"}'; while true; do sleep 0.1; done"#;
        let quick = r#"echo '{"type":"text","text":"early"}'; echo '{"type":"done"}'"#;
        let plan = format!(
            "parallel: 1\nchildren:\n{}{}{}",
            script("first", quick),
            script("stubborn", stubborn),
            script("never", quick)
        );
        let fleet = stage.start(&plan, &[]);
        wait_until("the child", || pid_in(&stage, "pid").is_some());
        send(fleet.id(), signal);
        let ran = stage.wait(fleet);
        assert_eq!(ran.code, Some(130), "{}", ran.stderr);
        assert!(!is_alive(pid_in(&stage, "pid").unwrap()));
        assert_eq!(ran.report()["status"], "interrupted");
        assert_eq!(ran.child("first")["status"], "finished");
        assert_eq!(ran.child("stubborn")["status"], "stopped");
        assert_eq!(ran.child("stubborn")["failure"]["kind"], "aborted");
        assert_eq!(ran.child("never")["status"], "stopped");
        assert!(
            ran.child("never")["attempts"]
                .as_array()
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            ran.log("stubborn.jsonl"),
            b"{\"type\":\"tick\"}\n",
            "what was buffered is written"
        );
    }
}

#[test]
fn the_time_of_the_run_and_of_the_child_are_told_apart() {
    let stage = Stage::offline();
    let slow = r#"while true; do echo '{"type":"tick"}'; sleep 0.05; done"#;
    let ran = stage.run(&format!("timeout: 700ms\nchildren:\n{}", script("a", slow)));
    assert_eq!(ran.code, Some(124), "{}", ran.stderr);
    assert_eq!(ran.report()["status"], "timeout");
    assert_eq!(ran.child("a")["failure"]["clock"], "run");

    let stage = Stage::offline();
    let ran = stage.run(&format!(
        "defaults: {{ timeout: 500ms }}\nchildren:\n{}",
        script("a", slow)
    ));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let child = ran.child("a");
    assert_eq!(
        (
            child["failure"]["kind"].as_str(),
            child["failure"]["clock"].as_str()
        ),
        (Some("timeout"), Some("child"))
    );
    assert_eq!(
        child["attempts"].as_array().unwrap().len(),
        1,
        "as long again would be as long again"
    );
}

#[test]
fn silence_is_inactivity_and_noise_is_no_progress() {
    let stage = Stage::offline();
    let noisy = r#"echo '{"type":"text","text":"x"}'; while true; do echo noise; sleep 0.05; done"#;
    let ran = stage.run(&format!(
        "defaults: {{ inactivity: 400ms, retries: 0 }}\nchildren:\n{}",
        script("a", noisy)
    ));
    let child = ran.child("a");
    assert_eq!(child["failure"]["clock"], "inactivity", "{child:#}");
    let clocks = &child["attempts"][0]["clocks"];
    let at = |name: &str| clocks[name].as_u64().unwrap();
    assert!(at("lastByteMs") > at("lastProgressMs"), "{clocks}");
    assert_eq!(at("lastEventMs"), at("lastProgressMs"));
}

#[test]
fn heartbeats_keep_nobody_alive_unless_the_plan_says_so() {
    let beating = r#"for i in $(seq 20); do echo '{"type":"heartbeat"}'; sleep 0.05; done; echo '{"type":"done"}'"#;
    for (events, status) in [
        ("{}", "failed"),
        ("{ progress: [heartbeat] }", "finished"),
        ("{ progress: ['*'] }", "finished"),
    ] {
        let stage = Stage::offline();
        let ran = stage.run(&format!(
            "defaults: {{ inactivity: 500ms, retries: 0, events: {events} }}\nchildren:\n{}",
            script("a", beating)
        ));
        let child = ran.child("a");
        assert_eq!(child["status"], status, "{events}: {child:#}");
    }
}

#[test]
fn what_cannot_be_started_or_says_nothing_is_told() {
    let stage = Stage::offline();
    // A program that is there when the plan is read, and cannot be executed: its interpreter is missing.
    stage.write("missing.sh", "#!/no/such/interpreter\n");
    let file = stage.sandbox.work().join("missing.sh");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let missing =
        "  - { name: missing, agent: jsonl, prompt: x, command: [./missing.sh], retries: 3 }\n";
    let plan = format!(
        "defaults: {{ retries: 0 }}\nchildren:\n{missing}{}{}",
        script("mute", "exit 0"),
        script("bad", "echo ouch >&2; exit 7")
    );
    let ran = stage.run(&plan);
    assert_eq!(ran.code, Some(1));
    let missing = ran.child("missing");
    let said = missing["failure"]["message"].as_str().unwrap();
    assert!(
        said.contains("\"./missing.sh\" cannot be started"),
        "{said}"
    );
    let tries = missing["attempts"].as_array().map(Vec::len);
    assert_eq!(
        tries,
        Some(1),
        "a permanent failure is not retried: {missing:#}"
    );
    assert_eq!(ran.child("mute")["failure"]["kind"], "protocol");
    let bad = ran.child("bad");
    assert_eq!(
        (
            bad["failure"]["kind"].as_str(),
            bad["failure"]["code"].as_u64()
        ),
        (Some("crashed"), Some(7))
    );
    assert!(
        bad["failure"]["message"]
            .as_str()
            .unwrap()
            .contains("its last error output was \"ouch\"")
    );
}
