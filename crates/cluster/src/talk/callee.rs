//! The side of a conversation that answers.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::Either;
use futures_util::{FutureExt, StreamExt, stream};
use pinion_clip::CallError;
use pinion_hub::{Answers, Input, InputPart};
use pinion_proto::Binary;
use pinion_proto::cluster::{Accepted, End as EndOfAnswer, Open, Part, Refused, item::What, open};
use pinion_status::{Code, Failure};
use pinion_sync::lock;
use tokio::time::Instant;

use super::conversation::{Arrived, Conversation};
use super::flow::Amount;
use super::{
    Answerer, Decision, MAX_FRAME_DATA, Opening, Refusal, Talk, WIRE, is_answered, next_part,
};
use crate::bus::Ended;
use crate::names::ProcessId;

/// The time after which the acceptance goes ahead of the answer.
const ACCEPTED_ALONE: Duration = Duration::from_millis(20);
/// The largest input that follows an opening.
const MAX_BODY: i64 = 48 << 20;

impl Talk {
    /// Handles an opening: refuses it, or hands it to the hub exactly once.
    pub(super) fn opened(self: &Arc<Self>, payload: Bytes) {
        let Ok(open) = Open::decode(payload) else {
            return;
        };
        let (Some(from), Ok(number)) = (ProcessId::parse(&open.from), u64::try_from(open.conv))
        else {
            return;
        };
        // A second copy has no answer: a refusal would tell the caller that the first was not started.
        if !lock(&self.openings).accept(&from, number) {
            tracing::warn!(%from, number, "an opening has arrived twice");
            return;
        }
        let window = self.window(&from);
        let conversation = self.add(from.clone(), Some(number), window);
        lock(&self.opened_by).insert((from.clone(), number), conversation.number);
        if let Some(credit) = &open.credit {
            conversation.state().out.grant(Amount::of(credit));
        }
        let checked = self.check(&open);
        let talk = self.clone();
        tokio::spawn(async move {
            let _removal = Removal {
                talk: &talk,
                conversation: &conversation,
                opening: (from.clone(), number),
            };
            match checked {
                Ok(answerer) => talk.answer(&conversation, answerer, open, from).await,
                Err((reason, failure)) => talk.refuse(&conversation, reason, failure).await,
            }
        });
    }

    fn check(&self, open: &Open) -> Result<Arc<dyn Answerer>, (Refusal, Failure)> {
        let unavailable = |message: String| Failure::new(Code::Unavailable, message);
        if open.wire != WIRE {
            let message = format!(
                "the hub that runs the clip speaks version {WIRE} of the cluster's messages, and the caller's hub version {}",
                open.wire
            );
            return Err((Refusal::Wire, unavailable(message)));
        }
        if (self.clock)() > open.start_by_unix_ms {
            let message = "the call has arrived too late at the hub that runs the clip".to_owned();
            return Err((Refusal::Late, unavailable(message)));
        }
        if self.leaving.load(Ordering::Relaxed) {
            let message = "the hub that runs the clip is shutting down".to_owned();
            return Err((Refusal::Leaving, unavailable(message)));
        }
        let answerer = lock(&self.answerer).clone();
        answerer.ok_or_else(|| {
            let message = "the hub that runs the clip is starting".to_owned();
            (Refusal::Leaving, unavailable(message))
        })
    }

    async fn refuse(&self, conversation: &Conversation, reason: Refusal, failure: Failure) {
        let refused = What::Refused(Refused {
            reason: reason.name().into(),
            revision: self.revision(),
            code: failure.code.as_str().into(),
            message: failure.message.to_string().into(),
        });
        let _ = self.send_numbered(conversation, vec![refused]).await;
    }

