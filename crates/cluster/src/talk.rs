//! Conversations between hubs: an opening, frames both ways under credit, one end.
//!
//! An opening that was handed to the connection is never sent again, unless there is proof that it was not handed to a
//! clip. A conversation ends with the connection of either side, with the silence of the peer, and with a gap in its
//! numbers; its end reports if the call may have run.

mod callee;
mod caller;
mod conversation;
mod flow;
mod openings;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pinion_clip::CallError;
use pinion_hub::{Answers, Input};
use pinion_proto::Binary;
use pinion_proto::cluster::{Frame, Item, Open, Pong, item::What};
use pinion_status::Failure;
use pinion_sync::lock;
use tokio::time::Instant;

pub use self::caller::{Call, CallFailed, NewCall, NotOpened, OUTCOME_DETAIL, Outcome};
use self::conversation::{Conversation, End};
use self::flow::Amount;
use self::openings::Openings;
use crate::bus::{Ended, Epoch};
use crate::members::{Loss, Members, Presence};
use crate::names::{ClusterName, ProcessId};

/// The version of conversations that this program speaks.
pub const WIRE: i32 = 1;
/// The time from an opening to its first frame, and the time within which it must have arrived.
pub(crate) const OPENING_TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes of a part in one frame.
const MAX_FRAME_DATA: usize = 64 * 1024;
/// Conversations with one hub from which on new ones get a small window: their windows together are 24 MiB.
const MANY_CONVERSATIONS: usize = 96;

/// The connection that conversations use.
pub trait Link: fmt::Debug + Send + Sync {
    /// Hands a message to the connection.
    fn send(
        &self,
        subject: String,
        reply: Option<String>,
        payload: Bytes,
    ) -> BoxFuture<'_, Result<(), Ended>>;
}

impl Link for Epoch {
    fn send(
        &self,
        subject: String,
        reply: Option<String>,
        payload: Bytes,
    ) -> BoxFuture<'_, Result<(), Ended>> {
        Box::pin(self.publish(subject, reply, payload))
    }
}

/// The answers to openings.
pub trait Answerer: fmt::Debug + Send + Sync {
    /// Decides about an opening. `input` is what the caller sends after the whole of its first message.
    fn answer(&self, opening: Opening, input: Option<Input>) -> BoxFuture<'_, Decision>;
}

/// An opening that has passed the checks of numbers and times.
#[derive(Debug)]
pub struct Opening {
    pub open: Open,
    pub from: ProcessId,
    /// The whole input of a call, or the whole message of a request.
    pub body: Bytes,
    pub deadline: Option<Instant>,
    /// The time limit that the caller's hub sets.
    pub patience: Option<Instant>,
}

/// The decision about an opening.
pub enum Decision {
    /// It was not handed to a clip.
    Refuse { reason: Refusal, failure: Failure },
    /// It is being answered.
    Answer(Answers),
}

/// The reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The alias is not held by this hub.
    Moved,
    /// It arrived after its time.
    Late,
    /// This hub stops.
    Leaving,
    /// This hub speaks another version.
    Wire,
    /// The request itself is refused.
    Failed,
}

impl fmt::Debug for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse { reason, failure } => formatter
                .debug_struct("Refuse")
                .field("reason", reason)
                .field("failure", failure)
                .finish(),
            Self::Answer(_) => formatter.write_str("Answer"),
        }
    }
}

impl Refusal {
    fn name(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::Late => "late",
            Self::Leaving => "leaving",
            Self::Wire => "wire",
            Self::Failed => "failed",
        }
    }
}

/// A source of the time, in milliseconds since 1970.
pub type UnixClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The conversations of a hub.
pub struct Talk {
    me: ProcessId,
    cluster: ClusterName,
    members: Arc<Mutex<Members>>,
    clock: UnixClock,
    link: Mutex<Option<(i64, Arc<dyn Link>)>>,
    next_number: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Conversation>>>,
    /// The callee's numbers of conversations that others opened, for cancellations that precede the first frame.
    opened_by: Mutex<HashMap<(ProcessId, u64), u64>>,
    openings: Mutex<Openings>,
    answerer: Mutex<Option<Arc<dyn Answerer>>>,
    /// The revision of the control bucket that this hub has applied.
    revision: AtomicI64,
    leaving: std::sync::atomic::AtomicBool,
    calls_in: AtomicI64,
    calls_out: AtomicI64,
}

impl fmt::Debug for Talk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Talk")
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}

