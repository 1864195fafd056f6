//! Runtimes: peers that install and remove clips on request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use pinion_access::{Caller, Lease};
use pinion_clip::logs::Level;
use pinion_connect::{self as connect, Codec, Requests};
use pinion_proto::Text;
use pinion_proto::hub::hub_runtime_message::Payload as ToRuntime;
use pinion_proto::hub::runtime_message::Payload as FromRuntime;
use pinion_proto::hub::{
    ClipInfo, Heartbeat, HubRuntimeMessage, InstallCommand, RemoveCommand, RuntimeMessage,
    RuntimeRegisterResponse,
};
use pinion_status::{Code, Failure};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::RECONNECTED;
use super::maintenance::overdue;
use super::sessions::{checked_name, may_replace, name_taken};
use crate::Hub;
use crate::convert::failure;
use crate::limits::Limits;
use crate::queue::{OnClose, Queue};

/// The result of a request; an installation returns the clip.
type RequestOutcome = Result<Option<ClipInfo>, Failure>;

/// A connected runtime.
#[derive(Debug)]
pub(crate) struct RuntimeSession {
    pub(crate) caller: Caller,
    pub(crate) connected: Timestamp,
    name: OnceLock<Arc<str>>,
    limits: Arc<Limits>,
    queue: Queue<HubRuntimeMessage>,
    closed: CancellationToken,
    state: Mutex<RuntimeState>,
}

#[derive(Debug, Default)]
struct RuntimeState {
    outcome: Option<Result<(), Failure>>,
    pending: HashMap<Text, oneshot::Sender<RequestOutcome>>,
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

    fn state(&self) -> MutexGuard<'_, RuntimeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The registered name; empty before the registration.
    pub(crate) fn name(&self) -> Arc<str> {
        self.name.get().cloned().unwrap_or_default()
    }

    /// Requests the installation of a clip as `alias`.
    pub(super) async fn install(
        &self,
        source: &str,
        alias: &str,
        secret: &str,
    ) -> Result<ClipInfo, Failure> {
        let clip = self
            .ask(|request_id| {
                ToRuntime::InstallCommand(InstallCommand {
                    request_id,
                    source: Text::new(source),
                    alias: Text::new(alias),
                    clip_token: Text::new(secret),
                })
            })
            .await?;
        clip.ok_or_else(|| {
            let message = format!(
                "runtime \"{}\" reported success without a clip",
                self.name()
            );
            Failure::new(Code::Internal, message)
        })
    }

    /// Requests the removal of a clip.
    pub(super) async fn remove(&self, alias: &str, purge: bool) -> Result<(), Failure> {
        let removed = self.ask(|request_id| {
            ToRuntime::RemoveCommand(RemoveCommand {
                request_id,
                alias: Text::new(alias),
                purge,
            })
        });
        removed.await.map(drop)
    }

    async fn ask(&self, command: impl FnOnce(Text) -> ToRuntime) -> RequestOutcome {
        let id: Text = uuid::Uuid::new_v4().to_string().into();
        let (done, end) = oneshot::channel();
        {
            let mut state = self.state();
            if state.outcome.is_some() {
                return Err(disconnected());
            }
            state.pending.insert(id.clone(), done);
        }
        let _guard = RemoveOnDrop(self, id.clone());
        let command = HubRuntimeMessage {
            payload: Some(command(id)),
        };
        let asking = async {
            if !self.queue.put(command, 1024).await {
                return Err(disconnected());
            }
            end.await.unwrap_or_else(|_| Err(disconnected()))
        };
        let end = tokio::time::timeout(self.limits.install_timeout, asking).await;
        end.unwrap_or_else(|_| Err(overdue(&self.name())))
    }

    fn finish_request(&self, id: &str, end: RequestOutcome) {
        let pending = self.state().pending.remove(id);
        if let Some(pending) = pending {
            let _ = pending.send(end);
        }
    }

    fn push(&self, message: ToRuntime) {
        self.queue.push(HubRuntimeMessage {
            payload: Some(message),
        });
    }

    fn answer(&self, accepted: bool, message: &str) {
        self.push(ToRuntime::RegisterResponse(RuntimeRegisterResponse {
            accepted,
            message: Text::new(message),
        }));
    }

    fn end(&self, outcome: Result<(), Failure>) -> bool {
        let mut state = self.state();
        if state.outcome.is_some() {
            return false;
        }
        let on_close = match outcome {
            Ok(()) => OnClose::Send,
            Err(_) => OnClose::Drop,
        };
        state.outcome = Some(outcome);
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        self.queue.close(on_close);
        self.closed.cancel();
        for pending in pending.into_values() {
            let _ = pending.send(Err(disconnected()));
        }
        true
    }
}

