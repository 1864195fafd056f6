//! The [`Hub`]: its parts, the visibility of clips, and the routing of calls.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use jiff::Timestamp;
use pinion_access::{ClipView, Gate, Method, Principal, Scope};
use pinion_clip::logs::{ClipLog, Level, Origin};
use pinion_clip::{Aggregate, CallError};
use pinion_status::{Code, Failure};
use pinion_text::nearest;
use tokio::time::{Instant, Sleep};

use crate::call_record;
use crate::endpoint::{Answers, DeadlineOrigin, Endpoint, HubCall, Input, did_you_mean, failed};
use crate::issuer::{Issuer, Keys};
use crate::limits::Limits;
use crate::neighbours::Neighbours;
use crate::provider::Sessions;
use crate::runtime::{Installed, Runtime};
use crate::table::{Conflict, Owner, Route, Table};

/// The provider name under which the parts of this program are listed.
const BUILTIN: &str = "builtin";
/// The provider name under which the clips installed here are listed.
pub(crate) const LOCAL: &str = "pinixd";
/// Provider names that the hub reserves for itself.
pub(crate) const OWN_NAMES: [&str; 2] = [BUILTIN, LOCAL];

/// Distinguishes a hub that runs clips from one that only routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It runs the clips installed in its directory.
    Full,
    /// It only routes calls to connected providers.
    HubOnly,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::HubOnly => "hub-only",
        }
    }
}

/// The configuration of a hub.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name that `HubInfo` reports.
    pub name: String,
    /// The version that `HubInfo` reports.
    pub version: String,
    pub mode: Mode,
    /// The time limit of a call with a single answer whose caller sets none; `None` for no limit.
    pub call_timeout: Option<Duration>,
    /// The longest time without output or input on a stream; `None` for no limit.
    pub idle_timeout: Option<Duration>,
    /// Web pages of every origin may call the hub. Cookies are then not accepted from other origins.
    pub any_origin: bool,
    /// Web pages of remote providers may act with the rights of the person who opens them, as those of clips installed
    /// here may.
    pub trusts_provider_pages: bool,
    /// The issuer whose signed tokens are accepted besides the hub's own.
    pub issuer: Option<Issuer>,
    /// The limits of providers and runtimes.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "pinion".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            mode: Mode::Full,
            call_timeout: Some(Duration::from_secs(300)),
            idle_timeout: Some(Duration::from_secs(300)),
            any_origin: false,
            trusts_provider_pages: false,
            issuer: None,
            limits: Limits::default(),
        }
    }
}

/// A hub with its routing table, its token gate and its connected peers.
#[derive(Debug)]
pub struct Hub {
    settings: Settings,
    started: Timestamp,
    table: Arc<Table>,
    gate: Gate,
    /// The keys that verify tokens of [`Settings::issuer`].
    keys: Option<Keys>,
    log: Arc<ClipLog>,
    runtime: OnceLock<Arc<Runtime>>,
    limits: Arc<Limits>,
    sessions: Sessions,
    /// The other hubs of the cluster that this hub belongs to.
    neighbours: OnceLock<Arc<dyn Neighbours>>,
    is_stopping: AtomicBool,
}

impl Hub {
    /// Creates a hub without clips. `gate` authenticates callers; the hub writes its events to `log`.
    pub fn new(settings: Settings, gate: Gate, log: Arc<ClipLog>) -> Arc<Self> {
        Arc::new(Self {
            limits: Arc::new(settings.limits.clone()),
            sessions: Sessions::default(),
            keys: settings
                .issuer
                .clone()
                .map(|issuer| Keys::new(issuer, log.clone())),
            settings,
            started: Timestamp::now(),
            table: Arc::default(),
            gate,
            log,
            runtime: OnceLock::new(),
            neighbours: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
        })
    }

    /// Reports whether the hub has begun to stop.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Marks the hub as stopping.
    pub(crate) fn begin_stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The time at which the hub was created.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// The routing table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The gate that authenticates callers.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Enters a token that the trusted issuer signed in the gate's store. Any other token is left for the gate to
    /// judge.
    pub(crate) async fn recognise(&self, token: Option<&str>) -> Result<(), Failure> {
        match (&self.keys, token) {
            (Some(keys), Some(token)) => keys.recognise(self.gate.store(), token).await,
            _ => Ok(()),
        }
    }