impl Talk {
    pub fn new(
        me: ProcessId,
        cluster: ClusterName,
        members: Arc<Mutex<Members>>,
        clock: UnixClock,
    ) -> Arc<Self> {
        Arc::new(Self {
            me,
            cluster,
            members,
            clock,
            link: Mutex::default(),
            next_number: AtomicU64::new(1),
            open: Mutex::default(),
            opened_by: Mutex::default(),
            openings: Mutex::default(),
            answerer: Mutex::default(),
            revision: AtomicI64::new(0),
            leaving: std::sync::atomic::AtomicBool::new(false),
            calls_in: AtomicI64::new(0),
            calls_out: AtomicI64::new(0),
        })
    }

    /// Sets the part of the hub that answers openings.
    pub fn set_answerer(&self, answerer: Arc<dyn Answerer>) {
        *lock(&self.answerer) = Some(answerer);
    }

    /// Begins an epoch, after the end of the one before.
    pub fn begin_epoch(&self, number: i64, link: Arc<dyn Link>) {
        *lock(&self.link) = Some((number, link));
    }

    /// Ends every conversation: the connection is lost.
    pub fn end_epoch(&self) {
        *lock(&self.link) = None;
        let all: Vec<Arc<Conversation>> = lock(&self.open).values().cloned().collect();
        for conversation in all {
            conversation.end(End::Lost("this hub has lost its connection to the cluster"));
        }
    }

    /// Ends every conversation with a process.
    pub fn lose(&self, loss: &Loss) {
        let (peer, why) = match loss {
            Loss::Suspect(peer) => (peer, "the hub that runs the clip does not answer"),
            Loss::Restarted(peer) => (
                peer,
                "the hub that runs the clip has lost its connection to the cluster",
            ),
        };
        let theirs: Vec<Arc<Conversation>> = lock(&self.open)
            .values()
            .filter(|conversation| conversation.peer == *peer)
            .cloned()
            .collect();
        for conversation in theirs {
            conversation.end(End::Lost(why));
        }
    }

    /// Refuses new openings from now on.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Notes the revision of the control bucket that was applied.
    pub fn set_revision(&self, revision: u64) {
        let revision = i64::try_from(revision).unwrap_or(i64::MAX);
        self.revision.store(revision, Ordering::Relaxed);
    }

    fn revision(&self) -> i64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// The number of conversations that were opened by others and by this hub.
    pub fn counts(&self) -> (i64, i64) {
        let load = |count: &AtomicI64| count.load(Ordering::Relaxed);
        (load(&self.calls_in), load(&self.calls_out))
    }

    /// The number of open conversations.
    pub fn open_count(&self) -> usize {
        lock(&self.open).len()
    }

    /// The subject of everything that is sent to this hub.
    pub fn subjects(&self) -> String {
        self.subject(&self.me, ">")
    }

    fn subject(&self, to: &ProcessId, rest: impl fmt::Display) -> String {
        self.cluster.subject(format_args!("hub.{to}.{rest}"))
    }

    fn link(&self) -> Option<(i64, Arc<dyn Link>)> {
        lock(&self.link).clone()
    }

    fn presence(&self, peer: &ProcessId) -> Presence {
        lock(&self.members).presence(peer, Instant::now())
    }

