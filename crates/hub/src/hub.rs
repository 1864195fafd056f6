//! The hub itself: who is there, who may see whom, and how a call finds its way.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use jiff::Timestamp;
use pinion_access::{ClipView, Gate, Method, Principal, Scope};
use pinion_clip::logs::{ClipLog, Level, Origin};
use pinion_clip::manifest::nearest;
use pinion_clip::{Aggregate, CallError};
use pinion_status::{Code, Failure};
use tokio::time::{Instant, Sleep};

use crate::endpoint::{Answers, Call, Endpoint, Input, Patience, did_you_mean, failed};
use crate::issuer::{Issuer, Keys};
use crate::limits::Limits;
use crate::provider::Sessions;
use crate::runtime::{Installed, Runtime};
use crate::table::{Conflict, Owner, Route, Table};

/// The name under which the parts of this program are listed.
const BUILTIN: &str = "builtin";
/// The name under which the clips installed here are listed.
pub(crate) const LOCAL: &str = "pinixd";
/// The names that nobody else may go by.
pub(crate) const OWN_NAMES: [&str; 2] = [BUILTIN, LOCAL];

/// What a hub runs besides routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It has clips of its own.
    Full,
    /// It routes for others only.
    HubOnly,
}

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::HubOnly => "hub-only",
        }
    }
}

/// What can be chosen about a hub.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name it tells.
    pub name: String,
    /// The version it tells.
    pub version: String,
    /// What it runs.
    pub mode: Mode,
    /// How long a caller who wants a single answer waits for it, unless it says otherwise.
    pub patience: Option<Duration>,
    /// How long a stream may be silent.
    pub silence: Option<Duration>,
    /// Whether pages of everybody may call; cookies are of no use then.
    pub any_origin: bool,
    /// Whether web pages of remote providers may act for whoever looks at them, as those of clips installed here may.
    pub trusts_provider_pages: bool,
    /// Whose signed tokens are good here, besides those of the hub itself.
    pub issuer: Option<Issuer>,
    /// How much and how long providers may.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "pinion".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            mode: Mode::Full,
            patience: Some(Duration::from_secs(300)),
            silence: Some(Duration::from_secs(300)),
            any_origin: false,
            trusts_provider_pages: false,
            issuer: None,
            limits: Limits::default(),
        }
    }
}

/// A hub.
#[derive(Debug)]
pub struct Hub {
    settings: Settings,
    started: Timestamp,
    table: Arc<Table>,
    gate: Gate,
    /// The keys of whoever signs tokens that are good here.
    keys: Option<Keys>,
    log: Arc<ClipLog>,
    runtime: OnceLock<Arc<Runtime>>,
    limits: Arc<Limits>,
    sessions: Sessions,
}

