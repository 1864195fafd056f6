//! Serves the requests of a clip: calls to other clips, the list of clips, and its data. Every request is answered.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::outbox::Outbox;
use crate::codec::{self, CrossCall, Dialect, Request};
use crate::data::DataRequest;
use crate::shared::{SharedClip, Shutdown};
use crate::{ClipError, Code};

#[derive(Debug)]
pub(super) struct Requests {
    shared: Arc<SharedClip>,
    outbox: Arc<Outbox>,
    /// Limits the number of requests that are served at once.
    permits: Arc<Semaphore>,
    /// Cancelled when the process has ended and answers are no longer needed.
    gone: CancellationToken,
}

#[derive(Debug)]
pub(super) enum ClipRequest {
    Call(CrossCall),
    List,
    Data(Result<DataRequest, ClipError>),
}

impl Requests {
    pub(super) fn new(
        shared: Arc<SharedClip>,
        outbox: Arc<Outbox>,
        gone: CancellationToken,
    ) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(shared.limits.requests)),
            shared,
            outbox,
            gone,
        }
    }

    /// Accepts a request of `bytes` bytes. Does not wait.
    pub(super) fn take(&self, request: Request, asked: ClipRequest, bytes: usize) {
        let (count, total) = {
            let mut state = self.shared.state();
            state.requests += 1;
            state.request_bytes += bytes;
            (state.requests, state.request_bytes)
        };
        let (most, most_bytes) = self.shared.limits.waiting_requests;
        if count > most || total > most_bytes {
            let message = format!(
                "clip \"{}\" was stopped: it sent more requests than it read answers",
                self.shared.alias()
            );
            self.shared
                .set_fatal(Code::ResourceExhausted, Shutdown::Immediate, message);
        }
        let (shared, outbox) = (self.shared.clone(), self.outbox.clone());
        let (permits, gone) = (self.permits.clone(), self.gone.clone());
        tokio::spawn(async move {
            let served = async {
                let _permit = permits.acquire().await;
                let line = answer(&shared, &request, asked).await;
                outbox
                    .push_within(line.into(), shared.limits.outgoing)
                    .await;
            };
            tokio::select! {
                () = served => {}
                () = gone.cancelled() => {}
            }
            let mut state = shared.state();
            state.requests = state.requests.saturating_sub(1);
            state.request_bytes = state.request_bytes.saturating_sub(bytes);
            state.idle_since = tokio::time::Instant::now();
        });
    }
}

async fn answer(shared: &SharedClip, request: &Request, asked: ClipRequest) -> Vec<u8> {
    let dialect = shared
        .state()
        .detected_dialect
        .map_or(Dialect::Register, |detected_dialect| {
            detected_dialect.dialect()
        });
    let from = shared.alias();
    let line = match asked {
        ClipRequest::Call(call) if call.clip.is_empty() => {
            let error = ClipError::invalid("clip is required");
            codec::answer_error(dialect, request, &error)
        }
        ClipRequest::Call(call) if call.command.is_empty() => {
            let error = ClipError::invalid("command is required");
            codec::answer_error(dialect, request, &error)
        }
        ClipRequest::Call(call) => {
            match run_bounded(shared, shared.cross_calls.invoke(from, call)).await {
                Ok(output) => match codec::json(&output) {
                    Some(output) => codec::answer_output(dialect, request, output),
                    None => {
                        let error = ClipError::new(Code::Internal, "the answer is not JSON");
                        codec::answer_error(dialect, request, &error)
                    }
                },
                Err(error) => codec::answer_error(dialect, request, &error),
            }
        }
        ClipRequest::List => match run_bounded(shared, shared.cross_calls.list_clips(from)).await {
            Ok(mut clips) => {
                clips.sort_by(|left, right| left.name.cmp(&right.name));
                codec::answer_list(request, &clips)
            }
            Err(error) => codec::answer_list_error(request, &error),
        },
        ClipRequest::Data(Err(error)) => codec::answer_data(request, &Err(error)),
        ClipRequest::Data(Ok(data)) => {
            let answer = run_bounded(shared, shared.cross_calls.data(from, data)).await;
            let line = codec::answer_data(request, &answer);
            if line.len() > shared.limits.line_out {
                let error = too_long(shared, line.len());
                return codec::answer_data(request, &Err(error));
            }
            line
        }
    };
    if line.len() > shared.limits.line_out {
        return codec::answer_error(dialect, request, &too_long(shared, line.len()));
    }
    line
}

fn too_long(shared: &SharedClip, length: usize) -> ClipError {
    let message = format!(
        "the answer is {length} bytes long; a line for a clip may have {}. Files can be read in PINIX_DATA_DIR",
        shared.limits.line_out
    );
    ClipError::new(Code::ResourceExhausted, message)
}

/// Runs a request with a time limit and catches its panics, so that every request is answered.
async fn run_bounded<T>(
    shared: &SharedClip,
    work: impl Future<Output = Result<T, ClipError>>,
) -> Result<T, ClipError> {
    let work = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout(shared.limits.request_time, work).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(ClipError::new(
            Code::Internal,
            "the request failed because of an internal error in the hub",
        )),
        Err(_) => Err(ClipError::new(
            Code::DeadlineExceeded,
            "the request was not answered in time",
        )),
    }
}
