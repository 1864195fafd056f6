//! `Invoke` and `InvokeStream`: one call, in parts or as a whole.

use std::time::Instant;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use pinion_access::Caller;
use pinion_clip::CallError;
use pinion_connect::{self as connect, CallContext, Codec, Requests};
use pinion_proto::FirstInvoke;
use pinion_proto::hub::invoke_stream_message::Payload;
use pinion_proto::hub::{InvokeRequest, InvokeResponse, InvokeStreamMessage};
use pinion_status::{Code, Failure};

use super::required;
use crate::Hub;
use crate::convert::hub_error;
use crate::endpoint::{Answers, Call, Input, Part};

/// Asks for one answer where the protocol cannot say so itself.
const INVOKE_MODE: &str = "pinix-invoke-mode";
/// How much is read of a call that may not be made.
const GLANCE: usize = 64 * 1024;
const NOTHING: Bytes = Bytes::from_static(b"{}");

impl Hub {
    /// `Invoke` for a caller that wants a single answer.
    pub(super) async fn invoke_once(
        &self,
        caller: &Caller,
        mut call: connect::IncomingCall,
    ) -> Result<(), Failure> {
        let request: InvokeRequest = call.requests.message().await?;
        let (target, wanted) = prepare(caller, request, &call.context)?;
        let output = match self.answer(&target, wanted).await {
            Ok(output) => output,
            Err(CallError::Answered(failure)) => return Err(failure),
            Err(CallError::Unanswered(failure)) => return Err(in_time(failure, &call.context)),
        };
        let output = presentable(output, call.context.codec);
        call.answers
            .send(&InvokeResponse {
                output,
                error: None,
            })
            .await
    }

    /// `Invoke` for a caller that takes outputs as they come.
    pub(super) async fn invoke_parts(
        &self,
        caller: &Caller,
        mut call: connect::IncomingCall,
    ) -> Result<(), Failure> {
        let mode = call.context.headers.get(INVOKE_MODE);
        if mode.is_some_and(|mode| mode.as_bytes().eq_ignore_ascii_case(b"unary")) {
            return self.invoke_once(caller, call).await;
        }
        let request: InvokeRequest = call.requests.message().await?;
        let (target, wanted) = prepare(caller, request, &call.context)?;
        let outputs = self.invoke(&target, wanted);
        let relayed = relay(outputs, call.answers, call.context.codec).await;
        relayed.map_err(|failure| in_time(failure, &call.context))
    }

    /// `InvokeStream`: the caller may go on sending input.
    pub(super) async fn invoke_fed(
        &self,
        caller: &Caller,
        mut call: connect::IncomingCall,
    ) -> Result<(), Failure> {
        let first = call.requests.next_raw().await?;
        let first = first.ok_or_else(not_a_start)?;
        let first = match call.context.codec {
            Codec::Json => FirstInvoke::decode_json(&first),
            Codec::Proto => FirstInvoke::decode(first),
        };
        let first = first.map_err(|error| Failure::invalid(error.to_string()))?;
        let connect::IncomingCall {
            context,
            requests,
            answers,
        } = call;
        let (request, more) = match first {
            FirstInvoke::Whole(request) => {
                // Over HTTP/1.1 the answer begins once the request has ended or is not wanted any more.
                drop(requests);
                (request, None)
            }
            FirstInvoke::Open(request) => (request, Some(input(requests))),
            FirstInvoke::Chunk => return Err(not_a_start()),
        };
        let nothing_yet = more.is_some() && request.input.is_empty();
        let (target, mut wanted) = prepare(caller, request, &context)?;
        if nothing_yet {
            wanted.input = Bytes::new();
        }
        wanted.more = more;
        let outputs = self.invoke(&target, wanted);
        let relayed = relay(outputs, answers, context.codec).await;
        relayed.map_err(|failure| in_time(failure, &context))
    }
}

