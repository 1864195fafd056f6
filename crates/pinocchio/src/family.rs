//! The differences between the kinds of model APIs, as one table.
//!
//! Pinocchio's engines report the same facts in different orders and words, and clients rely on them. A row of the
//! table is one kind of engine; everything else is the same for all.

use pinion_message::{StopReason, Usage};

use crate::pb::UsageInfo;

/// The way in which one kind of engine reports a request.
#[derive(Debug)]
pub(crate) struct Family {
    /// The naming scheme of segments and calls.
    pub naming: Naming,
    /// Decides whether the beginning and the end of a request are reported.
    pub calls: ProviderCalls,
    /// The moment at which the end of a text or thinking segment is reported.
    pub segments_end: Moment,
    /// The moment at which a tool call is reported as requested.
    pub calls_requested: Moment,
    /// The way in which the stop reason and the usage are reported before the end.
    pub metadata: Metadata,
    /// The end of a request has a finish class.
    pub finish_class: bool,
    /// The `source` of thinking.
    pub thinking: &'static str,
    /// The finish reason of a segment; `None` is the stop reason of the answer.
    pub segment_reason: Option<&'static str>,
    /// The words for a natural end, the output limit, and tool calls.
    pub stop_words: [&'static str; 3],
    /// The status of a segment that an error interrupted.
    pub broken_status: &'static str,
    /// The prompt tokens that count as input.
    pub input: InputTokens,
    /// Patches of text and thinking are numbered. Those of arguments always are.
    pub numbered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    Completions,
    Messages,
    Responses,
    Gemini,
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderCalls {
    Told,
    Silent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// At the end of its block.
    BlockEnd,
    /// At the end of the answer, after the metadata.
    AnswerEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// Not before the end of the request.
    Nothing,
    /// Both in one event.
    Together,
    /// The stop reason, then the usage.
    Apart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputTokens {
    /// All of the prompt; tokens read from a cache are also reported as `cachedTokens`.
    All,
    /// Only tokens that are not from a cache; cached ones are reported separately.
    Fresh,
}

/// Chat completions, and Mistral's protocol, which is similar.
const COMPLETIONS: Family = Family {
    naming: Naming::Completions,
    calls: ProviderCalls::Told,
    segments_end: Moment::AnswerEnd,
    calls_requested: Moment::AnswerEnd,
    metadata: Metadata::Apart,
    finish_class: true,
    thinking: "provider",
    segment_reason: None,
    stop_words: ["stop", "length", "tool_calls"],
    broken_status: "finished",
    input: InputTokens::All,
    numbered: false,
};

/// Anthropic's messages.
const MESSAGES: Family = Family {
    naming: Naming::Messages,
    calls: ProviderCalls::Told,
    segments_end: Moment::BlockEnd,
    calls_requested: Moment::BlockEnd,
    metadata: Metadata::Together,
    finish_class: false,
    thinking: "thinking",
    segment_reason: Some("content_block_stop"),
    stop_words: ["end_turn", "max_tokens", "tool_use"],
    broken_status: "failed",
    input: InputTokens::Fresh,
    numbered: false,
};

/// OpenAI's responses.
const RESPONSES: Family = Family {
    naming: Naming::Responses,
    calls: ProviderCalls::Told,
    segments_end: Moment::BlockEnd,
    calls_requested: Moment::AnswerEnd,
    metadata: Metadata::Nothing,
    finish_class: true,
    thinking: "summary",
    segment_reason: Some("completed"),
    stop_words: ["completed", "max_output_tokens", "tool_calls"],
    broken_status: "failed",
    input: InputTokens::All,
    numbered: true,
};

/// Gemini, also on Vertex.
const GEMINI: Family = Family {
    naming: Naming::Gemini,
    thinking: "provider",
    segment_reason: Some("stop"),
    stop_words: ["STOP", "MAX_TOKENS", "STOP"],
    ..RESPONSES
};

/// The built-in model and unknown APIs: like responses, without summaries.
const OTHERS: Family = Family {
    thinking: "thinking",
    segment_reason: Some("stop"),
    stop_words: ["stop", "length", "tool_calls"],
    ..RESPONSES
};

/// An engine that does not report its requests.
const PLAIN: Family = Family {
    naming: Naming::Plain,
    calls: ProviderCalls::Silent,
    thinking: "summary",
    ..OTHERS
};

impl Family {
    /// Returns the row for a wire protocol. An answer without one comes from an engine that does not report its
    /// requests.
    pub fn of(api: &str) -> &'static Self {
        match api {
            "openai-completions" | "mistral-conversations" => &COMPLETIONS,
            "anthropic-messages" => &MESSAGES,
            "openai-responses" | "azure-openai-responses" | "openai-codex-responses" => &RESPONSES,
            "google-generative-ai" | "google-vertex" => &GEMINI,
            "" => &PLAIN,
            _ => &OTHERS,
        }
    }

    /// Returns the word for the reason why an answer ended.
    pub fn stop_word(&self, reason: StopReason) -> &'static str {
        let [stop, length, calls] = self.stop_words;
        match reason {
            StopReason::Stop => stop,
            StopReason::Length => length,
            StopReason::ToolUse => calls,
            StopReason::Error => "error",
            StopReason::Aborted => "cancelled",
        }
    }

    /// Returns the finish class, if this engine reports one. Errors and aborts always have one.
    pub fn class(&self, reason: StopReason) -> &'static str {
        match reason {
            StopReason::Error => "failed",
            StopReason::Aborted => "interrupted",
            _ if !self.finish_class => "",
            reason => finish_class(reason),
        }
    }

