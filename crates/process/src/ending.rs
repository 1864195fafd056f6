//! The orderly end of a process: close its input, then SIGTERM, then SIGKILL, with a time limit for each.

use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::time::Instant;

use crate::{Exit, Running};

/// The time limits of an end.
#[derive(Debug, Clone, Copy)]
pub struct EndingLimits {
    /// From closing the input to SIGTERM.
    pub input_closed: Duration,
    /// From SIGTERM to SIGKILL.
    pub terminated: Duration,
    /// From SIGKILL until the process is given up.
    pub killed: Duration,
    /// From the exit until its pipes are given up. Other processes may hold them open.
    pub exited: Duration,
}

/// The steps of an end, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndingStep {
    /// It has not begun.
    Running,
    /// The input is closed.
    InputClosed,
    /// SIGTERM was sent.
    Terminated,
    /// SIGKILL was sent.
    Killed,
    /// Nothing more will be learned: the process survives SIGKILL.
    GivenUp,
}

/// The schedule of an end. [`Child`] applies it to a process; others apply it to what they run in place of one.
#[derive(Debug)]
pub struct Ending {
    limits: EndingLimits,
    step: EndingStep,
    due: Option<Instant>,
    exited: bool,
}

impl Ending {
    /// Creates a schedule that has not begun.
    pub fn new(limits: EndingLimits) -> Self {
        Self {
            limits,
            step: EndingStep::Running,
            due: None,
            exited: false,
        }
    }

    /// The last step.
    pub fn step(&self) -> EndingStep {
        self.step
    }

    /// Reports whether the end has begun or is over.
    pub fn has_begun(&self) -> bool {
        self.exited || self.step > EndingStep::Running
    }

    /// The time of the next step.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Proceeds to `step`, which the caller performs if this returns true. An earlier step than the last one has no
    /// effect, and after the exit a step is recorded only.
    pub fn begin(&mut self, step: EndingStep) -> bool {
        if step <= self.step {
            return false;
        }
        self.step = step;
        if self.exited {
            return false;
        }
        self.due = match step {
            EndingStep::Running | EndingStep::GivenUp => None,
            EndingStep::InputClosed => Some(Instant::now() + self.limits.input_closed),
            EndingStep::Terminated => Some(Instant::now() + self.limits.terminated),
            EndingStep::Killed => Some(Instant::now() + self.limits.killed),
        };
        true
    }

    /// Records the exit: from now on, only the pipes are waited for.
    pub fn exited(&mut self) {
        self.exited = true;
        self.due = Some(Instant::now() + self.limits.exited);
    }

    /// Returns the next step if its time has come. The caller performs it. After the exit it is `GivenUp`, again and
    /// again after the limit for the pipes.
    pub fn advance(&mut self) -> Option<EndingStep> {
        self.due.filter(|due| *due <= Instant::now())?;
        if self.exited {
            self.exited();
            return Some(EndingStep::GivenUp);
        }
        let next = match self.step {
            EndingStep::Running | EndingStep::InputClosed => EndingStep::Terminated,
            EndingStep::Terminated => EndingStep::Killed,
            EndingStep::Killed | EndingStep::GivenUp => EndingStep::GivenUp,
        };
        self.begin(next).then_some(next)
    }
}

/// A process that is supervised to its end. Dropping it kills the process, as dropping [`Running`] does.
#[derive(Debug)]
pub struct Child {
    running: Running,
    ending: Ending,
    exit: Option<Exit>,
}

/// An event of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEvent {
    /// It exited. Its descendants may live.
    Exited(Exit),
    /// A time limit passed, and this step was performed.
    Step(EndingStep),
}

impl Child {
    /// Supervises a process.
    pub fn new(running: Running, limits: EndingLimits) -> Self {
        Self {
            running,
            ending: Ending::new(limits),
            exit: None,
        }
    }

    /// The process id, which is also the id of its session and group.
    pub fn pid(&self) -> i32 {
        self.running.pid()
    }

    /// The reason why it ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// The last step of its end.
    pub fn step(&self) -> EndingStep {
        self.ending.step()
    }

    /// Reports whether its end has begun or is over.
    pub fn is_ending(&self) -> bool {
        self.ending.has_begun()
    }

