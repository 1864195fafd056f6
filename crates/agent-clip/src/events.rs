//! Scheduled prompts to agents: a small record each, on disk and in memory.
//!
//! An event is `active` until it is paused or cancelled, or was `once` and has run: then it is `done`. `next_run_at` is
//! the time at which an active event is due. It is removed when the run starts, so that a run during which the hub is
//! killed is not started again.

mod calls;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use pinion_access::{Principal, Scope, TokenId};
use pinion_scheduler::{InFlight, InFlightGuard, Recurrence, When};
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::record_file::{self, moment, read, replace};
use super::runs::MAX_EVENT_RUNS;
use super::topics::sees;

/// Maximum number of events. At the limit, a new event replaces one that is cancelled or done.
const MOST: usize = 1000;
/// Delay after which a `once` event that was missed is cancelled instead of run.
const LATEST: SignedDuration = SignedDuration::from_hours(24);

/// A scheduled prompt to an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Event {
    pub id: String,
    pub agent_id: String,
    /// The topic that receives the prompt; each run creates a new topic if this is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: Recurrence,
    /// The time of the event, in the form the caller wrote.
    pub schedule: String,
    /// The name of a time zone; empty for the machine's.
    #[serde(default)]
    pub timezone: String,
    pub prompt: String,
    pub status: Status,
    #[serde(default, with = "moment", skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<Timestamp>,
    #[serde(default, with = "moment", skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<Timestamp>,
    /// The topic of the last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_topic_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_id: Option<String>,
    /// The reason why the last run failed or did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The creator. Only the creator and the hub's owner see the event.
    pub owner: String,
    /// The scope that owns the clip that created the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    pub created_at: String,
    pub updated_at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Active,
    Paused,
    Cancelled,
    /// A `once` event that has run.
    Done,
}

impl Event {
    fn is_over(&self) -> bool {
        matches!(self.status, Status::Cancelled | Status::Done)
    }

    /// Returns the key under which runs of events exclude each other: the topic, or the event if it has no topic.
    fn place(&self) -> &str {
        self.topic_id.as_deref().unwrap_or(&self.id)
    }

    /// Returns the principal that the event runs as: its creator, with the permissions of that name.
    fn caller(&self) -> Principal {
        if self.owner == Principal::Super.to_string() {
            return Principal::Super;
        }
        if let Some(alias) = self.owner.strip_prefix("clip:") {
            return Principal::Clip {
                alias: alias.into(),
                owner: self.scope.clone(),
            };
        }
        match self.owner.parse() {
            Ok(scope) => Principal::Hub {
                scope,
                manage: false,
                id: TokenId::from("event"),
            },
            // An unreadable scope gets no permissions.
            Err(_) => Principal::Anonymous,
        }
    }

    fn when(&self) -> Result<When, Failure> {
        When::read(self.kind, &self.schedule, &self.timezone)
    }

    /// Sets the next due time. Fails if the event is active and its schedule is in the past.
    fn plan(&mut self, now: Timestamp) -> Result<(), Failure> {
        self.next_run_at = None;
        let when = self.when()?;
        if self.status == Status::Active {
            self.next_run_at = when.next(now);
            if self.next_run_at.is_none() {
                return Err(Failure::invalid(format!(
                    "schedule is {:?}, which has passed: it is {}. Give one that is to come",
                    self.schedule,
                    record_file::stamp(now)
                )));
            }
        }
        Ok(())
    }

    /// Updates the event after a restart of the hub: a missed daily time waits for the next day, a missed `once` event
    /// is still due, and a `once` event whose run had started is done.
    fn wake(&mut self, now: Timestamp) {
        match (self.status, self.kind) {
            (Status::Active, Recurrence::Daily) => {
                if let Err(failure) = self.plan(now) {
                    self.last_error = Some(failure.message.to_string());
                }
            }
            (Status::Active, Recurrence::Once) if self.next_run_at.is_none() => {
                self.status = Status::Done;
                self.last_error = Some("the hub ended before the run did".into());
            }
            _ => {}
        }
    }

    /// Removes the due time and, for a daily event, sets the next one. Returns whether the event runs.
    fn begin(&mut self, at: Timestamp, now: Timestamp) -> bool {
        self.next_run_at = None;
        match self.kind {
            Recurrence::Once if now.duration_since(at) > LATEST => {
                self.status = Status::Cancelled;
                let at = record_file::stamp(at);
                self.last_error = Some(format!("missed: no hub ran at {at} or on the day after"));
                return false;
            }
            Recurrence::Once => {}
            // The schedule was valid when the event was created; one that does not parse any more is not due again.
            Recurrence::Daily => {
                self.next_run_at = self.when().ok().and_then(|when| when.next(now))
            }
        }
        self.last_run_at = Some(now);
        (self.last_topic_id, self.last_run_id, self.last_error) = (None, None, None);
        true
    }

    /// Records the end of the event's run.
    fn end(&mut self, error: Option<String>) {
        self.last_error = error;
        let is_over = self.kind == Recurrence::Once && self.next_run_at.is_none();
        if is_over && self.status == Status::Active {
            self.status = Status::Done;
        }
    }
}

#[derive(Debug)]
pub(super) struct Events {
    directory: PathBuf,
    /// The content of the event files, in order of creation.
    events: Mutex<Vec<Event>>,
    /// Runs in progress, by [`Event::place`].
    going: InFlight,
    /// Notified when an event has changed or a run has ended.
    woken: Arc<Notify>,
}