    /// Creates a conversation with the next number.
    fn add(&self, peer: ProcessId, peer_number: Option<u64>, window: Amount) -> Arc<Conversation> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let conversation = Conversation::new(number, peer, peer_number, window);
        let conversation = Arc::new(conversation);
        lock(&self.open).insert(number, conversation.clone());
        conversation
    }

    fn remove(&self, conversation: &Conversation) {
        lock(&self.open).remove(&conversation.number);
    }

    /// The window for another conversation with this hub.
    fn window(&self, peer: &ProcessId) -> Amount {
        let open = lock(&self.open);
        let is_many = open.len() >= MANY_CONVERSATIONS && {
            let theirs = open.values().filter(|it| it.peer == *peer);
            theirs.count() >= MANY_CONVERSATIONS
        };
        if is_many {
            flow::SMALL_WINDOW
        } else {
            flow::WINDOW
        }
    }

    /// Handles a message that was sent to this hub. `rest` is the subject behind the hub's id; `is_unheard` means that
    /// the servers report that nothing listens on the subject of an earlier message.
    pub fn receive(
        self: &Arc<Self>,
        rest: &str,
        reply: Option<&str>,
        payload: Bytes,
        is_unheard: bool,
    ) {
        let mut words = rest.split('.');
        match (words.next(), words.next(), words.next()) {
            (Some("open"), None, _) => self.opened(payload),
            (Some("f"), Some(number), None) => {
                let Ok(number) = number.parse() else {
                    return;
                };
                let conversation = lock(&self.open).get(&number).cloned();
                match conversation {
                    Some(conversation) if is_unheard => {
                        lock(&self.members).unreachable(&conversation.peer);
                        conversation.end(End::NoListener);
                    }
                    Some(conversation) => self.frame(&conversation, payload),
                    None if is_unheard => {}
                    None => self.unknown(reply, payload),
                }
            }
            (Some("cancel"), Some(peer), Some(number)) => {
                let (Some(peer), Ok(number)) = (ProcessId::parse(peer), number.parse()) else {
                    return;
                };
                let ours = lock(&self.opened_by).get(&(peer, number)).copied();
                let conversation = ours.and_then(|ours| lock(&self.open).get(&ours).cloned());
                if let Some(conversation) = conversation {
                    conversation.end(End::Cancelled);
                }
            }
            _ => {}
        }
    }

    fn frame(self: &Arc<Self>, conversation: &Arc<Conversation>, payload: Bytes) {
        let Ok(frame) = Frame::decode(payload) else {
            conversation.end(End::Lost(
                "another hub has sent a message that cannot be read",
            ));
            return;
        };
        let replies = conversation.receive(frame);
        if !replies.items.is_empty() {
            let (talk, conversation) = (self.clone(), conversation.clone());
            tokio::spawn(async move { talk.send_unnumbered(&conversation, replies.items).await });
        }
    }

    /// Answers a ping for a conversation that this hub does not know.
    fn unknown(&self, reply: Option<&str>, payload: Bytes) {
        let (Some(reply), Ok(frame)) = (reply, Frame::decode(payload)) else {
            return;
        };
        let is_ping = |item: &Item| matches!(item.what, Some(What::Ping(_)));
        let Some((_, link)) = self.link().filter(|_| frame.items.iter().any(is_ping)) else {
            return;
        };
        let frame = unnumbered(vec![What::Pong(Pong::default())]);
        let reply = reply.to_owned();
        tokio::spawn(async move { link.send(reply, None, frame.to_bytes()).await });
    }

    /// Sends items that may be lost: they have no number.
    async fn send_unnumbered(&self, conversation: &Conversation, items: Vec<What>) {
        let peer_number = conversation.state().peer_number;
        let (Some(peer_number), Some((_, link))) = (peer_number, self.link()) else {
            return;
        };
        let subject = self.subject(&conversation.peer, format_args!("f.{peer_number}"));
        let reply = self.subject(&self.me, format_args!("f.{}", conversation.number));
        let payload = unnumbered(items).to_bytes();
        let _ = link.send(subject, Some(reply), payload).await;
    }

    /// Sends items with the next number. The caller of this is the only one that sends numbered frames.
    async fn send_numbered(
        &self,
        conversation: &Conversation,
        items: Vec<What>,
    ) -> Result<(), Ended> {
        let (peer_number, seq) = {
            let mut state = conversation.state();
            (state.peer_number.ok_or(Ended)?, state.out.next_seq())
        };
        let (_, link) = self.link().ok_or(Ended)?;
        let frame = Frame {
            seq: i64::try_from(seq).unwrap_or(i64::MAX),
            items: items.into_iter().map(item).collect(),
        };
        let subject = self.subject(&conversation.peer, format_args!("f.{peer_number}"));
        link.send(subject, None, frame.to_bytes()).await
    }
}

fn unnumbered(items: Vec<What>) -> Frame {
    Frame {
        seq: 0,
        items: items.into_iter().map(item).collect(),
    }
}

fn item(what: What) -> Item {
    Item { what: Some(what) }
}

/// Cuts data off that fits into a frame and the credit; `None` if nothing may be sent now.
fn next_part(conversation: &Conversation, left: &mut Bytes) -> Option<pinion_proto::cluster::Part> {
    let mut state = conversation.state();
    let room = state.out.room()?;
    if room == 0 && !left.is_empty() {
        return None;
    }
    let data = left.split_to(left.len().min(room).min(MAX_FRAME_DATA));
    state.out.sent_part(data.len());
    let more = !left.is_empty();
    Some(pinion_proto::cluster::Part { data, more })
}

impl Talk {
    /// Sends a whole part, in as many frames as necessary. Waits for credit.
    async fn send_part(&self, conversation: &Conversation, data: Bytes) -> Result<(), Ended> {
        let mut left = data;
        loop {
            let room = conversation.room.notified();
            if conversation.state().end.is_some() {
                return Err(Ended);
            }
            match next_part(conversation, &mut left) {
                Some(part) => {
                    let is_last = !part.more;
                    self.send_numbered(conversation, vec![What::Part(part)])
                        .await?;
                    if is_last {
                        return Ok(());
                    }
                }
                None => room.await,
            }
        }
    }
}

/// Reports whether a failure of an answer came from the clip.
fn is_answered(error: &CallError) -> bool {
    matches!(error, CallError::Answered(_))
}
