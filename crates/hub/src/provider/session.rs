//! One connected provider: its clips, its running calls, and its outgoing messages.

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
use super::incoming::Dialect;
use super::pending_call::{PendingCall, disconnected};
use super::typed;
use crate::limits::Limits;
use crate::neighbours::Claimant;
use crate::queue::{OnClose, Queue};
use crate::table::Owner;

/// A connected provider.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) owner: Owner,
    pub(super) id: Arc<str>,
    /// The caller that opened the stream; its scope owns the clips.
    pub(crate) caller: Caller,
    pub(crate) connected: Timestamp,
    /// The provider is a hub that passes on its own clips.
    pub(crate) is_hub: bool,
    pub(super) codec: Codec,
    pub(super) limits: Arc<Limits>,
    pub(super) queue: Queue<Outgoing>,
    /// Notified when a part of an answer was read or a call was cancelled.
    pub(super) room: Notify,
    pub(super) closed: CancellationToken,
    registered: OnceLock<Registered>,
    state: Mutex<SessionState>,
}

/// The properties that the registration fixes.
#[derive(Debug)]
struct Registered {
    name: Arc<str>,
    dialect: Dialect,
    manages: bool,
}

#[derive(Debug, Default)]
pub(super) struct SessionState {
    /// Set once; nothing is added after that.
    pub(super) outcome: Option<Result<(), Failure>>,
    /// The offered clips, by the alias that the provider requested.
    pub(super) clips: BTreeMap<String, OfferedClip>,
    calls: HashMap<Text, Arc<PendingCall>>,
    requests: HashMap<Text, FileRequest>,
    /// Installations and removals requested from a typed runtime.
    pub(super) maintenance: Vec<super::maintenance::MaintenanceRequest>,
}

/// A clip and the alias it was granted.
#[derive(Debug, Clone)]
pub(super) struct OfferedClip {
    pub(super) alias: String,
    pub(super) clip: Arc<RemoteClip>,
}

/// A request for a file, with the channel for its answer.
#[derive(Debug)]
pub(super) enum FileRequest {
    Web(oneshot::Sender<Result<GetClipWebResult, Failure>>),
    Data(oneshot::Sender<Result<DataResult, Failure>>),
}

/// A message to the provider.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// To be encoded in the codec of the stream.
    Message(HubMessage),
    /// Encoded already.
    Raw(Bytes),
}

