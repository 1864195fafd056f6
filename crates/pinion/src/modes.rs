//! The ways a run talks: RPC, events as JSON lines, or just the answer.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Handle, Hooks, Listener, Reply, Session, Stopper};
use pinion_config::FileArguments;
use pinion_extensions::{Extensions, RecordSink};
use pinion_jsonl::{Coalesce, DEFAULT_LINE_LIMIT, Queue, Writer, WriterEnd, read_lines, stdio};
use pinion_message::StopReason;
use pinion_pi::{
    Additions, Dialect, Out, Participant, PiListener, PrintListener, Projection, Prompts, Rpc,
    RpcEnd, ask_all,
};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::approvals::ClientQuestions;
use crate::cli::{Flags, OnEof};
use crate::engine::{self, Basis, Engine};
use crate::extensions::{Audience, Talker};
use crate::failure::Failure;
use crate::program::Program;
use crate::signals::Ending;
use crate::stdin::{Wanted, read_prompt};
use crate::{reader, runtime};

/// Serves a client over lines of JSON until it closes its end.
pub(crate) fn rpc(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    if !flags.files.is_empty() {
        return Err(Failure::failed(
            "Error: @file arguments are not supported in RPC mode",
        ));
    }
    let stdout = stdio::claim_stdout()?;
    let queue = queue(&flags);
    let basis = Basis::read(&flags)?;
    let dialect = basis.dialect;
    let listener: Arc<dyn Listener> = Arc::new(PiListener::new(queue.clone(), dialect));
    let runtime = runtime::build()?;
    let audience = match dialect {
        // The early protocol has no dialogs.
        Dialect::Early => Audience::none(),
        Dialect::Classic | Dialect::Modern => Audience {
            records: records(&queue),
            has_ui: true,
        },
    };
    let engine = engine::build(program, &flags, basis, vec![listener], &runtime, audience)?;
    let on_eof = flags.on_eof;
    drop(flags);
    let watched = stdout.try_clone()?;
    let writer = Writer::spawn(stdout, projection(dialect, &engine), queue.clone())?;
    let input = read_lines(std::io::stdin(), DEFAULT_LINE_LIMIT);

    let Engine {
        config,
        preferences,
        extensions,
        approvals,
        services,
    } = engine;
    let mut ending = Ending::listen(&runtime)?;
    let end = runtime.block_on(async {
        let (session, mut task) = Session::spawn(config);
        let stopper = session.stopper();
        // Extensions look at the session until they have said farewell.
        let kept = extensions.as_ref().map(|_| session.clone());
        let rpc = Rpc {
            dialect,
            session,
            out: queue.clone(),
            participants: participants(extensions.as_ref(), approvals.as_ref()),
            beginning: extensions.clone().map(begin),
        };
        let gone = reader::gone(watched);
        tokio::pin!(gone);
        let mut end = tokio::select! {
            end = rpc.serve(input) => match end {
                RpcEnd::EndOfInput => End::Input,
                RpcEnd::OutputClosed => End::Output,
                RpcEnd::Asked => End::Asked,
            },
            () = &mut gone => End::Output,
            code = ending.signalled() => End::Signal(code),
            code = services.exited() => End::Exit(code),
        };
        if let Some(extensions) = &extensions {
            extensions.dialogs().hang_up();
        }
        if let Some(approvals) = &approvals {
            approvals.hang_up();
        }
        if end == End::Input && on_eof == OnEof::Drain {
            // Without a handle the session ends when its work has.
            end = tokio::select! {
                () = drained(&mut task, kept.as_ref()) => End::Input,
                () = queue.broken() => End::Output,
                () = gone => End::Output,
                code = ending.signalled() => End::Signal(code),
                code = services.exited() => End::Exit(code),
            };
        }
        if let Some(extensions) = &extensions {
            farewell(extensions).await;
        }
        drop(kept);
        if !task.is_finished() {
            stop_session(&stopper, task).await;
        }
        end
    });
    pinion_tools::kill_all();
    preferences.flush();
    queue.close();
    let end = match end {
        End::Input | End::Asked | End::Exit(_) => match last_words(&runtime, &mut ending, writer) {
            Ok(_) => end,
            Err(code) => End::Signal(code),
        },
        End::Output | End::Signal(_) => {
            writer.join_within(LAST_WORDS);
            end
        }
    };
    // Threads that still wait for something must not keep the process.
    runtime.shutdown_background();
    Ok(ExitCode::from(match end {
        End::Input | End::Asked => 0,
        End::Output => 1,
        End::Signal(code) | End::Exit(code) => code,
    }))
}

/// Events as lines; with those of pi 0.73 where extensions, which are written for it, are loaded.
fn projection(dialect: Dialect, engine: &Engine) -> Projection {
    let additions = match engine.extensions {
        None => Additions::None,
        Some(_) => Additions::OfExtensions,
    };
    Projection::new(dialect, additions)
}

/// Takes records of extensions into the queue of the writer.
fn records(queue: &Queue<Out>) -> RecordSink {
    let queue = queue.clone();
    Arc::new(move |record| {
        let mut line = record.into_bytes();
        line.push(b'\n');
        queue.push(Out::Record(line));
    })
}

