//! One provider stream to the other hub, from the registration to the last message.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use pinion_clip::Snapshot;
use pinion_clip::logs::{ClipLog, Level};
use pinion_connect::{Receiver, Sender};
use pinion_proto::hub::hub_message::Payload as FromHub;
use pinion_proto::hub::provider_message::Payload as ToHub;
use pinion_proto::hub::{
    ClipAdded, ClipRemoved, ClipStatusChanged, Heartbeat, HubMessage, ProviderMessage,
    RegisterRequest,
};
use pinion_status::{Code, Failure};
use tokio::sync::{mpsc, oneshot, watch};

use super::calls::Calls;
use super::logs::Readers;
use super::{JoinContext, JoinState, LEAVE_TIMEOUT, StreamEnd, broken, classify, method};
use crate::convert::{clip_registration, status, text};
use crate::endpoint::Endpoint;
use crate::limits::Limits;
use crate::queue::Queue;

/// The most messages that are stored before the answer to the registration.
const MAX_EARLY_MESSAGES: usize = 1024;

/// A message to the other hub, and a channel that reports when it was sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    payload: ToHub,
    sent: Option<oneshot::Sender<()>>,
}

impl From<ToHub> for Outgoing {
    fn from(payload: ToHub) -> Self {
        Self {
            payload,
            sent: None,
        }
    }
}

/// A change of a clip that the other hub requested and must be informed of.
#[derive(Debug)]
pub(super) struct Announcement {
    pub(super) alias: String,
    pub(super) request: String,
    pub(super) change: ClipChange,
    /// Notified when the message was sent.
    pub(super) sent: oneshot::Sender<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClipChange {
    Installed,
    Removed,
}

/// Opens the stream once and offers the clips until it ends.
pub(super) async fn run_stream(shared: &Arc<JoinContext>) -> StreamEnd {
    let running = async {
        let mut link = match open(shared).await {
            Ok(link) => link,
            Err(lost) => return lost,
        };
        shared.write_log(
            Level::Info,
            &format!(
                "joined to {} as \"{}\" with {} clips",
                shared.options.url,
                shared.options.name,
                link.offered.len()
            ),
        );
        shared.state.send_replace(JoinState::Joined);
        let lost = link.run(shared).await;
        shared.set_announcer(None);
        match lost {
            StreamEnd::Left => link.leave(shared).await,
            lost => lost,
        }
    };
    running.await
}

struct Link {
    sender: Sender<ProviderMessage>,
    receiver: Receiver<HubMessage>,
    offered: AnnouncedClips,
    changes: watch::Receiver<u64>,
    /// Messages that arrived before the answer to the registration: some hubs send calls at once.
    early: Vec<FromHub>,
}

async fn open(shared: &Arc<JoinContext>) -> Result<Link, StreamEnd> {
    let client = shared.options.client().map_err(classify)?;
    let opening = async {
        let stream = client.bidi(&method("ProviderStream"), None).await;
        let (mut sender, mut receiver) = stream.map_err(classify)?;
        // Subscribed before the clips are read, so that no change is missed.
        let mut changes = shared.offer.changes();
        changes.borrow_and_update();
        let offered = AnnouncedClips::new(shared.offer.clips());
        let register = RegisterRequest {
            provider_name: text(&shared.options.name),
            clips: offered.registrations(),
        };
        let sent = sender.send(&message(ToHub::Register(register))).await;
        if let Err(failure) = sent {
            // The other hub's own reason is better than the failure to send, if it can still be read.
            let why = receiver.next().await.err();
            return Err(classify(why.unwrap_or(failure)));
        }
        let early = registered(&mut receiver).await?;
        Ok(Link {
            sender,
            receiver,
            offered,
            changes,
            early,
        })
    };
    tokio::select! {
        () = shared.left.cancelled() => Err(StreamEnd::Left),
        opened = tokio::time::timeout(2 * shared.limits.first_message_timeout, opening) => {
            opened.unwrap_or_else(|_| Err(StreamEnd::Unreached(Failure::new(
                Code::DeadlineExceeded,
                "the hub did not answer the registration in time",
            ))))
        }
    }
}

/// Waits for the answer to the registration. Returns the messages that arrived before it.
async fn registered(receiver: &mut Receiver<HubMessage>) -> Result<Vec<FromHub>, StreamEnd> {
    let mut early = Vec::new();
    loop {
        let next: Option<HubMessage> = receiver.next().await.map_err(classify)?;
        match next.map(|message| message.payload) {
            Some(Some(FromHub::RegisterResponse(answer))) if answer.accepted => return Ok(early),
            Some(Some(FromHub::RegisterResponse(answer))) => {
                let message = format!("the hub refused the registration: {}", answer.message);
                return Err(StreamEnd::Refused(Failure::new(
                    Code::FailedPrecondition,
                    message,
                )));
            }
            Some(Some(message)) if early.len() < MAX_EARLY_MESSAGES => early.push(message),
            Some(_) => {}
            None => return Err(StreamEnd::Unreached(ended())),
        }
    }
}

fn ended() -> Failure {
    Failure::new(Code::Unavailable, "the hub has ended the stream")
}

fn message(payload: ToHub) -> ProviderMessage {
    ProviderMessage {
        payload: Some(payload),
    }
}

impl Link {
    async fn run(&mut self, shared: &Arc<JoinContext>) -> StreamEnd {
        let limits = &shared.limits;
        let queue = Arc::new(Queue::new(limits));
        let (announce, requests) = mpsc::channel(16);
        shared.set_announcer(Some(announce));
        let calls = Calls::new(shared.offer.clone(), queue.clone(), limits.clone());
        for message in self.early.drain(..) {
            calls.handle(message);
        }
        tokio::select! {
            () = shared.left.cancelled() => StreamEnd::Left,
            failure = write(&queue, &mut self.sender) => broken(failure),
            failure = read(&mut self.receiver, &calls, limits) => broken(failure),
            () = send_pings(&queue, limits) => StreamEnd::Left,
            failure = self.offered.send_changes(shared, &mut self.changes, requests, &queue) => broken(failure),
        }
    }

