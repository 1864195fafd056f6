//! Several sessions for one client, over lines of JSON.
//!
//! Every session has an engine of its own; all share connections, keys, models and saved choices.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use pinion_agent::Listener;
use pinion_extensions::{InputSource, Mode};
use pinion_jsonl::{DEFAULT_LINE_LIMIT, Queue, Writer, read_stdin_lines, stdio};
use pinion_pi::{
    Addressed, BuildingHost, BuiltSession, Dialect, MultiSessionProjection, MultiSessionRpc, OnEof,
    OpenSession, PreparedSession, RecordOutbox, RpcEnd, SETTLE_TIMEOUT, ServingEnd, SessionBuilder,
};

use super::{anchor_paths, coalesce, conclude, refuse_files};
use crate::cli::Flags;
use crate::engine::{self, Basis, Company, Conversation, SHUTDOWN_TIMEOUT, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;
use crate::signals::ShutdownSignals;
use crate::{descriptors, memory, reader, runtime};

/// Longest wait for all sessions together to end.
const STOP_TIMEOUT: Duration = SHUTDOWN_TIMEOUT.saturating_add(SETTLE_TIMEOUT.saturating_mul(2));

/// Serves a client that opens and closes sessions until it closes its end.
pub(crate) fn multi_session(program: Program, mut flags: Box<Flags>) -> Result<ExitCode, Failure> {
    refuse_files(&flags)?;
    refuse_session_flags(&flags)?;
    let stdout = stdio::claim_stdout()?;
    let basis = Basis::read(&flags)?;
    let dialect = basis.dialect;
    if dialect == Dialect::Early {
        let problem = "--multi-session does not go with the early dialect, which has no room for a session's id.";
        return Err(Failure::usage(problem).hint("Use --rpc-dialect classic or modern."));
    }
    anchor_paths(&mut flags, &basis.dirs);
    descriptors::allow_many();
    let queue: Queue<Addressed> = Queue::new(coalesce(&flags));
    let runtime = runtime::for_several()?;
    let shared = Arc::new(Shared::new(&basis.dirs));
    let on_eof = flags.on_eof;
    let builder = Builder {
        program,
        flags: *flags,
        basis,
        shared: Arc::clone(&shared),
    };
    let host = BuildingHost::new(builder, dialect, queue.clone());
    let watched = stdout.try_clone()?;
    let (writer, mut input) = runtime.block_on(async {
        let writer = Writer::spawn_on_runtime(stdout, MultiSessionProjection, queue.clone());
        (writer, read_stdin_lines(DEFAULT_LINE_LIMIT))
    });
    let writer = writer?;
    let mut signals = ShutdownSignals::listen(&runtime)?;
    let end = runtime.block_on(async {
        let open = host.open_ids();
        tokio::spawn(async move { memory::trim_after_sessions(&open).await });
        let mut rpc = MultiSessionRpc::new(dialect, queue.clone(), Arc::new(host));
        let interrupted = async {
            tokio::select! {
                () = reader::gone(watched) => ServingEnd::Output,
                () = queue.broken() => ServingEnd::Output,
                code = signals.received() => ServingEnd::Signal(code),
            }
        };
        tokio::pin!(interrupted);
        let mut end = tokio::select! {
            end = rpc.serve(&mut input) => match end {
                RpcEnd::OutputClosed => ServingEnd::Output,
                RpcEnd::EndOfInput | RpcEnd::Requested => ServingEnd::Input,
            },
            end = &mut interrupted => end,
        };
        if end == ServingEnd::Input && on_eof == OnEof::Drain {
            end = tokio::select! {
                () = rpc.settle() => ServingEnd::Input,
                end = interrupted => end,
            };
        }
        // A session that does not end in time is abandoned; its file is valid at any moment.
        let _ = tokio::time::timeout(STOP_TIMEOUT, rpc.stop()).await;
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

/// Refuses flags that choose a session: the client chooses sessions with `open_session`.
fn refuse_session_flags(flags: &Flags) -> Result<(), Failure> {
    let given = [
        ("--continue", flags.continue_last),
        ("--session", flags.session.is_some()),
        ("--session-id", flags.session_id.is_some()),
        ("--fork", flags.fork.is_some()),
        ("--name", flags.name.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::usage(format!(
            "{flag} does not go with --multi-session, where sessions are named in open_session."
        ))),
    }
}

/// Builds sessions from the flags of the command line.
struct Builder {
    program: Program,
    flags: Flags,
    /// The basis of a session that does not name a directory.
    basis: Basis,
    shared: Arc<Shared>,
}

impl SessionBuilder for Builder {
    type Rest = (Flags, Basis, Conversation);

    fn prepare(&self, opening: OpenSession) -> Result<PreparedSession<Self::Rest>, String> {
        let (flags, basis) = self.overridden(opening)?;
        let conversation = Conversation::open(&flags, &basis)?;
        Ok(PreparedSession {
            id: conversation.store.id().to_owned(),
            file: conversation.store.file().map(Into::into),
            cwd: basis.dirs.cwd.clone(),
            rest: (flags, basis, conversation),
        })
    }

    fn build<'a>(
        &'a self,
        (flags, basis, mut conversation): Self::Rest,
        id: &'a str,
        listener: Arc<dyn Listener>,
        records: Arc<RecordOutbox>,
    ) -> LocalBoxFuture<'a, Result<BuiltSession, String>> {
        Box::pin(async move {
            conversation.family = Some(id.to_owned());
            let room = Arc::clone(&records);
            let audience = Audience {
                records: Arc::new(move |record| records.send(record)),
                has_room: Arc::new(move || room.has_room()),
                has_ui: true,
                source: InputSource::Rpc,
                mode: Mode::Rpc,
            };
            let company = Company::new(vec![listener], audience);
            let (program, shared) = (self.program, &self.shared);
            let engine = engine::build(program, &flags, basis, conversation, company, shared);
            let engine = engine.await?;
            Ok(BuiltSession {
                config: engine.config,
                additions: engine.companions.additions(),
                companions: engine.companions,
            })
        })
    }

    fn clean_up(&self, id: &str) {
        pinion_process::kill_family(id);
    }
}

impl Builder {
    /// Returns the flags of the command line, overridden by the fields of `opening`, and the basis for its directory.
    fn overridden(&self, opening: OpenSession) -> Result<(Flags, Basis), Failure> {
        let mut flags = self.flags.clone();
        flags.session = opening.session;
        flags.name = opening.name;
        flags.no_session |= opening.no_session;
        flags.thinking = opening.thinking_level.or(flags.thinking);
        if let Some(model) = opening.model {
            flags.model = Some(model);
            flags.provider = None;
            // The key belongs to the model of the command line, and must not be sent to another provider.
            flags.api_key = None;
        }
        if flags.no_session && flags.session.is_some() {
            return Err(Failure::failed(
                "no session can be opened from disk with --no-session",
            ));
        }
        let home = &self.basis.dirs;
        let cwd = match opening.cwd {
            None => home.cwd.clone(),
            Some(cwd) => home.resolve(&cwd),
        };
        if !cwd.is_dir() {
            return Err(Failure::failed(format!(
                "there is no directory {}",
                cwd.display()
            )));
        }
        let basis = Basis::at(home.at(cwd), &flags)?;
        Ok((flags, basis))
    }
}