/// Who asks the user things.
fn participants(
    extensions: Option<&Extensions>,
    approvals: Option<&Arc<ClientQuestions>>,
) -> Vec<Arc<dyn Participant>> {
    let extensions = extensions.map(|extensions| Arc::new(Talker(extensions.clone())) as _);
    let approvals = approvals.map(|approvals| Arc::clone(approvals) as _);
    extensions.into_iter().chain(approvals).collect()
}

/// Tells extensions that the session begins.
fn begin(extensions: Extensions) -> BoxFuture<'static, ()> {
    Box::pin(async move { extensions.begin().await })
}

/// Waits until what goes on in a session is over: the session itself where nobody keeps it.
async fn drained(task: &mut JoinHandle<()>, kept: Option<&Handle>) {
    match kept {
        None => {
            // How it ended does not matter any more.
            let _ = task.await;
        }
        Some(session) => {
            let (sender, idle) = oneshot::channel();
            let reply = Reply::new(move |_| {
                // The asker is waiting right below.
                let _ = sender.send(());
            });
            session.send(Command::WaitForIdle, reply).await;
            // A session that is gone is idle.
            let _ = idle.await;
        }
    }
}

/// Tells extensions that the session ends, and waits a while for what they still do.
async fn farewell(extensions: &Extensions) {
    let farewell = Hooks::farewell(extensions);
    // Who takes longer is left behind.
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

/// Waits until everything has been read, or cannot be; a reader that takes for ever is ended by a
/// signal, whose exit code is the error.
fn last_words(runtime: &Runtime, ending: &mut Ending, writer: Writer) -> Result<WriterEnd, u8> {
    runtime.block_on(async {
        tokio::select! {
            end = tokio::task::spawn_blocking(move || writer.join()) => {
                Ok(end.unwrap_or_else(|error| WriterEnd::Broken(error.into())))
            }
            code = ending.signalled() => Err(code),
        }
    })
}

/// Why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closed its end.
    Input,
    /// An extension asked for it.
    Asked,
    /// Nobody reads what we write.
    Output,
    /// A signal; its exit code.
    Signal(u8),
    /// An extension ended the program, with this exit code.
    Exit(u8),
}

/// How long extensions may take to end.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long a run may take to settle, and its last lines to be read, when the program must end.
const LAST_WORDS: Duration = Duration::from_millis(800);

/// Stops what is going on and waits a moment, so that what was said is saved.
async fn stop_session(stopper: &Stopper, task: JoinHandle<()>) {
    stopper.stop();
    // A session that does not settle in time is left behind; its file is whole at any moment.
    let _ = tokio::time::timeout(LAST_WORDS, task).await;
}

/// Prints every event of one conversation as a line of JSON.
pub(crate) fn json(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    let stdout = stdio::claim_stdout()?;
    let queue = queue(&flags);
    let (printer, settled) = PrintListener::new();
    let basis = Basis::read(&flags)?;
    let dialect = basis.dialect;
    let listeners: Vec<Arc<dyn Listener>> = vec![
        Arc::new(PiListener::new(queue.clone(), dialect)),
        Arc::clone(&printer) as _,
    ];
    let prompts = prompts(&flags)?;
    let runtime = runtime::build()?;
    let engine = engine::build(
        program,
        &flags,
        basis,
        listeners,
        &runtime,
        Audience::none(),
    )?;
    let mut header = engine.config.store.header().json().to_vec();
    header.push(b'\n');
    queue.push(Out::Record(header));
    let watched = stdout.try_clone()?;
    let writer = Writer::spawn(stdout, projection(dialect, &engine), queue.clone())?;
    let mut ending = Ending::listen(&runtime)?;
    let broken = async {
        tokio::select! {
            () = reader::gone(watched) => {}
            () = queue.broken() => {}
        }
    };
    let outcome = converse(&runtime, &mut ending, engine, prompts, settled, broken);
    queue.close();
    let end = match outcome {
        Ok(Outcome::Ended(code)) => {
            writer.join_within(LAST_WORDS);
            Err(code)
        }
        _ => last_words(&runtime, &mut ending, writer),
    };
    runtime.shutdown_background();
    match (outcome?, end) {
        (_, Err(code)) => Ok(ExitCode::from(code)),
        (_, Ok(WriterEnd::Broken(error))) => {
            Err(Failure::failed(format!("Error: standard output: {error}")))
        }
        // pi ends with 0 whatever became of the answer, which is in the events.
        (_, Ok(WriterEnd::Complete)) if program == Program::Pi => Ok(ExitCode::SUCCESS),
        (Outcome::NothingAsked, Ok(WriterEnd::Complete)) => Ok(ExitCode::SUCCESS),
        (_, Ok(WriterEnd::Complete)) => failed_answer(&printer).map_or(Ok(ExitCode::SUCCESS), Err),
    }
}