/// The approximate bytes that a message takes in memory beside its payload.
const MESSAGE_OVERHEAD: usize = 256;

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

    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the properties of the registration. Only the first call has an effect.
    pub(super) fn set_registered(&self, name: &str, dialect: Dialect, manages: bool) {
        let name = name.into();
        let _ = self.registered.set(Registered {
            name,
            dialect,
            manages,
        });
    }

    /// The registered name; empty before the registration.
    pub(crate) fn name(&self) -> Arc<str> {
        let registered = self.registered.get();
        registered.map_or_else(Arc::default, |it| it.name.clone())
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.registered
            .get()
            .map_or(Dialect::Register, |it| it.dialect)
    }

    /// Reports whether the provider installs clips over its provider stream.
    pub(crate) fn manages(&self) -> bool {
        self.registered.get().is_some_and(|it| it.manages)
    }

    /// Describes the provider for a claim before its registration.
    pub(super) fn future_claimant(&self, name: &str, manages: bool) -> Claimant {
        Claimant::Provider {
            name: name.trim().into(),
            session: self.id.clone(),
            caller: self.caller.clone(),
            manages,
        }
    }

    /// Describes the provider for a claim in the cluster.
    pub(crate) fn claimant(&self) -> Claimant {
        Claimant::Provider {
            name: self.name(),
            session: self.id.clone(),
            caller: self.caller.clone(),
            manages: self.manages(),
        }
    }

    /// Returns the granted aliases of its clips, sorted.
    pub(crate) fn aliases(&self) -> Vec<String> {
        let state = self.state();
        let mut aliases: Vec<String> = state.clips.values().map(|it| it.alias.clone()).collect();
        aliases.sort();
        aliases
    }

    /// Returns the provider's own name of the clip with this granted alias.
    pub(super) fn name_at_provider(&self, alias: &str) -> Option<String> {
        let state = self.state();
        let mut clips = state.clips.values();
        let offered = clips.find(|offered| offered.alias == alias);
        offered.map(|offered| offered.clip.name.clone())
    }

    /// Returns the clip that the provider calls `name`.
    pub(super) fn offered(&self, name: &str) -> Option<Arc<RemoteClip>> {
        let name = pinion_clip::alias::normalise(name)?;
        let state = self.state();
        state.clips.get(&name).map(|offered| offered.clip.clone())
    }

    // ── Outgoing messages ──

    fn outgoing(&self, payload: Payload) -> Option<Outgoing> {
        match self.dialect() {
            Dialect::Register => Some(Outgoing::Message(HubMessage {
                payload: Some(payload),
            })),
            Dialect::Typed => typed::write(&payload).map(Outgoing::Raw),
        }
    }

    /// Sends a message as soon as there is room. Returns `false` if the session has ended.
    pub(super) async fn send(&self, payload: Payload, size: usize) -> bool {
        match self.outgoing(payload) {
            Some(message) => self.queue.put(message, size + MESSAGE_OVERHEAD).await,
            None => true,
        }
    }

    /// Sends a message if there is room now, and returns it with its size otherwise. `None` if it was sent or the
    /// session has ended.
    pub(super) fn send_now(&self, payload: Payload, size: usize) -> Option<(Outgoing, usize)> {
        let message = self.outgoing(payload)?;
        let size = size + MESSAGE_OVERHEAD;
        self.queue.offer(message, size).err().map(|it| (it, size))
    }

    /// Sends a short message without waiting.
    pub(super) fn push(&self, payload: Payload) {
        if let Some(message) = self.outgoing(payload) {
            self.queue.push(message);
        }
    }

    /// Sends the first message, which both dialects can read.
    pub(super) fn send_hello(&self, version: &str) {
        let millis =
            |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let hello = ProviderHello {
            session_id: (&self.id).into(),
            heartbeat_interval_ms: millis(self.limits.heartbeat_interval),
            heartbeat_timeout_ms: millis(self.limits.heartbeat_timeout),
            hub_version: Text::new(version),
        };
        self.queue.push(match self.codec {
            Codec::Json => Outgoing::Raw(typed::hello(&hello)),
            Codec::Proto => Outgoing::Message(HubMessage {
                payload: Some(Payload::ProviderHello(hello)),
            }),
        });
    }

    /// Sends the refusal of a registration.
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

    /// Adds a call, or fails if the session has ended or has the most calls already.
    pub(super) fn begin_call(
        &self,
        deadline: Option<Instant>,
    ) -> Result<Arc<PendingCall>, Failure> {
        let mut state = self.state();
        state.admits(&self.limits)?;
        let pending = Arc::new(PendingCall::new(deadline));
        state.calls.insert(pending.id.clone(), pending.clone());
        Ok(pending)
    }

    pub(super) fn call(&self, id: &str) -> Option<Arc<PendingCall>> {
        self.state().calls.get(id).cloned()
    }

    /// Reports whether the session has no other call and no file request.
    pub(super) fn is_alone(&self, pending: &PendingCall) -> bool {
        let state = self.state();
        state.requests.is_empty() && state.calls.len() == 1 && state.calls.contains_key(&pending.id)
    }

    /// Removes a call that the provider has completed.
    pub(super) fn remove_call(&self, pending: &PendingCall) {
        self.state().calls.remove(&pending.id);
    }

    /// Cancels a call. Parts that still arrive for it are dropped.
    pub(super) fn cancel_call(&self, pending: &PendingCall, failure: Failure) {
        let known = self.state().calls.remove(&pending.id).is_some();
        pending.fail(CallError::Unanswered(failure));
        self.room.notify_one();
        if known {
            self.push(Payload::InvokeCancel(InvokeCancel {
                request_id: pending.id.clone(),
                reason: pending.reason().into(),
            }));
        }
    }

    // ── Files ──

    /// Adds a request for a file, or fails as [`Self::begin_call`] does.
    pub(super) fn add_request(&self, id: Text, request: FileRequest) -> Result<(), Failure> {
        let mut state = self.state();
        state.admits(&self.limits)?;
        state.requests.insert(id, request);
        Ok(())
    }

    pub(super) fn take_request(&self, id: &str) -> Option<FileRequest> {
        self.state().requests.remove(id)
    }

    // ── The end ──

    /// Ends the session: it accepts nothing more, and all that waits fails. Returns its clips, or `None` if it had
    /// ended before.
    ///
    /// The caller removes the clips from the routing table and closes their logs.
    pub(super) fn end(
        &self,
        outcome: Result<(), Failure>,
    ) -> Option<BTreeMap<String, OfferedClip>> {
        let mut state = self.state();
        if state.outcome.is_some() {
            return None;
        }
        let on_close = match outcome {
            Ok(()) => OnClose::Send,
            Err(_) => OnClose::Drop,
        };
        state.outcome = Some(outcome);
        let calls = std::mem::take(&mut state.calls);
        let requests = std::mem::take(&mut state.requests);
        let maintenance = std::mem::take(&mut state.maintenance);
        let clips = std::mem::take(&mut state.clips);
        drop(state);
        self.queue.close(on_close);
        self.closed.cancel();
        for pending in calls.values() {
            pending.fail(CallError::Unanswered(disconnected()));
        }
        for request in requests.into_values() {
            match request {
                FileRequest::Web(answer) => drop(answer.send(Err(disconnected()))),
                FileRequest::Data(answer) => drop(answer.send(Err(disconnected()))),
            }
        }
        for request in maintenance {
            request.finish(Err(disconnected()));
        }
        Some(clips)
    }

    /// The result of the session; `Ok` while it runs.
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        self.state().outcome.clone().unwrap_or(Ok(()))
    }
}

impl SessionState {
    fn admits(&self, limits: &Limits) -> Result<(), Failure> {
        if self.outcome.is_some() {
            return Err(disconnected());
        }
        if self.calls.len() + self.requests.len() >= limits.calls {
            let message = format!(
                "the provider already has {} calls; try again later",
                limits.calls
            );
            return Err(Failure::new(Code::ResourceExhausted, message));
        }
        Ok(())
    }
}
