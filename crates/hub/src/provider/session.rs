//! One provider while it is connected: its clips, its calls, and what is on its way to it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use pinion_access::Caller;
use pinion_clip::CallError;
use pinion_connect::Codec;
use pinion_proto::Text;
use pinion_proto::hub::hub_message::Payload;
use pinion_proto::hub::{
    DataResult, GetClipWebResult, HubMessage, InvokeCancel, ProviderHello, RegisterResponse,
};
use pinion_status::{Code, Failure};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::clip::RemoteClip;
use super::flow::{Flow, disconnected};
use super::heard::Dialect;
use super::typed;
use crate::limits::Limits;
use crate::queue::{Queue, Rest};
use crate::table::Owner;

/// A provider while it is connected.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) owner: Owner,
    pub(super) id: Arc<str>,
    /// With whose token it came, and so to whom its clips belong.
    pub(crate) caller: Caller,
    pub(crate) connected: Timestamp,
    /// Whether it is a hub that passes its clips on.
    pub(crate) is_hub: bool,
    pub(super) codec: Codec,
    pub(super) limits: Arc<Limits>,
    pub(super) queue: Queue<Outgoing>,
    /// Told when an answer was read or is not wanted any more.
    pub(super) room: Notify,
    pub(super) closed: CancellationToken,
    registered: OnceLock<Registered>,
    state: Mutex<State>,
}

/// What is known once it has registered.
#[derive(Debug)]
struct Registered {
    name: Arc<str>,
    dialect: Dialect,
    manages: bool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Set once; nothing is added after that.
    pub(super) outcome: Option<Result<(), Failure>>,
    /// By the alias the provider wants for them.
    pub(super) clips: BTreeMap<String, Offered>,
    calls: HashMap<Text, Arc<Flow>>,
    requests: HashMap<Text, Asked>,
    /// Installations and removals that a typed runtime was asked for.
    pub(super) chores: Vec<super::chores::Chore>,
}

/// A clip and the alias it got here.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    pub(super) alias: String,
    pub(super) clip: Arc<RemoteClip>,
}

/// Who waits for a file.
#[derive(Debug)]
pub(super) enum Asked {
    Web(oneshot::Sender<Result<GetClipWebResult, Failure>>),
    Data(oneshot::Sender<Result<DataResult, Failure>>),
}

/// A message on its way to the provider.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// To be written in the codec of the stream.
    Message(HubMessage),
    /// Written already.
    Raw(Bytes),
}

/// The bytes a message takes in memory beside its payload, roughly.
const OVERHEAD: usize = 256;

