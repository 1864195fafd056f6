//! Requests a summary from a model, with retries.

use std::sync::Arc;

use futures_util::StreamExt;
use pinion_llm::{Request, RequestOptions, StreamEvent, is_retryable};
use pinion_message::{
    AssistantMessage, Block, Message, Model, StopReason, ThinkingLevel, Usage, UserMessage,
};
use tokio_util::sync::CancellationToken;

use super::{CompactionFailure, instructions};
use crate::core::Core;
use crate::spans;
use crate::{Event, SummaryPurpose};

/// Token limit of the summary of a branch.
const BRANCH_SUMMARY_TOKENS: u64 = 2048;

/// The kind of summary that a request is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SummaryPart {
    History,
    TurnPrefix,
    Branch,
}

/// Requests the parts of one summary from a model and adds up their usage.
pub(super) struct Summariser<'a> {
    pub core: &'a Core,
    pub model: Arc<Model>,
    pub purpose: SummaryPurpose,
    pub cancel: &'a CancellationToken,
    /// The usage of all requests, including failed ones.
    pub usage: Usage,
}

impl<'a> Summariser<'a> {
    pub fn new(
        core: &'a Core,
        model: Arc<Model>,
        purpose: SummaryPurpose,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            core,
            model,
            purpose,
            cancel,
            usage: Usage::default(),
        }
    }

    /// Returns the model's answer to `prompt`.
    pub async fn ask(
        &mut self,
        prompt: String,
        part: SummaryPart,
    ) -> Result<String, CompactionFailure> {
        let prompt: Arc<Message> =
            Arc::new(Message::User(UserMessage::now(vec![Block::text(prompt)])));
        let mut attempt = 0;
        let answer = loop {
            let answer = self.request(&prompt, part);
            let answer = spans::request(&self.model, "summary", answer, |answer| {
                answer.as_ref().ok()
            });
            let answer = match answer.await {
                Ok(answer) => answer,
                Err(failure) => break Err(failure),
            };
            self.usage.add(&answer.usage);
            if attempt >= self.retries() || !is_retryable(&answer) {
                break Ok(answer);
            }
            attempt += 1;
            if !self.pause(attempt, &answer).await {
                break Err(CompactionFailure::Cancelled);
            }
            self.core.emit(Event::SummaryRetryStart(self.purpose));
        };
        if attempt > 0 {
            self.core.emit(Event::SummaryRetryFinished);
        }
        summary_text(answer?, part)
    }

    /// The number of retries that a failed request may have.
    fn retries(&self) -> u32 {
        let settings = &self.core.settings;
        if settings.behaviour.retry_summaries && self.core.state().auto_retry {
            settings.max_retries
        } else {
            0
        }
    }

    /// Waits before a retry. Returns false if the wait was cancelled.
    async fn pause(&self, attempt: u32, failed: &AssistantMessage) -> bool {
        let delay = self.core.retry_delay(attempt);
        self.core.emit(Event::SummaryRetryScheduled {
            attempt,
            max_attempts: self.core.settings.max_retries,
            delay,
            error: failed.error_message.clone().unwrap_or_default(),
        });
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            () = tokio::time::sleep(delay) => true,
        }
    }

    async fn request(
        &self,
        prompt: &Arc<Message>,
        part: SummaryPart,
    ) -> Result<AssistantMessage, CompactionFailure> {
        let core = self.core;
        let authorization = tokio::select! {
            () = self.cancel.cancelled() => return Err(CompactionFailure::Cancelled),
            authorization = core.models.access(&self.model) => {
                authorization.map_err(CompactionFailure::NoKey)?
            }
        };
        let reserve = core.settings.reserve_tokens as f64;
        let mut options = RequestOptions {
            retry: core.settings.http_retry,
            timeouts: core.settings.timeouts,
            ..RequestOptions::default()
        };
        match part {
            SummaryPart::History => {
                options.max_tokens = Some((reserve * 0.8) as u64);
                options.reasoning = self.model.reasoning.then_some(ThinkingLevel::High);
            }
            SummaryPart::TurnPrefix => options.max_tokens = Some((reserve * 0.5) as u64),
            SummaryPart::Branch => options.max_tokens = Some(BRANCH_SUMMARY_TOKENS),
        }
        authorization.apply(&mut options);
        let request = Request {
            model: Arc::clone(&self.model),
            system_prompt: Some(instructions::SYSTEM_PROMPT.into()),
            messages: vec![Arc::clone(prompt)],
            tools: Arc::new([]),
            options,
            cancel: self.cancel.clone(),
        };
        let mut stream = core.models.provider(&self.model).stream(request);
        while let Some(event) = stream.next().await {
            if let StreamEvent::End(mut answer) = event {
                if !core.settings.behaviour.record_measurements {
                    answer.remove_measurements();
                }
                return Ok(answer);
            }
        }
        Err(CompactionFailure::Summary(
            "the provider's stream ended without a result".into(),
        ))
    }
}

/// Returns the text of an answer, or the reason for its failure.
fn summary_text(answer: AssistantMessage, part: SummaryPart) -> Result<String, CompactionFailure> {
    let error = || {
        answer
            .error_message
            .clone()
            .unwrap_or_else(|| "unknown error".into())
    };
    match (answer.stop_reason, part) {
        (StopReason::Aborted, _) => Err(CompactionFailure::Cancelled),
        (StopReason::Error, SummaryPart::History | SummaryPart::Branch) => {
            Err(CompactionFailure::Summary(error()))
        }
        (StopReason::Error, SummaryPart::TurnPrefix) => Err(CompactionFailure::Prefix(error())),
        _ => Ok(answer.joined_text("\n")),
    }
}
