//! The side of a conversation that opens it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use pinion_hub::{Input, PartPosition};
use pinion_proto::Binary;
use pinion_proto::cluster::{Caller, InputEnd, Open, Ping, item::What, open};
use pinion_status::{Code, Failure};
use pinion_sync::lock;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::conversation::{Arrived, Conversation, End, cancel};
use super::{MAX_FRAME_DATA, OPENING_TIMEOUT, Talk, WIRE};
use crate::members::Presence;
use crate::names::ProcessId;

/// The silence after which the callee is asked whether it still knows the conversation.
const PING_AFTER: Duration = Duration::from_secs(5);
const PONG_TIMEOUT: Duration = Duration::from_secs(3);
/// The type of the detail from which a client learns if a failed call may have run.
pub const OUTCOME_DETAIL: &str = "pinion.cluster.v1.Outcome";

/// The knowledge about a call that failed between hubs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There is proof that no clip has received it.
    NotStarted,
    /// It may have run.
    Unknown,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::NotStarted => "not-started",
            Self::Unknown => "unknown",
        }
    }

    /// Adds the outcome to a failure, for programs that decide whether to call again.
    pub fn note(self, failure: Failure) -> Failure {
        failure.with_detail(OUTCOME_DETAIL, self.name().as_bytes())
    }
}

/// A conversation to open.
#[derive(Debug, Clone)]
pub struct NewCall {
    pub alias: String,
    pub caller: Caller,
    pub secret: String,
    pub what: open::What,
    /// The whole first message, of which the opening carries the beginning.
    pub body: Bytes,
    pub deadline: Option<Instant>,
    pub patience: Option<Instant>,
    pub more_input: bool,
}

/// The failure of an opening.
#[derive(Debug)]
pub struct NotOpened {
    pub failure: Failure,
    pub outcome: Outcome,
    /// The route may be another one by now: the revision from which on the refusing hub knows it, or 0.
    pub moved: Option<u64>,
}

/// The failure of an open conversation.
#[derive(Debug)]
pub struct CallFailed {
    pub failure: Failure,
    /// The clip reported the failure.
    pub answered: bool,
}

/// An open conversation. Dropping it cancels the call.
#[derive(Debug)]
pub struct Call {
    talk: Arc<Talk>,
    conversation: Arc<Conversation>,
    feeding: Option<AbortHandle>,
    is_finished: bool,
    pinged_at: Option<Instant>,
}

fn unavailable(message: &'static str) -> Failure {
    Failure::new(Code::Unavailable, message)
}

fn not_started(failure: Failure) -> NotOpened {
    NotOpened {
        failure,
        outcome: Outcome::NotStarted,
        moved: None,
    }
}

fn unknown(failure: Failure) -> NotOpened {
    NotOpened {
        failure,
        outcome: Outcome::Unknown,
        moved: None,
    }
}

fn left(deadline: Option<Instant>) -> i64 {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    // 0 means that there is no limit.
    left.map_or(0, |left| {
        i64::try_from(left.as_millis()).unwrap_or(i64::MAX).max(1)
    })
}

impl Talk {
    /// Opens a conversation and waits for its first frame. Sends the opening once.
    pub async fn open(self: &Arc<Self>, to: &ProcessId, new: &NewCall) -> Result<Call, NotOpened> {
        match self.presence(to) {
            Presence::There => {}
            Presence::Suspect | Presence::Unheard => {
                let failure =
                    unavailable("the hub that runs the clip does not answer; try again later");
                return Err(not_started(failure));
            }
        }
        let Some((epoch, link)) = self.link() else {
            let failure = unavailable("this hub has no connection to the cluster; try again later");
            return Err(not_started(failure));
        };
        let window = self.window(to);
        let conversation = self.add(to.clone(), None, window);
        let mut call = Call {
            talk: self.clone(),
            conversation,
            feeding: None,
            is_finished: false,
            pinged_at: None,
        };
        let open = self.opening(&call.conversation, epoch, new);
        let subject = self.subject(to, "open");
        let reply = self.subject(&self.me, format_args!("f.{}", call.conversation.number));
        if link
            .send(subject, Some(reply), open.to_bytes())
            .await
            .is_err()
        {
            // The connection did not take the message.
            call.is_finished = true;
            let failure =
                unavailable("this hub has lost its connection to the cluster; try again later");
            return Err(not_started(failure));
        }
        self.calls_out.fetch_add(1, Ordering::Relaxed);
        match tokio::time::timeout(OPENING_TIMEOUT, call.first_frame()).await {
            Ok(Ok(())) => Ok(call),
            Ok(Err(failed)) => {
                call.is_finished = failed.outcome == Outcome::NotStarted;
                Err(failed)
            }
            Err(_) => Err(unknown(unavailable(
                "the hub that runs the clip did not answer in time; the call may have run",
            ))),
        }
    }

