//! Filters in the language of jq, applied to answers as they arrive.
//!
//! A [`Filter`] is compiled before the first request and then applied to one JSON text after the
//! other; its outputs go to a writer, each on a line. It runs in its own thread, because a filter
//! may never end and its caller must be able to stop waiting.
//!
//! [`Filter::compile_confined`] runs a filter in a process whose memory is limited.
//!
//! All functions of jq exist except `input`, `inputs` and modules: each text is filtered alone.

mod depth;
mod form;
mod process;
mod program;

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

use tokio::sync::{mpsc, oneshot};

pub use self::form::{Form, Layout, Texts};
use self::process::Remote;
pub use self::process::{FILTER_ARGUMENT, MEMORY_LIMIT, filter_main};
use self::program::Program;

/// The stack of the thread, for filters that recurse and for deep JSON; pages that are not used
/// take no memory.
const STACK: usize = 64 << 20;

/// Texts that may wait for the thread while it filters another one. The caller of [`Filter::apply`] waits with the next.
const WAITING_TEXTS: usize = 1;

/// A compiled filter. Its thread ends when it is dropped, unless it is running.
pub struct Filter {
    work: mpsc::Sender<Work>,
}

/// A JSON text to filter, and the channel for its result.
struct Work {
    json: Vec<u8>,
    done: oneshot::Sender<Result<Flow, Problem>>,
}

/// The next step after a text was filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Filter the next text.
    Next,
    /// Stop: the filter called `halt` with this exit code.
    Halt(i32),
}

/// The reason why a text was not filtered to its end.
#[derive(Debug)]
pub enum Problem {
    /// The filter raised an error, or the input is not JSON.
    Failed(String),
    /// An output could not be written.
    Output(io::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => formatter.write_str(why),
            Self::Output(error) => error.fmt(formatter),
        }
    }
}

impl Filter {
    /// Compiles `code`; outputs are written to `output` in this form. Fails with a description of
    /// the fault in the code.
    pub fn compile(
        code: &str,
        form: Form,
        output: impl Write + Send + 'static,
    ) -> Result<Self, String> {
        let code = code.to_owned();
        let mut output = output;
        Self::in_thread(
            move || Program::compile(&code),
            move |program, json| filter_one(program, form, &mut output, json),
        )
    }

    /// Like [`Filter::compile`], in a process whose memory is limited: `program` is this program,
    /// which calls [`filter_main`] there. Outputs go to standard output.
    pub fn compile_confined(program: &Path, code: &str, form: Form) -> Result<Self, String> {
        let (program, code) = (program.to_owned(), code.to_owned());
        Self::in_thread(
            move || Remote::start(&program, &code, form),
            |remote, json| remote.apply(json),
        )
    }

    /// Starts the thread, which applies the result of `start` to each text.
    fn in_thread<T>(
        start: impl FnOnce() -> Result<T, String> + Send + 'static,
        mut apply: impl FnMut(&mut T, &[u8]) -> Result<Flow, Problem> + Send + 'static,
    ) -> Result<Self, String> {
        let (work, mut waiting) = mpsc::channel(WAITING_TEXTS);
        let (outcome, compiled) = std::sync::mpsc::sync_channel(1);
        let body = move || {
            let mut started = match start() {
                Ok(started) => started,
                Err(problem) => return drop(outcome.send(Err(problem))),
            };
            let _ = outcome.send(Ok(()));
            while let Some(Work { json, done }) = waiting.blocking_recv() {
                // The caller may have stopped waiting.
                let _ = done.send(apply(&mut started, &json));
            }
        };
        let thread = thread::Builder::new().name("filter".to_owned());
        thread
            .stack_size(STACK)
            .spawn(body)
            .map_err(|error| format!("cannot start a thread for it: {error}"))?;
        let broken = || Err("it cannot be compiled".to_owned());
        compiled.recv().unwrap_or_else(|_| broken())?;
        Ok(Self { work })
    }

    /// Filters one JSON text; an empty text has no outputs. All outputs are written when this
    /// returns.
    pub async fn apply(&self, json: Vec<u8>) -> Result<Flow, Problem> {
        let (done, wait) = oneshot::channel();
        let gone = |_| Problem::Failed("the filter stopped unexpectedly".to_owned());
        let sent = self.work.send(Work { json, done }).await;
        sent.map_err(|_| Problem::Failed("the filter stopped unexpectedly".to_owned()))?;
        wait.await.map_err(gone)?
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Filter").finish_non_exhaustive()
    }
}

/// Writes the outputs of `program` for one text to `output`.
fn filter_one(
    program: &Program,
    form: Form,
    mut output: impl Write,
    json: &[u8],
) -> Result<Flow, Problem> {
    let flow = program.run(json, |value| form.write(value, &mut output))?;
    output.flush().map_err(Problem::Output)?;
    Ok(flow)
}
