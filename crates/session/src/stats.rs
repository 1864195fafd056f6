//! Counts, tokens and cost of a conversation.

use pinion_message::Message;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Store;

/// Counts, tokens and cost of a list of messages. Member order is that of `get_session_stats`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Stats {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    #[schemars(length(min = 1))]
    pub session_id: String,
    pub user_messages: usize,
    pub assistant_messages: usize,
    pub tool_calls: usize,
    pub tool_results: usize,
    /// Messages of every kind.
    pub total_messages: usize,
    pub tokens: TokenTotals,
    /// US dollars.
    #[schemars(range(min = 0))]
    pub cost: f64,
    /// How full the model's window is; left out without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
}

/// Tokens of all answers, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct TokenTotals {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// The sum of the four.
    pub total: u64,
}

/// How full a model's window is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// `None` while nobody has counted, as right after a compaction.
    pub tokens: Option<u64>,
    /// Tokens that fit.
    pub context_window: u64,
    /// `tokens` in per cent of the window.
    #[schemars(range(min = 0))]
    pub percent: Option<f64>,
}

impl ContextUsage {
    /// How full a window of this size is.
    pub fn new(tokens: Option<u64>, context_window: u64) -> Self {
        let percent = tokens.map(|tokens| tokens as f64 / context_window as f64 * 100.0);
        Self {
            tokens,
            context_window,
            percent,
        }
    }
}

/// Adds up a list of messages. File and id are left empty; see [`Store::stats`].
pub fn stats<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Stats {
    let mut stats = Stats::default();
    for message in messages {
        stats.total_messages += 1;
        match message {
            Message::User(_) => stats.user_messages += 1,
            Message::ToolResult(_) => stats.tool_results += 1,
            Message::Assistant(answer) => {
                stats.assistant_messages += 1;
                stats.tool_calls += answer.tool_calls().count();
                stats.tokens.input += answer.usage.input;
                stats.tokens.output += answer.usage.output;
                stats.tokens.cache_read += answer.usage.cache_read;
                stats.tokens.cache_write += answer.usage.cache_write;
                stats.cost += answer.usage.cost.total;
            }
            _ => {}
        }
    }
    let tokens = &mut stats.tokens;
    tokens.total = tokens.input + tokens.output + tokens.cache_read + tokens.cache_write;
    stats
}

impl Store {
    /// Adds up a list of messages under this session's name.
    pub fn stats<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) -> Stats {
        Stats {
            session_file: self.file().map(|file| file.to_string_lossy().into_owned()),
            session_id: self.id().to_owned(),
            ..stats(messages)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_print_in_pis_order() {
        let answer: Message = serde_json::from_str(
            r#"{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"ls","arguments":{}}],"usage":{"input":100,"output":20,"cost":{"total":0.0006}},"stopReason":"toolUse"}"#,
        )
        .unwrap();
        let user: Message = serde_json::from_str(r#"{"role":"user","content":"x"}"#).unwrap();
        let mut stats = stats([&user, &answer]);
        stats.session_id = "s".into();
        stats.context_usage = Some(ContextUsage::new(Some(120), 200_000));
        assert_eq!(
            pinion_jsonl::json::to_string(&stats),
            r#"{"sessionId":"s","userMessages":1,"assistantMessages":1,"toolCalls":1,"toolResults":0,"totalMessages":2,"tokens":{"input":100,"output":20,"cacheRead":0,"cacheWrite":0,"total":120},"cost":0.0006,"contextUsage":{"tokens":120,"contextWindow":200000,"percent":0.06}}"#
        );
    }
}
