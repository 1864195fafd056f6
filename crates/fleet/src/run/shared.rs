//! What the children of a run have in common.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use pinion_status::Failure;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Host, Observer, Options, Stop, StopReason};
use crate::breaker::Board;
use crate::journal::FleetEvent;
use crate::plan::JUDGE;
use crate::veil::Veil;
use crate::{
    Breakers, Chain, Charge, ChildFailure, ChildPlan, ChildStatus, Choice, Contents, FailureKind,
    Journal, Ledger, Micros, Outcome, Pass, Plan, Report, RunDir, RunState,
};

/// How often a child that waits looks at breakers that others may change.
const LOOK: Duration = Duration::from_secs(1);
/// The largest input that is put into a prompt, in bytes.
const INPUT_LIMIT: u64 = 4 << 30;

/// The run that all children see.
pub(super) struct Shared {
    pub plan: Plan,
    pub directory: RunDir,
    pub working_directory: PathBuf,
    pub host: Arc<dyn Host>,
    pub stop: Stop,
    observers: Vec<Box<dyn Observer>>,
    veil: Veil,
    book: Mutex<Book>,
    /// What of the journal could not be read.
    damage: Vec<String>,
    breakers: Mutex<Board>,
    clock: BreakerClock,
    /// Told when a breaker has changed.
    pub breaker_changed: Notify,
    ledger: Mutex<Ledger>,
    begun: Instant,
    input: OnceLock<Arc<str>>,
}

/// From when breakers count their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerClock {
    /// The start of the run.
    Run,
    /// 1970, as in every other process.
    Wall,
}

/// The journal and what it says.
struct Book {
    journal: Journal,
    state: RunState,
    failed: Option<Failure>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub fn new(options: Options) -> Result<Arc<Self>, Failure> {
        let (journal, Contents { records, damage }) = options.directory.journal()?;
        let state = RunState::from_records(&records);
        let mut ledger = Ledger::new(options.plan.budget);
        for child in &state.children {
            ledger.charge(&child.planned.name, child.cost(), None);
        }
        Ok(Arc::new(Self {
            clock: match options.shared_breakers {
                Some(_) => BreakerClock::Wall,
                None => BreakerClock::Run,
            },
            breakers: Mutex::new(Board::new(options.plan.breaker, options.shared_breakers)),
            breaker_changed: Notify::new(),
            veil: Veil::new(Arc::clone(&options.host), &options.plan),
            plan: options.plan,
            directory: options.directory,
            working_directory: options.working_directory,
            host: options.host,
            stop: options.stop,
            observers: options.observers,
            book: Mutex::new(Book {
                journal,
                state,
                failed: None,
            }),
            damage,
            ledger: Mutex::new(ledger),
            begun: options.begun.into(),
            input: OnceLock::new(),
        }))
    }

    /// Writes an event down, without keys, then tells everybody.
    pub fn tell(&self, mut event: FleetEvent) {
        self.veil.event(&mut event);
        let mut book = lock(&self.book);
        match book.journal.append(event) {
            Ok((record, line)) => {
                book.state.apply(&record);
                for observer in &self.observers {
                    observer.notice(&record, &line, &book.state);
                }
            }
            Err(error) if book.failed.is_none() => {
                let path = self.directory.path().join("events.jsonl");
                book.failed = Some(Failure::io(path.display(), &error));
                // What cannot be written down must not go on.
                self.stop.set(StopReason::Interrupted);
            }
            Err(_) => {}
        }
    }

    /// Tells what of the journal could not be read, once.
    pub fn tell_damage(&self) {
        for message in &self.damage {
            if !self.with_state(|state| state.warnings.contains(message)) {
                self.tell(FleetEvent::Warning {
                    message: message.clone(),
                });
            }
        }
    }

    pub fn with_state<T>(&self, look: impl FnOnce(&RunState) -> T) -> T {
        look(&lock(&self.book).state)
    }

    pub fn journal_failure(&self) -> Option<Failure> {
        let book = lock(&self.book);
        book.failed.clone()
    }

    pub fn is_finished(&self, child: &str) -> bool {
        self.with_state(|state| {
            state
                .child(child)
                .is_some_and(|child| child.status == ChildStatus::Finished)
        })
    }

    /// How many attempts the child has had, in all the life of the run.
    pub fn attempts(&self, child: &str) -> u32 {
        self.with_state(|state| {
            let last = state.child(child).and_then(|child| child.attempts.last());
            last.map_or(0, |attempt| attempt.attempt)
        })
    }

    /// The child is over, for this time.
    pub fn ended(
        &self,
        child: &str,
        outcome: Outcome,
        failure: Option<ChildFailure>,
        result: Option<String>,
        output: Option<Value>,
    ) {
        self.tell(FleetEvent::ChildEnded {
            child: child.to_owned(),
            outcome,
            failure,
            result,
            output,
        });
    }

    /// The run ended before the child began.
    pub fn never_started(&self, child: &str) {
        let failure = self.stop.failure();
        self.ended(child, Outcome::Stopped, Some(failure), None, None);
    }

