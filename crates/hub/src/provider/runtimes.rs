//! Runtimes: peers that install and remove clips when they are told to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use pinion_access::{Caller, Lease};
use pinion_clip::logs::Level;
use pinion_connect::{self as connect, Codec, Requests};
use pinion_proto::Text;
use pinion_proto::hub::hub_runtime_message::Payload as Said;
use pinion_proto::hub::runtime_message::Payload as Heard;
use pinion_proto::hub::{
    ClipInfo, Heartbeat, HubRuntimeMessage, InstallCommand, RemoveCommand, RuntimeMessage,
    RuntimeRegisterResponse,
};
use pinion_status::{Code, Failure};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ANEW;
use super::chores::overdue;
use super::sessions::{checked_name, may_replace, name_taken};
use crate::Hub;
use crate::convert::failure;
use crate::limits::Limits;
use crate::queue::{Queue, Rest};

/// How a request went: a clip, if there is one.
type Outcome = Result<Option<ClipInfo>, Failure>;

/// A runtime while it is connected.
#[derive(Debug)]
pub(crate) struct RuntimeSession {
    pub(crate) caller: Caller,
    pub(crate) connected: Timestamp,
    name: OnceLock<Arc<str>>,
    limits: Arc<Limits>,
    queue: Queue<HubRuntimeMessage>,
    closed: CancellationToken,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    outcome: Option<Result<(), Failure>>,
    pending: HashMap<Text, oneshot::Sender<Outcome>>,
}

impl RuntimeSession {
    fn new(caller: Caller, limits: Arc<Limits>) -> Self {
        Self {
            caller,
            connected: Timestamp::now(),
            name: OnceLock::new(),
            queue: Queue::new(&limits),
            limits,
            closed: CancellationToken::new(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name it registered with.
    pub(crate) fn name(&self) -> Arc<str> {
        self.name.get().cloned().unwrap_or_default()
    }

    /// Has a clip installed as `alias`.
    pub(super) async fn install(
        &self,
        source: &str,
        alias: &str,
        secret: &str,
    ) -> Result<ClipInfo, Failure> {
        let clip = self
            .ask(|request_id| {
                Said::InstallCommand(InstallCommand {
                    request_id,
                    source: Text::new(source),
                    alias: Text::new(alias),
                    clip_token: Text::new(secret),
                })
            })
            .await?;
        clip.ok_or_else(|| {
            let message = format!("runtime \"{}\" says nothing about the clip", self.name());
            Failure::new(Code::Internal, message)
        })
    }

    /// Has a clip removed.
    pub(super) async fn remove(&self, alias: &str, purge: bool) -> Result<(), Failure> {
        let removed = self.ask(|request_id| {
            Said::RemoveCommand(RemoveCommand {
                request_id,
                alias: Text::new(alias),
                purge,
            })
        });
        removed.await.map(drop)
    }

    async fn ask(&self, command: impl FnOnce(Text) -> Said) -> Outcome {
        let id: Text = uuid::Uuid::new_v4().to_string().into();
        let (done, end) = oneshot::channel();
        {
            let mut state = self.state();
            if state.outcome.is_some() {
                return Err(gone());
            }
            state.pending.insert(id.clone(), done);
        }
        let _forgotten = Forget(self, id.clone());
        let command = HubRuntimeMessage {
            payload: Some(command(id)),
        };
        let asking = async {
            if !self.queue.put(command, 1024).await {
                return Err(gone());
            }
            end.await.unwrap_or_else(|_| Err(gone()))
        };
        let end = tokio::time::timeout(self.limits.install, asking).await;
        end.unwrap_or_else(|_| Err(overdue(&self.name())))
    }

    fn settle(&self, id: &str, end: Outcome) {
        let pending = self.state().pending.remove(id);
        if let Some(pending) = pending {
            let _ = pending.send(end);
        }
    }

    fn say(&self, said: Said) {
        self.queue.push(HubRuntimeMessage {
            payload: Some(said),
        });
    }

    fn answer(&self, accepted: bool, message: &str) {
        self.say(Said::RegisterResponse(RuntimeRegisterResponse {
            accepted,
            message: Text::new(message),
        }));
    }

    fn end(&self, outcome: Result<(), Failure>) -> bool {
        let mut state = self.state();
        if state.outcome.is_some() {
            return false;
        }
        let rest = match outcome {
            Ok(()) => Rest::Send,
            Err(_) => Rest::Drop,
        };
        state.outcome = Some(outcome);
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        self.queue.finish(rest);
        self.closed.cancel();
        for pending in pending.into_values() {
            let _ = pending.send(Err(gone()));
        }
        true
    }
}

/// Forgets a request when nobody waits for it any more.
struct Forget<'a>(&'a RuntimeSession, Text);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.state().pending.remove(&self.1);
    }
}

/// That a runtime is no longer there.
fn gone() -> Failure {
    Failure::new(Code::Unavailable, "runtime disconnected")
}

/// Ends a session that is no longer served.
struct Served<'a>(&'a Hub, &'a Arc<RuntimeSession>);

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.0.dismiss_runtime(self.1, Err(gone()));
    }
}

