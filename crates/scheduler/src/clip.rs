//! The built-in clip of the scheduler.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use pinion_access::{Method, Principal};
use pinion_clip::logs::{Level, Origin};
use pinion_clip::manifest::Manifest;
use pinion_clip::{CallError, Snapshot};
use pinion_hub::{Answers, Endpoint, Hub, HubCall, failed, with_whole_input};
use pinion_status::{Code, Failure};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::ALIAS;
use crate::calls::Plan;
use crate::clock::InFlight;
use crate::history::History;
use crate::request::{NewSchedule, Request, manifest};
use crate::schedule::{Schedule, owner_of};
use crate::store::ScheduleStore;

pub(crate) struct Scheduler {
    /// The hub whose clips are called; it owns the scheduler, so the reference is weak.
    pub hub: Weak<Hub>,
    manifest: Arc<Manifest>,
    store: ScheduleStore,
    pub history: History,
    pub plan: Mutex<Plan>,
    pub in_flight: InFlight,
    /// Notified when a schedule changes.
    pub woken: Arc<Notify>,
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl Scheduler {
    pub fn open(hub: &Arc<Hub>, directory: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::io(directory.display(), &error))?;
        Ok(Self {
            hub: Arc::downgrade(hub),
            manifest: Arc::new(manifest()),
            store: ScheduleStore::open(directory)?,
            history: History::at(directory.join("scheduler.db")),
            plan: Mutex::default(),
            in_flight: InFlight::default(),
            woken: Arc::default(),
        })
    }

    /// Writes events that no caller receives to the hub's log.
    pub fn log(&self, level: Level, message: &str) {
        if let Some(hub) = self.hub.upgrade() {
            hub.log().push(level, Origin::System, message);
        }
    }

    /// Returns all schedules: those of users, then those that clips declare.
    pub fn all(&self) -> Vec<Schedule> {
        let mut schedules = self.store.all();
        let Some(hub) = self.hub.upgrade() else {
            return schedules;
        };
        let mut seen = HashSet::new();
        for route in hub.visible(&Principal::Super) {
            for declared in &route.endpoint.snapshot().manifest.schedules {
                let id = Schedule::declared_id(&route.alias, &declared.command);
                if !seen.insert(id.clone()) {
                    continue;
                }
                schedules.push(Schedule {
                    enabled: !self.store.is_paused(&id),
                    id,
                    clip: route.alias.clone(),
                    command: declared.command.clone(),
                    cron: declared.cron.clone(),
                    input: declared.input.clone(),
                    description: declared.description.clone(),
                    owner: route.scope.as_ref().map(|scope| scope.as_str().to_owned()),
                });
            }
        }
        schedules
    }

    /// Returns the schedules visible to `caller`: its own, and those declared by clips it sees.
    fn visible(&self, caller: &Principal) -> Vec<Schedule> {
        let hub = self.hub.upgrade();
        let routes = hub.map(|hub| hub.visible(caller)).unwrap_or_default();
        let clips: HashSet<&str> = routes.iter().map(|route| route.alias.as_str()).collect();
        let mut all = self.all();
        all.retain(|schedule| {
            let of_clip = schedule.is_declared() && clips.contains(schedule.clip.as_str());
            of_clip || schedule.belongs_to(caller)
        });
        all
    }

    fn find(&self, caller: &Principal, id: &str) -> Result<Schedule, Failure> {
        let found = self.visible(caller).into_iter().find(|it| it.id == id);
        found.ok_or_else(|| Failure::new(Code::NotFound, format!("there is no schedule \"{id}\"")))
    }

    /// Finds a schedule that `caller` may change.
    fn find_own(&self, caller: &Principal, id: &str) -> Result<Schedule, Failure> {
        let schedule = self.find(caller, id)?;
        if schedule.belongs_to(caller) {
            Ok(schedule)
        } else {
            Err(Failure::new(
                Code::PermissionDenied,
                format!("schedule \"{id}\" belongs to another user"),
            ))
        }
    }