    /// Returns the token counts as this engine reports them; `None` if there are none.
    pub fn usage(&self, usage: &Usage) -> Option<UsageInfo> {
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        if usage.input == 0 && usage.output == 0 && cached == 0 {
            return None;
        }
        Some(match self.input {
            InputTokens::All => UsageInfo {
                input_tokens: saturated(usage.input.saturating_add(cached)),
                output_tokens: saturated(usage.output),
                cached_tokens: saturated(usage.cache_read),
                ..UsageInfo::default()
            },
            InputTokens::Fresh => UsageInfo {
                input_tokens: saturated(usage.input),
                output_tokens: saturated(usage.output),
                cache_creation_input_tokens: saturated(usage.cache_write),
                cache_read_input_tokens: saturated(usage.cache_read),
                ..UsageInfo::default()
            },
        })
    }
}

/// Returns the finish class of a stop reason, the same for all engines.
pub(crate) fn finish_class(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Stop => "completed",
        StopReason::Length => "max_tokens",
        StopReason::ToolUse => "tool_calls_pending",
        StopReason::Error => "error",
        StopReason::Aborted => "interrupted",
    }
}

fn saturated(tokens: u64) -> i32 {
    i32::try_from(tokens).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_as_the_engine_does() {
        let usage = Usage {
            input: 10,
            output: u64::from(u32::MAX),
            cache_read: 4,
            cache_write: 1,
            ..Usage::default()
        };
        let all = Family::of("openai-completions").usage(&usage).unwrap();
        assert_eq!((all.input_tokens, all.cached_tokens), (15, 4));
        assert_eq!(all.output_tokens, i32::MAX);
        let fresh = Family::of("anthropic-messages").usage(&usage).unwrap();
        assert_eq!((fresh.input_tokens, fresh.cached_tokens), (10, 0));
        assert_eq!(fresh.cache_read_input_tokens, 4);
        assert_eq!(fresh.cache_creation_input_tokens, 1);
        assert!(Family::of("").usage(&Usage::default()).is_none());
    }

    #[test]
    fn every_interface_has_its_row() {
        assert_eq!(Family::of("google-vertex").naming, Naming::Gemini);
        assert_eq!(Family::of("offline").naming, Naming::Responses);
        assert_eq!(Family::of("offline").thinking, "thinking");
        assert_eq!(Family::of("").calls, ProviderCalls::Silent);
    }
}
