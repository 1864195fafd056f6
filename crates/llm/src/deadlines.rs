//! The limits of one request's waits. Each wait can be cancelled and has a limit, whether a server,
//! a cassette or the offline model answers.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::Request;
use crate::request::Timeouts;

/// The reason why a wait ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    Cancelled,
    /// The wait exceeded its own limit.
    TimedOut,
    /// The request exceeded its total limit.
    DeadlinePassed,
}

/// The limits of one request, counted from its beginning.
#[derive(Debug)]
pub(crate) struct Deadlines {
    cancel: CancellationToken,
    timeouts: Timeouts,
    /// The end of the total limit.
    deadline: Option<Instant>,
}

impl Deadlines {
    /// Starts the total limit of `request`.
    pub(crate) fn new(request: &Request) -> Self {
        let timeouts = request.options.timeouts;
        let total = timeouts.total.filter(|total| !total.is_zero());
        Self {
            cancel: request.cancel.clone(),
            timeouts,
            deadline: total.and_then(|total| Instant::now().checked_add(total)),
        }
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(crate) fn is_past_deadline(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Waits for `future` for at most `limit`; zero means no limit.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Interruption> {
        // A future that is always ready, such as a continuous stream, must not hide the clock.
        if self.is_past_deadline() {
            return Err(Interruption::DeadlinePassed);
        }
        let limit = Some(limit).filter(|limit| !limit.is_zero());
        let slow = limit.and_then(|limit| Instant::now().checked_add(limit));
        let sleep = async |until: Option<Instant>| match until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Interruption::Cancelled),
            () = sleep(self.deadline) => Err(Interruption::DeadlinePassed),
            value = future => Ok(value),
            () = sleep(slow) => Err(Interruption::TimedOut),
        }
    }

    /// The error text for a pause in the answer that exceeded its limit.
    pub(crate) fn idle_text(&self) -> String {
        let seconds = self.timeouts.idle.as_secs_f64();
        format!("Stream idle timeout: no data for {seconds} s (timed out)")
    }

    /// The error text for a request that exceeded its total limit.
    pub(crate) fn deadline_text(&self) -> String {
        let seconds = self.timeouts.total.unwrap_or_default().as_secs_f64();
        format!("Request not finished after {seconds} s (timed out)")
    }
}
