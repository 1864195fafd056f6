//! Counts, tokens and cost of a conversation.

use pinion_message::{Message, Usage};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer_totals::{AnswerTotals, answer_totals};
use crate::entry::Body;
use crate::stored_line::{LineSource, for_each_line};
use crate::{Entry, EntryKind, Role, Snapshot, Store};

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
    /// Cost in dollars (USD).
    #[schemars(range(min = 0))]
    pub cost: f64,
    /// The size of the context; missing without a model.
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

/// The size of the context in relation to the model's window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Tokens in the context; `None` if unknown, such as right after a compaction.
    pub tokens: Option<u64>,
    /// Tokens that fit into the model's window.
    pub context_window: u64,
    /// `tokens` in percent of the window.
    #[schemars(range(min = 0))]
    pub percent: Option<f64>,
}

impl ContextUsage {
    /// Computes the percentage for a window of `context_window` tokens.
    pub fn new(tokens: Option<u64>, context_window: u64) -> Self {
        let known = tokens.filter(|_| context_window > 0);
        let percent = known.map(|tokens| tokens as f64 / context_window as f64 * 100.0);
        Self {
            tokens,
            context_window,
            percent,
        }
    }
}

impl Stats {
    fn add(&mut self, message: &Message) {
        self.total_messages += 1;
        match message {
            Message::User(_) => self.user_messages += 1,
            Message::ToolResult(_) => self.tool_results += 1,
            Message::Assistant(answer) => self.add_answer(&answer.into()),
            _ => {}
        }
    }

    fn add_answer(&mut self, answer: &AnswerTotals) {
        self.assistant_messages += 1;
        self.tool_calls += answer.tool_calls;
        self.add_usage(&answer.usage);
    }

    /// Adds the tokens and the cost of a request whose messages are not counted.
    pub fn add_usage(&mut self, usage: &Usage) {
        let tokens = &mut self.tokens;
        tokens.input += usage.input;
        tokens.output += usage.output;
        tokens.cache_read += usage.cache_read;
        tokens.cache_write += usage.cache_write;
        tokens.total = tokens.input + tokens.output + tokens.cache_read + tokens.cache_write;
        self.cost += usage.cost.total;
    }
}

impl Stats {
    /// Adds the tokens and the cost of `other`.
    pub fn add_totals(&mut self, other: &Self) {
        let (tokens, more) = (&mut self.tokens, &other.tokens);
        tokens.input += more.input;
        tokens.output += more.output;
        tokens.cache_read += more.cache_read;
        tokens.cache_write += more.cache_write;
        tokens.total += more.total;
        self.cost += other.cost;
    }
}

/// Adds up a list of messages. File and id are left empty; see [`Store::stats`].
pub fn stats<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Stats {
    let mut stats = Stats::default();
    messages.into_iter().for_each(|message| stats.add(message));
    stats
}

/// The totals of a session so far. Entries are only appended, so each is counted once.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningTotals {
    entries: usize,
    stats: Stats,
}

impl RunningTotals {
    fn catch_up(&mut self, entries: &[Entry]) {
        let new = entries.get(self.entries..).unwrap_or_default();
        self.entries = entries.len();
        for_each_line(new, |entry, source| self.count(entry, &source));
    }

    /// Counts an entry. Most messages are counted by their role, without parsing them.
    fn count(&mut self, entry: &Entry, source: &LineSource<'_>) {
        let stats = &mut self.stats;
        match entry.kind() {
            EntryKind::Message(Role::Other) => {
                if let Some(message) = entry.message() {
                    stats.add(&message);
                }
            }
            EntryKind::Message(role) => {
                stats.total_messages += 1;
                match role {
                    Role::User => stats.user_messages += 1,
                    Role::ToolResult => stats.tool_results += 1,
                    Role::Assistant => stats.add_answer(&totals_of(entry, source)),
                    _ => {}
                }
            }
            EntryKind::CustomMessage => stats.total_messages += 1,
            EntryKind::Compaction | EntryKind::BranchSummary | EntryKind::Unknown => {
                if let Some(usage) = entry.usage() {
                    stats.add_usage(&usage);
                }
            }
            _ => {}
        }
    }
}

fn totals_of(entry: &Entry, source: &LineSource<'_>) -> AnswerTotals {
    match (&entry.body, source) {
        (Body::Message(message, _), _) => message
            .as_assistant()
            .map(AnswerTotals::from)
            .unwrap_or_default(),
        (Body::Line(line), _) => answer_totals(line),
        (_, LineSource::Read(line)) => answer_totals(line),
        _ => AnswerTotals::default(),
    }
}

impl Store {
    /// Adds up a list of messages; the result has this session's file and id.
    pub fn stats<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) -> Stats {
        self.named(stats(messages))
    }

    /// Adds up all messages of the session, including summarised ones and those on other branches, and the usage of the
    /// summaries.
    pub fn totals(&mut self) -> Stats {
        let mut running_totals = std::mem::take(&mut self.running_totals);
        running_totals.catch_up(self.tree.entries());
        self.running_totals = running_totals;
        self.named(self.running_totals.stats.clone())
    }

    /// Remembers the totals that were counted on a snapshot of this session, so that they are not counted again.
    pub fn remember_totals(&mut self, counted: Snapshot) {
        let counted = counted.into_running_totals(self);
        if let Some(counted) =
            counted.filter(|counted| counted.entries > self.running_totals.entries)
        {
            self.running_totals = counted;
        }
    }

    fn named(&self, stats: Stats) -> Stats {
        Stats {
            session_file: self.file().map(|file| file.to_string_lossy().into_owned()),
            session_id: self.id().to_owned(),
            ..stats
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewEntry, NewSession};
    use std::sync::Arc;

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

    #[test]
    fn totals_count_each_request_once() {
        let answer = |input: u64| -> Arc<Message> {
            let usage = serde_json::json!({"input": input, "output": 1, "totalTokens": input + 1,
                "cost": {"total": 0.5}});
            let answer = serde_json::json!({"role": "assistant", "content": [], "usage": usage,
                "stopReason": "stop"});
            Arc::new(serde_json::from_value(answer).unwrap())
        };
        let mut store = Store::create(NewSession::default()).unwrap();
        let first = store.append(NewEntry::Message(answer(10))).unwrap();
        assert_eq!(store.totals().tokens.input, 10);
        store.append(NewEntry::Message(answer(20))).unwrap();
        store.set_leaf(Some(&first)).unwrap();
        let kept = store.append(NewEntry::Message(answer(30))).unwrap();
        let summary = Usage {
            input: 40,
            ..Usage::default()
        };
        store
            .append(NewEntry::Compaction {
                summary: "s".into(),
                first_kept_entry_id: kept.to_string(),
                tokens_before: 1,
                usage: Some(summary),
                details: None,
                from_hook: Some(false),
                system_message: None,
            })
            .unwrap();
        for _ in 0..2 {
            let totals = store.totals();
            assert_eq!(totals.tokens.input, 100);
            assert_eq!(totals.tokens.total, 103);
            assert_eq!((totals.assistant_messages, totals.cost), (3, 1.5));
        }
    }
}
