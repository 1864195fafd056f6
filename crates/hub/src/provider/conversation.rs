//! Reading a provider's messages, from the registration to the end of the stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use pinion_clip::CallError;
use pinion_clip::logs::{Level, Origin};
use pinion_connect::{Codec, Requests};
use pinion_proto::hub::hub_message::Payload;
use pinion_proto::hub::{Heartbeat, RegisterResponse};
use pinion_status::{Code, Failure};
use tokio::time::Instant;

use super::incoming::{self, AnswerPart, Dialect, FromProvider, LogLine};
use super::pending_call::{PendingCall, PushResult};
use super::session::{FileRequest, Outgoing, Session};
use super::typed::{self, Granted};
use crate::Hub;
use crate::table::Departure;

/// The result of a session, and whether its provider may reconnect.
pub(super) type End = (Result<(), Failure>, Departure);

/// Reads messages until the provider closes the stream, breaks the protocol or times out.
pub(super) async fn listen(hub: &Hub, session: &Arc<Session>, requests: &mut Requests) -> End {
    let limit = session.limits.first_message_timeout;
    match tokio::time::timeout(limit, await_registration(hub, session, requests)).await {
        Ok(Ok(())) => {}
        Ok(Err(end)) => return end,
        Err(_) => {
            let message = format!(
                "the provider has not registered within {} s",
                limit.as_secs()
            );
            let failure = Failure::new(Code::DeadlineExceeded, message);
            return (Err(failure), Departure::InOrder);
        }
    }
    let dialect = session.dialect();
    let mut listener = Listener {
        hub,
        session,
        dialect,
        // Providers of other codecs are probed by HTTP/2 itself.
        requires_messages: session.codec == Codec::Json,
        last_message: Instant::now(),
        next_heartbeat: (dialect == Dialect::Typed)
            .then(|| Instant::now() + session.limits.heartbeat_interval),
    };
    match listener.run(requests).await {
        Ok(never) => match never {},
        Err(end) => end,
    }
}

/// Reads messages up to the registration and answers it.
async fn await_registration(
    hub: &Hub,
    session: &Arc<Session>,
    requests: &mut Requests,
) -> Result<(), End> {
    loop {
        let message = next(requests).await?;
        let length = message.len();
        let dialect = incoming::dialect(&message, session.codec).map_err(protocol_error)?;
        let message_read =
            incoming::read(message, session.codec, dialect).map_err(protocol_error)?;
        let (name, clips, manages) = match (message_read, dialect) {
            (FromProvider::Register { provider, clips }, _) => (provider, clips, false),
            (
                FromProvider::Clips {
                    provider,
                    clips,
                    manages,
                },
                Dialect::Typed,
            ) => {
                let generated = || format!("provider-{}", &session.id[..8]);
                (provider.unwrap_or_else(generated), clips, manages)
            }
            (FromProvider::Heartbeat | FromProvider::Log(_), Dialect::Typed) => continue,
            _ => {
                let wanted = match dialect {
                    Dialect::Register => "register",
                    Dialect::Typed => "RegisterClips",
                };
                let message = format!("first provider message must be {wanted}");
                return Err(refusal(session, dialect, &message));
            }
        };
        let answer = |granted: &[Granted]| match dialect {
            Dialect::Typed => session
                .queue
                .push(Outgoing::Raw(typed::registered(granted))),
            Dialect::Register => session.push(Payload::RegisterResponse(RegisterResponse {
                accepted: true,
                message: "registered".into(),
                ..RegisterResponse::default()
            })),
        };
        let registering = async {
            let mut clips = check_registration_size(length, session).and(clips)?;
            // Held until the clips are in the routing table.
            let claimant = session.future_claimant(&name, manages);
            let _claimed = hub
                .claim_clips(session, claimant, dialect, &mut clips)
                .await?;
            hub.register(session, &name, dialect, manages, clips, answer)
        };
        let registered: Result<(), Failure> = Box::pin(registering).await;
        if let Err(failure) = registered {
            hub.write_log(
                Level::Warn,
                &format!("provider \"{name}\" was refused: {failure}"),
            );
            return Err(refusal(session, dialect, &failure.message));
        }
        return Ok(());
    }
}

