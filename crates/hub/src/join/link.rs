//! One stream on which our clips are offered, from the first message to the last.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use pinion_clip::Snapshot;
use pinion_clip::logs::{ClipLog, Level};
use pinion_connect::{Receiver, Sender};
use pinion_proto::hub::hub_message::Payload as Heard;
use pinion_proto::hub::provider_message::Payload as Said;
use pinion_proto::hub::{
    ClipAdded, ClipRemoved, ClipStatusChanged, Heartbeat, HubMessage, ProviderMessage,
    RegisterRequest,
};
use pinion_status::{Code, Failure};
use tokio::sync::{mpsc, oneshot, watch};

use super::calls::Calls;
use super::logs::Readers;
use super::{FAREWELL, JoinState, Lost, Shared, broken, classify, method};
use crate::convert::{clip_registration, status, text};
use crate::endpoint::Endpoint;
use crate::limits::Limits;
use crate::queue::Queue;

/// Messages kept that come before the answer to the registration.
const EARLY: usize = 1024;

/// A message on its way, and who wants to know that it is.
#[derive(Debug)]
pub(super) struct Outgoing {
    said: Said,
    sent: Option<oneshot::Sender<()>>,
}

impl From<Said> for Outgoing {
    fn from(said: Said) -> Self {
        Self { said, sent: None }
    }
}

/// Something the other hub is to be told of a clip, because it asked for it.
#[derive(Debug)]
pub(super) struct Announce {
    pub(super) alias: String,
    pub(super) request: String,
    pub(super) news: News,
    /// Told when the message is on its way.
    pub(super) sent: oneshot::Sender<()>,
}

/// What there is to tell of a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Installed,
    Removed,
}

/// Offers our clips once, until that ends.
pub(super) async fn attend(shared: &Arc<Shared>) -> Lost {
    let attending = async {
        let mut link = match open(shared).await {
            Ok(link) => link,
            Err(lost) => return lost,
        };
        shared.say(
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
            Lost::Left => link.farewell(shared).await,
            lost => lost,
        }
    };
    attending.await
}

struct Link {
    sender: Sender<ProviderMessage>,
    receiver: Receiver<HubMessage>,
    offered: Offered,
    changes: watch::Receiver<u64>,
    /// What came before the answer to the registration: other hubs may call at once.
    early: Vec<Heard>,
}

