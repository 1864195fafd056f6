//! Calls that are due, and their results.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use croner::Cron;
use jiff::{Timestamp, Zoned};
use pinion_clip::logs::Level;
use pinion_hub::HubCall;
use pinion_sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::clip::Scheduler;
use crate::clock::{InFlightGuard, Timed};
use crate::cron;
use crate::history::Execution;
use crate::request::Request;
use crate::schedule::Schedule;

/// The longest time of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// The next time of each schedule; `None` if its cron line is invalid.
#[derive(Debug, Default)]
pub(crate) struct Plan(HashMap<String, Planned>);

#[derive(Debug)]
struct Planned {
    line: String,
    due: Option<(Cron, Timestamp)>,
}

impl Timed for Scheduler {
    /// Starts the calls that are due.
    fn tick(self: &Arc<Self>, now: &Zoned) -> Option<Timestamp> {
        let schedules: Vec<Schedule> = self.all().into_iter().filter(|it| it.enabled).collect();
        let mut plan = lock(&self.plan);
        let known: HashSet<&str> = schedules.iter().map(|it| it.id.as_str()).collect();
        plan.0.retain(|id, _| known.contains(id.as_str()));
        let mut first = None;
        for schedule in &schedules {
            let planned = plan.0.entry(schedule.id.clone());
            let planned = planned.or_insert_with(|| self.plan(schedule, now));
            if planned.line != schedule.cron {
                *planned = self.plan(schedule, now);
            }
            if let Some((cron, at)) = &planned.due
                && *at <= now.timestamp()
            {
                self.start(schedule);
                planned.due = cron::next(cron, now).map(|next| (cron.clone(), next));
            }
            if let Some((_, at)) = planned.due {
                first = first.map_or(Some(at), |first: Timestamp| Some(first.min(at)));
            }
        }
        first
    }

    fn woken(&self) -> &Arc<Notify> {
        &self.woken
    }
}

impl Scheduler {
    fn plan(&self, schedule: &Schedule, now: &Zoned) -> Planned {
        let due = match cron::parse(&schedule.cron) {
            Ok(cron) => cron::next(&cron, now).map(|next| (cron, next)),
            Err(failure) => {
                self.log(Level::Warn, &format!("schedule {}: {failure}", schedule.id));
                None
            }
        };
        Planned {
            line: schedule.cron.clone(),
            due,
        }
    }

    /// Returns the next time of a schedule.
    pub fn next_run(&self, schedule: &Schedule) -> Option<Timestamp> {
        if !schedule.enabled {
            return None;
        }
        let cron = cron::parse(&schedule.cron).ok()?;
        cron::next(&cron, &pinion_text::zone::now())
    }

    /// Starts a call in the background; `false` if the previous one is still running.
    pub fn start(self: &Arc<Self>, schedule: &Schedule) -> bool {
        let id = &schedule.id;
        let Some(guard) = self.in_flight.begin(id) else {
            let message =
                format!("schedule {id}: skipped, because the previous call is still running");
            self.log(Level::Warn, &message);
            return false;
        };
        tokio::spawn(Arc::clone(self).call(schedule.clone(), guard));
        true
    }

    async fn call(self: Arc<Self>, schedule: Schedule, guard: InFlightGuard) {
        let Some(hub) = self.hub.upgrade() else {
            return;
        };
        let id = schedule.id.clone();
        let input = Request::input(&schedule.input);
        let mut call = HubCall::new(
            schedule.caller(),
            schedule.command.clone(),
            input.to_owned(),
        );
        call.deadline = Some(Instant::now() + CALL_TIMEOUT);
        let started = Timestamp::now();
        let answer = hub.ask(&schedule.clip, call).await;
        if let Err(failure) = &answer {
            self.log(Level::Warn, &format!("schedule {id}: {failure}"));
        }
        let result = match answer {
            Ok(output) => Ok(String::from_utf8_lossy(&output).into_owned()),
            Err(failure) => Err(failure.to_string()),
        };
        let execution = Execution::ended(started, result);
        let kept = tokio::task::spawn_blocking(move || {
            let kept = self.history.add(&id, &execution);
            if let Err(failure) = kept {
                let message = format!("schedule {id}: its result was not stored: {failure}");
                self.log(Level::Warn, &message);
            }
            drop(guard);
        });
        // If no thread is available, the program is ending.
        let _ = kept.await;
    }
}
