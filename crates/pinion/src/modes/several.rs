//! Several sessions for one client, over lines of JSON.
//!
//! Every session has an engine of its own; all share connections, keys, models and saved choices. Sessions are built on
//! blocking threads, so that opening one does not delay another.

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_agent::Listener;
use pinion_config::Dirs;
use pinion_extensions::InputSource;
use pinion_jsonl::{DEFAULT_LINE_LIMIT, Queue, Writer, read_lines, stdio};
use pinion_pi::{
    Addressed, Dialect, MultiSessionProjection, MultiSessionRpc, OpenSession, OpenedSession, Out,
    Outbox, PiListener, RpcEnd, SessionHost, Sink,
};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};

use super::serving::Serving;
use super::{
    End, FAREWELL, LAST_WORDS, additions, coalesce, conclude, line_of, refuse_files, room,
};
use crate::cli::{Flags, OnEof};
use crate::engine::{self, Basis, Company, Conversation, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;
use crate::signals::Ending;
use crate::{descriptors, memory, reader, runtime};

/// Number of sessions that may be built at the same time.
const MAKERS: usize = 8;
/// Longest wait for all sessions together to end.
const ENDING: Duration = FAREWELL.saturating_add(LAST_WORDS.saturating_mul(2));

/// Serves a client that opens and closes sessions until it closes its end.
pub(crate) fn several(program: Program, mut flags: Box<Flags>) -> Result<ExitCode, Failure> {
    refuse_files(&flags)?;
    refuse_session_flags(&flags)?;
    let stdout = stdio::claim_stdout()?;
    let basis = Basis::read(&flags)?;
    let dialect = basis.dialect;
    if dialect == Dialect::Early {
        return Err(Failure::usage(
            "Error: --multi-session does not go with the early dialect, which has no room for a session's id. Use --rpc-dialect classic or modern.",
        ));
    }
    anchor_paths(&mut flags, &basis.dirs);
    descriptors::allow_many();
    let queue: Queue<Addressed> = Queue::new(coalesce(&flags));
    let runtime = runtime::for_several()?;
    let shared = Arc::new(Shared::new(&basis.dirs));
    let on_eof = flags.on_eof;
    let house = Arc::new(House {
        program,
        flags: *flags,
        basis,
        queue: queue.clone(),
        shared: Arc::clone(&shared),
        names: Mutex::default(),
        makers: Semaphore::new(MAKERS),
        closed: Notify::new(),
    });
    let watched = stdout.try_clone()?;
    let writer = Writer::spawn(stdout, MultiSessionProjection, queue.clone())?;
    let mut input = read_lines(std::io::stdin(), DEFAULT_LINE_LIMIT);
    let mut ending = Ending::listen(&runtime)?;
    let end = runtime.block_on(async {
        let trimmed = Arc::clone(&house);
        tokio::spawn(async move { memory::trim_after_sessions(&trimmed.closed).await });
        let mut several = MultiSessionRpc::new(dialect, queue.clone(), Arc::new(Door(house)));
        let interrupted = async {
            tokio::select! {
                () = reader::gone(watched) => End::Output,
                () = queue.broken() => End::Output,
                code = ending.signalled() => End::Signal(code),
            }
        };
        tokio::pin!(interrupted);
        let mut end = tokio::select! {
            end = several.serve(&mut input) => match end {
                RpcEnd::OutputClosed => End::Output,
                RpcEnd::EndOfInput | RpcEnd::Requested => End::Input,
            },
            end = &mut interrupted => end,
        };
        if end == End::Input && on_eof == OnEof::Drain {
            end = tokio::select! {
                () = several.settle() => End::Input,
                end = interrupted => end,
            };
        }
        // A session that does not end in time is abandoned; its file is valid at any moment.
        let _ = tokio::time::timeout(ENDING, several.stop()).await;
        end
    });
    Ok(conclude(
        runtime,
        ending,
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
            "Error: {flag} does not go with --multi-session, where sessions are named in open_session."
        ))),
    }
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

/// Builds sessions and holds the state that they share.
struct House {
    program: Program,
    flags: Flags,
    /// The basis of a session that does not name a directory.
    basis: Basis,
    queue: Queue<Addressed>,
    shared: Arc<Shared>,
    /// The ids of open sessions.
    names: Mutex<HashSet<String>>,
    makers: Semaphore,
    /// Notified when a session has closed.
    closed: Notify,
}