    fn answer(self: &Arc<Self>, caller: &Principal, request: Request) -> Result<Value, Failure> {
        let done = |id: &str, status: &str| Ok(json!({"id": id, "status": status}));
        match request {
            Request::List => {
                let schedules = self.visible(caller).into_iter();
                let schedules: Result<Vec<Value>, Failure> =
                    schedules.map(|schedule| self.show(&schedule)).collect();
                Ok(json!({"schedules": schedules?}))
            }
            Request::Add(new) => {
                let id = new.id.clone();
                self.add(caller, new)?;
                self.woken.notify_one();
                done(&id, "created")
            }
            Request::Remove(id) => {
                let schedule = self.find_own(caller, &id)?;
                if schedule.is_declared() {
                    let message = format!(
                        "schedule \"{id}\" is declared by clip \"{}\" and is removed with it; pause it instead",
                        schedule.clip
                    );
                    return Err(Failure::new(Code::FailedPrecondition, message));
                }
                self.store.remove(&id)?;
                self.history.forget(&id)?;
                self.woken.notify_one();
                done(&id, "removed")
            }
            Request::Pause(id) => {
                self.store.enable(&self.find_own(caller, &id)?, false)?;
                self.woken.notify_one();
                done(&id, "paused")
            }
            Request::Resume(id) => {
                self.store.enable(&self.find_own(caller, &id)?, true)?;
                self.woken.notify_one();
                done(&id, "resumed")
            }
            Request::Run(id) => {
                let schedule = self.find_own(caller, &id)?;
                if self.start(&schedule) {
                    done(&id, "triggered")
                } else {
                    Err(Failure::new(
                        Code::FailedPrecondition,
                        format!(
                            "the last call of schedule \"{id}\" is still running; wait until it ends"
                        ),
                    ))
                }
            }
            Request::History(id) => {
                let schedule = self.find_own(caller, &id)?;
                Ok(json!({"executions": self.history.of(&schedule.id)?}))
            }
        }
    }

    fn add(&self, caller: &Principal, new: NewSchedule) -> Result<(), Failure> {
        let owner = owner_of(caller).ok_or_else(|| {
            let message = "adding a schedule requires a token";
            Failure::new(Code::PermissionDenied, message)
        })?;
        let hub = self
            .hub
            .upgrade()
            .ok_or_else(|| Failure::new(Code::Unavailable, "the hub is shutting down"))?;
        let route = hub.find(caller, Method::Invoke, &new.clip)?;
        let input = Request::input(&new.input).to_owned();
        let call = HubCall::new(caller.clone(), new.command.as_str(), input);
        route.endpoint.check(&call)?;
        let schedule = Schedule {
            id: new.id,
            clip: new.clip,
            command: new.command,
            cron: new.cron,
            input: new.input,
            description: new.description,
            enabled: true,
            owner,
        };
        self.store.add(schedule)
    }

    fn show(&self, schedule: &Schedule) -> Result<Value, Failure> {
        let mut shown = json!({
            "id": schedule.id,
            "clip": schedule.clip,
            "command": schedule.command,
            "cron": schedule.cron,
            "enabled": schedule.enabled,
        });
        for (name, text) in [
            ("input", &schedule.input),
            ("description", &schedule.description),
        ] {
            if !text.is_empty() {
                shown[name] = text.as_str().into();
            }
        }
        if let Some(next) = self.next_run(schedule) {
            shown["next_run"] = format!("{next:.0}").into();
        }
        let calls = self.history.of(&schedule.id)?;
        if let Some(last) = calls.iter().find(|call| call.success) {
            shown["last_success"] = last.finished_at.as_str().into();
        }
        if let Some(last) = calls.iter().find(|call| !call.success) {
            shown["last_error"] = last.error.clone().into();
        }
        Ok(shown)
    }
}

impl Endpoint for Scheduler {
    fn snapshot(&self) -> Snapshot {
        Snapshot::running(Arc::clone(&self.manifest))
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        if let Principal::Guest | Principal::Anonymous = call.caller {
            let message = format!("the {ALIAS} requires a token");
            let failure = Failure::new(Code::Unauthenticated, message);
            return failed(CallError::Answered(failure));
        }
        with_whole_input(self, call, Self::invoke_whole)
    }
}

impl Scheduler {
    /// Serves a call whose input is complete.
    fn invoke_whole(self: Arc<Self>, call: HubCall) -> Answers {
        let request = match Request::read(&call.command, &call.input) {
            Ok(request) => request,
            Err(failure) => return failed(CallError::Answered(failure)),
        };
        // Calls are started inside the runtime; files are read on a blocking thread.
        let runtime = tokio::runtime::Handle::current();
        Box::pin(futures_util::stream::once(async move {
            let answered = tokio::task::spawn_blocking(move || {
                let _within = runtime.enter();
                self.answer(&call.caller, request)
            });
            let answer = answered.await.unwrap_or_else(|error| {
                let message = format!("the {ALIAS} failed: {error}");
                Err(Failure::new(Code::Internal, message))
            });
            let answer = answer.map(|value| value.to_string().into());
            answer.map_err(CallError::Answered)
        }))
    }
}
