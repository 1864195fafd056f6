//! Children of `isolation: task`: sessions of this process, whose lines reach the fleet without a pipe.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::Listener;
use pinion_config::{Dirs, FileArguments};
use pinion_extensions::Mode;
use pinion_fleet::{ChildExit, TaskJob, refusal_lines};
use pinion_pi::{
    Dialect, FeedSink, Out, Outcome, PiListener, PrintListener, Prompts, Sink, converse,
};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::cli::{self, Action, Flags};
use crate::engine::{self, Basis, Company, Conversation, Engine, Shared};
use crate::extensions::Audience;
use crate::failure::{Context, Failure};
use crate::log::LogFlags;
use crate::program::Program;

/// The largest number of sessions that are made at the same time: each reads files.
const MAKERS: usize = 8;

/// The parts that the sessions of all tasks share.
pub(super) struct Tasks {
    dirs: Dirs,
    shared: Shared,
    makers: Semaphore,
}

impl Tasks {
    pub fn new(dirs: Dirs) -> Self {
        Self {
            shared: Shared::new(&dirs),
            dirs,
            makers: Semaphore::new(MAKERS),
        }
    }

    /// Runs one child to its end.
    pub fn run(tasks: Arc<Self>, job: TaskJob) -> BoxFuture<'static, ChildExit> {
        Box::pin(async move {
            let feed = Arc::clone(&job.feed);
            let ended = Self::live(&tasks, job).await;
            if let Err(failure) = &ended {
                // A process would report it on standard error.
                feed.push(|bytes| bytes.extend_from_slice(&refusal_lines(&failure.to_string())));
            }
            feed.close();
            ChildExit::Code(i32::from(ended.is_err()))
        })
    }

    async fn live(tasks: &Arc<Self>, job: TaskJob) -> Result<(), Failure> {
        let prompts = prompts(&job)?;
        let family = format!("fleet-{}", uuid::Uuid::new_v4());
        let sink = FeedSink::new(Arc::clone(&job.feed), Dialect::Modern);
        let (printer, settled) = PrintListener::new();
        let listeners: Vec<Arc<dyn Listener>> = vec![
            Arc::new(PiListener::new(sink.clone(), Dialect::Modern)),
            Arc::clone(&printer) as _,
        ];
        let engine = tokio::select! {
            engine = Self::make(tasks, &job, &family, listeners) => engine?,
            () = job.stop.cancelled() => return Err(Failure::failed("it was stopped before it began")),
        };
        let Engine {
            config, companions, ..
        } = engine;
        let mut header = config.store.header().json().to_vec();
        header.push(b'\n');
        sink.push(Out::Record(header));
        let stopped = async {
            job.stop.cancelled().await;
            0
        };
        let outcome = converse(config, &*companions, prompts, settled, stopped).await;
        // Ends the processes that the child's commands left behind.
        let killed = move || pinion_process::kill_family(&family);
        let _ = tokio::task::spawn_blocking(killed).await;
        match outcome {
            Ok(Outcome::Ended(code)) if code != 0 => Err(Failure::failed(format!(
                "an extension ended it with code {code}"
            ))),
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a session on a blocking thread, so that reading files does not delay other tasks.
    async fn make(
        tasks: &Arc<Self>,
        job: &TaskJob,
        family: &str,
        listeners: Vec<Arc<dyn Listener>>,
    ) -> Result<Engine, Failure> {
        let flags = flags(job)?;
        let Ok(_maker) = tasks.makers.acquire().await else {
            return Err(Failure::failed("the program ends"));
        };
        let runtime = Handle::current();
        let maker = Arc::clone(tasks);
        let (directory, family) = (job.directory.clone(), family.to_owned());
        let made = tokio::task::spawn_blocking(move || {
            let basis = Basis::at(maker.dirs.at(directory), &flags)?;
            let mut conversation = Conversation::open(&flags, &basis)?;
            conversation.family = Some(family);
            runtime.block_on(engine::build(
                Program::Pinion,
                &flags,
                basis,
                conversation,
                Company::new(listeners, Audience::none(Mode::Print)),
                &maker.shared,
            ))
        });
        made.await.context("the session could not be made")?
    }
}

/// Returns the flags with which a process would have been started.
fn flags(job: &TaskJob) -> Result<Flags, Failure> {
    let mut words: Vec<String> = ["--mode", "json", "--rpc-dialect", "modern", "--no-session"]
        .map(str::to_owned)
        .into();
    if let Some(model) = job.model_argument() {
        words.extend(["--model".into(), model]);
    }
    words.extend(job.args.iter().cloned());
    match cli::parse(Program::Pinion, words)?.0 {
        Action::Run(flags) if flags.log != LogFlags::default() => Err(Failure::usage(
            "its args have flags of the log, which belong to the fleet: `pinion --log info fleet run …`",
        )),
        Action::Run(mut flags) => {
            flags.decide_unknown(Program::Pinion)?;
            Ok(*flags)
        }
        _ => Err(Failure::usage("its args ask for something else than a run")),
    }
}

fn prompts(job: &TaskJob) -> Result<Prompts, Failure> {
    let resolve = |path: &str| pinion_tools::resolve_existing_path(path, &job.directory);
    let mut prepare = crate::commands::prepare_image;
    let names: Vec<String> = job
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let files = FileArguments::read(&names, &resolve, &mut prepare)?;
    let mut text = job.prompt.trim().to_owned();
    if !files.text.is_empty() {
        text = format!("{text}\n{}", files.text);
    }
    Ok(Prompts {
        texts: vec![text],
        images: files.images,
    })
}