    /// Withdraws all clips and closes the stream.
    async fn leave(self, shared: &JoinContext) -> StreamEnd {
        let Self {
            mut sender,
            mut receiver,
            offered,
            ..
        } = self;
        let leaving = async {
            for alias in offered.clips.keys() {
                let removed = ClipRemoved {
                    name: text(alias),
                    ..ClipRemoved::default()
                };
                if sender
                    .send(&message(ToHub::ClipRemoved(removed)))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            sender.finish();
            while let Ok(Some(_)) = receiver.next().await {}
        };
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, leaving).await;
        let url = &shared.options.url;
        shared.write_log(Level::Info, &format!("left {url}"));
        StreamEnd::Left
    }
}

async fn write(queue: &Queue<Outgoing>, sender: &mut Sender<ProviderMessage>) -> Failure {
    while let Some(outgoing) = queue.take().await {
        if let Err(failure) = sender.send(&message(outgoing.payload)).await {
            return failure;
        }
        if let Some(sent) = outgoing.sent {
            let _ = sent.send(());
        }
    }
    ended()
}

/// Reads messages of the hub. Handling them never waits, so that no message delays the next.
async fn read(receiver: &mut Receiver<HubMessage>, calls: &Arc<Calls>, limits: &Limits) -> Failure {
    loop {
        let next = match tokio::time::timeout(limits.ping_timeout, receiver.next()).await {
            Ok(Ok(Some(next))) => next,
            Ok(Ok(None)) => return ended(),
            Ok(Err(failure)) => return failure,
            Err(_) => {
                let message = format!(
                    "no message from the hub for {} s",
                    limits.ping_timeout.as_secs()
                );
                return Failure::new(Code::Unavailable, message);
            }
        };
        if let Some(message) = next.payload {
            calls.handle(message);
        }
    }
}

/// Sends pings, which the hub answers.
async fn send_pings(queue: &Queue<Outgoing>, limits: &Limits) {
    loop {
        tokio::time::sleep(limits.ping_interval).await;
        let sent_at_unix_ms = Timestamp::now().as_millisecond();
        let ping = ToHub::Ping(Heartbeat { sent_at_unix_ms });
        if !queue.put(ping.into(), 0).await {
            return;
        }
    }
}

type Changed = BoxFuture<'static, Option<(String, watch::Receiver<Snapshot>)>>;

/// The clips that the other hub has been informed of.
struct AnnouncedClips {
    clips: BTreeMap<String, AnnouncedClip>,
    /// Completes when one of them changes.
    watched: FuturesUnordered<Changed>,
}

struct AnnouncedClip {
    endpoint: Arc<dyn Endpoint>,
    snapshot: Snapshot,
}

fn changed(alias: String, mut watch: watch::Receiver<Snapshot>) -> Changed {
    Box::pin(async move {
        watch.changed().await.ok()?;
        Some((alias, watch))
    })
}

impl AnnouncedClips {
    fn new(clips: BTreeMap<String, Arc<dyn Endpoint>>) -> Self {
        let mut offered = Self {
            clips: BTreeMap::new(),
            watched: FuturesUnordered::new(),
        };
        for (alias, endpoint) in clips {
            offered.add(alias, endpoint);
        }
        offered
    }

    fn len(&self) -> usize {
        self.clips.len()
    }

    fn add(&mut self, alias: String, endpoint: Arc<dyn Endpoint>) {
        if let Some(mut watch) = endpoint.watch() {
            watch.mark_unchanged();
            self.watched.push(changed(alias.clone(), watch));
        }
        let snapshot = endpoint.snapshot();
        self.clips
            .insert(alias, AnnouncedClip { endpoint, snapshot });
    }

