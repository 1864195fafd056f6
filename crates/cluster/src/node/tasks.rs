//! The tasks of a connection, and the next connection after its end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pinion_clip::logs::Level;
use pinion_proto::Binary;
use pinion_proto::cluster::{Beat, BeatState};
use pinion_sync::lock;
use tokio::time::{Instant, MissedTickBehavior};

use super::{Node, lease, reconcile};
use crate::bus::Epoch;
use crate::clock::now_unix_ms;
use crate::feed::{self, Sink};
use crate::members::{BEAT_INTERVAL, SUSPECT_AFTER};
use crate::names::ProcessId;
use crate::store::{Change, Store};
use crate::talk::WIRE;

/// The longest pause between two attempts to connect.
const MAX_PAUSE: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);
/// The time that conversations have to end when a server announces that it will stop.
const LAME_DUCK_GRACE: Duration = Duration::from_secs(8);
const FEED_RETRY: Duration = Duration::from_millis(500);

/// Runs a hub's connections, one after the other, until it leaves.
pub(super) async fn run(node: Arc<Node>, first: Arc<Epoch>) {
    tokio::select! {
        () = run_epochs(&node, first) => {}
        // Also between two connections.
        () = judge(&node) => {}
    }
}

async fn judge(node: &Node) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        node.judge_tokens();
    }
}

async fn run_epochs(node: &Arc<Node>, first: Arc<Epoch>) {
    let mut epoch = first;
    loop {
        tokio::select! {
            () = run_epoch(node, &epoch) => {}
            () = node.left.cancelled() => {}
        }
        let reason = epoch.reason();
        epoch.end("this hub has left the cluster");
        node.talk.end_epoch();
        *lock(&node.store) = None;
        if node.left.is_cancelled() {
            return;
        }
        let server = epoch.server();
        let reason = if reason.is_empty() {
            "it was lost"
        } else {
            &reason
        };
        node.log(
            Level::Warn,
            &format!("the connection to {server} has ended: {reason}"),
        );
        let Some(next) = connect(node, &epoch).await else {
            return;
        };
        let server = next.server();
        node.log(Level::Info, &format!("connected to {server}"));
        epoch = next;
    }
}

/// Connects to any server, again and again; `None` once the hub leaves.
async fn connect(node: &Node, last: &Epoch) -> Option<Arc<Epoch>> {
    let servers = node.servers(Some(last));
    let lost = servers.iter().position(|it| it == last.server());
    let mut at = lost.map_or(0, |lost| lost + 1);
    let mut pause = Duration::ZERO;
    loop {
        let server = &servers[at % servers.len()];
        at += 1;
        tokio::select! {
            () = node.left.cancelled() => return None,
            () = tokio::time::sleep(pause) => {}
        }
        match Epoch::open(server, &node.bus_options()).await {
            Ok(epoch) => return Some(epoch),
            Err(failure) => tracing::warn!(%failure, "no connection to the cluster"),
        }
        // Hubs that lost the same server do not return at the same moment.
        let spread = crate::names::random().unwrap_or(0) % 50;
        pause = (pause * 2).clamp(FIRST_PAUSE, MAX_PAUSE) + Duration::from_millis(spread);
    }
}

async fn run_epoch(node: &Arc<Node>, epoch: &Arc<Epoch>) {
    let store = Store::new(epoch.clone(), node.bucket.clone());
    let Ok((messages, beats)) = subscribe(node, epoch).await else {
        return;
    };
    node.talk.begin_epoch(node.next_epoch(), epoch.clone());
    lock(&node.lease).listens_again();
    *lock(&node.store) = Some(store.clone());
    // Frames are handled on another core than the rest.
    let routing = tokio::spawn(route(node.clone(), messages));
    let heard = Arc::new(std::sync::Mutex::new(Instant::now()));
    tokio::select! {
        () = epoch.ended().cancelled() => {}
        () = listen(node, beats, heard.clone()) => {}
        () = beat_regularly(node) => {}
        () = follow(node, &store) => {}
        () = lease::hold(node, &store) => {}
        () = reconcile::run(node) => {}
        () = sweep(node, epoch, &heard) => {}
        () = leave_lame_duck(node, epoch) => {}
    }
    routing.abort();
}

async fn subscribe(
    node: &Node,
    epoch: &Epoch,
) -> Result<(async_nats::Subscriber, async_nats::Subscriber), crate::bus::Ended> {
    let messages = epoch.subscribe(node.talk.subjects()).await?;
    let beats = epoch
        .subscribe(node.options.access.cluster.subject("beat"))
        .await?;
    epoch.flush().await?;
    Ok((messages, beats))
}