impl Hub {
    /// A hub without clips, behind `gate`, that says in `log` what happens.
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
        })
    }

    /// What was chosen about it.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Since when it is there.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// Who answers to which alias.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Who may come in.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Makes the gate know a token that somebody signed whom the hub trusts. Others it knows already, or never will.
    pub(crate) async fn recognise(&self, token: Option<&str>) -> Result<(), Failure> {
        match (&self.keys, token) {
            (Some(keys), Some(token)) => keys.recognise(self.gate.store(), token).await,
            _ => Ok(()),
        }
    }

    /// What happens in it.
    pub fn log(&self) -> &Arc<ClipLog> {
        &self.log
    }

    /// The clips installed here, if it has any of its own.
    pub fn runtime(&self) -> Option<&Arc<Runtime>> {
        self.runtime.get()
    }

    /// The providers and runtimes that are connected.
    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(crate) fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    pub(crate) fn say(&self, level: Level, message: &str) {
        self.log.push(level, Origin::System, message);
    }

    /// Gives the hub clips of its own. Only the first runtime counts.
    pub fn attach(&self, runtime: Arc<Runtime>) -> Result<(), Failure> {
        let routes = runtime.all().into_iter().map(local_route).collect();
        self.table.insert(routes, Conflict::Refuse)?;
        let _ = self.runtime.set(runtime);
        Ok(())
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

    /// The route that `name` means, if there is one and `caller` may use `method` on it. What it may not see is not there.
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

    /// Adds the name of a clip that `caller` sees and probably meant.
    fn with_nearest(&self, caller: &Principal, name: &str, failure: Failure) -> Failure {
        let visible = self.visible(caller);
        let hint = did_you_mean(nearest(name, visible.iter().map(|route| &route.alias)));
        Failure::new(failure.code, format!("{}{hint}", failure.message))
    }

    /// All that `caller` may see, by alias.
    pub fn visible(&self, caller: &Principal) -> Vec<Arc<Route>> {
        self.table.routes(|route| sees(caller, route))
    }

    /// Calls a clip. Returns at once; all that can go wrong is an item of the answer.
    pub fn invoke(&self, target: &str, mut call: Call) -> Answers {
        let route = match self.find(&call.caller, Method::Invoke, target) {
            Ok(route) => route,
            Err(failure) => return failed(CallError::Unanswered(failure)),
        };
        if let Err(failure) = route.endpoint.check(&call) {
            return failed(CallError::Unanswered(failure));
        }
        let Some(silence) = self.settings.silence else {
            return route.endpoint.clone().invoke(call);
        };
        let life = Arc::new(Life::default());
        let felt = life.clone();
        let alive = |more: Input| -> Input { Box::pin(more.inspect(move |_| felt.sign())) };
        call.more = call.more.map(alive);
        let answers = route.endpoint.clone().invoke(call);
        Box::pin(Patient::new(answers, silence, life))
    }

    /// Calls a clip and waits for its whole answer, as one output.
    pub async fn ask(&self, target: &str, call: Call) -> Result<bytes::Bytes, Failure> {
        let answer = self.answer(target, call).await;
        answer.map_err(CallError::into_failure)
    }

    /// The same, for those who want to know whether it was the clip that failed.
    pub(crate) async fn answer(
        &self,
        target: &str,
        mut call: Call,
    ) -> Result<bytes::Bytes, CallError> {
        if let (None, Some(patience)) = (call.deadline, self.settings.patience) {
            call.deadline = Some(Instant::now() + patience);
            call.patience = Patience::Ours;
        }
        let mut answers = self.invoke(target, call);
        let mut whole = Aggregate::default();
        while let Some(output) = answers.next().await {
            whole.push(output?).map_err(CallError::Unanswered)?;
        }
        Ok(whole.finish())
    }
}

/// The scope in a record; the local user has none.
fn scope_of(owner: &str) -> Option<Scope> {
    owner.parse().ok()
}

/// The route of a clip installed here.
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

/// A route as rights see it.
pub(crate) fn view(route: &Route) -> ClipView<'_> {
    ClipView {
        alias: &route.alias,
        owner: route.scope.as_ref(),
        shared: false,
    }
}

/// When the caller last sent something, if it has since its call began.
#[derive(Debug, Default)]
struct Life(Mutex<Option<Instant>>);

impl Life {
    fn sign(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn last(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that fails when nothing comes for too long, from neither side.
struct Patient {
    answers: Answers,
    silence: Duration,
    alarm: Pin<Box<Sleep>>,
    life: Arc<Life>,
    over: bool,
}

impl Patient {
    fn new(answers: Answers, silence: Duration, life: Arc<Life>) -> Self {
        Self {
            answers,
            silence,
            life,
            alarm: Box::pin(tokio::time::sleep(silence)),
            over: false,
        }
    }
}

impl Stream for Patient {
    type Item = Result<bytes::Bytes, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(item) = self.answers.as_mut().poll_next(context) {
            let next = Instant::now() + self.silence;
            self.alarm.as_mut().reset(next);
            return Poll::Ready(item);
        }
        loop {
            if self.alarm.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let heard = self.life.last().map(|last| last + self.silence);
            match heard {
                Some(until) if until > Instant::now() => self.alarm.as_mut().reset(until),
                _ => break,
            }
        }
        self.over = true;
        self.answers = Box::pin(futures_util::stream::empty());
        let message = format!("nothing came for {} s", self.silence.as_secs());
        let failure = Failure::new(Code::DeadlineExceeded, message);
        Poll::Ready(Some(Err(CallError::Unanswered(failure))))
    }
}
