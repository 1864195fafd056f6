//! The end of confined processes, and sandboxes in sandboxes.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::ground::{Ground, User};

type Check = fn(&Ground) -> Result<(), String>;

const CHECKS: &[(&str, Check)] = &[
    ("nothing_outlives_pinion", nothing_outlives_pinion),
    (
        "nothing_outlives_the_guardian",
        nothing_outlives_the_guardian,
    ),
    (
        "a_sandbox_in_a_sandbox_is_refused",
        a_sandbox_in_a_sandbox_is_refused,
    ),
    (
        "servers_outside_are_not_reached",
        servers_outside_are_not_reached,
    ),
    (
        "exit_codes_are_those_of_the_command",
        exit_codes_are_those_of_the_command,
    ),
];

/// The longest wait for something that happens soon.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn trials(user: User) -> Vec<Trial> {
    let trial = |&(name, check): &(&'static str, Check)| {
        let name = format!("{}::{name}", user.name());
        Trial::test(name, move || Ok(check(&Ground::new(user))?))
    };
    CHECKS.iter().map(trial).collect()
}

/// Starts a command that leaves processes behind in every way, and returns their ids.
fn leave_behind(ground: &Ground, second: &str) -> (Child, Vec<i32>) {
    let script = format!(
        "setsid sleep 1000 & echo $!; ({second} setsid sleep 1000 & echo $!); sleep 1000 & echo $!; wait"
    );
    let mut command = ground.command(&[], &["sh", "-c", &script]);
    let mut pinion = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(pinion.stdout.take().unwrap()).lines();
    let left = lines.take(3).map(|line| line.unwrap().parse().unwrap());
    (pinion, left.collect())
}

fn all_end(processes: &[i32]) -> Result<(), String> {
    let begun = Instant::now();
    let runs =
        |pid: &&i32| Path::new(&format!("/proc/{pid}/environ")).exists() && !is_zombie(**pid);
    while begun.elapsed() < PATIENCE {
        if processes.iter().filter(runs).count() == 0 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(format!("some of {processes:?} live on"))
}

fn is_zombie(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

/// Escape test 54.
fn nothing_outlives_pinion(ground: &Ground) -> Result<(), String> {
    let (mut pinion, left) = leave_behind(ground, "env -i");
    pinion.kill().unwrap();
    pinion.wait().unwrap();
    all_end(&left)
}

/// Escape test 52: the warden is a thread of the guardian.
fn nothing_outlives_the_guardian(ground: &Ground) -> Result<(), String> {
    // Without the guardian, only its mark in the environment identifies a process that left its session.
    let (mut pinion, left) = leave_behind(ground, "");
    let children = format!("/proc/{0}/task/{0}/children", pinion.id());
    let guardian = std::fs::read_to_string(children).unwrap();
    let guardian: i32 = guardian.split_whitespace().next().unwrap().parse().unwrap();
    kill(Pid::from_raw(guardian), Signal::SIGKILL).unwrap();
    pinion.wait().unwrap();
    all_end(&left)
}

/// Escape test 55: less confinement than was asked for would be the only other way.
fn a_sandbox_in_a_sandbox_is_refused(ground: &Ground) -> Result<(), String> {
    let pinion = env!("CARGO_BIN_EXE_pinion");
    let output = ground.run(&[], &[pinion, "sandbox", "--", "touch", "ran"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_refused = output.status.code() == Some(2) && errors.contains("sandbox:");
    match is_refused && !ground.path("work/ran").exists() {
        true => Ok(()),
        false => Err(format!("{}: {errors}", output.status)),
    }
}

fn servers_outside_are_not_reached(ground: &Ground) -> Result<(), String> {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    let port = tcp.local_addr().unwrap().port();
    std::fs::write(ground.path("work/port"), port.to_string()).unwrap();
    let unix = UnixListener::bind(ground.path("outside/server")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(ground.path("outside/server"), mode).unwrap();
    unix.set_nonblocking(true).unwrap();
    ground.refuses("tcp_elsewhere", &[], None)?;
    ground.refuses("unix_sockets", &[], None)?;
    ground.refuses("flipping_addresses", &[], None)?;
    match (tcp.accept(), unix.accept()) {
        (Err(_), Err(_)) => Ok(()),
        _ => Err("a server outside was connected to".into()),
    }
}

fn exit_codes_are_those_of_the_command(ground: &Ground) -> Result<(), String> {
    for (words, expected) in [
        (&["sh", "-c", "exit 7"][..], 7),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["/no/such/program"], 127),
    ] {
        let output = ground.run(&[], words);
        if output.status.code() != Some(expected) {
            return Err(format!("{words:?}: {}", output.status));
        }
    }
    Ok(())
}
