//! `hub join` and `hub serve --join`: offer the clips of this machine to another hub.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use pinion_access::client::{DAEMON_VARIABLE, TokenQuery};
use pinion_clip::Programs;
use pinion_clip::logs::ClipLog;
use pinion_hub::{
    Accepts, JoinOptions, JoinState, Joined, host_name, join, open_runtime, provider_name,
};

use super::seat::{Seat, pid_file};
use super::serve::{Signals, copy_log, level};
use super::{failed, place};
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
    let wanted = TokenQuery {
        root,
        flag: line.value("--hub-token"),
        variable: DAEMON_VARIABLE,
        hub: url,
        local_hub: None,
    };
    let chosen = wanted
        .choose(|name| std::env::var(name).ok())
        .map_err(failed)?;
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
    let root = place::root(line)?;
    let port = match line.value("--port") {
        Some(_) => line.parsed("--port", "a number up to 65535")?,
        None => None,
    };
    let least = level(line)?;
    let options = options(line, url, &root, port.unwrap_or_else(|| number(&root)))?;
    let pid = line
        .value("--pid")
        .map_or_else(|| pid_file(&root), PathBuf::from);
    let mut seat = Seat::take(&root, &pid)?;
    seat.tell_joined(url)?;
    let programs = Programs {
        bun: line.value("--bun").map(Into::into),
        ..Programs::default()
    };
    crate::descriptors::allow_many();
    let runtime = crate::runtime::on_every_core()?;
    let done = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let log = Arc::new(ClipLog::at(root.join("logs").join("pinixd.log")));
        let read = copy_log(&log, least);
        let (clips, left_out) = open_runtime(&root, &options, programs).map_err(failed)?;
        for failure in left_out {
            eprintln!("{failure}");
        }
        let (name, url) = (options.name.clone(), options.url.clone());
        let joined = join(options, clips.clone(), log.clone()).map_err(failed)?;
        tokio::select! {
            () = until_joined(&joined) => {
                out(&format!("Joined {url} as {name}\n"))?;
                signals.end().await;
            }
            () = signals.end() => {}
        }
        joined.leave().await;
        clips.shut_down().await;
        log.close();
        let _ = read.recv_timeout(super::serve::LAST_WORDS);
        Ok(ExitCode::SUCCESS)
    });
    pinion_process::kill_all();
    runtime.shutdown_background();
    done
}

/// Returns a number of five digits derived from the directory, in place of a port.
fn number(root: &Path) -> u16 {
    // FNV-1a is the same in every version of pinion, so the name of a runtime does not change.
    let root = root.as_os_str().as_encoded_bytes();
    let hash = root.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    let (first, last) = (10_000, u32::from(u16::MAX));
    u16::try_from(first + hash % (last - first + 1)).unwrap_or(u16::MAX)
}

async fn until_joined(joined: &Joined) {
    let mut state = joined.watch();
    // The sender outlives this function; if it is gone, there is nothing to wait for.
    let _ = state.wait_for(|state| *state == JoinState::Joined).await;
}
