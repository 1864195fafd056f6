//! Looks at the clock and makes the calls that are due.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use croner::Cron;
use jiff::{Timestamp, Zoned};
use pinion_clip::logs::Level;
use pinion_hub::Call;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clip::Scheduler;
use crate::cron;
use crate::history::Execution;
use crate::schedule::Schedule;

/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(300);
/// The clock is looked at again after this time at the latest: it may have been set, or the machine have slept.
const NAP: Duration = Duration::from_secs(30);

/// When each schedule is due; `None` where its line cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Plan(HashMap<String, Planned>);

#[derive(Debug)]
struct Planned {
    line: String,
    due: Option<(Cron, Timestamp)>,
}

/// Calls that go on.
pub(crate) type Running = Arc<Mutex<HashSet<String>>>;

/// Takes a call off the list of those that go on, however it ends.
struct Mark {
    running: Running,
    id: String,
}

impl Drop for Mark {
    fn drop(&mut self) {
        locked(&self.running).remove(&self.id);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes calls until the scheduler is gone.
pub(crate) async fn run(scheduler: Weak<Scheduler>, mut changes: watch::Receiver<u64>) {
    loop {
        let Some(at_work) = scheduler.upgrade() else {
            return;
        };
        let nap = at_work.make_due_calls(&pinion_zones::now());
        let woken = Arc::clone(&at_work.woken);
        drop(at_work);
        tokio::select! {
            () = tokio::time::sleep(nap) => {}
            () = woken.notified() => {}
            changed = changes.changed() => if changed.is_err() { return },
        }
    }
}

impl Scheduler {
    /// Makes the calls that are due; says when to look again.
    fn make_due_calls(self: &Arc<Self>, now: &Zoned) -> Duration {
        let schedules: Vec<Schedule> = self.all().into_iter().filter(|it| it.enabled).collect();
        let mut plan = locked(&self.plan);
        let known: HashSet<&str> = schedules.iter().map(|it| it.id.as_str()).collect();
        plan.0.retain(|id, _| known.contains(id.as_str()));
        let mut nap = NAP;
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
            if let Some((_, at)) = &planned.due {
                let left = at.duration_since(now.timestamp());
                nap = nap.min(Duration::try_from(left).unwrap_or_default());
            }
        }
        nap
    }

    fn plan(&self, schedule: &Schedule, now: &Zoned) -> Planned {
        let due = match cron::parse(&schedule.cron) {
            Ok(cron) => cron::next(&cron, now).map(|next| (cron, next)),
            Err(failure) => {
                self.say(Level::Warn, &format!("schedule {}: {failure}", schedule.id));
                None
            }
        };
        Planned {
            line: schedule.cron.clone(),
            due,
        }
    }

    /// When a schedule is due next.
    pub fn next_run(&self, schedule: &Schedule) -> Option<Timestamp> {
        if !schedule.enabled {
            return None;
        }
        let cron = cron::parse(&schedule.cron).ok()?;
        cron::next(&cron, &pinion_zones::now())
    }

    /// Makes a call in the background; `false` if the one before still goes on.
    pub fn start(self: &Arc<Self>, schedule: &Schedule) -> bool {
        let id = schedule.id.clone();
        if !locked(&self.running).insert(id.clone()) {
            let message = format!("schedule {id}: left out, because the call before still goes on");
            self.say(Level::Warn, &message);
            return false;
        }
        let mark = Mark {
            running: Arc::clone(&self.running),
            id,
        };
        tokio::spawn(Arc::clone(self).call(schedule.clone(), mark));
        true
    }

    async fn call(self: Arc<Self>, schedule: Schedule, mark: Mark) {
        let Some(hub) = self.hub.upgrade() else {
            return;
        };
        let input = match schedule.input.as_str() {
            "" => "{}",
            text => text,
        };
        let mut call = Call::new(
            schedule.caller(),
            schedule.command.clone(),
            input.to_owned(),
        );
        call.deadline = Some(Instant::now() + LIMIT);
        let started = Timestamp::now();
        let answer = hub.ask(&schedule.clip, call).await;
        if let Err(failure) = &answer {
            self.say(Level::Warn, &format!("schedule {}: {failure}", mark.id));
        }
        let result = match answer {
            Ok(output) => Ok(String::from_utf8_lossy(&output).into_owned()),
            Err(failure) => Err(failure.to_string()),
        };
        let execution = Execution::ended(started, result);
        let kept = tokio::task::spawn_blocking(move || {
            let kept = self.history.add(&mark.id, &execution);
            if let Err(failure) = kept {
                let message = format!("schedule {}: not written down: {failure}", mark.id);
                self.say(Level::Warn, &message);
            }
        });
        // A thread that cannot be had is the end of the program.
        let _ = kept.await;
    }
}
