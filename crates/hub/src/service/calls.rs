//! `Invoke` and `InvokeStream`: calls with a single answer or a stream of outputs.

use std::time::Instant;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::HeaderName;
use pinion_access::Caller;
use pinion_clip::CallError;
use pinion_connect::{self as connect, CallContext, Codec, Requests};
use pinion_proto::FirstInvoke;
use pinion_proto::hub::invoke_stream_message::Payload;
use pinion_proto::hub::{InvokeRequest, InvokeResponse, InvokeStreamMessage};
use pinion_status::{Code, Failure};

use super::{required, text_of};
use crate::Hub;
use crate::convert::hub_error;
use crate::endpoint::{Answers, HubCall, Input, InputPart};

/// The header with which a client requests a single answer where the protocol cannot express it.
const INVOKE_MODE: &str = "pinix-invoke-mode";
/// The header with the span of the caller.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The most bytes that are read of a call that its caller may not make.
const MAX_REJECTED_REQUEST: usize = 64 * 1024;
const EMPTY_OBJECT: Bytes = Bytes::from_static(b"{}");

impl Hub {
    /// Serves `Invoke` for a caller that wants a single answer.
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
            Err(CallError::Unanswered(failure)) => {
                return Err(with_caller_timeout(failure, &call.context));
            }
        };
        let output = as_json(output, call.context.codec);
        call.answers
            .send(&InvokeResponse {
                output,
                error: None,
            })
            .await
    }

    /// Serves `Invoke` for a caller that reads outputs as they arrive.
    pub(super) async fn invoke_streaming(
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
        relayed.map_err(|failure| with_caller_timeout(failure, &call.context))
    }

    /// Serves `InvokeStream`: the caller may send further input.
    pub(super) async fn invoke_with_input(
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
                // Over HTTP/1.1 the answer starts only after the request has ended or its reader is dropped.
                drop(requests);
                (request, None)
            }
            FirstInvoke::Open(request) => (request, Some(input(requests))),
            FirstInvoke::Chunk => return Err(not_a_start()),
        };
        let starts_empty = more.is_some() && request.input.is_empty();
        let (target, mut wanted) = prepare(caller, request, &context)?;
        if starts_empty {
            wanted.input = Bytes::new();
        }
        wanted.more = more;
        let outputs = self.invoke(&target, wanted);
        let relayed = relay(outputs, answers, context.codec).await;
        relayed.map_err(|failure| with_caller_timeout(failure, &context))
    }
}

/// Reports the caller's own time limit once it has passed, whichever party noticed first. Limits of others are reported
/// unchanged.
fn with_caller_timeout(failure: Failure, context: &CallContext) -> Failure {
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
) -> Result<(String, HubCall), Failure> {
    let (target, command) = named(&request)?;
    let input = request.input.clone();
    let mut call = HubCall::new(caller.principal.clone(), command, input);
    if call.input.is_empty() {
        call.input = EMPTY_OBJECT;
    }
    call.secret = Some(request.clip_token.to_string()).filter(|secret| !secret.is_empty());
    call.deadline = context.deadline.map(Into::into);
    call.traceparent = text_of(&context.headers, TRACEPARENT).map(str::to_owned);
    Ok((target.to_owned(), call))
}

/// Returns the clip and the command of a request.
fn named(request: &InvokeRequest) -> Result<(&str, &str), Failure> {
    match (request.clip_name.trim(), request.command.trim()) {
        ("", _) => Err(required("clip_name")),
        (_, "") => Err(required("command")),
        named => Ok(named),
    }
}

/// Finds an error in a request that does not depend on its caller.
pub(super) async fn request_error(call: &mut connect::IncomingCall) -> Option<Failure> {
    call.requests.lower_limit(MAX_REJECTED_REQUEST);
    let request = call.requests.message::<InvokeRequest>().await;
    let failure = match &request {
        Ok(request) => named(request).err()?,
        Err(failure) => failure.clone(),
    };
    (failure.code == Code::InvalidArgument).then_some(failure)
}

/// Returns the caller's input after the start, up to the part marked as the last.
fn input(requests: Requests) -> Input {
    Box::pin(stream::unfold(Some(requests), |requests| async {
        let mut requests = requests?;
        let next = requests.next::<InvokeStreamMessage>().await;
        match next.transpose()? {
            Ok(InvokeStreamMessage {
                payload: Some(Payload::Chunk(chunk)),
                ..
            }) => {
                let part = InputPart::new(chunk.data, chunk.done);
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

/// Sends outputs as they arrive. A failure that the clip reports is an answer too.
async fn relay(
    mut outputs: Answers,
    mut answers: connect::Answers,
    codec: Codec,
) -> Result<(), Failure> {
    let mut empty = true;
    while let Some(output) = outputs.next().await {
        let response = match output {
            Ok(output) => InvokeResponse {
                output: as_json(output, codec),
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
                output: EMPTY_OBJECT,
                error: None,
            })
            .await?;
    }
    Ok(())
}

/// Returns an output that is JSON, on which JSON clients rely; other bytes become a JSON string.
fn as_json(output: Bytes, codec: Codec) -> Bytes {
    let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(&output).is_ok();
    if codec == Codec::Proto || is_json() {
        return output;
    }
    let text = String::from_utf8_lossy(&output);
    serde_json::to_vec(&text).map_or(EMPTY_OBJECT, Bytes::from)
}