    fn registrations(&self) -> Vec<pinion_proto::hub::ClipRegistration> {
        let clips = self.clips.iter();
        clips
            .map(|(alias, known)| {
                clip_registration(alias, &known.snapshot, known.endpoint.is_guarded())
            })
            .collect()
    }

    fn added(&self, alias: &str, request: &str) -> Option<ToHub> {
        let known = self.clips.get(alias)?;
        let clip = clip_registration(alias, &known.snapshot, known.endpoint.is_guarded());
        Some(ToHub::ClipAdded(ClipAdded {
            clip: Some(clip),
            request_id: text(request),
        }))
    }

    fn status(&self, alias: &str) -> Option<ToHub> {
        let status_now = &self.clips.get(alias)?.snapshot.status;
        Some(ToHub::ClipStatusChanged(ClipStatusChanged {
            name: text(alias),
            status: status(status_now),
            message: text(&status_now.message),
        }))
    }

    fn logs(&self) -> BTreeMap<&str, Arc<ClipLog>> {
        let logs = self.clips.iter();
        logs.filter_map(|(alias, known)| Some((alias.as_str(), known.endpoint.log()?)))
            .collect()
    }

    /// Sends the other hub every change of the clips.
    async fn send_changes(
        &mut self,
        shared: &JoinContext,
        changes: &mut watch::Receiver<u64>,
        mut requests: mpsc::Receiver<Announcement>,
        queue: &Arc<Queue<Outgoing>>,
    ) -> Failure {
        let mut readers = Readers::new(queue.clone());
        let all: Vec<String> = self.clips.keys().cloned().collect();
        let mut updates: Vec<Outgoing> = all
            .iter()
            .filter_map(|alias| self.status(alias).map(Outgoing::from))
            .collect();
        loop {
            for outgoing in updates.drain(..) {
                if !queue.put(outgoing, 1024).await {
                    return ended();
                }
            }
            readers.follow(self.logs());
            tokio::select! {
                Some(request) = requests.recv() => updates.extend(self.answer(shared, request)),
                Some(change) = self.watched.next(), if !self.watched.is_empty() => {
                    if let Some((alias, watch)) = change {
                        updates.extend(self.changed(alias, watch));
                    }
                }
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Failure::new(Code::Unavailable, "the list of offered clips was closed");
                    }
                    updates.extend(self.compare(shared));
                }
            }
        }
    }

    /// Returns the message about a change that the other hub requested.
    fn answer(&mut self, shared: &JoinContext, request: Announcement) -> Vec<Outgoing> {
        let Announcement {
            alias,
            request,
            change,
            sent,
        } = request;
        let payload = match (change, shared.offer.get(&alias)) {
            (ClipChange::Installed, Some(endpoint)) => {
                self.add(alias.clone(), endpoint);
                self.added(&alias, &request)
            }
            _ => {
                self.clips.remove(&alias);
                Some(ToHub::ClipRemoved(ClipRemoved {
                    name: text(&alias),
                    request_id: text(&request),
                }))
            }
        };
        let outgoing = payload.map(|payload| Outgoing {
            payload,
            sent: Some(sent),
        });
        outgoing.into_iter().collect()
    }

    /// Returns the message about a new status or manifest of a clip.
    fn changed(&mut self, alias: String, mut watch: watch::Receiver<Snapshot>) -> Option<Outgoing> {
        let snapshot = watch.borrow_and_update().clone();
        let known = self.clips.get_mut(&alias)?;
        // The clip that was watched may have been replaced since.
        let current = known.endpoint.watch();
        if !current.is_some_and(|current| current.same_channel(&watch)) {
            return None;
        }
        let same = *known.snapshot.manifest == *snapshot.manifest;
        known.snapshot = snapshot;
        self.watched.push(changed(alias.clone(), watch));
        let payload = if same {
            self.status(&alias)
        } else {
            self.added(&alias, "")
        };
        payload.map(Outgoing::from)
    }

    /// Returns the messages about added, replaced and removed clips.
    fn compare(&mut self, shared: &JoinContext) -> Vec<Outgoing> {
        let now = shared.offer.clips();
        let mut updates = Vec::new();
        let gone: Vec<String> = self
            .clips
            .keys()
            .filter(|alias| !now.contains_key(*alias))
            .cloned()
            .collect();
        for alias in gone {
            self.clips.remove(&alias);
            updates.push(ToHub::ClipRemoved(ClipRemoved {
                name: alias.into(),
                ..ClipRemoved::default()
            }));
        }
        for (alias, endpoint) in now {
            let known = self.clips.get(&alias);
            if known.is_some_and(|known| Arc::ptr_eq(&known.endpoint, &endpoint)) {
                continue;
            }
            self.add(alias.clone(), endpoint);
            updates.extend(self.added(&alias, ""));
            updates.extend(self.status(&alias));
        }
        updates.into_iter().map(Outgoing::from).collect()
    }
}
