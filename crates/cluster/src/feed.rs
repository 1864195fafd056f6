//! Follows a bucket: its content, then every change in order, each once.
//!
//! The server publishes each change again under the bucket's feed with its number. A number that is missing is read
//! from the bucket; a process that was away for long reads the whole bucket anew, because nothing is left of what was
//! removed meanwhile. No watch of a consumer is involved: one that lives on a lost server is blind for twenty seconds.

use std::time::Duration;

use async_nats::Subscriber;
use futures_util::StreamExt;
use pinion_status::{Code, Failure};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::store::{self, BatchEnd, Change, Store};
use crate::stream::MARKER_LIFETIME_SECONDS;

const BATCH: u32 = 5_000;
/// Interval at which a server that is behind is asked again.
const BEHIND_INTERVAL: Duration = Duration::from_millis(50);
/// The time after which the leader is asked, because a number may be missing for good.
const ASK_LEADER_AFTER: Duration = Duration::from_secs(1);
/// The time that the feed has before the bucket is read, once others have seen more.
const PATIENCE: Duration = Duration::from_millis(500);
/// The time of absence after which the whole bucket is read anew: half the life of a mark of removal.
const LONG_ABSENCE: Duration = Duration::from_secs(MARKER_LIFETIME_SECONDS / 2);
/// The time for the question whether the bucket was made anew.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// The receiver of a bucket's changes.
pub trait Sink: Send {
    /// Applies a change. Changes arrive in the order of their numbers.
    fn apply(&mut self, change: Change);

    /// Replaces everything by these changes, the last one of each key.
    fn replace(&mut self, changes: Vec<Change>);

    /// Reports that everything up to this number was applied.
    fn seen(&mut self, revision: u64);
}

/// The position of a process in a bucket. It outlives epochs.
#[derive(Debug)]
pub struct Cursor {
    seen: u64,
    /// The time at which the feed was last known to be complete.
    complete_at: Option<Instant>,
}

/// The treatment of a change that the feed brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It follows the one before.
    Apply,
    /// It was applied already.
    Ignore,
    /// Others before it are missing.
    Gap,
}

impl Default for Cursor {
    fn default() -> Self {
        Self::new()
    }
}

impl Cursor {
    /// Creates the position of a process that has seen nothing.
    pub fn new() -> Self {
        Self {
            seen: 0,
            complete_at: None,
        }
    }

    /// The number up to which every change was applied.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    fn step(&self, revision: u64) -> Step {
        if revision <= self.seen {
            Step::Ignore
        } else if revision == self.seen + 1 {
            Step::Apply
        } else {
            Step::Gap
        }
    }

    fn must_read_all(&self) -> bool {
        let absence = self.complete_at.map(|at| at.elapsed());
        absence.is_none_or(|absence| absence > LONG_ABSENCE)
    }
}

/// Follows the bucket until the epoch ends or the bucket cannot be read. `told` is the highest number that others report.
pub async fn follow(
    store: &Store,
    cursor: &mut Cursor,
    mut told: watch::Receiver<u64>,
    sink: &mut dyn Sink,
) -> Failure {
    match follow_until_failure(store, cursor, &mut told, sink).await {
        Ok(never) => match never {},
        Err(failure) => failure,
    }
}

enum Never {}

