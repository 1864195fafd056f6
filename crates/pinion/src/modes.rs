//! The modes of a run: a chat on a terminal, RPC with one session or several, events as JSON lines, or only the answer.

mod acp;
mod chat;
mod conversation;
mod json;
mod multi_session;
mod opencode;
mod print;
mod rpc;

use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::Listener;
use pinion_config::Dirs;
use pinion_jsonl::{Coalesce, Outgoing, Queue, Writer, WriterEnd};
use pinion_pi::{SETTLE_TIMEOUT, ServingEnd};
use tokio::runtime::Runtime;

pub(crate) use self::acp::acp;
pub(crate) use self::chat::chat;
pub(crate) use self::json::json;
pub(crate) use self::multi_session::multi_session;
pub(crate) use self::opencode::opencode;
pub(crate) use self::print::print;
pub(crate) use self::rpc::rpc;
use crate::cli::Flags;
use crate::engine::{self, Basis, Company, Conversation, Engine, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::preferences::SavedPreferences;
use crate::program::Program;
use crate::signals::ShutdownSignals;

/// Refuses `@file` arguments: in RPC mode the client sends the content of files itself.
fn refuse_files(flags: &Flags) -> Result<(), Failure> {
    if flags.prompt.files.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(
        "@file arguments are not supported in RPC mode",
    ))
}

/// Makes paths of the command line absolute: they are relative to the directory in which pinion was started, not to the
/// directory of a session.
fn anchor_paths(flags: &mut Flags, dirs: &Dirs) {
    let lists = [
        &mut flags.extensions,
        &mut flags.skills,
        &mut flags.prompt_templates,
        &mut flags.append_system_prompt,
    ];
    let texts = lists.into_iter().flatten().chain(&mut flags.system_prompt);
    for text in texts.filter(|text| !text.is_empty()) {
        let path = dirs.resolve(text);
        // A text that names no file is a package, or the prompt itself.
        if path.exists() {
            *text = path.display().to_string();
        }
    }
    if let Some(directory) = &mut flags.session_dir {
        *directory = dirs.resolve(directory).display().to_string();
    }
}

fn coalesce(flags: &Flags) -> Coalesce {
    if flags.no_coalesce {
        Coalesce::Never
    } else {
        Coalesce::WhenBehind
    }
}

/// Opens the one conversation of a process and builds its session.
fn build_engine(
    runtime: &Runtime,
    program: Program,
    flags: &Flags,
    basis: Basis,
    listeners: Vec<Arc<dyn Listener>>,
    audience: Audience,
    shared: &Shared,
) -> Result<Engine, Failure> {
    let conversation = Conversation::open(flags, &basis)?;
    runtime.block_on(engine::build(
        program,
        flags,
        basis,
        conversation,
        Company::new(listeners, audience),
        shared,
    ))
}

/// Waits until the reader has read everything or is gone. A signal ends the wait for a reader that never finishes; the
/// error is its exit code.
pub(crate) fn finish_writing(
    runtime: &Runtime,
    signals: &mut ShutdownSignals,
    writer: Writer,
) -> Result<WriterEnd, u8> {
    runtime.block_on(writer.join_unless(signals.received()))
}

/// Ends the process after serving: kills child processes, saves preferences, and writes the remaining lines if there is
/// a reader.
fn conclude<T: Outgoing>(
    runtime: Runtime,
    mut signals: ShutdownSignals,
    preferences: &SavedPreferences,
    queue: &Queue<T>,
    writer: Writer,
    end: ServingEnd,
) -> ExitCode {
    pinion_process::kill_all();
    preferences.flush();
    queue.close();
    let (end, written) = match end {
        ServingEnd::Input | ServingEnd::Requested | ServingEnd::Exit(_) => {
            match finish_writing(&runtime, &mut signals, writer) {
                Ok(written) => (end, Some(written)),
                Err(code) => (ServingEnd::Signal(code), None),
            }
        }
        ServingEnd::Output | ServingEnd::Signal(_) => (end, writer.join_within(SETTLE_TIMEOUT)),
    };
    let end = match (end, written) {
        (end, Some(WriterEnd::Broken(error))) => {
            if error.kind() != ErrorKind::BrokenPipe {
                let failure = Failure::failed("could not write to standard output");
                failure.caused_by(error).print();
            }
            match end {
                // Lines are missing, no matter which of the two ends was noticed first.
                ServingEnd::Input | ServingEnd::Requested => ServingEnd::Output,
                end => end,
            }
        }
        (end, _) => end,
    };
    // Threads that still wait for something must not delay the exit of the process.
    runtime.shutdown_background();
    ExitCode::from(end.exit_code())
}
