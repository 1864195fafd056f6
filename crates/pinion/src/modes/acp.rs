//! `acp`: many sessions for one editor, over the Agent Client Protocol.
//!
//! Nothing is written to standard error after the start: editors show each line of it as an error.

mod host;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pinion_acp::{AcpProjection, AgentInfo, Connection, ConnectionEnd, SetupCommand, TrafficLog};
use pinion_config::Dirs;
use pinion_jsonl::{Coalesce, DEFAULT_LINE_LIMIT, Queue, Writer, read_lines, stdio};
use pinion_pi::{SETTLE_TIMEOUT, ServingEnd};

use self::host::Host;
use super::{anchor_paths, conclude};
use crate::cli::{self, Flags};
use crate::commands::setup;
use crate::engine::{SHUTDOWN_TIMEOUT, Shared};
use crate::failure::Failure;
use crate::program::Program;
use crate::signals::ShutdownSignals;
use crate::{descriptors, log, reader, runtime, stderr};

/// The variable that names the log of both directions.
const LOG_VARIABLE: &str = "PINION_ACP_LOG";
/// Longest wait for all sessions together to end.
const STOP_TIMEOUT: Duration = SHUTDOWN_TIMEOUT.saturating_add(SETTLE_TIMEOUT.saturating_mul(2));

/// Serves an editor until it closes its end.
pub(crate) fn acp(words: Vec<String>) -> Result<ExitCode, Failure> {
    let mut flags = cli::parse_acp(words)?;
    log::start(flags.log.clone())?;
    if has(&flags, "--setup") {
        return setup::run();
    }
    let unstable = has(&flags, "--acp-unstable");
    refuse_prompts(&flags)?;
    flags.decide_unknown(Program::Pinion)?;
    let stdout = stdio::claim_stdout()?;
    let dirs = Dirs::from_env()?;
    anchor_paths(&mut flags, &dirs);
    let traffic = traffic_log()?;
    stderr::redirect(traffic.clone());
    descriptors::allow_many();
    let queue = Queue::new(Coalesce::WhenBehind);
    let runtime = runtime::for_several()?;
    let shared = Arc::new(Shared::new(&dirs));
    let host = Host::new(flags, dirs, Arc::clone(&shared));
    let watched = stdout.try_clone()?;
    let projection = AcpProjection::new(traffic.clone());
    let writer = Writer::spawn(stdout, projection, queue.clone())?;
    let mut input = read_lines(std::io::stdin(), DEFAULT_LINE_LIMIT);
    let mut signals = ShutdownSignals::listen(&runtime)?;
    let agent = AgentInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        setup: SetupCommand {
            program: program_path(),
            args: vec!["acp".to_owned(), "--setup".to_owned()],
        },
        unstable,
    };
    let end = runtime.block_on(async {
        let mut connection = Connection::new(host, queue.clone(), agent, traffic);
        let interrupted = async {
            tokio::select! {
                () = reader::gone(watched) => ServingEnd::Output,
                () = queue.broken() => ServingEnd::Output,
                code = signals.received() => ServingEnd::Signal(code),
            }
        };
        let end = tokio::select! {
            end = connection.serve(&mut input) => match end {
                ConnectionEnd::OutputClosed => ServingEnd::Output,
                ConnectionEnd::EndOfInput => ServingEnd::Input,
            },
            end = interrupted => end,
        };
        // A session that does not end in time is abandoned; its file is valid at any moment.
        let _ = tokio::time::timeout(STOP_TIMEOUT, connection.stop()).await;
        end
    });
    Ok(conclude(
        runtime,
        signals,
        &shared.preferences,
        &queue,
        writer,
        end,
    ))
}

fn refuse_prompts(flags: &Flags) -> Result<(), Failure> {
    let line = &flags.prompt;
    match line.messages.first().or(line.files.first()) {
        None => Ok(()),
        Some(word) => Err(Failure::usage(format!(
            "acp takes no prompt, but \"{word}\" was given. The editor sends prompts."
        ))),
    }
}

/// Opens the log that the environment names.
fn traffic_log() -> Result<Option<Arc<TrafficLog>>, Failure> {
    let Some(path) = std::env::var_os(LOG_VARIABLE).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(path);
    let log = TrafficLog::open(&path).map_err(|error| {
        Failure::failed(format!(
            "{LOG_VARIABLE}: {} cannot be opened",
            path.display()
        ))
        .caused_by(error)
    })?;
    Ok(Some(Arc::new(log)))
}

/// Returns the path of this program, for clients that start it themselves.
fn program_path() -> String {
    let path = std::env::current_exe().map(|path| path.display().to_string());
    path.unwrap_or_else(|_| "pinion".to_owned())
}

fn has(flags: &Flags, name: &str) -> bool {
    flags.prompt.flags().any(|(flag, _)| flag == name)
}