/// Prints the last answer of one conversation.
pub(crate) fn print(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    let mut stdout = stdio::claim_stdout()?;
    let (printer, settled) = PrintListener::new();
    let prompts = prompts(&flags)?;
    let runtime = runtime::build()?;
    let listeners: Vec<Arc<dyn Listener>> = vec![Arc::clone(&printer) as _];
    let basis = Basis::read(&flags)?;
    let engine = engine::build(
        program,
        &flags,
        basis,
        listeners,
        &runtime,
        Audience::none(),
    )?;
    let mut ending = Ending::listen(&runtime)?;
    let gone = reader::gone(stdout.try_clone()?);
    let outcome = converse(&runtime, &mut ending, engine, prompts, settled, gone)?;
    runtime.shutdown_background();
    match outcome {
        Outcome::Ended(code) => Ok(ExitCode::from(code)),
        Outcome::NothingAsked => Ok(ExitCode::SUCCESS),
        Outcome::Answered => print_answer(&printer, &mut stdout),
    }
}

fn print_answer(printer: &PrintListener, stdout: &mut File) -> Result<ExitCode, Failure> {
    if let Some(failure) = failed_answer(printer) {
        return Err(failure);
    }
    let last = printer.last();
    let Some(answer) = last.as_deref().and_then(|message| message.as_assistant()) else {
        return Ok(ExitCode::FAILURE);
    };
    let texts = answer.content.iter().filter_map(|block| block.as_text());
    let lines: String = texts.map(|text| format!("{text}\n")).collect();
    stdout.write_all(lines.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Why there is no good answer to show.
fn failed_answer(printer: &PrintListener) -> Option<Failure> {
    let last = printer.last();
    let Some(answer) = last.as_deref().and_then(|message| message.as_assistant()) else {
        return Some(Failure::failed("Error: the model gave no answer."));
    };
    if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
        return None;
    }
    let error = answer.error_message.clone();
    let error = error.unwrap_or_else(|| format!("Request {}", answer.stop_reason.as_str()));
    Some(Failure::failed(error))
}

fn queue(flags: &Flags) -> Queue<Out> {
    Queue::new(if flags.no_coalesce {
        Coalesce::Never
    } else {
        Coalesce::WhenBehind
    })
}

/// What became of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The model was asked and everything has settled.
    Answered,
    /// Extensions dealt with everything that was said.
    NothingAsked,
    /// It was ended, with this exit code: by a signal, by an extension, or because nobody reads.
    Ended(u8),
}

/// Runs the conversation.
fn converse(
    runtime: &Runtime,
    ending: &mut Ending,
    engine: Engine,
    prompts: Prompts,
    mut settled: tokio::sync::mpsc::UnboundedReceiver<()>,
    unread: impl Future<Output = ()>,
) -> Result<Outcome, Failure> {
    let Engine {
        config,
        preferences,
        extensions,
        services,
        ..
    } = engine;
    let result = runtime.block_on(async {
        let (session, task) = Session::spawn(config);
        let conversation = async {
            if let Some(extensions) = &extensions {
                extensions.begin().await;
            }
            ask_all(&session, prompts, &mut settled).await
        };
        let result = tokio::select! {
            asked = conversation => match asked {
                Ok(0) => Ok(Outcome::NothingAsked),
                Ok(_) => Ok(Outcome::Answered),
                Err(error) => Err(Failure::failed(error.to_string())),
            },
            () = unread => Ok(Outcome::Ended(1)),
            code = ending.signalled() => Ok(Outcome::Ended(code)),
            code = services.exited() => Ok(Outcome::Ended(code)),
        };
        if let Some(extensions) = &extensions {
            farewell(extensions).await;
        }
        // Nothing is going on after an answer; otherwise it is stopped, so that it is saved.
        stop_session(&session.stopper(), task).await;
        result
    });
    pinion_tools::kill_all();
    preferences.flush();
    result
}

/// What is said: files and standard input before the first message.
fn prompts(flags: &Flags) -> Result<Prompts, Failure> {
    let cwd = std::env::current_dir()?;
    let resolve = |path: &str| pinion_tools::resolve_existing_path(path, &cwd);
    let mut prepare = crate::commands::prepare_image;
    let files = FileArguments::read(&flags.files, &resolve, &mut prepare)
        .map_err(|error| Failure::failed(format!("Error: {error}")))?;
    let has_prompt = !flags.messages.is_empty() || !files.text.is_empty();
    let nothing_to_say = || {
        Failure::usage(
            "Error: there is no prompt. Give one as an argument or on standard input, or see `pinion --help`.",
        )
    };
    if !has_prompt && !flags.stdin && std::io::stdin().is_terminal() {
        return Err(nothing_to_say());
    }
    let wanted = if has_prompt && !flags.stdin {
        Wanted::IfPresent
    } else {
        Wanted::Required
    };
    let piped = read_prompt(wanted)?;
    let mut texts = flags.messages.clone();
    let mut first: Vec<String> = Vec::new();
    first.extend(piped);
    if !files.text.is_empty() {
        first.push(files.text);
    }
    if !first.is_empty() {
        if !texts.is_empty() {
            first.push(texts.remove(0));
        }
        texts.insert(0, first.join("\n"));
    }
    if texts.is_empty() {
        return Err(nothing_to_say());
    }
    Ok(Prompts {
        texts,
        images: files.images,
    })
}
