//! Starting a child: which words, where, with which environment; and our ends of it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinion_tools::{Environment, Exit, Launch, Running};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{AgentKind, ChildPlan, Ending, Feed};

/// What a pipe from a child may hold, if the system lets us choose.
const PIPE_SIZE: i32 = 256 * 1024;
/// What is read at once.
const PIECE: usize = 128 * 1024;
/// No more than this is kept of what a child prints on standard error.
const STDERR_LIMIT: usize = 16 * 1024 * 1024;
/// The end of standard error, for the words about a failure.
const STDERR_TAIL: usize = 2000;

/// The program and arguments that run `child` on `model`.
pub(crate) fn words(child: &ChildPlan, model: Option<&str>, ourselves: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = match (child.command.is_empty(), child.agent) {
        (false, _) => child
            .command
            .iter()
            .map(|word| with_model(word, model).into())
            .collect(),
        (true, AgentKind::Pinion) => vec![ourselves.into()],
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
            // These are told in the prompt where their files are.
            AgentKind::Codex | AgentKind::Claude | AgentKind::Jsonl => {}
        }
    }
    match child.agent {
        // Whatever else is on the command line, the prompt comes on standard input.
        AgentKind::Pinion | AgentKind::Codex => words.push("-".into()),
        _ => {}
    }
    words
}

/// Whether files are named in the prompt because the program has no other way to take them.
pub(crate) fn files_in_prompt(agent: AgentKind) -> bool {
    matches!(
        agent,
        AgentKind::Codex | AgentKind::Claude | AgentKind::Jsonl
    )
}

/// Puts the model of an attempt in the place of `{{ model }}`.
pub(crate) fn with_model(word: &str, model: Option<&str>) -> String {
    crate::prompt::render(word, |name| match name {
        "model" => Some(model.unwrap_or_default().to_owned()),
        _ => None,
    })
}

/// A child that runs: how it is read, and how it lives.
#[derive(Debug)]
pub(crate) struct Started {
    pub output: Output,
    pub life: Life,
}

/// What a child prints.
#[derive(Debug)]
pub(crate) enum Output {
    Pipe(Receiver),
    Feed(Arc<Feed>),
}

impl Output {
    /// Waits for bytes and puts them into `piece` in place of what was there; false at the end.
    pub async fn read(&mut self, piece: &mut Vec<u8>) -> bool {
        match self {
            Self::Feed(feed) => feed.take(piece).await,
            Self::Pipe(pipe) => {
                piece.clear();
                piece.reserve(PIECE);
                matches!(pipe.read_buf(piece).await, Ok(1..))
            }
        }
    }
}

/// How a child lives and is ended.
pub(crate) enum Life {
    Process {
        running: Running,
        stderr: JoinHandle<Vec<u8>>,
        /// Writes the prompt; ends with the child at the latest.
        prompt: JoinHandle<()>,
    },
    Task {
        stop: CancellationToken,
        ended: BoxFuture<'static, Ending>,
        over: bool,
    },
}

impl std::fmt::Debug for Life {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Process { .. } => "Process",
            Self::Task { .. } => "Task",
        })
    }
}

impl Life {
    /// Waits until it is over. To be asked once.
    pub async fn wait(&mut self) -> Ending {
        match self {
            Self::Process { running, .. } => match running.wait().await {
                Exit::Code(code) => Ending::Code(code),
                Exit::Signal(signal) => Ending::Signal(signal),
                Exit::Unknown => Ending::Unknown,
            },
            Self::Task { ended, over, .. } => {
                let ending = ended.await;
                *over = true;
                ending
            }
        }
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        match self {
            Self::Process { running, .. } => {
                let _ = kill(Pid::from_raw(-running.pid()), Signal::SIGTERM);
            }
            Self::Task { stop, .. } => stop.cancel(),
        }
    }

    /// Ends it and all that came of it.
    pub fn kill(&self) {
        match self {
            Self::Process { running, .. } => running.kill(),
            Self::Task { stop, .. } => stop.cancel(),
        }
    }

    /// The end of what it printed on standard error.
    pub async fn stderr_tail(self, patience: std::time::Duration) -> String {
        let Self::Process {
            mut stderr, prompt, ..
        } = self
        else {
            return String::new();
        };
        prompt.abort();
        let tail = match tokio::time::timeout(patience, &mut stderr).await {
            Ok(Ok(tail)) => tail,
            _ => {
                stderr.abort();
                Vec::new()
            }
        };
        String::from_utf8_lossy(&tail).trim().to_owned()
    }
}

/// Starts a process with `prompt` on its standard input.
pub(crate) async fn process(
    words: Vec<OsString>,
    directory: PathBuf,
    variables: Vec<(OsString, OsString)>,
    prompt: Vec<u8>,
    stderr_file: PathBuf,
) -> io::Result<Started> {
    let (their_stdin, stdin) = io::pipe()?;
    let (stdout, their_stdout) = io::pipe()?;
    let (stderr, their_stderr) = io::pipe()?;
    // Without it, reading takes a few more calls.
    let _ = nix::fcntl::fcntl(&stdout, nix::fcntl::FcntlArg::F_SETPIPE_SZ(PIPE_SIZE));
    let launch = Launch {
        words,
        directory,
        variables,
        base: Environment::Inherited,
        stdin: Some(their_stdin.into()),
        stdout: Some(their_stdout.into()),
        stderr: Some(their_stderr.into()),
    };
    let running = pinion_tools::launch(launch).await?;
    let stdin = Sender::from_owned_fd(OwnedFd::from(stdin))?;
    let stderr = Receiver::from_owned_fd(OwnedFd::from(stderr))?;
    Ok(Started {
        output: Output::Pipe(Receiver::from_owned_fd(OwnedFd::from(stdout))?),
        life: Life::Process {
            running,
            stderr: tokio::spawn(keep_stderr(stderr, stderr_file)),
            prompt: tokio::spawn(write_prompt(stdin, prompt)),
        },
    })
}

/// Whether a process that failed to start with `error` would fail again. Too many processes or descriptors pass; a missing
/// program, or one that may not be run, stays as it is.
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

/// A child need not read all of its prompt, or any of it.
async fn write_prompt(mut stdin: Sender, prompt: Vec<u8>) {
    let _ = stdin.write_all(&prompt).await;
}

/// Keeps standard error in a file, made with the first byte; gives its end.
async fn keep_stderr(mut pipe: Receiver, path: PathBuf) -> Vec<u8> {
    let mut file: Option<File> = None;
    let mut kept = 0;
    let mut tail = Vec::new();
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
        let room = piece.len().min(STDERR_LIMIT - kept);
        kept += room;
        if let Some(file) = &mut file {
            // Words beside the protocol: losing them fails nothing.
            let _ = file.write_all(&piece[..room]);
        }
        tail.extend_from_slice(&piece);
        let extra = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..extra);
    }
}