    async fn answer(
        self: &Arc<Self>,
        conversation: &Arc<Conversation>,
        answerer: Arc<dyn Answerer>,
        open: Open,
        from: ProcessId,
    ) {
        self.calls_in.fetch_add(1, Ordering::Relaxed);
        let ended = ended(conversation);
        let answering = async {
            let mut speaker = Speaker::new(self, conversation);
            let (body, size) = beginning(&open);
            let body = match self.whole(conversation, &mut speaker, body, size).await {
                Ok(body) => body,
                Err(WholeError::Ended) => return,
                Err(WholeError::Invalid(failure)) => {
                    return self.refuse(conversation, Refusal::Failed, failure).await;
                }
            };
            let now = Instant::now();
            let after = |millis: i64| {
                let millis = u64::try_from(millis).ok().filter(|millis| *millis > 0)?;
                now.checked_add(Duration::from_millis(millis))
            };
            let opening = Opening {
                deadline: after(open.time_left_ms),
                patience: after(open.patience_ms),
                body,
                from,
                open,
            };
            let input = opening
                .open
                .more_input
                .then(|| self.input(conversation.clone()));
            match answerer.answer(opening, input).await {
                // Nothing was handed to a clip, also if the acceptance went ahead.
                Decision::Refuse { reason, failure } => {
                    self.refuse(conversation, reason, failure).await
                }
                Decision::Answer(answers) => {
                    let _ = speaker.speak(answers).await;
                }
            }
        };
        // Dropping the answer cancels the call down to the clip.
        futures_util::future::select(pin!(ended), pin!(answering)).await;
    }

    /// Returns the first message once it is complete.
    async fn whole(
        &self,
        conversation: &Conversation,
        speaker: &mut Speaker<'_>,
        beginning: Bytes,
        size: i64,
    ) -> Result<Bytes, WholeError> {
        let missing = size.saturating_sub(i64::try_from(beginning.len()).unwrap_or(i64::MAX));
        if missing <= 0 {
            return Ok(beginning);
        }
        if size > MAX_BODY {
            let message = format!(
                "the input has {size} bytes; at most {MAX_BODY} are passed on to another hub"
            );
            return Err(WholeError::Invalid(Failure::new(
                Code::ResourceExhausted,
                message,
            )));
        }
        // The caller sends the rest once it knows where to.
        speaker.accept().await.map_err(|_| WholeError::Ended)?;
        match self.next_arrived(conversation).await {
            Some(Arrived::Part(rest, _)) if i64::try_from(rest.len()) == Ok(missing) => {
                let mut whole = BytesMut::with_capacity(beginning.len() + rest.len());
                whole.extend_from_slice(&beginning);
                whole.extend_from_slice(&rest);
                Ok(whole.freeze())
            }
            Some(_) => Err(WholeError::Invalid(Failure::new(
                Code::Internal,
                "the input did not arrive as announced",
            ))),
            None => Err(WholeError::Ended),
        }
    }

    /// Returns what the caller sends next; `None` at the end of the conversation.
    async fn next_arrived(&self, conversation: &Conversation) -> Option<Arrived> {
        loop {
            let arrived = conversation.arrived.notified();
            let (next, credit) = {
                let mut state = conversation.state();
                let next = state.inbox.pop_front();
                let credit = match &next {
                    Some(Arrived::Part(_, size)) => state.inflow.read_part(*size),
                    _ => None,
                };
                if next.is_none() && state.end.is_some() {
                    return None;
                }
                (next, credit)
            };
            if let Some(credit) = credit {
                let credit = What::Credit(credit.credit());
                self.send_unnumbered(conversation, vec![credit]).await;
            }
            if next.is_some() {
                return next;
            }
            arrived.await;
        }
    }

    fn input(self: &Arc<Self>, conversation: Arc<Conversation>) -> Input {
        let talk = self.clone();
        Box::pin(stream::unfold(Some((talk, conversation)), |state| async {
            let (talk, conversation) = state?;
            match talk.next_arrived(&conversation).await {
                Some(Arrived::Part(data, _)) => {
                    let part = InputPart::new(data, false);
                    Some((Ok(part), Some((talk, conversation))))
                }
                Some(Arrived::InputEnd) => None,
                None => {
                    let failure = Failure::new(Code::Canceled, "the caller went away");
                    Some((Err(failure), None))
                }
            }
        }))
    }
}

enum WholeError {
    Ended,
    Invalid(Failure),
}

