//! The state that all children of a run share: journal, breakers, costs and time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use pinion_status::Failure;
use pinion_sync::lock;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Host, Observer, RunOptions, Stop, StopReason};
use crate::breaker::RunBreakers;
use crate::journal::FleetEvent;
use crate::mask::SecretMask;
use crate::plan::JUDGE;
use crate::{
    Breakers, Chain, Charge, ChildFailure, ChildPlan, ChildStatus, Choice, FailureKind, Journal,
    JournalContents, Ledger, Micros, Outcome, Permit, Plan, Report, RunDir, RunState,
};

/// The interval at which a waiting child checks breakers that other processes may change.
const BREAKER_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The largest input that `{{ input }}` may insert, in bytes.
const INPUT_LIMIT: u64 = 4 << 30;

pub(super) struct RunContext {
    pub plan: Plan,
    pub directory: RunDir,
    pub working_directory: PathBuf,
    pub host: Arc<dyn Host>,
    pub stop: Stop,
    observers: Vec<Box<dyn Observer>>,
    mask: SecretMask,
    journal: Mutex<JournalState>,
    /// Messages about damaged lines of the journal.
    damage: Vec<String>,
    breakers: Mutex<RunBreakers>,
    clock: BreakerClock,
    /// Notified when a breaker has changed.
    pub breaker_changed: Notify,
    ledger: Mutex<Ledger>,
    begun: Instant,
    input: OnceLock<Arc<str>>,
}

/// The start from which breakers count time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerClock {
    /// The start of the run.
    Run,
    /// 1970, so that all processes count from the same start.
    Wall,
}

/// The journal, and the state computed from it.
struct JournalState {
    journal: Journal,
    state: RunState,
    failed: Option<Failure>,
}