/// Removes a request when its caller stops waiting.
struct RemoveOnDrop<'a>(&'a RuntimeSession, Text);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        self.0.state().pending.remove(&self.1);
    }
}

/// The failure of requests whose runtime has disconnected.
fn disconnected() -> Failure {
    Failure::new(Code::Unavailable, "runtime disconnected")
}

/// Ends a session when its runtime has dropped the stream.
struct EndOnDrop<'a>(&'a Hub, &'a Arc<RuntimeSession>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end_runtime(self.1, Err(disconnected()));
    }
}

impl Hub {
    /// Serves `RuntimeStream`.
    pub(crate) async fn runtime_stream(
        self: Arc<Self>,
        caller: Caller,
        call: connect::IncomingCall,
    ) -> Result<(), Failure> {
        let lease = self.gate().watch(&caller);
        let session = Arc::new(RuntimeSession::new(caller, self.limits().clone()));
        let _guard = EndOnDrop(&self, &session);
        let (hub, listened_session) = (self.clone(), session.clone());
        let codec = call.context.codec;
        tokio::spawn(listen(hub, listened_session, call.requests, codec, lease));
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
            let message = format!("the runtime {RECONNECTED}");
            earlier.end(Err(Failure::new(Code::Unavailable, message)));
        }
        let _ = session.name.set(name.into());
        connected.runtimes.insert(session.name(), session.clone());
        drop(connected);
        self.write_log(Level::Info, &format!("runtime \"{name}\" has connected"));
        Ok(())
    }

    pub(super) fn end_runtime(&self, session: &Arc<RuntimeSession>, outcome: Result<(), Failure>) {
        if !session.end(outcome) {
            return;
        }
        let name = session.name();
        let mut connected = self.sessions().state();
        let known = connected.runtimes.get(&name);
        if known.is_some_and(|known| Arc::ptr_eq(known, session)) {
            connected.runtimes.remove(&name);
            drop(connected);
            self.write_log(Level::Info, &format!("runtime \"{name}\" has left"));
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
        outcome = run_stream(&hub, &session, &mut requests, codec) => outcome,
    };
    hub.end_runtime(&session, outcome);
}

async fn run_stream(
    hub: &Hub,
    session: &Arc<RuntimeSession>,
    requests: &mut Requests,
    codec: Codec,
) -> Result<(), Failure> {
    let limit = session.limits.first_message_timeout;
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
    let Some(FromRuntime::Register(register)) = first.payload else {
        session.answer(false, "first runtime message must be register");
        return Ok(());
    };
    if let Err(failure) = hub.register_runtime(session, &register.name) {
        session.answer(false, &failure.message);
        return Ok(());
    }
    session.answer(true, "registered");
    let heartbeat_timeout = session.limits.heartbeat_timeout;
    // Other runtimes are probed by HTTP/2 itself until they send a ping.
    let mut requires_messages = codec == Codec::Json;
    let mut last_message = Instant::now();
    let timed_out = || Failure::new(Code::Unavailable, "heartbeat timeout");
    loop {
        if session.queue.stalled() >= heartbeat_timeout {
            return Err(timed_out());
        }
        let left = if requires_messages {
            (last_message + heartbeat_timeout).saturating_duration_since(Instant::now())
        } else {
            heartbeat_timeout / 2
        };
        let left = left.max(Duration::from_millis(1));
        let Ok(next) = tokio::time::timeout(left, requests.next::<RuntimeMessage>()).await else {
            if requires_messages && last_message.elapsed() >= heartbeat_timeout {
                return Err(timed_out());
            }
            continue;
        };
        let Some(message) = next? else {
            return Ok(());
        };
        last_message = Instant::now();
        match message.payload {
            Some(FromRuntime::Ping(Heartbeat { sent_at_unix_ms })) => {
                requires_messages = true;
                let pong = HubRuntimeMessage {
                    payload: Some(ToRuntime::Pong(Heartbeat { sent_at_unix_ms })),
                };
                tokio::select! {
                    _ = session.queue.put(pong, 0) => {}
                    () = session.queue.wait_until_stalled(heartbeat_timeout) => return Err(timed_out()),
                }
            }
            Some(FromRuntime::InstallResult(result)) => {
                let end = match &result.error {
                    Some(error) => Err(failure(error)),
                    None => Ok(result.clip),
                };
                session.finish_request(&result.request_id, end);
            }
            Some(FromRuntime::RemoveResult(result)) => {
                let end = result.error.as_ref().map(failure);
                session.finish_request(&result.request_id, end.map_or(Ok(None), Err));
            }
            Some(FromRuntime::Register(_)) => {
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
    async fn requests_without_a_waiting_caller_are_removed() {
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