async fn open(shared: &Arc<Shared>) -> Result<Link, Lost> {
    let client = shared.options.client().map_err(classify)?;
    let opening = async {
        let stream = client.bidi(&method("ProviderStream"), None).await;
        let (mut sender, mut receiver) = stream.map_err(classify)?;
        // Looked at before the clips are, so that no change is missed.
        let mut changes = shared.offer.changes();
        changes.borrow_and_update();
        let offered = Offered::new(shared.offer.clips());
        let register = RegisterRequest {
            provider_name: text(&shared.options.name),
            clips: offered.registrations(),
        };
        let sent = sender.send(&message(Said::Register(register))).await;
        if let Err(failure) = sent {
            // The other side says why, if it still can.
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
        () = shared.left.cancelled() => Err(Lost::Left),
        opened = tokio::time::timeout(2 * shared.limits.first_message, opening) => {
            opened.unwrap_or_else(|_| Err(Lost::Unreached(Failure::new(
                Code::DeadlineExceeded,
                "the hub did not answer the registration in time",
            ))))
        }
    }
}

/// Waits for the answer to a registration; tells what came before it.
async fn registered(receiver: &mut Receiver<HubMessage>) -> Result<Vec<Heard>, Lost> {
    let mut early = Vec::new();
    loop {
        let next: Option<HubMessage> = receiver.next().await.map_err(classify)?;
        match next.map(|message| message.payload) {
            Some(Some(Heard::RegisterResponse(answer))) if answer.accepted => return Ok(early),
            Some(Some(Heard::RegisterResponse(answer))) => {
                let message = format!("the hub refuses: {}", answer.message);
                return Err(Lost::Refused(Failure::new(
                    Code::FailedPrecondition,
                    message,
                )));
            }
            Some(Some(heard)) if early.len() < EARLY => early.push(heard),
            Some(_) => {}
            None => return Err(Lost::Unreached(ended())),
        }
    }
}

fn ended() -> Failure {
    Failure::new(Code::Unavailable, "the hub has ended the stream")
}

fn message(said: Said) -> ProviderMessage {
    ProviderMessage {
        payload: Some(said),
    }
}

impl Link {
    async fn run(&mut self, shared: &Arc<Shared>) -> Lost {
        let limits = &shared.limits;
        let queue = Arc::new(Queue::new(limits));
        let (announce, requests) = mpsc::channel(16);
        shared.set_announcer(Some(announce));
        let calls = Calls::new(shared.offer.clone(), queue.clone(), limits.clone());
        for heard in self.early.drain(..) {
            calls.hear(heard);
        }
        tokio::select! {
            () = shared.left.cancelled() => Lost::Left,
            failure = write(&queue, &mut self.sender) => broken(failure),
            failure = read(&mut self.receiver, &calls, limits) => broken(failure),
            () = greet(&queue, limits) => Lost::Left,
            failure = self.offered.tell(shared, &mut self.changes, requests, &queue) => broken(failure),
        }
    }

    /// Takes all clips back and says that this is all.
    async fn farewell(self, shared: &Shared) -> Lost {
        let Self {
            mut sender,
            mut receiver,
            offered,
            ..
        } = self;
        let parting = async {
            for alias in offered.clips.keys() {
                let removed = ClipRemoved {
                    name: text(alias),
                    ..ClipRemoved::default()
                };
                if sender
                    .send(&message(Said::ClipRemoved(removed)))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            sender.finish();
            while let Ok(Some(_)) = receiver.next().await {}
        };
        let _ = tokio::time::timeout(FAREWELL, parting).await;
        let url = &shared.options.url;
        shared.say(Level::Info, &format!("left {url}"));
        Lost::Left
    }
}

async fn write(queue: &Queue<Outgoing>, sender: &mut Sender<ProviderMessage>) -> Failure {
    while let Some(outgoing) = queue.take().await {
        if let Err(failure) = sender.send(&message(outgoing.said)).await {
            return failure;
        }
        if let Some(sent) = outgoing.sent {
            let _ = sent.send(());
        }
    }
    ended()
}

/// Listens to the hub; never waits for anything but it.
async fn read(receiver: &mut Receiver<HubMessage>, calls: &Arc<Calls>, limits: &Limits) -> Failure {
    loop {
        let next = match tokio::time::timeout(limits.dead, receiver.next()).await {
            Ok(Ok(Some(next))) => next,
            Ok(Ok(None)) => return ended(),
            Ok(Err(failure)) => return failure,
            Err(_) => {
                let message = format!("the hub has said nothing for {} s", limits.dead.as_secs());
                return Failure::new(Code::Unavailable, message);
            }
        };
        if let Some(heard) = next.payload {
            calls.hear(heard);
        }
    }
}

/// Greets the hub, which is expected to greet back.
async fn greet(queue: &Queue<Outgoing>, limits: &Limits) {
    loop {
        tokio::time::sleep(limits.ping).await;
        let sent_at_unix_ms = Timestamp::now().as_millisecond();
        let ping = Said::Ping(Heartbeat { sent_at_unix_ms });
        if !queue.put(ping.into(), 0).await {
            return;
        }
    }
}

type Changed = BoxFuture<'static, Option<(String, watch::Receiver<Snapshot>)>>;

/// What the other hub knows of our clips.
struct Offered {
    clips: BTreeMap<String, Known>,
    /// Told when one of them changes.
    watched: FuturesUnordered<Changed>,
}

struct Known {
    endpoint: Arc<dyn Endpoint>,
    snapshot: Snapshot,
}

fn changed(alias: String, mut watch: watch::Receiver<Snapshot>) -> Changed {
    Box::pin(async move {
        watch.changed().await.ok()?;
        Some((alias, watch))
    })
}

impl Offered {
    fn new(clips: BTreeMap<String, Arc<dyn Endpoint>>) -> Self {
        let mut offered = Self {
            clips: BTreeMap::new(),
            watched: FuturesUnordered::new(),
        };
        for (alias, endpoint) in clips {
            offered.know(alias, endpoint);
        }
        offered
    }

    fn len(&self) -> usize {
        self.clips.len()
    }

    fn know(&mut self, alias: String, endpoint: Arc<dyn Endpoint>) {
        if let Some(mut watch) = endpoint.watch() {
            watch.mark_unchanged();
            self.watched.push(changed(alias.clone(), watch));
        }
        let snapshot = endpoint.snapshot();
        self.clips.insert(alias, Known { endpoint, snapshot });
    }

    fn registrations(&self) -> Vec<pinion_proto::hub::ClipRegistration> {
        let clips = self.clips.iter();
        clips
            .map(|(alias, known)| {
                clip_registration(alias, &known.snapshot, known.endpoint.is_guarded())
            })
            .collect()
    }

    fn added(&self, alias: &str, request: &str) -> Option<Said> {
        let known = self.clips.get(alias)?;
        let clip = clip_registration(alias, &known.snapshot, known.endpoint.is_guarded());
        Some(Said::ClipAdded(ClipAdded {
            clip: Some(clip),
            request_id: text(request),
        }))
    }

    fn status(&self, alias: &str) -> Option<Said> {
        let status_now = &self.clips.get(alias)?.snapshot.status;
        Some(Said::ClipStatusChanged(ClipStatusChanged {
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

    /// Tells the other hub of everything that changes.
    async fn tell(
        &mut self,
        shared: &Shared,
        changes: &mut watch::Receiver<u64>,
        mut requests: mpsc::Receiver<Announce>,
        queue: &Arc<Queue<Outgoing>>,
    ) -> Failure {
        let mut readers = Readers::new(queue.clone());
        let all: Vec<String> = self.clips.keys().cloned().collect();
        let mut news: Vec<Outgoing> = all
            .iter()
            .filter_map(|alias| self.status(alias).map(Outgoing::from))
            .collect();
        loop {
            for outgoing in news.drain(..) {
                if !queue.put(outgoing, 1024).await {
                    return ended();
                }
            }
            readers.follow(self.logs());
            tokio::select! {
                Some(request) = requests.recv() => news.extend(self.answer(shared, request)),
                Some(change) = self.watched.next(), if !self.watched.is_empty() => {
                    if let Some((alias, watch)) = change {
                        news.extend(self.changed(alias, watch));
                    }
                }
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Failure::new(Code::Unavailable, "the clips are gone");
                    }
                    news.extend(self.compare(shared));
                }
            }
        }
    }

    /// Something was done because the other hub asked for it.
    fn answer(&mut self, shared: &Shared, request: Announce) -> Vec<Outgoing> {
        let Announce {
            alias,
            request,
            news,
            sent,
        } = request;
        let said = match (news, shared.offer.get(&alias)) {
            (News::Installed, Some(endpoint)) => {
                self.know(alias.clone(), endpoint);
                self.added(&alias, &request)
            }
            _ => {
                self.clips.remove(&alias);
                Some(Said::ClipRemoved(ClipRemoved {
                    name: text(&alias),
                    request_id: text(&request),
                }))
            }
        };
        let outgoing = said.map(|said| Outgoing {
            said,
            sent: Some(sent),
        });
        outgoing.into_iter().collect()
    }

    /// A clip stands otherwise than before, or says something else about itself.
    fn changed(&mut self, alias: String, mut watch: watch::Receiver<Snapshot>) -> Option<Outgoing> {
        let snapshot = watch.borrow_and_update().clone();
        let known = self.clips.get_mut(&alias)?;
        // The one that is watched may have been replaced since.
        let current = known.endpoint.watch();
        if !current.is_some_and(|current| current.same_channel(&watch)) {
            return None;
        }
        let same = *known.snapshot.manifest == *snapshot.manifest;
        known.snapshot = snapshot;
        self.watched.push(changed(alias.clone(), watch));
        let said = match same {
            true => self.status(&alias),
            false => self.added(&alias, ""),
        };
        said.map(Outgoing::from)
    }

    /// Clips may have come or gone.
    fn compare(&mut self, shared: &Shared) -> Vec<Outgoing> {
        let now = shared.offer.clips();
        let mut news = Vec::new();
        let gone: Vec<String> = self
            .clips
            .keys()
            .filter(|alias| !now.contains_key(*alias))
            .cloned()
            .collect();
        for alias in gone {
            self.clips.remove(&alias);
            news.push(Said::ClipRemoved(ClipRemoved {
                name: alias.into(),
                ..ClipRemoved::default()
            }));
        }
        for (alias, endpoint) in now {
            let known = self.clips.get(&alias);
            if known.is_some_and(|known| Arc::ptr_eq(&known.endpoint, &endpoint)) {
                continue;
            }
            self.know(alias.clone(), endpoint);
            news.extend(self.added(&alias, ""));
            news.extend(self.status(&alias));
        }
        news.into_iter().map(Outgoing::from).collect()
    }
}