    fn opening(&self, conversation: &Conversation, epoch: i64, new: &NewCall) -> Open {
        let ahead = {
            let members = lock(&self.members);
            let member = members.get(&conversation.peer);
            member.map_or(0, crate::members::Member::clock_ahead_ms)
        };
        let patience = i64::try_from(OPENING_TIMEOUT.as_millis()).unwrap_or(i64::MAX);
        let mut what = new.what.clone();
        let beginning = new.body.slice(..new.body.len().min(MAX_FRAME_DATA));
        let size = i64::try_from(new.body.len()).unwrap_or(i64::MAX);
        match &mut what {
            open::What::Invoke(invoke) => (invoke.input, invoke.size) = (beginning, size),
            open::What::Request(request) => (request.message, request.size) = (beginning, size),
            open::What::Evict(_) => {}
        }
        Open {
            wire: WIRE,
            from: self.me.as_str().to_owned().into(),
            epoch,
            conv: i64::try_from(conversation.number).unwrap_or(i64::MAX),
            revision: self.revision(),
            start_by_unix_ms: (self.clock)() + ahead + patience,
            time_left_ms: left(new.deadline),
            patience_ms: left(new.patience),
            alias: new.alias.as_str().to_owned().into(),
            caller: Some(new.caller.clone()),
            call_token: new.secret.as_str().to_owned().into(),
            credit: Some(conversation.state().inflow.credit().credit()),
            more_input: new.more_input,
            what: Some(what),
        }
    }
}

impl Call {
    async fn first_frame(&self) -> Result<(), NotOpened> {
        loop {
            let arrived = self.conversation.arrived.notified();
            {
                let state = self.conversation.state();
                if state.accepted {
                    return Ok(());
                }
                if let Some(end) = &state.end {
                    return Err(not_opened(end));
                }
            }
            arrived.await;
        }
    }

    /// Sends the rest of the first message and then further input, while the answer is read.
    pub fn feed(&mut self, body: &Bytes, more: Option<Input>) {
        let rest = body.slice(body.len().min(MAX_FRAME_DATA)..);
        if rest.is_empty() && more.is_none() {
            return;
        }
        let (talk, conversation) = (self.talk.clone(), self.conversation.clone());
        let feeding = tokio::spawn(async move {
            if !rest.is_empty() && talk.send_part(&conversation, rest).await.is_err() {
                return;
            }
            let Some(mut more) = more else {
                return;
            };
            while let Some(part) = more.next().await {
                let Ok(part) = part else {
                    // The caller broke off; the answer ends with its own failure.
                    conversation.end(End::Cancelled);
                    talk.send_unnumbered(&conversation, vec![cancel()]).await;
                    return;
                };
                let is_last = part.position == PartPosition::Last;
                let is_sent = part.data.is_empty() && is_last
                    || talk.send_part(&conversation, part.data).await.is_ok();
                if !is_sent {
                    return;
                }
                if is_last {
                    break;
                }
            }
            let end = What::InputEnd(InputEnd::default());
            let _ = talk.send_numbered(&conversation, vec![end]).await;
        });
        self.feeding = Some(feeding.abort_handle());
    }

