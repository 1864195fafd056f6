//! The processes of a cluster, judged by their beats.
//!
//! Beats are fast and may be wrong: a process without one for three seconds is suspect, which ends conversations with it
//! and nothing else. It is gone only when its lease is, too.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use pinion_proto::cluster::{Beat, BeatState};
use tokio::time::Instant;

use crate::names::ProcessId;

/// Interval of beats.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// The time without a beat after which a process is suspect.
pub const SUSPECT_AFTER: Duration = Duration::from_secs(3);
/// The time over which differences of clocks are compared.
const CLOCK_WINDOW: Duration = Duration::from_secs(60);
/// Processes that are remembered after their last beat, for the report of the cluster.
const FORGET_AFTER: Duration = Duration::from_secs(300);

/// The judgement about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    There,
    Suspect,
    /// It was never heard.
    Unheard,
}

/// A process as its beats show it.
#[derive(Debug, Clone)]
pub struct Member {
    pub id: ProcessId,
    pub name: String,
    pub epoch: i64,
    pub state: BeatState,
    pub wire_max: i32,
    pub seen: u64,
    pub calls_in: i64,
    pub calls_out: i64,
    pub last_beat: Instant,
    /// A message to it was answered with the report that nothing listens there; valid until its next beat.
    unreachable: bool,
    /// Differences between its clock and this one, in milliseconds, with the time at which they were measured.
    clock: VecDeque<(Instant, i64)>,
}

impl Member {
    pub fn presence(&self, now: Instant) -> Presence {
        if self.unreachable || now.duration_since(self.last_beat) >= SUSPECT_AFTER {
            Presence::Suspect
        } else {
            Presence::There
        }
    }

    /// Milliseconds by which its clock is ahead of this one: the largest difference of the last minute, which is that of
    /// the fastest beat.
    pub fn clock_ahead_ms(&self) -> i64 {
        let differences = self.clock.iter().map(|(_, ahead)| *ahead);
        differences.max().unwrap_or(0)
    }
}

/// The end of every conversation with a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// It has been silent, or its subject has no listener.
    Suspect(ProcessId),
    /// It has a new connection and forgot its conversations.
    Restarted(ProcessId),
}

/// The processes that were heard.
#[derive(Debug, Default)]
pub struct Members {
    known: BTreeMap<ProcessId, Member>,
}

impl Members {
    /// Applies a beat that was received at `now`, when this machine's clock showed `now_unix_ms`. Returns the loss of
    /// conversations that it means.
    pub fn hear(&mut self, beat: &Beat, now: Instant, now_unix_ms: i64) -> Option<Loss> {
        let id = ProcessId::parse(&beat.id)?;
        let ahead = beat.now_unix_ms.saturating_sub(now_unix_ms);
        let seen = u64::try_from(beat.seen).unwrap_or(0);
        let mut loss = None;
        let member = self.known.entry(id.clone()).or_insert_with(|| Member {
            id: id.clone(),
            name: String::new(),
            epoch: beat.epoch,
            state: beat.state,
            wire_max: 0,
            seen,
            calls_in: 0,
            calls_out: 0,
            last_beat: now,
            unreachable: false,
            clock: VecDeque::new(),
        });
        if member.epoch != beat.epoch {
            loss = Some(Loss::Restarted(id));
            member.clock.clear();
        }
        if *member.name != *beat.name {
            member.name = beat.name.to_string();
        }
        member.epoch = beat.epoch;
        member.state = beat.state;
        member.wire_max = beat.wire_max;
        member.seen = seen;
        member.calls_in = beat.calls_in;
        member.calls_out = beat.calls_out;
        member.last_beat = now;
        member.unreachable = false;
        member.clock.push_back((now, ahead));
        while let Some((at, _)) = member.clock.front()
            && now.duration_since(*at) > CLOCK_WINDOW
        {
            member.clock.pop_front();
        }
        loss
    }

    /// Notes that a message to `id` found no listener.
    pub fn unreachable(&mut self, id: &ProcessId) {
        if let Some(member) = self.known.get_mut(id) {
            member.unreachable = true;
        }
    }

