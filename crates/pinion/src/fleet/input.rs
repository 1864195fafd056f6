//! What a run is given on standard input: kept as it is, however much it is, and never waited for in silence.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use pinion_fleet::{Failure, Plan, RunDir, Stop, StopReason};
use tokio::sync::oneshot;

use crate::stdin::{FIRST_BYTE, is_readable};

/// After this it is said that we wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the plan has a use for the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// It is waited for.
    Yes,
    /// What is there is taken.
    IfPresent,
}

/// Keeps the input in the directory of the run. Whoever stops the run does not wait for it, and nor does the run's clock, which
/// began at `begun`.
pub(super) async fn keep(
    directory: &RunDir,
    plan: &Plan,
    begun: Instant,
    stop: &Stop,
) -> Result<(), Failure> {
    let wanted = match plan.uses_input() {
        true => Wanted::Yes,
        false => Wanted::IfPresent,
    };
    let path = directory.input();
    // Only a whole input has the name of one, so that nobody goes on with half of it.
    let unfinished = directory.path().join(".input.new");
    let wrong = |error: &io::Error| Failure::io(path.display(), error);
    let file = pinion_files::create_or_empty(&unfinished, 0o666).map_err(|error| wrong(&error))?;
    let (tell, told) = oneshot::channel();
    // A thread of its own: a read that nobody waits for any more ends with the process.
    let reader = std::thread::Builder::new().name("input".into());
    reader
        .spawn(move || drop(tell.send(copy(file, wanted))))
        .map_err(|error| wrong(&error))?;
    let said = async {
        tokio::time::sleep(PATIENCE).await;
        eprintln!("Waiting for the input of the run on standard input …");
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        read = told => match read {
            Ok(read) => read.map_err(|error| wrong(&error))?,
            Err(_) => return Err(wrong(&io::ErrorKind::UnexpectedEof.into())),
        },
        () = stop.stopped() => return Ok(()),
        () = tokio::time::sleep_until((begun + plan.timeout).into()) => {
            stop.set(StopReason::Timeout);
            return Ok(());
        }
        () = said => {}
    }
    pinion_files::rename(&unfinished, &path).map_err(|error| wrong(&error))
}

/// A run whose input never came in full cannot go on.
pub(super) fn check(directory: &RunDir, plan: &Plan) -> Result<(), crate::failure::Failure> {
    match plan.uses_input() && !directory.input().exists() {
        true => Err(crate::failure::Failure::failed(
            "Error: the input of this run never came in full; start it anew with `pinion fleet run`.",
        )),
        false => Ok(()),
    }
}

/// A terminal gives nothing.
fn copy(mut file: File, wanted: Wanted) -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    if stdin.is_terminal() {
        return Ok(());
    }
    if wanted == Wanted::IfPresent && !is_readable(FIRST_BYTE) {
        eprintln!(
            "Note: standard input is open but silent and is not read; nothing in the plan uses it."
        );
        return Ok(());
    }
    io::copy(&mut stdin, &mut file).map(drop)
}