/// A caller that set a limit is told of that limit once it has passed, whoever noticed first. Limits of others are not its own.
fn in_time(failure: Failure, context: &CallContext) -> Failure {
    let has_passed = |deadline: Instant| deadline <= Instant::now();
    match context.timeout {
        Some(limit)
            if failure.code == Code::DeadlineExceeded
                && context.deadline.is_some_and(has_passed) =>
        {
            connect::timed_out(limit)
        }
        _ => failure,
    }
}

fn not_a_start() -> Failure {
    Failure::invalid("first invoke stream message must be start")
}

fn prepare(
    caller: &Caller,
    request: InvokeRequest,
    context: &CallContext,
) -> Result<(String, Call), Failure> {
    let (target, command) = named(&request)?;
    let input = request.input.clone();
    let mut call = Call::new(caller.principal.clone(), command, input);
    if call.input.is_empty() {
        call.input = NOTHING;
    }
    call.secret = Some(request.clip_token.to_string()).filter(|secret| !secret.is_empty());
    call.deadline = context.deadline.map(Into::into);
    Ok((target.to_owned(), call))
}

/// The clip and the command that a request is about.
fn named(request: &InvokeRequest) -> Result<(&str, &str), Failure> {
    match (request.clip_name.trim(), request.command.trim()) {
        ("", _) => Err(required("clip_name")),
        (_, "") => Err(required("command")),
        named => Ok(named),
    }
}

/// What is wrong with a call, whoever makes it.
pub(super) async fn mistake(call: &mut connect::IncomingCall) -> Option<Failure> {
    call.requests.lower_limit(GLANCE);
    let request = call.requests.message::<InvokeRequest>().await;
    let failure = match &request {
        Ok(request) => named(request).err()?,
        Err(failure) => failure.clone(),
    };
    (failure.code == Code::InvalidArgument).then_some(failure)
}

/// What the caller sends after the start, until it says that it is done.
fn input(requests: Requests) -> Input {
    Box::pin(stream::unfold(Some(requests), |requests| async {
        let mut requests = requests?;
        let next = requests.next::<InvokeStreamMessage>().await;
        match next.transpose()? {
            Ok(InvokeStreamMessage {
                payload: Some(Payload::Chunk(chunk)),
                ..
            }) => {
                let part = Part::new(chunk.data, chunk.done);
                Some((Ok(part), (!chunk.done).then_some(requests)))
            }
            Ok(_) => {
                let failure = Failure::invalid("expected stream chunk after start");
                Some((Err(failure), None))
            }
            Err(failure) => Some((Err(failure), None)),
        }
    }))
}

/// Passes outputs on as they come. What a clip answers with is an answer, even if it is a failure.
async fn relay(
    mut outputs: Answers,
    mut answers: connect::Answers,
    codec: Codec,
) -> Result<(), Failure> {
    let mut empty = true;
    while let Some(output) = outputs.next().await {
        let response = match output {
            Ok(output) => InvokeResponse {
                output: presentable(output, codec),
                error: None,
            },
            Err(CallError::Unanswered(failure)) => return Err(failure),
            Err(CallError::Answered(failure)) => {
                let error = Some(hub_error(&failure));
                let response = InvokeResponse {
                    output: Bytes::new(),
                    error,
                };
                return answers.send(&response).await;
            }
        };
        empty = false;
        answers.send(&response).await?;
    }
    if empty {
        answers
            .send(&InvokeResponse {
                output: NOTHING,
                error: None,
            })
            .await?;
    }
    Ok(())
}

/// Readers of JSON can rely on outputs being JSON; a provider's that is not becomes a text.
fn presentable(output: Bytes, codec: Codec) -> Bytes {
    let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(&output).is_ok();
    if codec == Codec::Proto || is_json() {
        return output;
    }
    let text = String::from_utf8_lossy(&output);
    serde_json::to_vec(&text).map_or(NOTHING, Bytes::from)
}
