//! What a provider says, from its first message to its last.

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

use super::flow::{Flow, Push};
use super::heard::{self, Dialect, Heard, Log, Part};
use super::session::{Asked, Outgoing, Session};
use super::typed::{self, Granted};
use crate::Hub;
use crate::table::Departure;

/// How a session ended, and whether its provider may be expected back.
pub(super) type End = (Result<(), Failure>, Departure);

/// Listens to a provider until it has nothing more to say, or should not be listened to.
pub(super) async fn listen(hub: &Hub, session: &Arc<Session>, requests: &mut Requests) -> End {
    let limit = session.limits.first_message;
    match tokio::time::timeout(limit, introduction(hub, session, requests)).await {
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
    let mut listening = Listening {
        hub,
        session,
        dialect,
        // Others are asked by HTTP/2 whether they are there.
        judged: session.codec == Codec::Json,
        last: Instant::now(),
        greet: (dialect == Dialect::Typed).then(|| Instant::now() + session.limits.heartbeat),
    };
    match listening.run(requests).await {
        Ok(never) => match never {},
        Err(end) => end,
    }
}

/// The messages up to the registration.
async fn introduction(
    hub: &Hub,
    session: &Arc<Session>,
    requests: &mut Requests,
) -> Result<(), End> {
    loop {
        let message = next(requests).await?;
        let length = message.len();
        let dialect = heard::dialect(&message, session.codec).map_err(broken_rule)?;
        let heard = heard::read(message, session.codec, dialect).map_err(broken_rule)?;
        let (name, clips, manages) = match (heard, dialect) {
            (Heard::Register { provider, clips }, _) => (provider, clips, false),
            (
                Heard::Clips {
                    provider,
                    clips,
                    manages,
                },
                Dialect::Typed,
            ) => {
                let made_up = || format!("provider-{}", &session.id[..8]);
                (provider.unwrap_or_else(made_up), clips, manages)
            }
            (Heard::Heartbeat | Heard::Log(_), Dialect::Typed) => continue,
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
        let registered = fits(length, session)
            .and(clips)
            .and_then(|clips| hub.register(session, &name, dialect, manages, clips, answer));
        if let Err(failure) = registered {
            hub.say(
                Level::Warn,
                &format!("provider \"{name}\" was refused: {failure}"),
            );
            return Err(refusal(session, dialect, &failure.message));
        }
        return Ok(());
    }
}

/// A registration is not accepted: this is said, and the stream ends well.
fn refusal(session: &Session, dialect: Dialect, message: &str) -> End {
    session.refuse(dialect, message);
    (Ok(()), Departure::InOrder)
}

/// The provider does what it may not.
fn broken_rule(failure: Failure) -> End {
    (Err(failure), Departure::InOrder)
}

fn fits(length: usize, session: &Session) -> Result<(), Failure> {
    let most = session.limits.registration;
    if length <= most {
        return Ok(());
    }
    let message = format!("the registration has {length} bytes, it may have {most}");
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

struct Listening<'a> {
    hub: &'a Hub,
    session: &'a Arc<Session>,
    dialect: Dialect,
    /// Whether silence is held against it.
    judged: bool,
    /// When it last said something.
    last: Instant,
    /// When it is to be greeted next.
    greet: Option<Instant>,
}

impl Listening<'_> {
    async fn run(&mut self, requests: &mut Requests) -> Result<Never, End> {
        let alarm = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(alarm);
        loop {
            alarm.as_mut().reset(self.look()?);
            loop {
                tokio::select! {
                    biased;
                    message = next(requests) => self.hear(message?).await?,
                    () = &mut alarm => break,
                }
                // The time it was not listened to is not its silence.
                self.last = Instant::now();
                // Who speaks all the time is looked at all the same.
                if alarm.deadline() <= self.last {
                    break;
                }
            }
        }
    }

    /// Looks whether it is still there, greets it when it is time, and tells when to look again.
    fn look(&mut self) -> Result<Instant, End> {
        let (limits, now) = (&self.session.limits, Instant::now());
        let silent = self.last + limits.silence;
        if self.judged && silent <= now || self.session.queue.stalled() >= limits.silence {
            return Err(timed_out());
        }
        if self.greet.is_some_and(|at| at <= now) {
            self.session.push(Payload::Pong(Heartbeat {
                sent_at_unix_ms: Timestamp::now().as_millisecond(),
            }));
            self.greet = Some(now + limits.heartbeat);
        }
        let soon = now + limits.silence.min(limits.heartbeat) / 2;
        let next = [self.greet, self.judged.then_some(silent)];
        Ok(next.into_iter().flatten().fold(soon, Instant::min))
    }

    async fn hear(&mut self, message: Bytes) -> Result<(), End> {
        let (hub, session) = (self.hub, self.session);
        let length = message.len();
        match heard::read(message, session.codec, self.dialect).map_err(broken_rule)? {
            Heard::Part(part) => self.part(part).await,
            Heard::Ping(sent_at_unix_ms) => {
                self.judged = true;
                // One that does not read is not waited for, however much it says.
                tokio::select! {
                    _ = session.send(Payload::Pong(Heartbeat { sent_at_unix_ms }), 0) => {}
                    () = session.queue.abandoned(session.limits.silence) => {
                        return Err(timed_out());
                    }
                }
            }
            Heard::Register { .. } => {
                let message = "register message is only allowed once";
                return Err(broken_rule(Failure::invalid(message)));
            }
            Heard::Clips { clips, .. } => {
                let typed = self.dialect == Dialect::Typed;
                let answer = |granted: &[Granted]| {
                    if typed {
                        let message = typed::registered(granted);
                        session.queue.push(Outgoing::Raw(message));
                    }
                };
                let added = fits(length, session)
                    .and(clips)
                    .and_then(|clips| hub.add(session, self.dialect, clips, answer));
                match (added, self.dialect) {
                    (Ok(granted), Dialect::Typed) => session.note_registered(&granted),
                    (Ok(_), Dialect::Register) => {}
                    (Err(failure), Dialect::Typed) => {
                        return Err(refusal(session, self.dialect, &failure.message));
                    }
                    (Err(failure), Dialect::Register) => return Err(broken_rule(failure)),
                }
            }
            Heard::Removed(names) => {
                hub.withdraw(session, &names);
                session.note_removed(&names);
            }
            Heard::Status(name, status) => {
                if let Some(clip) = session.offered(&name) {
                    clip.turn(status);
                }
            }
            Heard::Web(result) => {
                if let Some(Asked::Web(answer)) = session.expected(&result.request_id) {
                    let _ = answer.send(Ok(result));
                }
            }
            Heard::Data(result) => {
                if let Some(Asked::Data(answer)) = session.expected(&result.request_id) {
                    let _ = answer.send(Ok(result));
                }
            }
            Heard::Log(log) => self.log(&log),
            Heard::Heartbeat | Heard::Nothing => {}
        }
        Ok(())
    }

    fn log(&self, log: &Log) {
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
            self.session.note_trouble(log);
        }
    }

    async fn part(&self, part: Part) {
        let session = self.session;
        let Some(flow) = session.call(&part.id) else {
            return;
        };
        if let Some(failure) = part.error {
            session.settle(&flow);
            flow.fail(CallError::Answered(failure));
        } else if part.done {
            session.settle(&flow);
            flow.complete(part.output);
        } else if !part.output.is_empty() {
            self.deliver(&flow, part.output).await;
        }
    }

    /// Gives a part of an answer to its caller, and waits for one who is slow to read.
    async fn deliver(&self, flow: &Flow, mut chunk: Bytes) {
        let (session, limits) = (self.session, &self.session.limits);
        let mut alone = Duration::ZERO;
        loop {
            let room = session.room.notified();
            match flow.push(chunk, limits) {
                Push::Done => return,
                Push::Full(back) => chunk = back,
            }
            let since = Instant::now();
            if session.is_alone(flow) {
                // Looked at again before long: others may have come meanwhile.
                let _ = tokio::time::timeout(limits.patience, room).await;
                alone += since.elapsed();
                if alone < limits.patience_alone {
                    continue;
                }
            } else if let Some(patience) = limits.patience.checked_sub(flow.stalled())
                && !patience.is_zero()
            {
                let _ = tokio::time::timeout(patience, room).await;
                flow.stall(since.elapsed());
                continue;
            }
            let message = "the answer comes faster than it is read, and others wait behind it";
            let failure = Failure::new(Code::ResourceExhausted, message);
            return session.abandon(flow, failure);
        }
    }
}
