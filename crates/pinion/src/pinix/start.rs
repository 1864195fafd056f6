//! `pinix start` and `pinixd`: start a hub, in the background or the foreground.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use pinion_cli::pinix::hub_arguments;
use pinion_hub::{BackgroundHub, HubProcess, ProcessRole, pid_file};

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::{self, root_dir};
use crate::verb::{Line, Verb};
use pinion_cli::tables;

/// Flags that a process in the background receives as variables.
const SECRETS: [(&str, &str); 2] = [
    ("--super-token", "PINION_SUPER_TOKEN"),
    ("--hub-token", pinion_access::client::DAEMON_VARIABLE),
];

pub(super) const START: Verb = Verb::new("pinix", &tables::pinix::START, start);

pub(super) const FOREGROUND: Verb = Verb::new("", &tables::pinix::PINIXD, serve);

/// Translates the command line to the one of `pinion hub`.
fn translated(line: &Line) -> Result<Vec<String>, Failure> {
    line.exactly::<0>()?;
    let names_root = line.has("--root") || line.has("--config");
    let root = names_root.then(|| root(line)).transpose()?;
    hub_arguments(line, root.as_deref()).map_err(Failure::failed)
}

fn root(line: &Line) -> Result<PathBuf, Failure> {
    match line.value("--config") {
        Some(config) if !line.has("--root") => {
            let config = std::path::absolute(config)?;
            Ok(config.parent().unwrap_or(Path::new("/")).to_owned())
        }
        _ => root_dir(line),
    }
}

fn serve(line: &Line) -> Result<ExitCode, Failure> {
    hub::GROUP.run(&translated(line)?)
}

fn start(line: &Line) -> Result<ExitCode, Failure> {
    if line.has("--foreground") {
        return serve(line);
    }
    // Every user can read the command line of a process, but not its environment.
    let mut words = translated(line)?;
    words.retain(|word| {
        let flag = word.split_once('=').map_or("", |(flag, _)| flag);
        SECRETS.iter().all(|(secret, _)| *secret != flag)
    });
    let secrets = SECRETS
        .iter()
        .filter_map(|(flag, variable)| Some((variable, line.value(flag)?)));
    let root = root(line)?;
    let pid = line.value("--pid").map(PathBuf::from);
    let pid = pid.unwrap_or_else(|| pid_file(&root));
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("hub").args(words).envs(secrets);
    let mut hub = BackgroundHub::spawn(command, &root, &pid)?;
    let process = hub.wait()?;
    let Some(HubProcess { role, pid, url, .. }) = process else {
        return Err(Failure::failed(hub.output().trim_end()).bare());
    };
    eprint!("{}", hub.output());
    out(&match role {
        ProcessRole::Hub => format!("The hub has started: {url}, process {pid}.\n"),
        ProcessRole::Runtime => {
            format!("The runtime has started: it joins {url}, process {pid}.\n")
        }
    })
}