    /// A child whose task broke is over as well.
    pub fn account_for_the_lost(&self) {
        let lost = self.with_state(|state| {
            let children = state.children.iter().filter(|child| {
                child.planned.name != JUDGE
                    && matches!(child.status, ChildStatus::Waiting | ChildStatus::Running)
            });
            children
                .map(|child| child.planned.name.clone())
                .collect::<Vec<_>>()
        });
        for child in lost {
            let failure = ChildFailure::new(
                FailureKind::Protocol,
                "the fleet lost track of it; this is a fault of ours",
            );
            self.ended(&child, Outcome::Failed, Some(failure), None, None);
        }
    }

    pub fn report(&self) -> Report {
        let judge = self.plan.judge.as_ref().map(|judge| judge.name.as_str());
        let field = self
            .plan
            .verdict
            .as_ref()
            .map(|verdict| verdict.field.as_str());
        self.with_state(|state| Report::new(state, judge, field))
    }

    /// How long the run has been going on.
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How much of its time is left.
    pub fn time_left(&self) -> Duration {
        self.plan.timeout.saturating_sub(self.now())
    }

    /// Ends the run when its time is up.
    pub async fn watch_time(self: Arc<Self>) {
        tokio::time::sleep_until(self.begun + self.plan.timeout).await;
        self.stop.set(StopReason::Timeout);
    }

    /// A child paid. A run whose money is spent is stopped.
    pub fn charge(&self, child: &ChildPlan, cost: Micros) -> (Charge, Micros, Micros) {
        let mut ledger = lock(&self.ledger);
        let charge = ledger.charge(&child.name, cost, child.budget);
        (charge, ledger.of(&child.name), ledger.total())
    }

    /// Whether the child, or the run, has nothing left to spend.
    pub fn is_broke(&self, child: &ChildPlan) -> Option<Charge> {
        let ledger = lock(&self.ledger);
        if ledger.is_spent() {
            return Some(Charge::RunSpent);
        }
        let spent = child
            .budget
            .is_some_and(|limit| ledger.of(&child.name) >= limit);
        spent.then_some(Charge::ChildSpent)
    }

    /// Who may be asked now.
    pub fn choose(&self, chain: &Chain, from: usize) -> Choice {
        self.with_breakers(chain.models(), |breakers, now| {
            chain.choose(breakers, from, now)
        })
    }

    /// Whether a later model could be asked now.
    pub fn has_better(&self, chain: &Chain, index: usize) -> bool {
        self.with_breakers(chain.models(), |breakers, now| {
            chain.has_better(breakers, index, now)
        })
    }

    /// A model answered.
    pub fn model_answered(&self, model: &String, pass: &mut Pass) {
        // Only a probe decides anything by it.
        if pass.is_probe() {
            let models = std::slice::from_ref(model);
            self.with_breakers(models, |breakers, _| breakers.of(model).succeeded(pass));
        }
    }

    /// A model was overloaded or could not be reached.
    pub fn model_failed(&self, model: &String, pass: Pass) {
        let models = std::slice::from_ref(model);
        self.with_breakers(models, |breakers, now| breakers.of(model).failed(pass, now));
    }

    /// Nothing more will be learned about a model with this pass.
    pub fn pass_returned(&self, model: &String, pass: Pass) {
        if pass.is_probe() {
            let models = std::slice::from_ref(model);
            self.with_breakers(models, |breakers, _| breakers.of(model).abandoned(pass));
            self.breaker_changed.notify_waiters();
        }
    }

    /// The time as breakers count it.
    pub fn breaker_time(&self) -> Duration {
        match self.clock {
            BreakerClock::Run => self.now(),
            BreakerClock::Wall => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                // What is kept in a file has no finer times.
                Duration::from_millis(
                    since
                        .unwrap_or_default()
                        .as_millis()
                        .try_into()
                        .unwrap_or(u64::MAX),
                )
            }
        }
    }

    /// How long one may wait for a breaker without looking at it.
    pub fn patience(&self) -> Duration {
        match lock(&self.breakers).is_shared() {
            true => LOOK,
            false => self.time_left(),
        }
    }

    /// Does something to breakers; what changes by that is told.
    fn with_breakers<T>(
        &self,
        models: &[String],
        act: impl FnOnce(&mut Breakers, Duration) -> T,
    ) -> T {
        let now = self.breaker_time();
        let mut board = lock(&self.breakers);
        let known = self.with_state(|state| state.breakers.clone());
        let ((done, changed), warning) = board.act(now, |breakers| {
            let done = act(breakers, now);
            let mut changed = Vec::new();
            for model in models {
                let state = breakers.of(model).state(now);
                let before = known.get(model).copied();
                if state != before.unwrap_or(crate::BreakerState::Closed) {
                    changed.push((model.clone(), state));
                }
            }
            (done, changed)
        });
        drop(board);
        if let Some(message) = warning {
            self.tell(FleetEvent::Warning { message });
        }
        if !changed.is_empty() {
            self.breaker_changed.notify_waiters();
        }
        for (model, state) in changed {
            self.tell(FleetEvent::Breaker { model, state });
        }
        done
    }

    /// What came on standard input; read when a prompt first asks for it.
    pub fn input(&self) -> Arc<str> {
        let read = || {
            let bytes =
                pinion_files::read(&self.directory.input(), INPUT_LIMIT).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into()
        };
        Arc::clone(self.input.get_or_init(read))
    }
}