impl RunContext {
    pub fn new(options: RunOptions) -> Result<Arc<Self>, Failure> {
        let (journal, JournalContents { records, damage }) = options.directory.journal()?;
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
            breakers: Mutex::new(RunBreakers::new(
                options.plan.breaker,
                options.shared_breakers,
            )),
            breaker_changed: Notify::new(),
            mask: SecretMask::new(Arc::clone(&options.host), &options.plan),
            plan: options.plan,
            directory: options.directory,
            working_directory: options.working_directory,
            host: options.host,
            stop: options.stop,
            observers: options.observers,
            journal: Mutex::new(JournalState {
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

    /// Masks an event, writes it to the journal, and then sends it to the observers.
    pub fn record(&self, mut event: FleetEvent) {
        self.mask.event(&mut event);
        let mut journal = lock(&self.journal);
        match journal.journal.append(event) {
            Ok((record, line)) => {
                journal.state.apply(&record);
                for observer in &self.observers {
                    observer.notice(&record, &line, &journal.state);
                }
            }
            Err(error) if journal.failed.is_none() => {
                let path = self.directory.path().join("events.jsonl");
                journal.failed = Some(Failure::io(path.display(), &error));
                // A run without a journal could not be resumed or reported, so it must stop.
                self.stop.set(StopReason::Interrupted);
            }
            Err(_) => {}
        }
    }

    /// Writes one warning for each damaged line of the journal, unless it has one already.
    pub fn record_damage(&self) {
        for message in &self.damage {
            if !self.with_state(|state| state.warnings.contains(message)) {
                self.record(FleetEvent::Warning {
                    message: message.clone(),
                });
            }
        }
    }

    pub fn with_state<T>(&self, look: impl FnOnce(&RunState) -> T) -> T {
        look(&lock(&self.journal).state)
    }

    pub fn journal_failure(&self) -> Option<Failure> {
        let journal = lock(&self.journal);
        journal.failed.clone()
    }

    pub fn is_finished(&self, child: &str) -> bool {
        self.with_state(|state| {
            state
                .child(child)
                .is_some_and(|child| child.status == ChildStatus::Finished)
        })
    }

    /// Returns the number of the child's last attempt, including those before a resume.
    pub fn attempts(&self, child: &str) -> u32 {
        self.with_state(|state| {
            let last = state.child(child).and_then(|child| child.attempts.last());
            last.map_or(0, |attempt| attempt.attempt)
        })
    }

    /// Records the end of a child.
    pub fn record_child_end(
        &self,
        child: &str,
        outcome: Outcome,
        failure: Option<ChildFailure>,
        result: Option<String>,
        output: Option<Value>,
    ) {
        self.record(FleetEvent::ChildEnded {
            child: child.to_owned(),
            outcome,
            failure,
            result,
            output,
        });
    }

    /// Records that the run ended before the child started.
    pub fn record_not_started(&self, child: &str) {
        let failure = self.stop.failure();
        self.record_child_end(child, Outcome::Stopped, Some(failure), None, None);
    }

    /// Records the failure of children whose task panicked.
    pub fn fail_lost_children(&self) {
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
                "the task of this child panicked; this is a bug in pinion, please report it",
            );
            self.record_child_end(&child, Outcome::Failed, Some(failure), None, None);
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

    /// Returns the time since the start of the run.
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the time until the run's timeout.
    pub fn time_left(&self) -> Duration {
        self.plan.timeout.saturating_sub(self.now())
    }

    /// Stops the run at its timeout.
    pub async fn watch_time(self: Arc<Self>) {
        tokio::time::sleep_until(self.begun + self.plan.timeout).await;
        self.stop.set(StopReason::Timeout);
    }

    /// Adds a cost, and returns the state of the budgets with the totals of the child and of the run.
    pub fn charge(&self, child: &ChildPlan, cost: Micros) -> (Charge, Micros, Micros) {
        let mut ledger = lock(&self.ledger);
        let charge = ledger.charge(&child.name, cost, child.budget);
        (charge, ledger.of(&child.name), ledger.total())
    }

    /// Returns the budget that is spent, if any.
    pub fn spent_budget(&self, child: &ChildPlan) -> Option<Charge> {
        let ledger = lock(&self.ledger);
        if ledger.is_spent() {
            return Some(Charge::RunSpent);
        }
        let spent = child
            .budget
            .is_some_and(|limit| ledger.of(&child.name) >= limit);
        spent.then_some(Charge::ChildSpent)
    }

    /// Chooses a model that its breaker admits.
    pub fn choose(&self, chain: &Chain, from: usize) -> Choice {
        self.with_breakers(chain.models(), |breakers, now| {
            chain.choose(breakers, from, now)
        })
    }

    /// Reports whether a later model would be admitted now.
    pub fn has_alternative(&self, chain: &Chain, index: usize) -> bool {
        self.with_breakers(chain.models(), |breakers, now| {
            chain.has_alternative(breakers, index, now)
        })
    }

    /// Reports an answer of a model to its breaker.
    pub fn model_answered(&self, model: &String, permit: &mut Permit) {
        // An answer changes a breaker only if it belongs to a probe.
        if permit.is_probe() {
            let models = std::slice::from_ref(model);
            self.with_breakers(models, |breakers, _| breakers.of(model).succeeded(permit));
        }
    }

    /// Reports to its breaker that a model was overloaded or unreachable.
    pub fn model_failed(&self, model: &String, permit: Permit) {
        let models = std::slice::from_ref(model);
        self.with_breakers(models, |breakers, now| {
            breakers.of(model).failed(permit, now)
        });
    }

    /// Returns a permit at the end of an attempt.
    pub fn permit_returned(&self, model: &String, permit: Permit) {
        if permit.is_probe() {
            let models = std::slice::from_ref(model);
            self.with_breakers(models, |breakers, _| breakers.of(model).abandoned(permit));
            self.breaker_changed.notify_waiters();
        }
    }

    /// Returns the time as breakers count it.
    pub fn breaker_time(&self) -> Duration {
        match self.clock {
            BreakerClock::Run => self.now(),
            BreakerClock::Wall => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                // The context file stores whole milliseconds.
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

    /// Returns the longest time to wait before checking the breakers again.
    pub fn breaker_poll_interval(&self) -> Duration {
        if lock(&self.breakers).is_shared() {
            BREAKER_POLL_INTERVAL
        } else {
            self.time_left()
        }
    }

    /// Changes breakers, and records the new states of `models`.
    fn with_breakers<T>(
        &self,
        models: &[String],
        act: impl FnOnce(&mut Breakers, Duration) -> T,
    ) -> T {
        let now = self.breaker_time();
        let mut run_breakers = lock(&self.breakers);
        let known = self.with_state(|state| state.breakers.clone());
        let ((done, changed), warning) = run_breakers.update(now, |breakers| {
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
        drop(run_breakers);
        if let Some(message) = warning {
            self.record(FleetEvent::Warning { message });
        }
        if !changed.is_empty() {
            self.breaker_changed.notify_waiters();
        }
        for (model, state) in changed {
            self.record(FleetEvent::Breaker { model, state });
        }
        done
    }

    /// Returns the data from standard input; it is read when a prompt first uses it.
    pub fn input(&self) -> Arc<str> {
        let read = || {
            let bytes =
                pinion_files::read(&self.directory.input(), INPUT_LIMIT).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into()
        };
        Arc::clone(self.input.get_or_init(read))
    }
}