    /// The hub's own log.
    pub fn log(&self) -> &Arc<ClipLog> {
        &self.log
    }

    /// The clips installed here; `None` before [`Self::attach`] and on a hub that only routes.
    pub fn runtime(&self) -> Option<&Arc<Runtime>> {
        self.runtime.get()
    }

    pub(crate) fn neighbours_cell(&self) -> &OnceLock<Arc<dyn Neighbours>> {
        &self.neighbours
    }

    /// The providers and runtimes that are connected.
    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(crate) fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    pub fn write_log(&self, level: Level, message: &str) {
        self.log.push(level, Origin::System, message);
    }

    /// Adds the clips of `runtime` to the routing table. Only the first runtime is attached.
    pub fn attach(&self, runtime: Arc<Runtime>) -> Result<(), Failure> {
        let routes = runtime.all().into_iter().map(local_route).collect();
        self.table.insert(routes, Conflict::Refuse)?;
        let _ = self.runtime.set(runtime);
        Ok(())
    }

    /// Adds a part of this program that the hub also runs without: a failure is written to the log.
    pub fn add_optional_builtin(&self, alias: &str, endpoint: Result<Arc<dyn Endpoint>, Failure>) {
        if let Err(failure) = endpoint.and_then(|endpoint| self.add_builtin(alias, endpoint)) {
            self.write_log(Level::Error, &format!("there is no {alias}: {failure}"));
        }
    }

    /// Adds a part of this program under an alias.
    pub fn add_builtin(&self, alias: &str, endpoint: Arc<dyn Endpoint>) -> Result<(), Failure> {
        let route = Route {
            alias: alias.to_owned(),
            owner: Owner::Builtin,
            provider: BUILTIN.into(),
            scope: None,
            endpoint,
        };
        self.table.insert(vec![route], Conflict::Refuse).map(drop)
    }

    /// Finds the route that `name` refers to and on which `caller` may use `method`. A clip that `caller` may not see
    /// is reported as not found.
    pub fn find(
        &self,
        caller: &Principal,
        method: Method,
        name: &str,
    ) -> Result<Arc<Route>, Failure> {
        let found = match self
            .table
            .resolve(name, |scope, alias| caller.sees(scope, alias, false))
        {
            Ok(route) => Some(route),
            Err(failure) if failure.code == Code::NotFound => self.table.get(name),
            Err(failure) => return Err(failure),
        };
        let found = caller.find(method, name, found, |route| view(route));
        found.map_err(|failure| match failure.code {
            Code::NotFound => self.with_nearest(caller, name, failure),
            _ => failure,
        })
    }

    /// Adds a suggestion to `failure`: the visible clip whose name is nearest to `name`.
    fn with_nearest(&self, caller: &Principal, name: &str, failure: Failure) -> Failure {
        let visible = self.visible(caller);
        let hint = did_you_mean(nearest(
            name,
            visible.iter().map(|route| route.alias.as_str()),
        ));
        Failure::new(failure.code, format!("{}{hint}", failure.message))
    }

    /// Returns the routes that `caller` may see, sorted by alias.
    pub fn visible(&self, caller: &Principal) -> Vec<Arc<Route>> {
        self.table.routes(|route| sees(caller, route))
    }

    /// Calls a clip. Returns at once; every failure is an item of the answer.
    pub fn invoke(&self, target: &str, call: HubCall) -> Answers {
        let span = call_record::span(target, &call.command, call.traceparent.as_deref());
        let (answers, is_known) = span.in_scope(|| match self.route_of(target, &call) {
            Ok(route) => (self.invoke_route(&route, call), true),
            Err(failure) => (failed(CallError::Unanswered(failure)), false),
        });
        call_record::logged(span, answers, is_known)
    }

    /// Returns the route of a call that its endpoint accepts.
    fn route_of(&self, target: &str, call: &HubCall) -> Result<Arc<Route>, Failure> {
        let route = self.find(&call.caller, Method::Invoke, target)?;
        route.endpoint.check(call)?;
        Ok(route)
    }

    /// Calls the clip of a route on which the caller may call.
    pub(crate) fn call_route(&self, route: &Route, call: HubCall) -> Answers {
        match route.endpoint.check(&call) {
            Ok(()) => self.invoke_route(route, call),
            Err(failure) => failed(CallError::Unanswered(failure)),
        }
    }

