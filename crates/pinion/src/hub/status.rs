//! `hub status`, `hub stop`, `hub info`: report the state of a hub, and stop it.

use std::process::ExitCode;

use pinion_hub::{HubProcess, ProcessRole, STOP_TIMEOUT};
use pinion_proto::Message;
use pinion_proto::hub::{HubInfoRequest, HubInfoResponse};
use serde_json::json;

use super::caller::{self, Caller, Shape, print};
use super::{failed, pid_file};
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless_line;

pub(super) const STATUS: Verb = Verb::new("pinion hub", &tables::hub::STATUS, status);

pub(super) const STOP: Verb = Verb::new("pinion hub", &tables::hub::STOP, stop);

pub(super) const INFO: Verb = Verb::new("pinion hub", &tables::hub::INFO, info);

fn not_running() -> Failure {
    Failure::failed("Error: no hub is running here. Start one with `pinion hub serve`.")
}

fn status(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let process = HubProcess::at(&pid_file(line)?);
    let is_json = Shape::of(line) == Shape::Json;
    match process {
        Some(process) if process.role == ProcessRole::Hub && is_json => {
            let status = json!({
                "running": true,
                "pid": process.pid,
                "hubURL": process.url,
                "startedAt": process.started,
            });
            out(&format!("{status}\n"))
        }
        Some(HubProcess {
            role: ProcessRole::Hub,
            url,
            pid,
            started,
        }) => out(&format!(
            "A hub is running: {url}, process {pid}, since {started}.\n"
        )),
        other => {
            if is_json {
                out("{\"running\":false}\n")?;
            }
            Err(match other {
                Some(HubProcess { pid, url, .. }) => Failure::failed(format!(
                    "Error: no hub is running here; process {pid} offers the clips to {url}."
                )),
                None => not_running(),
            })
        }
    }
}

fn stop(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let path = pid_file(line)?;
    let process = HubProcess::at(&path).ok_or_else(not_running)?;
    let before_kill = || {
        let timeout = STOP_TIMEOUT.as_secs();
        eprintln!("The hub did not stop within {timeout} s and is killed.");
    };
    process.stop(&path, before_kill).map_err(failed)?;
    let HubProcess { pid, url, .. } = process;
    print(
        line,
        || json!({"stopped": pid}).to_string(),
        || match process.role {
            ProcessRole::Hub => format!("The hub at {url} has stopped.\n"),
            ProcessRole::Runtime => format!("The runtime joined to {url} has stopped.\n"),
        },
    )
}

fn info(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let caller = Caller::of(line)?;
    let info: HubInfoResponse =
        caller::wait(async { caller.ask("HubInfo", &HubInfoRequest::default()).await })?;
    let needs = if info.auth_required { "yes" } else { "no" };
    let started = jiff::Timestamp::from_millisecond(info.started_at_unix_ms).unwrap_or_default();
    let mut text = format!(
        "{} {} at {}\n  mode          {}\n  protocol      {}\n  started       {started}\n  token needed  {needs}\n",
        harmless_line(&info.name),
        harmless_line(&info.version),
        caller.client().url(),
        harmless_line(&info.mode),
        harmless_line(&info.protocol),
    );
    if !info.scope.is_empty() {
        text += &format!("  you are       {}\n", harmless_line(&info.scope));
    }
    let features: Vec<String> = info.features.iter().map(|it| harmless_line(it)).collect();
    text += &format!("  features      {}\n", features.join(", "));
    print(line, || info.to_json(), || text)
}
