//! `fleet`: many child agents, one report. The fleet crate has plans and runs; this module has the command line,
//! signals and the terminal.

mod arguments;
mod event_writer;
mod host;
mod runs;
mod task;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use pinion_access::client::HUB_VARIABLE;
use pinion_config::Dirs;
use pinion_fleet::{Observer, Plan, Report, RunDir, RunOptions, Sharing, Stop, StopReason};
use pinion_jsonl::{Coalesce, Queue, Writer, stdio};
use pinion_pi::{Additions, Dialect, Out, Projection};
use pinion_tui::fleet::{
    FinishedRun, LastPicture, LiveTable, Palette, ProgressLines, REDRAW_INTERVAL, is_dumb,
    short_report, terminal_size,
};

pub(crate) use self::arguments::GROUP;
use self::arguments::{Arguments, Printed, Which};
use self::event_writer::EventWriter;
use self::host::ProgramHost;
use crate::commands::out;
use crate::failure::Failure;
use crate::modes::finish_writing;
use crate::signals::ShutdownSignals;
use crate::{descriptors, reader, runtime};

fn start(plan: &str, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let dirs = Dirs::from_env()?;
    let host = ProgramHost::new(dirs.clone());
    let plan = read(Path::new(plan), &host)?;
    let directory = RunDir::create(&root(&dirs), arguments.run_dir.as_deref())?;
    execute(arguments, dirs, host, plan, directory, How::New)
}

/// Reports every problem of a plan, as a run would before it starts.
fn check(plan: &str) -> Result<ExitCode, Failure> {
    let host = ProgramHost::new(Dirs::from_env()?);
    let read = read(Path::new(plan), &host)?;
    out(&format!("{plan}: {}, no problems\n", read.summary()))
}

fn resume(run: &str, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let dirs = Dirs::from_env()?;
    let mut directory = RunDir::find(&root(&dirs), run)?;
    directory.lock()?;
    let plan = directory.plan()?;
    pinion_fleet::check_input(&directory, &plan)?;
    let host = ProgramHost::new(dirs.clone());
    execute(arguments, dirs, host, plan, directory, How::Again)
}

fn show(run: &str, json: bool) -> Result<ExitCode, Failure> {
    runs::show(&root(&Dirs::from_env()?), run, json)
}

fn list(json: bool) -> Result<ExitCode, Failure> {
    runs::list(&root(&Dirs::from_env()?), json)
}

fn clean(which: &Which) -> Result<ExitCode, Failure> {
    runs::clean(&root(&Dirs::from_env()?), which)
}

/// Returns the ids of the stored runs, the newest first.
pub(crate) fn run_ids() -> Result<Vec<String>, Failure> {
    let runs = RunDir::list(&root(&Dirs::from_env()?));
    Ok(runs.iter().rev().map(RunDir::id).collect())
}

/// Returns the directory of runs that name no other.
fn root(dirs: &Dirs) -> PathBuf {
    dirs.agent_dir.join("fleet")
}

/// Returns the name of a run for the command line: its id, or its path if it is outside `root`.
fn name(root: &Path, directory: &RunDir) -> String {
    if directory.path().parent() == Some(root) {
        directory.id()
    } else {
        directory.path().display().to_string()
    }
}

/// Reports whether a run shares its breakers with others. A hub sets its address in the environment of its children.
fn shares(sharing: Sharing) -> bool {
    match sharing {
        Sharing::Always => true,
        Sharing::Never => false,
        Sharing::UnderHub => std::env::var_os(HUB_VARIABLE).is_some_and(|url| !url.is_empty()),
    }
}

fn read(path: &Path, host: &ProgramHost) -> Result<Plan, Failure> {
    let check_model = |model: &str| host.check_model(model);
    Ok(pinion_fleet::read_plan(path, &check_model)?)
}

/// The kind of start: a new run or a resumed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    New,
    Again,
}