/// The session host that `MultiSessionRpc` calls.
struct Door(Arc<House>);

impl SessionHost for Door {
    fn open(&self, opening: OpenSession) -> BoxFuture<'static, Result<OpenedSession, String>> {
        let house = Arc::clone(&self.0);
        Box::pin(async move {
            let Ok(_maker) = house.makers.acquire().await else {
                return Err("the program ends".to_owned());
            };
            let runtime = Handle::current();
            let maker = Arc::clone(&house);
            let made =
                tokio::task::spawn_blocking(move || runtime.block_on(House::make(&maker, opening)));
            match made.await {
                Ok(made) => made.map_err(Failure::into_words),
                Err(error) => Err(format!("the session could not be made: {error}")),
            }
        })
    }
}

impl House {
    async fn make(house: &Arc<Self>, opening: OpenSession) -> Result<OpenedSession, Failure> {
        let (flags, basis) = house.wishes(opening)?;
        let dialect = house.basis.dialect;
        let cwd = basis.dirs.cwd.display().to_string();
        let mut conversation = Conversation::open(&flags, &basis)?;
        let file = conversation.store.file();
        let file = file.map(|file| file.display().to_string());
        let name = Name::claim(house, conversation.store.id());
        conversation.family = Some(name.id.clone());
        let out = Outbox::of_session(house.queue.clone(), &name.id, dialect);
        let listener: Arc<dyn Listener> = Arc::new(PiListener::new(out.clone(), dialect));
        let early = Arc::new(EarlyRecords::new(out.clone()));
        let records = Arc::clone(&early);
        let audience = Audience {
            records: Arc::new(move |record| records.take(record)),
            has_room: room(out.clone()),
            has_ui: true,
            source: InputSource::Rpc,
        };
        let engine = engine::build(
            house.program,
            &flags,
            basis,
            conversation,
            Company::new(vec![listener], audience),
            &house.shared,
        )
        .await?;
        out.add(additions(&engine));
        let serving = Serving::start(engine, dialect, out.clone());
        Ok(OpenedSession {
            id: name.id.clone(),
            session: serving.session(),
            file,
            cwd,
            out,
            serve: Box::new(move |input, stopped| {
                Box::pin(async move {
                    early.release();
                    let stopped = async {
                        // A dropped sender also means stop.
                        let _ = stopped.await;
                        End::Asked
                    };
                    let end = serving.live(input, OnEof::Drain, stopped).await;
                    // At the end of input the program ends, and with it every command.
                    if end != End::Input {
                        let family = name.id.clone();
                        let killed = move || pinion_process::kill_family(&family);
                        // A command that cannot be killed now ends with the process.
                        let _ = tokio::task::spawn_blocking(killed).await;
                    }
                    drop(name);
                })
            }),
        })
    }

    /// Returns the flags of the command line, overridden by the fields of `opening`, and the basis for its directory.
    fn wishes(&self, opening: OpenSession) -> Result<(Flags, Basis), Failure> {
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

    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id by which the client addresses a session. Dropping it frees the id.
struct Name {
    house: Arc<House>,
    id: String,
}

impl Name {
    /// Claims the session's own id, with a number appended if another open session uses it.
    fn claim(house: &Arc<House>, id: &str) -> Self {
        let mut names = house.names();
        let numbered = (2_u64..).map(|number| format!("{id}-{number}"));
        let mut candidates = std::iter::once(id.to_owned()).chain(numbered);
        let free = candidates.find(|candidate| !names.contains(candidate));
        let id = free.unwrap_or_else(|| id.to_owned());
        names.insert(id.clone());
        drop(names);
        Self {
            house: Arc::clone(house),
            id,
        }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.house.names().remove(&self.id);
        self.house.closed.notify_one();
    }
}

/// Holds back the records of a session that is being built: the client must learn of the session first.
struct EarlyRecords {
    out: Outbox,
    waiting: Mutex<Option<Vec<String>>>,
}

impl EarlyRecords {
    fn new(out: Outbox) -> Self {
        Self {
            out,
            waiting: Mutex::new(Some(Vec::new())),
        }
    }

    fn take(&self, record: String) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *waiting {
            Some(waiting) => waiting.push(record),
            None => self.out.push(Out::Record(line_of(record))),
        }
    }

    /// Sends the held records; later records are sent at once.
    fn release(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for record in waiting.take().into_iter().flatten() {
            self.out.push(Out::Record(line_of(record)));
        }
    }
}