impl Events {
    /// Reads the events in `directory`. Returns the failures of files that it skipped.
    pub fn open(directory: &Path) -> Result<(Self, Vec<Failure>), Failure> {
        let directory = directory.join("events");
        let failed = |error| Failure::io(directory.display(), &error);
        std::fs::create_dir_all(&directory).map_err(failed)?;
        let (mut events, mut left_out) = (Vec::new(), Vec::new());
        let now = Timestamp::now();
        for entry in std::fs::read_dir(&directory).map_err(failed)?.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read::<Event>(&path) {
                Ok(Some(mut event)) => {
                    event.wake(now);
                    events.push(event);
                }
                Ok(None) => {}
                Err(failure) => left_out.push(failure),
            }
        }
        events.sort_by(|one, other| {
            let by_age = one.created_at.cmp(&other.created_at);
            by_age.then_with(|| one.id.cmp(&other.id))
        });
        let events = Self {
            directory,
            events: Mutex::new(events),
            going: InFlight::default(),
            woken: Arc::default(),
        };
        Ok((events, left_out))
    }

    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }

    fn remove(&self, id: &str) -> Result<(), Failure> {
        let file = self.file(id);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::io(file.display(), &error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the events that `caller` may see, in order of creation.
    pub fn all(&self, caller: &Principal) -> Vec<Event> {
        let events = self.events();
        let seen = events.iter().filter(|event| sees(caller, &event.owner));
        seen.cloned().collect()
    }

    /// Returns the event of this id, if `caller` may see it.
    pub fn get(&self, caller: &Principal, id: &str) -> Result<Event, Failure> {
        let mut seen = self.all(caller).into_iter();
        let found = seen.find(|event| event.id == id);
        found.ok_or_else(|| unknown(id))
    }

    /// Stores a new event. Fails if `MOST` events exist and none of them is cancelled or done.
    fn add(&self, event: Event) -> Result<Event, Failure> {
        let mut events = self.events();
        if events.len() >= MOST {
            let Some(over) = events.iter().position(Event::is_over) else {
                let message = format!("there are {MOST} events already; cancel one");
                return Err(Failure::new(Code::ResourceExhausted, message));
            };
            self.remove(&events[over].id)?;
            events.remove(over);
        }
        replace(&self.file(&event.id), &event)?;
        events.push(event.clone());
        self.woken.notify_one();
        Ok(event)
    }

    /// Changes an event that `caller` may see. Nothing changes if the file cannot be written.
    fn change(
        &self,
        caller: &Principal,
        id: &str,
        change: impl FnOnce(&mut Event) -> Result<(), Failure>,
    ) -> Result<Event, Failure> {
        let mut events = self.events();
        let mut seen = events.iter_mut();
        let known = seen.find(|event| event.id == id && sees(caller, &event.owner));
        let known = known.ok_or_else(|| unknown(id))?;
        let mut changed = known.clone();
        change(&mut changed)?;
        changed.updated_at = record_file::now();
        replace(&self.file(id), &changed)?;
        known.clone_from(&changed);
        self.woken.notify_one();
        Ok(changed)
    }

    /// Changes an event, in memory even if the file cannot be written. Does nothing if the event was removed.
    fn note(&self, id: &str, note: impl FnOnce(&mut Event)) -> Result<(), Failure> {
        let mut events = self.events();
        let Some(event) = events.iter_mut().find(|event| event.id == id) else {
            return Ok(());
        };
        note(event);
        replace(&self.file(id), event)
    }

    /// Removes the events for which `goes` is true.
    pub fn forget(&self, goes: impl Fn(&Event) -> bool) -> Result<(), Failure> {
        let mut events = self.events();
        for event in events.iter().filter(|event| goes(event)) {
            self.remove(&event.id)?;
        }
        events.retain(|event| !goes(event));
        Ok(())
    }

    /// Takes the events that are due, the earliest first, while there is room. Returns them and the next time at which
    /// an event is due.
    ///
    /// An event that waits for another event of its topic, or for room, stays due: the end of a run notifies `woken`.
    fn take_due(&self, now: Timestamp) -> (Vec<Taken>, Option<Timestamp>) {
        let mut events = self.events();
        let mut due: Vec<(Timestamp, &mut Event)> = events
            .iter_mut()
            .filter(|event| event.status == Status::Active)
            .filter_map(|event| Some((event.next_run_at.filter(|at| *at <= now)?, event)))
            .collect();
        due.sort_by_key(|(at, _)| *at);
        let mut taken = Vec::new();
        for (at, event) in due {
            if self.going.count() >= MAX_EVENT_RUNS {
                break;
            }
            if let Some(mark) = self.going.begin(event.place()) {
                let mark = event.begin(at, now).then_some(mark);
                taken.push(Taken {
                    event: event.clone(),
                    mark,
                });
            }
        }
        let times = events.iter().filter_map(|event| event.next_run_at);
        (taken, times.filter(|at| *at > now).min())
    }
}

/// An event that was due and whose due time was removed.
struct Taken {
    event: Event,
    /// Marks the run as in progress; `None` if the event is too late to run.
    mark: Option<InFlightGuard>,
}

fn unknown(id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no event \"{id}\""))
}

#[cfg(test)]
mod tests;