fn execute(
    arguments: &Arguments,
    dirs: Dirs,
    host: ProgramHost,
    plan: Plan,
    directory: RunDir,
    how: How,
) -> Result<ExitCode, Failure> {
    let mut stdout = stdio::claim_stdout()?;
    let begun = Instant::now();
    descriptors::allow_many();
    let runtime = runtime::for_several()?;
    let mut signals = ShutdownSignals::listen_to_all(&runtime)?;
    let stop = Stop::default();
    let path = directory.path().to_owned();
    let mut observers: Vec<Box<dyn Observer>> = Vec::new();
    let mut ticking = None;
    if !arguments.quiet {
        if arguments.printed != Printed::Lines && can_draw() {
            let table = LiveTable::default();
            ticking = Some(table.clone());
            observers.push(Box::new(table));
        } else {
            observers.push(Box::new(ProgressLines::default()));
        }
        eprintln!("Run {}", path.display());
    }
    let tape = match arguments.printed {
        Printed::Lines => {
            let queue: Queue<Out> = Queue::new(Coalesce::Never);
            let projection = Projection::new(Dialect::Modern, Additions::None);
            let writer = Writer::spawn(stdout.try_clone()?, projection, queue.clone())?;
            observers.push(Box::new(EventWriter::new(queue.clone())));
            Some((queue, writer))
        }
        Printed::Report | Printed::Nothing => None,
    };
    let name = name(&root(&dirs), &directory);
    let shared_breakers = shares(plan.sharing).then(|| root(&dirs).join("breakers.json"));
    let options = RunOptions {
        directory,
        plan,
        working_directory: dirs.cwd,
        host: Arc::new(host),
        observers,
        stop: stop.clone(),
        shared_breakers,
        begun,
    };
    let watched = stdout.try_clone()?;
    let queue = tape.as_ref().map(|(queue, _)| queue.clone());
    let report = runtime.block_on(async {
        let run = async {
            match how {
                How::New => {
                    let notice = |text: &str| eprintln!("{text}");
                    pinion_fleet::keep_input(
                        &options.directory,
                        &options.plan,
                        begun,
                        &stop,
                        notice,
                    )
                    .await?;
                    pinion_fleet::start(options).await
                }
                How::Again => pinion_fleet::resume(options).await,
            }
        };
        tokio::pin!(run);
        let unread = async {
            match &queue {
                Some(queue) => tokio::select! {
                    () = reader::gone(watched) => {}
                    () = queue.broken() => {}
                },
                None => std::future::pending().await,
            }
        };
        tokio::pin!(unread);
        let mut deaf = false;
        let mut ticks = tokio::time::interval(REDRAW_INTERVAL);
        loop {
            tokio::select! {
                report = &mut run => break report,
                _ = signals.received() => {
                    // A second signal kills the children instead of waiting for them.
                    if stop.reason().is_some() {
                        let _ = tokio::task::spawn_blocking(pinion_process::kill_all).await;
                    }
                    stop.set(StopReason::Interrupted);
                }
                () = &mut unread, if !deaf => {
                    deaf = true;
                    stop.set(StopReason::Interrupted);
                }
                _ = ticks.tick() => {
                    if let Some(table) = &ticking {
                        table.draw();
                    }
                }
            }
        }
    });
    pinion_process::kill_all();
    if let Some(table) = &ticking {
        table.finish(if in_short(arguments, &stdout) && report.is_ok() {
            LastPicture::Goes
        } else {
            LastPicture::Stays
        });
    }
    if let Some((queue, writer)) = tape {
        queue.close();
        // A reader that is gone needs no more output.
        let _ = finish_writing(&runtime, &mut signals, writer);
    }
    runtime.shutdown_background();
    let report = report?;
    let run = FinishedRun {
        directory: &path,
        name,
        took: begun.elapsed(),
    };
    conclude(arguments, &report, &run, &mut stdout)
}

/// Reports whether standard error is a terminal on which the table can be redrawn.
fn can_draw() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// Reports whether the report goes to a user at a terminal, who has no use for the Markdown of a merge request.
fn in_short(arguments: &Arguments, stdout: &File) -> bool {
    arguments.printed == Printed::Report && stdout.is_terminal()
}

fn conclude(
    arguments: &Arguments,
    report: &Report,
    run: &FinishedRun<'_>,
    stdout: &mut File,
) -> Result<ExitCode, Failure> {
    let short = in_short(arguments, stdout);
    let text = match arguments.printed {
        Printed::Report if short => {
            let (_, columns) = terminal_size(&*stdout);
            // Overwrites the echo of a key on the line.
            format!(
                "\r{}",
                short_report(report, run, columns, Palette::from_env())
            )
        }
        Printed::Report => report.markdown(),
        Printed::Lines | Printed::Nothing => String::new(),
    };
    match stdout.write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    if !arguments.quiet && !short {
        let words = format!(
            "{}: {}",
            report.status.as_str(),
            run.directory.join("report.md").display()
        );
        eprintln!("{words}");
    }
    Ok(ExitCode::from(report.exit_code.unwrap_or(1)))
}