async fn route(node: Arc<Node>, mut messages: async_nats::Subscriber) {
    let prefix = node.talk.subjects();
    let prefix = prefix.trim_end_matches('>').to_owned();
    while let Some(message) = messages.next().await {
        let is_unheard = message.status.is_some_and(|status| status.as_u16() == 503);
        if let Some(rest) = message.subject.strip_prefix(prefix.as_str()) {
            let reply = message.reply.as_ref().map(async_nats::Subject::as_str);
            node.talk.receive(rest, reply, message.payload, is_unheard);
        }
    }
}

async fn listen(
    node: &Node,
    mut beats: async_nats::Subscriber,
    own: Arc<std::sync::Mutex<Instant>>,
) {
    while let Some(message) = beats.next().await {
        let Ok(beat) = Beat::decode(message.payload) else {
            continue;
        };
        let now = Instant::now();
        if *beat.id == *node.me.as_str() {
            *lock(&own) = now;
        }
        let (loss, is_new, highest) = {
            let mut members = lock(&node.members);
            let id = ProcessId::parse(&beat.id);
            let is_new = id.is_some_and(|id| members.get(&id).is_none());
            let loss = members.hear(&beat, now, now_unix_ms());
            (loss, is_new, members.highest_seen(now))
        };
        if is_new && *beat.id != *node.me.as_str() {
            // The new one can call this hub only after it has heard it.
            self::beat(node).await;
        }
        if let Some(loss) = loss {
            node.talk.lose(&loss);
        }
        node.told.send_if_modified(|told| {
            let is_newer = highest > *told;
            *told = (*told).max(highest);
            is_newer
        });
    }
}

async fn beat_regularly(node: &Node) {
    let mut ticks = tokio::time::interval(BEAT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        beat(node).await;
    }
}

/// Publishes one beat.
pub(super) async fn beat(node: &Node) {
    let Some(epoch) = lock(&node.store)
        .as_ref()
        .map(|store| store.epoch().clone())
    else {
        return;
    };
    let (calls_in, calls_out) = node.talk.counts();
    let state = if node.talk.is_leaving() {
        BeatState::Leaving
    } else if node.has_standing() {
        BeatState::Up
    } else {
        BeatState::Isolated
    };
    let beat = Beat {
        id: node.me.as_str().to_owned().into(),
        epoch: node.epoch.load(std::sync::atomic::Ordering::Relaxed),
        name: node.options.name.clone().into(),
        wire_max: WIRE,
        now_unix_ms: now_unix_ms(),
        seen: i64::try_from(*node.seen.borrow()).unwrap_or(i64::MAX),
        state,
        calls_in,
        calls_out,
    };
    let subject = node.options.access.cluster.subject("beat");
    let _ = epoch.publish(subject, None, beat.to_bytes()).await;
}

/// Applies the bucket to this hub.
struct Applier<'a>(&'a Node);

impl Sink for Applier<'_> {
    fn apply(&mut self, change: Change) {
        self.0.apply_change(change);
    }

    fn replace(&mut self, changes: Vec<Change>) {
        self.0.replace_all(changes);
    }

    fn seen(&mut self, revision: u64) {
        self.0.talk.set_revision(revision);
        self.0.seen.send_replace(revision);
    }
}

async fn follow(node: &Node, store: &Store) {
    let mut cursor = node.cursor.lock().await;
    loop {
        let told = node.told.subscribe();
        let failure = feed::follow(store, &mut cursor, told, &mut Applier(node)).await;
        tracing::warn!(%failure, "the bucket of the cluster cannot be followed");
        tokio::time::sleep(FEED_RETRY).await;
    }
}

/// Ends conversations with silent hubs, and the epoch if this hub does not hear itself.
async fn sweep(node: &Node, epoch: &Epoch, heard: &std::sync::Mutex<Instant>) {
    let mut before = Instant::now();
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let now = Instant::now();
        let losses = lock(&node.members).sweep(before, now);
        before = now;
        for loss in &losses {
            node.talk.lose(loss);
        }
        node.settle_gone();
        if now.duration_since(*lock(heard)) >= SUSPECT_AFTER {
            epoch.end("this hub does not hear its own messages");
        }
    }
}

/// Lets conversations end on a server that will stop, then changes to another.
async fn leave_lame_duck(node: &Node, epoch: &Epoch) {
    epoch.server_leaving().cancelled().await;
    let until = Instant::now() + LAME_DUCK_GRACE;
    while node.talk.open_count() > 0 && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    epoch.end("the server announced that it will stop");
}
