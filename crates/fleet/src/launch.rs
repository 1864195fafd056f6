//! Starts a child: its command line, directory and environment, and the fleet's ends of its pipes.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_process::{Confinement, Environment, Exit, Launch, Pipes, Reason, Running, Tail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{AgentKind, ChildExit, ChildPlan, Feed};

/// The capacity of a child's output pipe in bytes, if the system permits it.
const PIPE_SIZE: i32 = 256 * 1024;
/// The largest number of bytes read at once.
const READ_SIZE: usize = 128 * 1024;
/// The largest number of bytes of a child's standard error that are stored.
const STDERR_LIMIT: usize = 16 * 1024 * 1024;
/// The number of bytes at the end of standard error that messages about a failure may quote.
const STDERR_TAIL: usize = 2000;

/// Returns the program and arguments that run `child` on `model`.
pub(crate) fn command_line(
    child: &ChildPlan,
    model: Option<&str>,
    own_program: &Path,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = match (child.command.is_empty(), child.agent) {
        (false, _) => child
            .command
            .iter()
            .map(|word| with_model(word, model).into())
            .collect(),
        (true, AgentKind::Pinion) => vec![own_program.into()],
        (true, agent) => vec![agent.as_str().into()],
    };
    let mut add = |more: &[&str]| words.extend(more.iter().map(OsString::from));
    let bare = |model: &str| {
        model
            .split_once('/')
            .map_or(model, |(_, model)| model)
            .to_owned()
    };
    match child.agent {
        AgentKind::Pinion => {
            add(&["--mode", "json", "--rpc-dialect", "modern", "--no-session"]);
            model.iter().for_each(|model| add(&["--model", model]));
        }
        AgentKind::Pi => {
            add(&["--mode", "json", "--no-session"]);
            model.iter().for_each(|model| add(&["--model", model]));
        }
        AgentKind::Opencode => {
            add(&["run", "--format", "json"]);
            model.iter().for_each(|model| add(&["--model", model]));
        }
        AgentKind::Codex => {
            add(&["exec", "--json", "--skip-git-repo-check"]);
            model
                .iter()
                .for_each(|model| add(&["--model", &bare(model)]));
        }
        AgentKind::Claude => {
            add(&["-p", "--output-format", "stream-json", "--verbose"]);
            model
                .iter()
                .for_each(|model| add(&["--model", &bare(model)]));
        }
        AgentKind::Jsonl => {}
    }
    let args: Vec<String> = child
        .args
        .iter()
        .map(|word| with_model(word, model))
        .collect();
    args.iter().for_each(|arg| add(&[arg]));
    for file in &child.files {
        match child.agent {
            AgentKind::Pinion | AgentKind::Pi => {
                let mut word = OsString::from("@");
                word.push(file);
                words.push(word);
            }
            AgentKind::Opencode => words.extend(["--file".into(), file.into()]),
            // The prompt of these agents lists the files.
            AgentKind::Codex | AgentKind::Claude | AgentKind::Jsonl => {}
        }
    }
    match child.agent {
        // With `-` the prompt is read from standard input, whatever other arguments there are.
        AgentKind::Pinion | AgentKind::Codex => words.push("-".into()),
        _ => {}
    }
    words
}

/// Reports whether the prompt lists the files because the program has no flag for them.
pub(crate) fn files_in_prompt(agent: AgentKind) -> bool {
    matches!(
        agent,
        AgentKind::Codex | AgentKind::Claude | AgentKind::Jsonl
    )
}

/// Replaces `{{ model }}` by the model of an attempt.
pub(crate) fn with_model(word: &str, model: Option<&str>) -> String {
    crate::prompt::render(word, |name| match name {
        "model" => Some(model.unwrap_or_default().to_owned()),
        _ => None,
    })
}

/// A running child.
#[derive(Debug)]
pub(crate) struct StartedChild {
    pub output: ChildOutput,
    pub handle: ChildHandle,
}

/// The output of a child.
#[derive(Debug)]
pub(crate) enum ChildOutput {
    Pipe(Receiver),
    Feed(Arc<Feed>),
}

impl ChildOutput {
    /// Waits for bytes and replaces the contents of `piece` by them; returns false at the end.
    pub async fn read(&mut self, piece: &mut Vec<u8>) -> bool {
        match self {
            Self::Feed(feed) => feed.take(piece).await,
            Self::Pipe(pipe) => {
                piece.clear();
                piece.reserve(READ_SIZE);
                matches!(pipe.read_buf(piece).await, Ok(1..))
            }
        }
    }
}