    fn invoke_route(&self, route: &Route, mut call: HubCall) -> Answers {
        let Some(idle_timeout) = self.settings.idle_timeout else {
            return route.endpoint.clone().invoke(call);
        };
        let last_input = Arc::new(LastInput::default());
        let seen = last_input.clone();
        let alive = |more: Input| -> Input { Box::pin(more.inspect(move |_| seen.touch())) };
        call.more = call.more.map(alive);
        let answers = route.endpoint.clone().invoke(call);
        Box::pin(IdleTimeout::new(answers, idle_timeout, last_input))
    }

    /// Calls a clip and waits for its complete answer, merged into one output.
    pub async fn ask(&self, target: &str, call: HubCall) -> Result<bytes::Bytes, Failure> {
        let answer = self.answer(target, call).await;
        answer.map_err(CallError::into_failure)
    }

    /// Like [`Self::ask`], but the error distinguishes failures that the clip reported from those of the hub.
    pub(crate) async fn answer(
        &self,
        target: &str,
        mut call: HubCall,
    ) -> Result<bytes::Bytes, CallError> {
        if let (None, Some(call_timeout)) = (call.deadline, self.settings.call_timeout) {
            call.deadline = Some(Instant::now() + call_timeout);
            call.deadline_origin = DeadlineOrigin::Hub;
        }
        let mut answers = self.invoke(target, call);
        let mut whole = Aggregate::default();
        while let Some(output) = answers.next().await {
            whole.push(output?).map_err(CallError::Unanswered)?;
        }
        Ok(whole.finish())
    }
}

/// Parses the owner of an installation record. `None` if the local user owns the clip.
fn scope_of(owner: &str) -> Option<Scope> {
    owner.parse().ok()
}

/// Builds the routing table's row for a clip installed here.
pub(crate) fn local_route(installed: Arc<Installed>) -> Route {
    let record = installed.record();
    Route {
        alias: record.name.clone(),
        owner: Owner::Local,
        provider: LOCAL.into(),
        scope: scope_of(&record.owner),
        endpoint: installed,
    }
}

fn sees(caller: &Principal, route: &Route) -> bool {
    caller.sees(route.scope.as_ref(), &route.alias, false)
}

/// The properties of a route that access rights depend on.
pub(crate) fn view(route: &Route) -> ClipView<'_> {
    ClipView {
        alias: &route.alias,
        owner: route.scope.as_ref(),
        shared: false,
    }
}

/// The time of the caller's latest input; `None` if it has sent none since the call began.
#[derive(Debug, Default)]
struct LastInput(Mutex<Option<Instant>>);

impl LastInput {
    fn touch(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn last(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that fails once neither the clip nor the caller has sent anything for `idle_timeout`.
struct IdleTimeout {
    answers: Answers,
    idle_timeout: Duration,
    timer: Pin<Box<Sleep>>,
    last_input: Arc<LastInput>,
    finished: bool,
}

impl IdleTimeout {
    fn new(answers: Answers, idle_timeout: Duration, last_input: Arc<LastInput>) -> Self {
        Self {
            answers,
            idle_timeout,
            last_input,
            timer: Box::pin(tokio::time::sleep(idle_timeout)),
            finished: false,
        }
    }
}

impl Stream for IdleTimeout {
    type Item = Result<bytes::Bytes, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.finished {
            return Poll::Ready(None);
        }
        if let Poll::Ready(item) = self.answers.as_mut().poll_next(context) {
            let next = Instant::now() + self.idle_timeout;
            self.timer.as_mut().reset(next);
            return Poll::Ready(item);
        }
        loop {
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let active_until = self.last_input.last().map(|last| last + self.idle_timeout);
            match active_until {
                Some(until) if until > Instant::now() => self.timer.as_mut().reset(until),
                _ => break,
            }
        }
        self.finished = true;
        self.answers = Box::pin(futures_util::stream::empty());
        let message = format!("no output or input for {} s", self.idle_timeout.as_secs());
        let failure = Failure::new(Code::DeadlineExceeded, message);
        Poll::Ready(Some(Err(CallError::Unanswered(failure))))
    }
}