impl Session {
    pub(super) fn new(caller: Caller, codec: Codec, is_hub: bool, limits: Arc<Limits>) -> Self {
        let id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        Self {
            owner: Owner::Session(id.clone()),
            id,
            caller,
            connected: Timestamp::now(),
            is_hub,
            codec,
            queue: Queue::new(&limits),
            limits,
            room: Notify::new(),
            closed: CancellationToken::new(),
            registered: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fixes name and dialect. Only the first counts.
    pub(super) fn name_it(&self, name: &str, dialect: Dialect, manages: bool) {
        let name = name.into();
        let _ = self.registered.set(Registered {
            name,
            dialect,
            manages,
        });
    }

    /// The name it registered with.
    pub(crate) fn name(&self) -> Arc<str> {
        let registered = self.registered.get();
        registered.map_or_else(Arc::default, |it| it.name.clone())
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.registered
            .get()
            .map_or(Dialect::Register, |it| it.dialect)
    }

    /// Whether it installs clips without a stream of its own for that.
    pub(crate) fn manages(&self) -> bool {
        self.registered.get().is_some_and(|it| it.manages)
    }

    /// Its clips, by the aliases they have here.
    pub(crate) fn aliases(&self) -> Vec<String> {
        let state = self.state();
        let mut aliases: Vec<String> = state.clips.values().map(|it| it.alias.clone()).collect();
        aliases.sort();
        aliases
    }

    /// How the provider calls the clip that goes by `alias` here.
    pub(super) fn own_name(&self, alias: &str) -> Option<String> {
        let state = self.state();
        let mut clips = state.clips.values();
        let offered = clips.find(|offered| offered.alias == alias);
        offered.map(|offered| offered.clip.name.clone())
    }

    /// The clip that the provider calls `name`.
    pub(super) fn offered(&self, name: &str) -> Option<Arc<RemoteClip>> {
        let name = pinion_clip::alias::normalise(name)?;
        let state = self.state();
        state.clips.get(&name).map(|offered| offered.clip.clone())
    }

    // ── What goes out ──

    fn outgoing(&self, payload: Payload) -> Option<Outgoing> {
        match self.dialect() {
            Dialect::Register => Some(Outgoing::Message(HubMessage {
                payload: Some(payload),
            })),
            Dialect::Typed => typed::write(&payload).map(Outgoing::Raw),
        }
    }

    /// Sends a message as soon as there is room; whether the session is still open.
    pub(super) async fn send(&self, payload: Payload, size: usize) -> bool {
        match self.outgoing(payload) {
            Some(message) => self.queue.put(message, size + OVERHEAD).await,
            None => true,
        }
    }

    /// Sends a message if there is room now, or gives back what has to wait. `None`: it is on its way, or nobody is there.
    pub(super) fn send_now(&self, payload: Payload, size: usize) -> Option<(Outgoing, usize)> {
        let message = self.outgoing(payload)?;
        let size = size + OVERHEAD;
        self.queue.offer(message, size).err().map(|it| (it, size))
    }

    /// Sends a short message without waiting.
    pub(super) fn push(&self, payload: Payload) {
        if let Some(message) = self.outgoing(payload) {
            self.queue.push(message);
        }
    }

    /// Greets the provider before it has said anything, in words for both dialects.
    pub(super) fn greet(&self, version: &str) {
        let millis =
            |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let hello = ProviderHello {
            session_id: (&self.id).into(),
            heartbeat_interval_ms: millis(self.limits.heartbeat),
            heartbeat_timeout_ms: millis(self.limits.silence),
            hub_version: Text::new(version),
        };
        self.queue.push(match self.codec {
            Codec::Json => Outgoing::Raw(typed::hello(&hello)),
            Codec::Proto => Outgoing::Message(HubMessage {
                payload: Some(Payload::ProviderHello(hello)),
            }),
        });
    }

    /// Says that a registration is refused.
    pub(super) fn refuse(&self, dialect: Dialect, message: &str) {
        self.queue.push(match dialect {
            Dialect::Typed => Outgoing::Raw(typed::refused(message)),
            Dialect::Register => Outgoing::Message(HubMessage {
                payload: Some(Payload::RegisterResponse(RegisterResponse {
                    accepted: false,
                    message: Text::new(message),
                    ..RegisterResponse::default()
                })),
            }),
        });
    }

    // ── Calls ──

    /// Begins a call, if there may be one more.
    pub(super) fn begin(&self, deadline: Option<Instant>) -> Result<Arc<Flow>, Failure> {
        let mut state = self.state();
        state.admits(&self.limits)?;
        let flow = Arc::new(Flow::new(deadline));
        state.calls.insert(flow.id.clone(), flow.clone());
        Ok(flow)
    }

    pub(super) fn call(&self, id: &str) -> Option<Arc<Flow>> {
        self.state().calls.get(id).cloned()
    }

    /// Whether this is the only call there is.
    pub(super) fn is_alone(&self, flow: &Flow) -> bool {
        let state = self.state();
        state.requests.is_empty() && state.calls.len() == 1 && state.calls.contains_key(&flow.id)
    }

    /// The provider has nothing more to say about a call.
    pub(super) fn settle(&self, flow: &Flow) {
        self.state().calls.remove(&flow.id);
    }

    /// Ends a call from here. What still comes for it is dropped.
    pub(super) fn abandon(&self, flow: &Flow, failure: Failure) {
        let known = self.state().calls.remove(&flow.id).is_some();
        flow.fail(CallError::Unanswered(failure));
        self.room.notify_one();
        if known {
            self.push(Payload::InvokeCancel(InvokeCancel {
                request_id: flow.id.clone(),
                reason: flow.reason().into(),
            }));
        }
    }

    // ── Files ──

    /// Notes that somebody waits for the answer to `id`.
    pub(super) fn expect(&self, id: Text, asked: Asked) -> Result<(), Failure> {
        let mut state = self.state();
        state.admits(&self.limits)?;
        state.requests.insert(id, asked);
        Ok(())
    }

    pub(super) fn expected(&self, id: &str) -> Option<Asked> {
        self.state().requests.remove(id)
    }

    // ── The end ──

    /// Ends the session: nothing is added any more, and all that waits fails. Gives the clips it had, if this is the end that
    /// counts.
    ///
    /// Their place in the table, and their logs, are left to the caller.
    pub(super) fn end(&self, outcome: Result<(), Failure>) -> Option<BTreeMap<String, Offered>> {
        let mut state = self.state();
        if state.outcome.is_some() {
            return None;
        }
        let rest = match outcome {
            Ok(()) => Rest::Send,
            Err(_) => Rest::Drop,
        };
        state.outcome = Some(outcome);
        let calls = std::mem::take(&mut state.calls);
        let requests = std::mem::take(&mut state.requests);
        let chores = std::mem::take(&mut state.chores);
        let clips = std::mem::take(&mut state.clips);
        drop(state);
        self.queue.finish(rest);
        self.closed.cancel();
        for flow in calls.values() {
            flow.fail(CallError::Unanswered(disconnected()));
        }
        for asked in requests.into_values() {
            match asked {
                Asked::Web(answer) => drop(answer.send(Err(disconnected()))),
                Asked::Data(answer) => drop(answer.send(Err(disconnected()))),
            }
        }
        for chore in chores {
            chore.finish(Err(disconnected()));
        }
        Some(clips)
    }

    /// How it ended.
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        self.state().outcome.clone().unwrap_or(Ok(()))
    }
}

impl State {
    fn admits(&self, limits: &Limits) -> Result<(), Failure> {
        if self.outcome.is_some() {
            return Err(disconnected());
        }
        if self.calls.len() + self.requests.len() >= limits.calls {
            let message = format!("the provider has {} calls already", limits.calls);
            return Err(Failure::new(Code::ResourceExhausted, message));
        }
        Ok(())
    }
}