    /// Returns the members that have become suspect since `before`, and forgets those that were silent for long.
    pub fn sweep(&mut self, before: Instant, now: Instant) -> Vec<Loss> {
        self.known
            .retain(|_, member| now.duration_since(member.last_beat) < FORGET_AFTER);
        let became = |member: &&Member| {
            let silent = |at: Instant| at.duration_since(member.last_beat) >= SUSPECT_AFTER;
            silent(now) && !silent(before)
        };
        let suspects = self.known.values().filter(became);
        suspects
            .map(|member| Loss::Suspect(member.id.clone()))
            .collect()
    }

    pub fn presence(&self, id: &ProcessId, now: Instant) -> Presence {
        self.known
            .get(id)
            .map_or(Presence::Unheard, |member| member.presence(now))
    }

    pub fn get(&self, id: &ProcessId) -> Option<&Member> {
        self.known.get(id)
    }

    /// Returns every process that was heard in the last minutes, by id.
    pub fn all(&self) -> impl Iterator<Item = &Member> {
        self.known.values()
    }

    /// The highest revision of the control bucket that any process that is there has applied.
    pub fn highest_seen(&self, now: Instant) -> u64 {
        let there = self
            .known
            .values()
            .filter(|it| it.presence(now) == Presence::There);
        there.map(|member| member.seen).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "h0123456789abcdef";

    fn beat(epoch: i64, now_unix_ms: i64) -> Beat {
        Beat {
            id: ID.into(),
            epoch,
            now_unix_ms,
            seen: 7,
            state: BeatState::Up,
            ..Beat::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_makes_a_member_suspect_and_a_beat_brings_it_back() {
        let mut members = Members::default();
        let id = ProcessId::parse(ID).unwrap();
        let start = Instant::now();
        assert_eq!(members.presence(&id, start), Presence::Unheard);
        assert_eq!(members.hear(&beat(1, 0), start, 0), None);
        let later = start + SUSPECT_AFTER;
        assert_eq!(
            members.presence(&id, later - BEAT_INTERVAL),
            Presence::There
        );
        assert_eq!(members.presence(&id, later), Presence::Suspect);
        assert_eq!(members.sweep(start, later), [Loss::Suspect(id.clone())]);
        assert_eq!(members.sweep(later, later + BEAT_INTERVAL), []);
        assert_eq!(members.highest_seen(later), 0);
        members.hear(&beat(1, 0), later, 0);
        assert_eq!(members.presence(&id, later), Presence::There);
        assert_eq!(members.highest_seen(later), 7);
        members.unreachable(&id);
        assert_eq!(members.presence(&id, later), Presence::Suspect);
    }

    #[tokio::test(start_paused = true)]
    async fn another_epoch_means_that_conversations_are_forgotten() {
        let mut members = Members::default();
        let id = ProcessId::parse(ID).unwrap();
        let now = Instant::now();
        assert_eq!(members.hear(&beat(1, 0), now, 0), None);
        assert_eq!(members.hear(&beat(2, 0), now, 0), Some(Loss::Restarted(id)));
        assert_eq!(members.hear(&beat(2, 0), now, 0), None);
        let nameless = Beat::default();
        assert_eq!(members.hear(&nameless, now, 0), None);
        assert_eq!(members.all().count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_fastest_beat_of_a_minute_tells_the_difference_of_clocks() {
        let mut members = Members::default();
        let id = ProcessId::parse(ID).unwrap();
        let start = Instant::now();
        members.hear(&beat(1, 5_000), start, 0);
        members.hear(&beat(1, 5_900), start, 1_000);
        assert_eq!(members.get(&id).unwrap().clock_ahead_ms(), 5_000);
        let later = start + CLOCK_WINDOW + BEAT_INTERVAL;
        members.hear(&beat(1, 70_000), later, 66_000);
        assert_eq!(members.get(&id).unwrap().clock_ahead_ms(), 4_000);
    }
}
