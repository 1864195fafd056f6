//! `hub join` and `hub serve --join`: offer the clips of this machine to another hub.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pinion_access::client::{DAEMON_VARIABLE, TokenQuery};
use pinion_clip::Programs;
use pinion_clip::logs::ClipLog;
use pinion_hub::{
    Accepts, HubLock, JoinOptions, Signals, host_name, join, open_runtime, provider_name,
    stable_port,
};

use super::serve::{LOG_TIMEOUT, copy_log, level};
use super::{environment, pid_file, root_dir};
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion hub", &tables::hub::JOIN, run);

/// Returns the options for joining the hub at `url`. `port` makes the names of several runtimes on one machine differ.
pub(super) fn options(
    line: &Line,
    url: &str,
    root: &Path,
    port: u16,
) -> Result<JoinOptions, Failure> {
    let query = TokenQuery {
        root,
        flag: line.value("--hub-token"),
        variable: DAEMON_VARIABLE,
        hub: url,
        local_hub: None,
    };
    let chosen = query.choose(environment)?;
    let token = chosen.map(|chosen| chosen.token.reveal().to_owned());
    let name = match line.value("--name") {
        Some(name) => name.to_owned(),
        None => provider_name(&host_name(), port),
    };
    let mut options = JoinOptions::new(url, token, name);
    if line.has("--accept-installs") {
        options.accepts = Accepts::CallsAndInstalls;
    }
    Ok(options)
}

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [url] = line.exactly()?;
    let root = root_dir(line)?;
    let port = match line.value("--port") {
        Some(_) => line.parsed("--port", "a number up to 65535")?,
        None => None,
    };
    let least = level(line)?;
    let options = options(line, url, &root, port.unwrap_or_else(|| stable_port(&root)))?;
    let mut lock = HubLock::acquire(&root, &pid_file(line)?)?;
    lock.record_runtime(url)?;
    let programs = Programs {
        bun: line.value("--bun").map(Into::into),
        ..Programs::default()
    };
    crate::descriptors::allow_many();
    let runtime = crate::runtime::on_every_core()?;
    let done = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let log = Arc::new(ClipLog::at(root.join("logs").join("pinixd.log")));
        let log_end = copy_log(&log, least);
        let (clips, skipped) = open_runtime(&root, &options, programs)?;
        for failure in skipped {
            eprintln!("{failure}");
        }
        let (name, url) = (options.name.clone(), options.url.clone());
        let joined = join(options, clips.clone(), log.clone())?;
        tokio::select! {
            () = joined.until_joined() => {
                out(&format!("Joined {url} as {name}\n"))?;
                signals.end().await;
            }
            () = signals.end() => {}
        }
        joined.leave().await;
        clips.shut_down().await;
        log.close();
        let _ = log_end.recv_timeout(LOG_TIMEOUT);
        Ok(ExitCode::SUCCESS)
    });
    pinion_process::kill_all();
    runtime.shutdown_background();
    done
}
