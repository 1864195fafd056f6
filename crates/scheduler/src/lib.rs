//! Calls of clips by the clock: the built-in clip `scheduler` of a hub.
//!
//! | command | input | output |
//! |---|---|---|
//! | `list` | `{}` | `{"schedules":[{id, clip, command, cron, input?, description?, enabled, next_run?, last_success?, last_error?}]}` |
//! | `add` | `{id, clip, command, cron, input?, description?}` | `{"id":…,"status":"created"}` |
//! | `remove`, `pause`, `resume`, `run` | `{id}` | `{"id":…,"status":"removed"}`, `"paused"`, `"resumed"`, `"triggered"` |
//! | `history` | `{id}` | `{"executions":[{started_at, finished_at, duration_ms, success, output?, error?}]}`, the last one first |
//!
//! Users add schedules (`book`); clips declare some in their manifests, which go by `clip:<alias>:<command>` and vanish with
//! them. When one is due (`clock`, `calls`) its clip is called as anybody calls it, for at most five minutes, and what came of it is kept
//! (`history`). A call that still goes on is not made a second time, and what was missed while there was no hub is not made up
//! for. Who may do what is decided by the hub: a schedule sees what whoever added it sees.
//!
//! Others who do something by the clock have it from here: [`keep_time`] looks at it for them, [`When`] reads times.

mod book;
mod calls;
mod clip;
mod clock;
mod cron;
mod history;
mod request;
mod schedule;
mod when;

use std::path::Path;
use std::sync::Arc;

use pinion_hub::{Endpoint, Hub};
use pinion_status::Failure;

pub use self::clock::{Going, Mark, Timed, keep_time};
pub use self::when::{Kind, When};

/// The alias the scheduler goes by.
pub const ALIAS: &str = "scheduler";

/// The scheduler of `hub`, which keeps its files in `directory`. It begins to look at the clock at once, and ends with the hub.
///
/// Must be called within a runtime.
pub fn scheduler(hub: &Arc<Hub>, directory: &Path) -> Result<Arc<dyn Endpoint>, Failure> {
    let scheduler = Arc::new(clip::Scheduler::open(hub, directory)?);
    keep_time(hub, &scheduler);
    Ok(scheduler)
}