/// Sends a refusal; the stream then ends without an error.
fn refusal(session: &Session, dialect: Dialect, message: &str) -> End {
    session.refuse(dialect, message);
    (Ok(()), Departure::InOrder)
}

/// Ends a session whose provider broke the protocol.
fn protocol_error(failure: Failure) -> End {
    (Err(failure), Departure::InOrder)
}

fn check_registration_size(length: usize, session: &Session) -> Result<(), Failure> {
    let most = session.limits.registration;
    if length <= most {
        return Ok(());
    }
    let message = format!("the registration has {length} bytes; at most {most} are allowed");
    Err(Failure::new(Code::ResourceExhausted, message))
}

fn timed_out() -> End {
    let failure = Failure::new(Code::Unavailable, "heartbeat timeout");
    (Err(failure), Departure::Lost)
}

async fn next(requests: &mut Requests) -> Result<Bytes, End> {
    match requests.next_raw().await {
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err((Ok(()), Departure::InOrder)),
        Err(failure) => Err((Err(failure), Departure::Lost)),
    }
}

enum Never {}

struct Listener<'a> {
    hub: &'a Hub,
    session: &'a Arc<Session>,
    dialect: Dialect,
    /// The session ends if the provider sends nothing for the heartbeat timeout.
    requires_messages: bool,
    /// The time of the provider's latest message.
    last_message: Instant,
    /// The time of the next heartbeat to the provider, if it expects them.
    next_heartbeat: Option<Instant>,
}

