//! `hub status`, `hub stop`, `hub info`: report the state of a hub, and stop it.

use std::process::ExitCode;

use pinion_hub::{HubProcess, ProcessRole, STOP_TIMEOUT};
use pinion_hub_client::hub_info_text;
use pinion_proto::Message;
use pinion_proto::hub::{HubInfoRequest, HubInfoResponse};
use serde_json::json;

use super::caller::{self, Caller, Shape, print};
use super::pid_file;
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const STATUS: Verb = Verb::new("pinion hub", &tables::hub::STATUS, status);

pub(super) const STOP: Verb = Verb::new("pinion hub", &tables::hub::STOP, stop);

pub(super) const INFO: Verb = Verb::new("pinion hub", &tables::hub::INFO, info);

fn not_running() -> Failure {
    Failure::failed("no hub is running here.").hint("Start one with `pinion hub serve`.")
}

fn status(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let process = HubProcess::at(&pid_file(line)?);
    let is_json = Shape::of(line) == Shape::Json;
    match process {
        Some(process) if process.role == ProcessRole::Hub && is_json => {
            out(&format!("{}\n", process.status_json()))
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
                    "no hub is running here; process {pid} offers the clips to {url}."
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
    process.stop(&path, before_kill)?;
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
    let url = caller.client().url();
    print(line, || info.to_json(), || hub_info_text(&info, url))
}
