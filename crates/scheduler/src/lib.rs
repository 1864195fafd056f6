//! Scheduled calls of clips: the built-in clip `scheduler` of a hub.
//!
//! | command | input | output |
//! |---|---|---|
//! | `list` | `{}` | `{"schedules":[{id, clip, command, cron, input?, description?, enabled, next_run?, last_success?, last_error?}]}` |
//! | `add` | `{id, clip, command, cron, input?, description?}` | `{"id":…,"status":"created"}` |
//! | `remove`, `pause`, `resume`, `run` | `{id}` | `{"id":…,"status":"removed"}`, `"paused"`, `"resumed"`, `"triggered"` |
//! | `history` | `{id}` | `{"executions":[{started_at, finished_at, duration_ms, success, output?, error?}]}`, newest first |
//!
//! Users add schedules (`store`). Clips declare schedules in their manifests; these have the id
//! `clip:<alias>:<command>` and disappear with the clip. When a schedule is due (`clock`, `calls`),
//! the scheduler calls its clip like any other caller, for at most five minutes, and stores the
//! result (`history`). It skips a call while the previous one is still running, and does not catch
//! up on calls missed while the hub was down. The hub decides permissions: a schedule sees what the
//! user who added it sees.
//!
//! Other timed work uses two parts of this crate: [`run_clock`] starts it on time, and [`When`]
//! parses times.

mod calls;
mod clip;
mod clock;
mod cron;
mod history;
mod request;
mod schedule;
mod store;
mod when;

use std::path::Path;
use std::sync::Arc;

use pinion_hub::{Endpoint, Hub};
use pinion_status::Failure;

pub use self::clock::{InFlight, InFlightGuard, Timed, run_clock};
pub use self::when::{Recurrence, When};

/// The alias of the scheduler.
pub const ALIAS: &str = "scheduler";

/// Creates the scheduler of `hub`, with its files in `directory`. Its clock starts at once and ends
/// with the hub.
///
/// Call it within a runtime.
pub fn scheduler(hub: &Arc<Hub>, directory: &Path) -> Result<Arc<dyn Endpoint>, Failure> {
    let scheduler = Arc::new(clip::Scheduler::open(hub, directory)?);
    run_clock(hub, &scheduler);
    Ok(scheduler)
}