    /// Returns the next part of the answer; `None` at its end. A failure is the last item.
    pub async fn next(&mut self) -> Option<Result<Bytes, CallFailed>> {
        if self.is_finished {
            return None;
        }
        loop {
            let conversation = self.conversation.clone();
            let arrived = conversation.arrived.notified();
            let (next, credit, end, check_at) = {
                let mut state = conversation.state();
                let next = state.inbox.pop_front();
                let credit = match &next {
                    Some(Arrived::Part(_, size)) => state.inflow.read_part(*size),
                    _ => None,
                };
                if let Some(pong) = state.pong.take() {
                    self.pinged_at = None;
                    if !pong.known || pong.last_seq > state.inflow.seq {
                        let why = "a part of the answer was lost between hubs";
                        state.end.get_or_insert(End::Lost(why));
                    }
                }
                let end = state.end.clone().filter(|_| next.is_none());
                let check_at = self
                    .pinged_at
                    .map_or(state.last_heard + PING_AFTER, |at| at + PONG_TIMEOUT);
                (next, credit, end, check_at)
            };
            if let Some(credit) = credit
                && end.is_none()
            {
                let credit = vec![What::Credit(credit.credit())];
                self.talk.send_unnumbered(&conversation, credit).await;
            }
            match next {
                Some(Arrived::Part(data, _)) => return Some(Ok(data)),
                Some(Arrived::InputEnd) => continue,
                None => {}
            }
            if let Some(end) = end {
                return self.finish(&end).map(Err);
            }
            tokio::select! {
                () = arrived => {}
                () = tokio::time::sleep_until(check_at) => self.check().await,
            }
        }
    }

    /// Asks a silent callee for a sign of life, or gives it up.
    async fn check(&mut self) {
        let now = Instant::now();
        match self.pinged_at {
            Some(at) if now >= at + PONG_TIMEOUT => {
                self.conversation
                    .end(End::Lost("the hub that runs the clip does not answer"));
            }
            Some(_) => {}
            None => {
                let is_silent = now >= self.conversation.state().last_heard + PING_AFTER;
                if is_silent {
                    self.pinged_at = Some(now);
                    let credit = self.conversation.state().inflow.credit();
                    let ping = What::Ping(Ping {
                        credit: Some(credit.credit()),
                    });
                    self.talk
                        .send_unnumbered(&self.conversation, vec![ping])
                        .await;
                }
            }
        }
    }

    fn finish(&mut self, end: &End) -> Option<CallFailed> {
        let failed = |failure, answered| Some(CallFailed { failure, answered });
        let lost = |why: &'static str| {
            let failure = Failure::new(Code::Unavailable, format!("{why}; the call may have run"));
            failed(Outcome::Unknown.note(failure), false)
        };
        // After a loss the callee may still be there, and its clip at work.
        self.is_finished = !matches!(end, End::Lost(_));
        let failure = match end {
            End::Complete => None,
            End::Failed { failure, answered } => failed(failure.clone(), *answered),
            End::Refused { failure, .. } => {
                failed(Outcome::NotStarted.note(failure.clone()), false)
            }
            End::NoListener => lost("the hub that runs the clip is gone"),
            End::Lost(why) => lost(why),
            End::Cancelled => lost("the hub that runs the clip has ended the call"),
        };
        if !self.is_finished {
            self.cancel();
            self.is_finished = true;
        }
        failure
    }

    /// Informs the callee, which drops the call down to the clip.
    fn cancel(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (talk, conversation) = (self.talk.clone(), self.conversation.clone());
        runtime.spawn(async move {
            if conversation.state().peer_number.is_some() {
                return talk.send_unnumbered(&conversation, vec![cancel()]).await;
            }
            // The callee's number is unknown; it finds the conversation by this hub's.
            let rest = format!("cancel.{}.{}", talk.me, conversation.number);
            let subject = talk.subject(&conversation.peer, rest);
            if let Some((_, link)) = talk.link() {
                let _ = link.send(subject, None, Bytes::new()).await;
            }
        });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(feeding) = &self.feeding {
            feeding.abort();
        }
        self.talk.remove(&self.conversation);
        if !self.is_finished {
            self.cancel();
        }
    }
}

fn not_opened(end: &End) -> NotOpened {
    match end {
        End::Refused {
            reason,
            revision,
            failure,
        } => NotOpened {
            moved: (reason == "moved" || reason == "leaving").then_some(*revision),
            ..not_started(failure.clone())
        },
        End::NoListener => NotOpened {
            moved: Some(0),
            ..not_started(unavailable(
                "the hub that runs the clip is gone; try again later",
            ))
        },
        End::Failed { failure, .. } => unknown(failure.clone()),
        End::Lost(why) => unknown(Failure::new(
            Code::Unavailable,
            format!("{why}; the call may have run"),
        )),
        End::Complete | End::Cancelled => unknown(unavailable(
            "the hub that runs the clip has ended the call; it may have run",
        )),
    }
}
