//! `hub status`, `hub stop`, `hub info`: report the state of a hub, and stop it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pinion_proto::Message;
use pinion_proto::hub::{HubInfoRequest, HubInfoResponse};
use pinion_text::harmless_line;
use serde_json::json;

use super::caller::{self, Caller, Shape};
use super::place;
use super::seat::{Holder, Role, pid_file};
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

/// Time that a hub has to stop: the grace period of calls, then that of clips.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(20);

pub(super) const STATUS: Verb = Verb::new("pinion hub", &tables::hub::STATUS, status);

pub(super) const STOP: Verb = Verb::new("pinion hub", &tables::hub::STOP, stop);

pub(super) const INFO: Verb = Verb::new("pinion hub", &tables::hub::INFO, info);

fn seat(line: &Line) -> Result<PathBuf, Failure> {
    line.exactly::<0>()?;
    Ok(match line.value("--pid") {
        Some(path) => PathBuf::from(path),
        None => pid_file(&place::root(line)?),
    })
}

fn not_running() -> Failure {
    Failure::failed("Error: no hub is running here. Start one with `pinion hub serve`.")
}

fn status(line: &Line) -> Result<ExitCode, Failure> {
    let path = seat(line)?;
    let holder = Holder::at(&path);
    match (holder, Shape::of(line)) {
        (Some(holder), Shape::Table) => out(&format!(
            "A hub is running: {}, process {}, since {}.\n",
            holder.url, holder.pid, holder.started
        )),
        (Some(holder), Shape::Json) => {
            let told = json!({
                "running": true,
                "pid": holder.pid,
                "hubURL": holder.url,
                "startedAt": holder.started,
            });
            out(&format!("{told}\n"))
        }
        (None, shape) => {
            if shape == Shape::Json {
                out("{\"running\":false}\n")?;
            }
            Err(match Holder::anyone_at(&path) {
                Some(Holder { pid, url, .. }) => Failure::failed(format!(
                    "Error: no hub is running here; process {pid} offers the clips to {url}."
                )),
                None => not_running(),
            })
        }
    }
}

#[allow(unsafe_code)]
fn send(pid: u32, signal: libc::c_int) -> bool {
    let pid = libc::pid_t::try_from(pid).unwrap_or_default();
    // SAFETY: `kill` does not access memory. Zero and negative pids, which mean process groups, are excluded.
    pid > 0 && unsafe { libc::kill(pid, signal) } == 0
}

fn stop(line: &Line) -> Result<ExitCode, Failure> {
    let path = seat(line)?;
    let holder = Holder::anyone_at(&path).ok_or_else(not_running)?;
    if !send(holder.pid, libc::SIGTERM) {
        let error = std::io::Error::last_os_error();
        let pid = holder.pid;
        return Err(Failure::failed(format!(
            "Error: process {pid} cannot be told to end: {error}"
        )));
    }
    if !has_gone(&path, &holder, PATIENCE) {
        eprintln!(
            "The hub did not end within {} s and is killed.",
            PATIENCE.as_secs()
        );
        send(holder.pid, libc::SIGKILL);
        has_gone(&path, &holder, PATIENCE);
    }
    match Shape::of(line) {
        Shape::Table if holder.role == Role::Runtime => out(&format!(
            "The runtime joined to {} has ended.\n",
            holder.url
        )),
        Shape::Table => out(&format!("The hub at {} has ended.\n", holder.url)),
        Shape::Json => out(&format!("{}\n", json!({"stopped": holder.pid}))),
    }
}

fn has_gone(path: &std::path::Path, holder: &Holder, patience: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < patience {
        // The pid file is released a moment before the process exits.
        let seated = Holder::anyone_at(path).is_some_and(|now| now.pid == holder.pid);
        if !seated && is_gone(holder.pid) {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

/// Reports whether a process has exited, even if its parent has not collected its status.
fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default();
    state.trim_start().starts_with('Z') || !send(pid, 0)
}

fn info(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let caller = Caller::of(line)?;
    let told: HubInfoResponse =
        caller::wait(async { caller.ask("HubInfo", &HubInfoRequest::default()).await })?;
    if Shape::of(line) == Shape::Json {
        return out(&format!("{}\n", told.to_json()));
    }
    let needs = if told.auth_required { "yes" } else { "no" };
    let started = jiff::Timestamp::from_millisecond(told.started_at_unix_ms).unwrap_or_default();
    let mut text = format!(
        "{} {} at {}\n  mode          {}\n  protocol      {}\n  started       {started}\n  token needed  {needs}\n",
        harmless_line(&told.name),
        harmless_line(&told.version),
        caller.url(),
        harmless_line(&told.mode),
        harmless_line(&told.protocol),
    );
    if !told.scope.is_empty() {
        text += &format!("  you are       {}\n", harmless_line(&told.scope));
    }
    let features: Vec<String> = told.features.iter().map(|it| harmless_line(it)).collect();
    text += &format!("  features      {}\n", features.join(", "));
    out(&text)
}