impl Hub {
    /// `RuntimeStream`.
    pub(crate) async fn runtime_stream(
        self: Arc<Self>,
        caller: Caller,
        call: connect::IncomingCall,
    ) -> Result<(), Failure> {
        let lease = self.gate().watch(&caller);
        let session = Arc::new(RuntimeSession::new(caller, self.limits().clone()));
        let _served = Served(&self, &session);
        let (hub, listened) = (self.clone(), session.clone());
        let codec = call.context.codec;
        tokio::spawn(listen(hub, listened, call.requests, codec, lease));
        let mut answers = call.answers;
        while let Some(message) = session.queue.take().await {
            answers.send(&message).await?;
        }
        session.state().outcome.clone().unwrap_or(Ok(()))
    }

    fn register_runtime(&self, session: &Arc<RuntimeSession>, name: &str) -> Result<(), Failure> {
        let name = checked_name(name, "name")?;
        let mut connected = self.sessions().state();
        if let Some(provider) = connected.providers.get(name)
            && provider.caller.scope() != session.caller.scope()
        {
            return Err(name_taken(name));
        }
        if let Some(earlier) = connected.runtimes.get(name) {
            if !may_replace(&earlier.caller, &session.caller) {
                let message = format!("runtime \"{name}\" already connected");
                return Err(Failure::new(Code::AlreadyExists, message));
            }
            let message = format!("the runtime {ANEW}");
            earlier.end(Err(Failure::new(Code::Unavailable, message)));
        }
        let _ = session.name.set(name.into());
        connected.runtimes.insert(session.name(), session.clone());
        drop(connected);
        self.say(Level::Info, &format!("runtime \"{name}\" has connected"));
        Ok(())
    }

    pub(super) fn dismiss_runtime(
        &self,
        session: &Arc<RuntimeSession>,
        outcome: Result<(), Failure>,
    ) {
        if !session.end(outcome) {
            return;
        }
        let name = session.name();
        let mut connected = self.sessions().state();
        let known = connected.runtimes.get(&name);
        if known.is_some_and(|known| Arc::ptr_eq(known, session)) {
            connected.runtimes.remove(&name);
            drop(connected);
            self.say(Level::Info, &format!("runtime \"{name}\" has left"));
        }
    }
}

async fn listen(
    hub: Arc<Hub>,
    session: Arc<RuntimeSession>,
    mut requests: Requests,
    codec: Codec,
    lease: Lease,
) {
    let outcome = tokio::select! {
        () = session.closed.cancelled() => return,
        failure = lease.ended() => Err(failure),
        outcome = converse(&hub, &session, &mut requests, codec) => outcome,
    };
    hub.dismiss_runtime(&session, outcome);
}

async fn converse(
    hub: &Hub,
    session: &Arc<RuntimeSession>,
    requests: &mut Requests,
    codec: Codec,
) -> Result<(), Failure> {
    let limit = session.limits.first_message;
    let first = tokio::time::timeout(limit, requests.next::<RuntimeMessage>()).await;
    let first = first.unwrap_or_else(|_| {
        let message = format!(
            "the runtime has not registered within {} s",
            limit.as_secs()
        );
        Err(Failure::new(Code::DeadlineExceeded, message))
    })?;
    let Some(first) = first else {
        return Ok(());
    };
    let Some(Heard::Register(register)) = first.payload else {
        session.answer(false, "first runtime message must be register");
        return Ok(());
    };
    if let Err(failure) = hub.register_runtime(session, &register.name) {
        session.answer(false, &failure.message);
        return Ok(());
    }
    session.answer(true, "registered");
    let silence = session.limits.silence;
    // Those who never greet are asked by HTTP/2 whether they are there.
    let mut judged = codec == Codec::Json;
    let mut last = Instant::now();
    let timed_out = || Failure::new(Code::Unavailable, "heartbeat timeout");
    loop {
        if session.queue.stalled() >= silence {
            return Err(timed_out());
        }
        let left = match judged {
            true => (last + silence).saturating_duration_since(Instant::now()),
            false => silence / 2,
        };
        let left = left.max(Duration::from_millis(1));
        let Ok(next) = tokio::time::timeout(left, requests.next::<RuntimeMessage>()).await else {
            if judged && last.elapsed() >= silence {
                return Err(timed_out());
            }
            continue;
        };
        let Some(message) = next? else {
            return Ok(());
        };
        last = Instant::now();
        match message.payload {
            Some(Heard::Ping(Heartbeat { sent_at_unix_ms })) => {
                judged = true;
                let pong = HubRuntimeMessage {
                    payload: Some(Said::Pong(Heartbeat { sent_at_unix_ms })),
                };
                tokio::select! {
                    _ = session.queue.put(pong, 0) => {}
                    () = session.queue.abandoned(silence) => return Err(timed_out()),
                }
            }
            Some(Heard::InstallResult(result)) => {
                let end = match &result.error {
                    Some(error) => Err(failure(error)),
                    None => Ok(result.clip),
                };
                session.settle(&result.request_id, end);
            }
            Some(Heard::RemoveResult(result)) => {
                let end = result.error.as_ref().map(failure);
                session.settle(&result.request_id, end.map_or(Ok(None), Err));
            }
            Some(Heard::Register(_)) => {
                return Err(Failure::invalid("register message is only allowed once"));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use pinion_access::{Principal, Via};

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_is_forgotten() {
        let caller = Caller {
            principal: Principal::Super,
            token: None,
            via: Via::Nothing,
        };
        let session = RuntimeSession::new(caller, Arc::default());
        for _ in 0..3 {
            let mut asking = Box::pin(session.install("@acme/todo", "todo", ""));
            assert!(asking.as_mut().now_or_never().is_none());
            assert_eq!(session.state().pending.len(), 1);
            drop(asking);
            assert!(session.state().pending.is_empty());
        }
    }
}