async fn follow_until_failure(
    store: &Store,
    cursor: &mut Cursor,
    told: &mut watch::Receiver<u64>,
    sink: &mut dyn Sink,
) -> Result<Never, Failure> {
    let lost = |_| Failure::new(Code::Unavailable, "the connection to the cluster was lost");
    let epoch = store.epoch().clone();
    let subject = store.bucket().feed_subjects();
    let mut feed = epoch.subscribe(subject).await.map_err(lost)?;
    epoch.flush().await.map_err(lost)?;
    let renewed = was_made_anew(store, cursor).await;
    if renewed || cursor.must_read_all() {
        read_all(store, cursor, sink).await?;
    } else {
        let target = *told.borrow();
        catch_up(store, cursor, target, sink).await?;
    }
    let mut behind_since: Option<Instant> = None;
    loop {
        let highest = *told.borrow_and_update();
        behind_since = (highest > cursor.seen).then(|| behind_since.unwrap_or_else(Instant::now));
        if behind_since.is_none() {
            cursor.complete_at = Some(Instant::now());
        }
        let patience_ends = behind_since.map(|since| since + PATIENCE);
        tokio::select! {
            biased;
            () = epoch.ended().cancelled() => return Err(lost(crate::bus::Ended)),
            message = next(&mut feed) => {
                let message = message.ok_or_else(|| lost(crate::bus::Ended))?;
                let Some(change) = store::change(store.bucket(), &message) else {
                    continue;
                };
                let revision = change.revision;
                match cursor.step(revision) {
                    Step::Ignore => {}
                    Step::Apply => {
                        sink.apply(change);
                        cursor.seen = revision;
                        sink.seen(revision);
                    }
                    Step::Gap => {
                        tracing::debug!(seen = cursor.seen, revision, "the feed has a gap");
                        catch_up(store, cursor, revision, sink).await?;
                    }
                }
            }
            changed = told.changed() => if changed.is_err() {
                return Err(Failure::new(Code::Canceled, "this hub has left the cluster"));
            },
            () = sleep_until(patience_ends) => {
                catch_up(store, cursor, highest, sink).await?;
                behind_since = None;
            }
        }
    }
}

async fn next(feed: &mut Subscriber) -> Option<async_nats::Message> {
    feed.next().await
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Reports whether the stream is younger than what was seen of it: it was restored or made anew.
async fn was_made_anew(store: &Store, cursor: &Cursor) -> bool {
    if cursor.seen == 0 {
        return false;
    }
    let asked = tokio::time::timeout(CHECK_TIMEOUT, store.last_number()).await;
    matches!(asked, Ok(Ok(last)) if last < cursor.seen)
}

/// Reads the whole bucket and puts it in the place of what was known.
async fn read_all(store: &Store, cursor: &mut Cursor, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut all = Vec::new();
    let mut seen = 0;
    loop {
        let BatchEnd { last, pending } = store
            .batch(seen + 1, BATCH, |change| {
                seen = seen.max(change.revision);
                all.push(change);
            })
            .await?;
        if pending == 0 {
            seen = seen.max(last);
            break;
        }
    }
    sink.replace(all);
    cursor.seen = seen;
    cursor.complete_at = Some(Instant::now());
    sink.seen(seen);
    Ok(())
}

/// Applies what is missing up to `target`. Numbers of which no message is left are skipped once the leader confirms it.
async fn catch_up(
    store: &Store,
    cursor: &mut Cursor,
    target: u64,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        let end = store
            .batch(cursor.seen + 1, BATCH, |change| {
                // What was applied before a failure was applied in order.
                cursor.seen = cursor.seen.max(change.revision);
                sink.apply(change);
            })
            .await?;
        if end.pending > 0 {
            continue;
        }
        cursor.seen = cursor.seen.max(end.last);
        sink.seen(cursor.seen);
        if cursor.seen >= target {
            return Ok(());
        }
        if begun.elapsed() < ASK_LEADER_AFTER {
            tokio::time::sleep(BEHIND_INTERVAL).await;
            continue;
        }
        match store.next_at_leader(cursor.seen + 1).await? {
            // The answering server is behind.
            Some(_) => tokio::time::sleep(BEHIND_INTERVAL).await,
            None => {
                let last = store.last_number().await?;
                if last < cursor.seen {
                    return read_all(store, cursor, sink).await;
                }
                cursor.seen = last;
                sink.seen(last);
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_decide_what_happens_to_a_change() {
        let mut cursor = Cursor::new();
        cursor.seen = 5;
        for (revision, step) in [
            (1, Step::Ignore),
            (5, Step::Ignore),
            (6, Step::Apply),
            (7, Step::Gap),
        ] {
            assert_eq!(cursor.step(revision), step, "{revision}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_absence_needs_the_whole_bucket() {
        let mut cursor = Cursor::new();
        assert!(cursor.must_read_all());
        cursor.complete_at = Some(Instant::now());
        tokio::time::advance(LONG_ABSENCE).await;
        assert!(!cursor.must_read_all());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(cursor.must_read_all());
    }
}
