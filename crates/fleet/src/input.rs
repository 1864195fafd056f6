//! The standard input of a run: stored unchanged and without a limit of size. pinion reports when it waits for it.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use pinion_jsonl::stdio::{FIRST_BYTE, is_readable};
use tokio::sync::oneshot;

use crate::{Code, Failure, Plan, RunDir, Stop, StopReason};

/// The time until pinion reports that it waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// The plan's use of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The plan uses it, so pinion waits for it.
    Yes,
    /// The plan does not use it; pinion stores it if it is there.
    IfPresent,
}

/// Stores the input in the directory of the run. A stop of the run and the run's time limit, which began at `begun`,
/// end the wait. `notice` receives sentences for the user.
pub async fn keep_input(
    directory: &RunDir,
    plan: &Plan,
    begun: Instant,
    stop: &Stop,
    notice: fn(&str),
) -> Result<(), Failure> {
    let wanted = if plan.uses_input() {
        Wanted::Yes
    } else {
        Wanted::IfPresent
    };
    let path = directory.input();
    // Only a complete input gets the final name, so that no run continues with half of it.
    let unfinished = directory.path().join(".input.new");
    let wrong = |error: &io::Error| Failure::io(path.display(), error);
    let file = pinion_files::create_or_empty(&unfinished, 0o666).map_err(|error| wrong(&error))?;
    let (tell, told) = oneshot::channel();
    // A separate thread: a read that is no longer needed ends with the process.
    let reader = std::thread::Builder::new().name("input".into());
    reader
        .spawn(move || drop(tell.send(copy(file, wanted, notice))))
        .map_err(|error| wrong(&error))?;
    let said = async {
        tokio::time::sleep(PATIENCE).await;
        notice("Waiting for the input of the run on standard input …");
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

/// Fails for a run whose input never arrived in full, because it cannot continue.
pub fn check_input(directory: &RunDir, plan: &Plan) -> Result<(), Failure> {
    if plan.uses_input() && !directory.input().exists() {
        return Err(Failure::new(
            Code::FailedPrecondition,
            "the input of this run is incomplete. Start a new run with `pinion fleet run`.",
        ));
    }
    Ok(())
}

/// Copies standard input to the file; a terminal provides no input.
fn copy(mut file: File, wanted: Wanted, notice: fn(&str)) -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    if stdin.is_terminal() {
        return Ok(());
    }
    if wanted == Wanted::IfPresent && !is_readable(FIRST_BYTE) {
        notice(
            "Note: standard input is open but silent and is not read; nothing in the plan uses it.",
        );
        return Ok(());
    }
    io::copy(&mut stdin, &mut file).map(drop)
}