/// Controls a running child.
pub(crate) enum ChildHandle {
    Process {
        running: Running,
        stderr: JoinHandle<Tail>,
        /// Writes the prompt; ends no later than the child.
        prompt: JoinHandle<()>,
    },
    Task {
        stop: CancellationToken,
        ended: BoxFuture<'static, ChildExit>,
        ended_already: bool,
    },
}

impl std::fmt::Debug for ChildHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Process { .. } => "Process",
            Self::Task { .. } => "Task",
        })
    }
}

impl ChildHandle {
    /// Waits until the child has ended. Must be awaited to completion only once.
    pub async fn wait(&mut self) -> ChildExit {
        match self {
            Self::Process { running, .. } => match running.wait().await {
                Exit::Code(code) => ChildExit::Code(code),
                Exit::Signal(signal) => ChildExit::Signal(signal),
                Exit::Unknown => ChildExit::Unknown,
            },
            Self::Task {
                ended,
                ended_already,
                ..
            } => {
                let ending = ended.await;
                *ended_already = true;
                ending
            }
        }
    }

    /// Requests an orderly end: SIGTERM to the process group, or cancellation of the task.
    pub fn terminate(&self) {
        match self {
            Self::Process { running, .. } => running.terminate(),
            Self::Task { stop, .. } => stop.cancel(),
        }
    }

    /// Ends the child and all processes it started.
    pub fn kill(&self) {
        match self {
            Self::Process { running, .. } => running.kill(),
            Self::Task { stop, .. } => stop.cancel(),
        }
    }

    /// Returns the end of its standard error; an empty string if that takes longer than `timeout`.
    pub async fn stderr_tail(self, timeout: std::time::Duration) -> String {
        let Self::Process {
            mut stderr, prompt, ..
        } = self
        else {
            return String::new();
        };
        prompt.abort();
        let tail = match tokio::time::timeout(timeout, &mut stderr).await {
            Ok(Ok(tail)) => tail,
            _ => {
                stderr.abort();
                return String::new();
            }
        };
        String::from_utf8_lossy(tail.bytes()).trim().to_owned()
    }
}

/// Starts a process with `prompt` on its standard input.
pub(crate) async fn process(
    words: Vec<OsString>,
    directory: PathBuf,
    variables: Vec<(OsString, OsString)>,
    prompt: Vec<u8>,
    stderr_file: PathBuf,
) -> io::Result<StartedChild> {
    let launch = Launch {
        words,
        directory,
        variables,
        base: Environment::Inherited,
        confinement: Confinement::Unconfined(Reason::Agent),
        stdin: None,
        stdout: None,
        stderr: None,
    };
    let (running, pipes) = pinion_process::launch_piped(launch).await?;
    let Pipes {
        stdin,
        stdout,
        stderr,
    } = pipes;
    // If this fails, reading only takes a few more calls.
    let _ = nix::fcntl::fcntl(&stdout, nix::fcntl::FcntlArg::F_SETPIPE_SZ(PIPE_SIZE));
    Ok(StartedChild {
        output: ChildOutput::Pipe(stdout),
        handle: ChildHandle::Process {
            running,
            stderr: tokio::spawn(store_stderr(stderr, stderr_file)),
            prompt: tokio::spawn(write_prompt(stdin, prompt)),
        },
    })
}

/// Reports whether a process that failed to start with `error` would fail again. A lack of processes or descriptors is
/// temporary; a program that is missing or not executable is not.
pub(crate) fn is_permanent(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ArgumentListTooLong, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied,
    };
    matches!(
        error.kind(),
        NotFound
            | PermissionDenied
            | InvalidInput
            | NotADirectory
            | IsADirectory
            | ArgumentListTooLong
    ) || error.raw_os_error() == Some(nix::libc::ENOEXEC)
}

/// Writes the prompt. Errors are ignored: a child need not read its prompt.
async fn write_prompt(mut stdin: Sender, prompt: Vec<u8>) {
    let _ = stdin.write_all(&prompt).await;
}

/// Stores standard error in a file, which is created at the first byte, and returns its end.
async fn store_stderr(mut pipe: Receiver, path: PathBuf) -> Tail {
    let mut file: Option<File> = None;
    let mut stored = 0;
    let mut tail = Tail::new(STDERR_TAIL);
    let mut piece = Vec::new();
    loop {
        piece.clear();
        piece.reserve(4096);
        if !matches!(pipe.read_buf(&mut piece).await, Ok(1..)) {
            return tail;
        }
        if file.is_none() {
            file = pinion_files::create_or_empty(&path, 0o666).ok();
        }
        let room = piece.len().min(STDERR_LIMIT - stored);
        stored += room;
        if let Some(file) = &mut file {
            // Standard error is not part of the protocol, so a failed write does not fail the child.
            let _ = file.write_all(&piece[..room]);
        }
        tail.push(&piece);
    }
}