    /// Begins the end after the caller has closed the input.
    pub fn input_closed(&mut self) {
        self.ending.begin(EndingStep::InputClosed);
    }

    /// Sends SIGTERM to its group, unless a stronger signal was sent or it has exited.
    pub fn terminate(&mut self) {
        if self.ending.begin(EndingStep::Terminated) {
            self.running.terminate();
        }
    }

    /// Kills it and its descendants, unless it has exited.
    pub fn kill(&mut self) {
        if self.ending.begin(EndingStep::Killed) {
            self.running.kill();
        }
    }

    /// Kills its descendants after its exit. They may hold its pipes.
    pub fn kill_descendants(&self) {
        self.running.kill();
    }

    /// Waits for the exit, or for the time of the next step and performs it. Waits forever if neither will come. May be
    /// dropped at any time.
    pub async fn next(&mut self) -> ChildEvent {
        loop {
            tokio::select! {
                exit = self.running.wait(), if self.exit.is_none() => {
                    self.exit = Some(exit);
                    self.ending.exited();
                    return ChildEvent::Exited(exit);
                }
                () = at(self.ending.due()) => {}
            }
            let Some(step) = self.ending.advance() else {
                continue;
            };
            match step {
                EndingStep::Terminated => self.running.terminate(),
                EndingStep::Killed => self.running.kill(),
                EndingStep::Running | EndingStep::InputClosed | EndingStep::GivenUp => {}
            }
            return ChildEvent::Step(step);
        }
    }

    /// Ends it after the caller has closed the input, and returns its exit: unknown if it survives SIGKILL.
    pub async fn end(&mut self) -> Exit {
        self.input_closed();
        loop {
            if let Some(exit) = self.exit {
                return exit;
            }
            if self.next().await == ChildEvent::Step(EndingStep::GivenUp) {
                return self.exit.unwrap_or(Exit::Unknown);
            }
        }
    }
}

impl Running {
    /// Sends SIGTERM to its group. Must not be called after its exit.
    pub fn terminate(&self) {
        // Its exit has not been reported, so the number still belongs to it.
        let _ = killpg(Pid::from_raw(self.pid()), Signal::SIGTERM);
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: EndingLimits = EndingLimits {
        input_closed: Duration::from_secs(1),
        terminated: Duration::from_secs(2),
        killed: Duration::from_secs(3),
        exited: Duration::from_secs(4),
    };

    /// Returns the steps that follow by themselves, with the seconds since the call.
    async fn steps(ending: &mut Ending, most: usize) -> Vec<(EndingStep, u64)> {
        let begun = Instant::now();
        let mut steps = Vec::new();
        while let Some(due) = ending.due().filter(|_| steps.len() < most) {
            assert_eq!(ending.advance(), None);
            tokio::time::sleep_until(due).await;
            let step = ending.advance().unwrap();
            steps.push((step, begun.elapsed().as_secs()));
        }
        steps
    }

    #[tokio::test(start_paused = true)]
    async fn each_step_follows_when_its_limit_has_passed() {
        use EndingStep::{GivenUp, InputClosed, Killed, Terminated};
        let mut ending = Ending::new(LIMITS);
        assert_eq!((ending.has_begun(), ending.due()), (false, None));
        assert!(ending.begin(InputClosed));
        let all = [(Terminated, 1), (Killed, 3), (GivenUp, 6)];
        assert_eq!(steps(&mut ending, 9).await, all);
        assert!(!ending.begin(Killed));

        let mut ending = Ending::new(LIMITS);
        assert!(ending.begin(Killed) && !ending.begin(Terminated));
        assert_eq!(steps(&mut ending, 9).await, [(GivenUp, 3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_exit_only_the_pipes_are_waited_for() {
        let mut ending = Ending::new(LIMITS);
        ending.begin(EndingStep::InputClosed);
        ending.exited();
        assert!(!ending.begin(EndingStep::Terminated));
        let given_up = |seconds| (EndingStep::GivenUp, seconds);
        assert_eq!(steps(&mut ending, 2).await, [given_up(4), given_up(8)]);
        assert_eq!(ending.step(), EndingStep::Terminated);
    }
}