impl Listener<'_> {
    async fn run(&mut self, requests: &mut Requests) -> Result<Never, End> {
        let timer = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(timer);
        loop {
            timer.as_mut().reset(self.check_liveness()?);
            loop {
                tokio::select! {
                    biased;
                    message = next(requests) => self.handle(message?).await?,
                    () = &mut timer => break,
                }
                // The time that the hub spent on a message does not count as silence of the provider.
                self.last_message = Instant::now();
                // A provider that sends without a pause must not delay the check.
                if timer.deadline() <= self.last_message {
                    break;
                }
            }
        }
    }

    /// Fails if the provider has timed out, sends a due heartbeat, and returns the time of the next check.
    fn check_liveness(&mut self) -> Result<Instant, End> {
        let (limits, now) = (&self.session.limits, Instant::now());
        let silent = self.last_message + limits.heartbeat_timeout;
        if self.requires_messages && silent <= now
            || self.session.queue.stalled() >= limits.heartbeat_timeout
        {
            return Err(timed_out());
        }
        if self.next_heartbeat.is_some_and(|at| at <= now) {
            self.session.push(Payload::Pong(Heartbeat {
                sent_at_unix_ms: Timestamp::now().as_millisecond(),
            }));
            self.next_heartbeat = Some(now + limits.heartbeat_interval);
        }
        let soon = now + limits.heartbeat_timeout.min(limits.heartbeat_interval) / 2;
        let next = [
            self.next_heartbeat,
            self.requires_messages.then_some(silent),
        ];
        Ok(next.into_iter().flatten().fold(soon, Instant::min))
    }

    async fn handle(&mut self, message: Bytes) -> Result<(), End> {
        let (hub, session) = (self.hub, self.session);
        let length = message.len();
        match incoming::read(message, session.codec, self.dialect).map_err(protocol_error)? {
            FromProvider::Part(answer_part) => self.answer_part(answer_part).await,
            FromProvider::Ping(sent_at_unix_ms) => {
                self.requires_messages = true;
                // Pongs do not wait without end for a provider that sends but does not read.
                tokio::select! {
                    _ = session.send(Payload::Pong(Heartbeat { sent_at_unix_ms }), 0) => {}
                    () = session.queue.wait_until_stalled(session.limits.heartbeat_timeout) => {
                        return Err(timed_out());
                    }
                }
            }
            FromProvider::Register { .. } => {
                let message = "register message is only allowed once";
                return Err(protocol_error(Failure::invalid(message)));
            }
            FromProvider::Clips { clips, .. } => {
                let typed = self.dialect == Dialect::Typed;
                let answer = |granted: &[Granted]| {
                    if typed {
                        let message = typed::registered(granted);
                        session.queue.push(Outgoing::Raw(message));
                    }
                };
                let adding = async {
                    let mut clips = check_registration_size(length, session).and(clips)?;
                    let claimant = session.claimant();
                    let _claimed = hub
                        .claim_clips(session, claimant, self.dialect, &mut clips)
                        .await?;
                    hub.add(session, self.dialect, clips, answer)
                };
                let added: Result<Vec<Granted>, Failure> = Box::pin(adding).await;
                match (added, self.dialect) {
                    (Ok(granted), Dialect::Typed) => session.note_registered(&granted),
                    (Ok(_), Dialect::Register) => {}
                    (Err(failure), Dialect::Typed) => {
                        return Err(refusal(session, self.dialect, &failure.message));
                    }
                    (Err(failure), Dialect::Register) => return Err(protocol_error(failure)),
                }
            }
            FromProvider::Removed(names) => {
                hub.withdraw(session, &names);
                session.note_removed(&names);
            }
            FromProvider::Status(name, status) => {
                if let Some(clip) = session.offered(&name) {
                    clip.set_status(status);
                }
            }
            FromProvider::Web(result) => {
                if let Some(FileRequest::Web(answer)) = session.take_request(&result.request_id) {
                    let _ = answer.send(Ok(result));
                }
            }
            FromProvider::Data(result) => {
                if let Some(FileRequest::Data(answer)) = session.take_request(&result.request_id) {
                    let _ = answer.send(Ok(result));
                }
            }
            FromProvider::Log(log) => self.log(&log),
            FromProvider::Heartbeat | FromProvider::Nothing => {}
        }
        Ok(())
    }

    fn log(&self, log: &LogLine) {
        let level = Level::parse(&log.level);
        if let Some(clip) = self.session.offered(&log.clip) {
            let lines = clip.own_log();
            match log.time {
                Some(time) => lines.push_with_time(time, level, Origin::Provider, &log.message),
                None => lines.push(level, Origin::Provider, &log.message),
            }
        } else if log.clip.is_empty() {
            let line = format!("provider \"{}\": {}", self.session.name(), log.message);
            self.hub.log().push(level, Origin::Provider, &line);
        }
        if level == Level::Error {
            self.session.note_error(log);
        }
    }

    async fn answer_part(&self, answer_part: AnswerPart) {
        let session = self.session;
        let Some(pending) = session.call(&answer_part.id) else {
            return;
        };
        if let Some(failure) = answer_part.error {
            session.remove_call(&pending);
            pending.fail(CallError::Answered(failure));
        } else if answer_part.done {
            session.remove_call(&pending);
            pending.complete(answer_part.output);
        } else if !answer_part.output.is_empty() {
            self.deliver(&pending, answer_part.output).await;
        }
    }

    /// Queues a part of an answer for its caller, and waits if the caller reads slowly.
    async fn deliver(&self, pending: &PendingCall, mut chunk: Bytes) {
        let (session, limits) = (self.session, &self.session.limits);
        let mut alone = Duration::ZERO;
        loop {
            let room = session.room.notified();
            match pending.push(chunk, limits) {
                PushResult::Done => return,
                PushResult::Full(back) => chunk = back,
            }
            let since = Instant::now();
            if session.is_alone(pending) {
                // Checked again soon: other calls may have started meanwhile.
                let _ = tokio::time::timeout(limits.slow_reader_wait, room).await;
                alone += since.elapsed();
                if alone < limits.lone_reader_wait {
                    continue;
                }
            } else if let Some(wait) = limits.slow_reader_wait.checked_sub(pending.stalled())
                && !wait.is_zero()
            {
                let _ = tokio::time::timeout(wait, room).await;
                pending.add_stalled(since.elapsed());
                continue;
            }
            let message = "the answer is read too slowly and delays other calls";
            let failure = Failure::new(Code::ResourceExhausted, message);
            return session.cancel_call(pending, failure);
        }
    }
}