/// Returns the beginning of the first message and its whole size.
fn beginning(open: &Open) -> (Bytes, i64) {
    match &open.what {
        Some(open::What::Invoke(invoke)) => (invoke.input.clone(), invoke.size),
        Some(open::What::Request(request)) => (request.message.clone(), request.size),
        Some(open::What::Evict(_)) | None => (Bytes::new(), 0),
    }
}

/// Waits for the end of a conversation that the other side or the connection causes.
async fn ended(conversation: &Conversation) {
    loop {
        let room = conversation.room.notified();
        if conversation.state().end.is_some() {
            return;
        }
        room.await;
    }
}

/// Removes a conversation when its answer has ended or was dropped.
struct Removal<'a> {
    talk: &'a Talk,
    conversation: &'a Conversation,
    opening: (ProcessId, u64),
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        self.talk.remove(self.conversation);
        lock(&self.talk.opened_by).remove(&self.opening);
    }
}

/// Sends an answer, with as few frames as its parts and the credit allow.
struct Speaker<'a> {
    talk: &'a Talk,
    conversation: &'a Conversation,
    is_accepted: bool,
    waiting: Vec<What>,
    waiting_bytes: usize,
}

impl<'a> Speaker<'a> {
    fn new(talk: &'a Talk, conversation: &'a Conversation) -> Self {
        Self {
            talk,
            conversation,
            is_accepted: false,
            waiting: Vec::new(),
            waiting_bytes: 0,
        }
    }

    fn acceptance(&mut self) {
        if !std::mem::replace(&mut self.is_accepted, true) {
            let credit = self.conversation.state().inflow.credit();
            let accepted = What::Accepted(Accepted {
                conv: i64::try_from(self.conversation.number).unwrap_or(i64::MAX),
                credit: Some(credit.credit()),
            });
            self.waiting.insert(0, accepted);
        }
    }

    async fn accept(&mut self) -> Result<(), Ended> {
        self.acceptance();
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), Ended> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.waiting_bytes = 0;
        let items = std::mem::take(&mut self.waiting);
        self.talk.send_numbered(self.conversation, items).await
    }

    async fn speak(&mut self, mut answers: Answers) -> Result<(), Ended> {
        let first = {
            let timer = pin!(tokio::time::sleep(ACCEPTED_ALONE));
            match futures_util::future::select(answers.next(), timer).await {
                Either::Left((item, _)) => Some(item),
                Either::Right(_) => None,
            }
        };
        self.acceptance();
        let mut next = match first {
            Some(item) => item,
            None => {
                self.flush().await?;
                answers.next().await
            }
        };
        loop {
            match next {
                Some(Ok(output)) => self.part(output).await?,
                end => {
                    self.waiting.push(What::End(end_of(end)));
                    return self.flush().await;
                }
            }
            next = match answers.next().now_or_never() {
                Some(item) => item,
                None => {
                    self.flush().await?;
                    answers.next().await
                }
            };
        }
    }

    /// Adds a part, and sends what waits if it is enough for a frame or the credit is used up.
    async fn part(&mut self, output: Bytes) -> Result<(), Ended> {
        let mut left = output;
        loop {
            if self.conversation.state().end.is_some() {
                return Err(Ended);
            }
            if self.waiting_bytes + left.len().min(MAX_FRAME_DATA) > MAX_FRAME_DATA {
                self.flush().await?;
            }
            let room = self.conversation.room.notified();
            match next_part(self.conversation, &mut left) {
                Some(Part { data, more }) => {
                    self.waiting_bytes += data.len();
                    self.waiting.push(What::Part(Part { data, more }));
                    if !more {
                        return Ok(());
                    }
                }
                None if self.waiting.is_empty() => room.await,
                None => self.flush().await?,
            }
        }
    }
}

fn end_of(end: Option<Result<Bytes, CallError>>) -> EndOfAnswer {
    match end {
        None | Some(Ok(_)) => EndOfAnswer::default(),
        Some(Err(error)) => EndOfAnswer {
            code: error.failure().code.as_str().into(),
            message: error.failure().message.to_string().into(),
            answered: is_answered(&error),
        },
    }
}
