//! What agents are told by the clock: a small record each, on disk and in memory.
//!
//! An event is `active` until it is paused or cancelled, or was `once` and has run: then it is `done`. `next_run_at` says when an
//! active one is due. It is taken away when the run begins, so what a hub dies in the middle of is not begun again.

mod calls;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use pinion_access::{Principal, Scope, TokenId};
use pinion_scheduler::{InFlight, InFlightGuard, Recurrence, When};
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::keep::{self, moment, read, replace};
use super::runs::MOST_BY_THE_CLOCK;
use super::topics::sees;

/// How many there may be. Those that are over give way to new ones.
const MOST: usize = 1000;
/// How late an event that is called once may be called.
const LATEST: SignedDuration = SignedDuration::from_hours(24);

/// Something an agent is told by the clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Event {
    pub id: String,
    pub agent_id: String,
    /// Where it is said; in a new topic every time if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: Recurrence,
    /// When, as it was written.
    pub schedule: String,
    /// Empty for that of the machine.
    #[serde(default)]
    pub timezone: String,
    pub prompt: String,
    pub status: Status,
    #[serde(default, with = "moment", skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<Timestamp>,
    #[serde(default, with = "moment", skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<Timestamp>,
    /// Where its last run was, and which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_topic_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_id: Option<String>,
    /// Why its last run failed, or did not happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Who made it; nobody else sees it but who owns the hub.
    pub owner: String,
    /// Whose the clip is that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    pub created_at: String,
    pub updated_at: String,
}

/// How an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Active,
    Paused,
    Cancelled,
    /// It was to run once, and has.
    Done,
}

impl Event {
    fn is_over(&self) -> bool {
        matches!(self.status, Status::Cancelled | Status::Done)
    }

    /// What goes on one after the other: all events of a topic.
    fn place(&self) -> &str {
        self.topic_id.as_deref().unwrap_or(&self.id)
    }

    /// In whose name it runs: who made it, with what everybody of that name may do.
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
            // A scope that cannot be read sees nothing.
            Err(_) => Principal::Anonymous,
        }
    }

    fn when(&self) -> Result<When, Failure> {
        When::read(self.kind, &self.schedule, &self.timezone)
    }

    /// Sets when it is due next. One that is active must have a time to come.
    fn plan(&mut self, now: Timestamp) -> Result<(), Failure> {
        self.next_run_at = None;
        let when = self.when()?;
        if self.status == Status::Active {
            self.next_run_at = when.next(now);
            if self.next_run_at.is_none() {
                return Err(Failure::invalid(format!(
                    "schedule is {:?}, which has passed: it is {}. Give one that is to come",
                    self.schedule,
                    keep::stamp(now)
                )));
            }
        }
        Ok(())
    }

    /// What is true after the hub was away: a daily time that was missed waits for the next, a single one is still due.
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

    /// Takes its time; whether it runs.
    fn begin(&mut self, at: Timestamp, now: Timestamp) -> bool {
        self.next_run_at = None;
        match self.kind {
            Recurrence::Once if now.duration_since(at) > LATEST => {
                self.status = Status::Cancelled;
                let at = keep::stamp(at);
                self.last_error = Some(format!("missed: no hub ran at {at} or on the day after"));
                return false;
            }
            Recurrence::Once => {}
            // What cannot be read any more is not due again; it was read when it was made.
            Recurrence::Daily => {
                self.next_run_at = self.when().ok().and_then(|when| when.next(now))
            }
        }
        self.last_run_at = Some(now);
        (self.last_topic_id, self.last_run_id, self.last_error) = (None, None, None);
        true
    }

    /// Notes how its run ended.
    fn end(&mut self, error: Option<String>) {
        self.last_error = error;
        let is_over = self.kind == Recurrence::Once && self.next_run_at.is_none();
        if is_over && self.status == Status::Active {
            self.status = Status::Done;
        }
    }
}

/// All events.
#[derive(Debug)]
pub(super) struct Events {
    directory: PathBuf,
    /// As their files have them, in the order they were made.
    events: Mutex<Vec<Event>>,
    /// What goes on, by [`Event::place`].
    going: InFlight,
    /// Told when there is something new to look at.
    woken: Arc<Notify>,
}

impl Events {
    /// Those in `directory`, where they are kept from now on, and why some are left out.
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

    /// All that `caller` may see, in the order they were made.
    pub fn all(&self, caller: &Principal) -> Vec<Event> {
        let events = self.events();
        let seen = events.iter().filter(|event| sees(caller, &event.owner));
        seen.cloned().collect()
    }

    /// The one of this id, if `caller` may see it.
    pub fn get(&self, caller: &Principal, id: &str) -> Result<Event, Failure> {
        let mut seen = self.all(caller).into_iter();
        let found = seen.find(|event| event.id == id);
        found.ok_or_else(|| unknown(id))
    }

    /// Keeps a new one.
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

    /// Changes one, if `caller` may see it; if the file cannot be written, nothing has changed.
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
        changed.updated_at = keep::now();
        replace(&self.file(id), &changed)?;
        known.clone_from(&changed);
        self.woken.notify_one();
        Ok(changed)
    }

    /// Notes what became of one, in memory also if it cannot be written. One that is gone stays so.
    fn note(&self, id: &str, note: impl FnOnce(&mut Event)) -> Result<(), Failure> {
        let mut events = self.events();
        let Some(event) = events.iter_mut().find(|event| event.id == id) else {
            return Ok(());
        };
        note(event);
        replace(&self.file(id), event)
    }

    /// Takes those out that go with something else.
    pub fn forget(&self, goes: impl Fn(&Event) -> bool) -> Result<(), Failure> {
        let mut events = self.events();
        for event in events.iter().filter(|event| goes(event)) {
            self.remove(&event.id)?;
        }
        events.retain(|event| !goes(event));
        Ok(())
    }

    /// Takes the time of those that are due, the first one first, as far as there is room; and says when the next is.
    ///
    /// Those that wait for another event of their topic, or for room, stay due: whoever ends tells `woken`.
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
            if self.going.count() >= MOST_BY_THE_CLOCK {
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

/// An event whose time was taken.
struct Taken {
    event: Event,
    /// That it goes on; `None` if it comes too late to run.
    mark: Option<InFlightGuard>,
}

fn unknown(id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no event \"{id}\""))
}

#[cfg(test)]
mod tests;
