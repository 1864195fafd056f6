//! The scheduler as something that can be called through the hub.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use pinion_access::{Method, Principal};
use pinion_clip::logs::{Level, Origin};
use pinion_clip::manifest::Manifest;
use pinion_clip::{CallError, Snapshot};
use pinion_hub::{Answers, Call, Endpoint, Hub, failed};
use pinion_status::{Code, Failure};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::ALIAS;
use crate::book::Book;
use crate::calls::Plan;
use crate::clock::Going;
use crate::history::History;
use crate::request::{Request, Wish, manifest};
use crate::schedule::{Schedule, owner_of};

/// The scheduler.
pub(crate) struct Scheduler {
    /// Whose clips are called; it owns us.
    pub hub: Weak<Hub>,
    manifest: Arc<Manifest>,
    book: Book,
    pub history: History,
    pub plan: Mutex<Plan>,
    pub going: Going,
    /// Told when there is something new to look at.
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
            book: Book::open(directory)?,
            history: History::at(directory.join("scheduler.db")),
            plan: Mutex::default(),
            going: Going::default(),
            woken: Arc::default(),
        })
    }

    /// Says in the log of the hub what nobody else is told.
    pub fn say(&self, level: Level, message: &str) {
        if let Some(hub) = self.hub.upgrade() {
            hub.log().push(level, Origin::System, message);
        }
    }

    /// All schedules: those of users, then those that clips declare.
    pub fn all(&self) -> Vec<Schedule> {
        let mut schedules = self.book.all();
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
                    enabled: !self.book.is_paused(&id),
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

    /// Those that `caller` may know of: its own, and those declared by clips it sees.
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

    /// The same, for whoever wants to change it.
    fn find_own(&self, caller: &Principal, id: &str) -> Result<Schedule, Failure> {
        let schedule = self.find(caller, id)?;
        match schedule.belongs_to(caller) {
            true => Ok(schedule),
            false => Err(Failure::new(
                Code::PermissionDenied,
                format!("schedule \"{id}\" belongs to somebody else"),
            )),
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
            Request::Add(wish) => {
                let id = wish.id.clone();
                self.add(caller, wish)?;
                self.woken.notify_one();
                done(&id, "created")
            }
            Request::Remove(id) => {
                let schedule = self.find_own(caller, &id)?;
                if schedule.is_declared() {
                    let message = format!(
                        "schedule \"{id}\" is declared by clip \"{}\" and goes with it; pause it instead",
                        schedule.clip
                    );
                    return Err(Failure::new(Code::FailedPrecondition, message));
                }
                self.book.remove(&id)?;
                self.history.forget(&id)?;
                self.woken.notify_one();
                done(&id, "removed")
            }
            Request::Pause(id) => {
                self.book.enable(&self.find_own(caller, &id)?, false)?;
                self.woken.notify_one();
                done(&id, "paused")
            }
            Request::Resume(id) => {
                self.book.enable(&self.find_own(caller, &id)?, true)?;
                self.woken.notify_one();
                done(&id, "resumed")
            }
            Request::Run(id) => {
                let schedule = self.find_own(caller, &id)?;
                match self.start(&schedule) {
                    true => done(&id, "triggered"),
                    false => Err(Failure::new(
                        Code::FailedPrecondition,
                        format!("the last call of schedule \"{id}\" still goes on"),
                    )),
                }
            }
            Request::History(id) => {
                let schedule = self.find_own(caller, &id)?;
                Ok(json!({"executions": self.history.of(&schedule.id)?}))
            }
        }
    }

    fn add(&self, caller: &Principal, wish: Wish) -> Result<(), Failure> {
        let owner = owner_of(caller).ok_or_else(|| {
            let message = "schedules are added by those who show a token";
            Failure::new(Code::PermissionDenied, message)
        })?;
        let hub = self
            .hub
            .upgrade()
            .ok_or_else(|| Failure::new(Code::Unavailable, "the hub is shutting down"))?;
        let route = hub.find(caller, Method::Invoke, &wish.clip)?;
        let input = Request::input(&wish.input).to_owned();
        let call = Call::new(caller.clone(), wish.command.as_str(), input);
        route.endpoint.check(&call)?;
        let schedule = Schedule {
            id: wish.id,
            clip: wish.clip,
            command: wish.command,
            cron: wish.cron,
            input: wish.input,
            description: wish.description,
            enabled: true,
            owner,
        };
        self.book.add(schedule)
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

    fn invoke(self: Arc<Self>, call: Call) -> Answers {
        let refused = |failure| failed(CallError::Answered(failure));
        if let Principal::Guest | Principal::Anonymous = call.caller {
            let message = format!("the {ALIAS} works for those who show a token");
            return refused(Failure::new(Code::Unauthenticated, message));
        }
        let request = match Request::read(&call.command, &call.input) {
            Ok(request) => request,
            Err(failure) => return refused(failure),
        };
        // Within the runtime, because calls are started; files are read on a thread for that.
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
