//! Plain text output of the chat, for screen readers, logs and very simple terminals.
//!
//! It has no colours, never moves the cursor and never overwrites text. An answer is printed line
//! by line as lines become complete. A tool call is one line, which is completed when the call
//! ends.

mod tools;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use pinion_agent::{BashOutcome, Event, ToolOutput};
use pinion_message::{Block, Content, Message};

use crate::Abilities;
use crate::text::{one_line, sanitise};
use crate::transcript::{AnswerEnding, Fold, NoticeKind, image, readable, subject};

/// Turns events into plain text.
#[derive(Debug)]
pub(crate) struct PlainPrinter {
    thinking: Fold,
    tools: Fold,
    host: Abilities,
    /// Text to be printed.
    out: String,
    /// Something was printed before.
    has_begun: bool,
    /// The call whose line is incomplete.
    unfinished: Option<Arc<str>>,
    /// The text that the user typed, which is not printed again.
    typed: Option<String>,
    /// Number of printed blocks of the growing answer.
    printed_blocks: usize,
    /// The block that grows.
    growing: Option<Growing>,
    /// The subjects of calls without a result, by id.
    calls: HashMap<String, String>,
}

#[derive(Debug)]
struct Growing {
    index: usize,
    kind: GrowingKind,
    /// The incomplete last line, which is not printed yet.
    line: String,
    is_begun: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GrowingKind {
    Answer,
    Thinking,
    Call,
}

impl PlainPrinter {
    /// Creates a printer that prints reasoning and tool output in full or folded.
    pub(crate) fn new(thinking: Fold, tools: Fold) -> Self {
        Self {
            thinking,
            tools,
            host: Abilities::Session,
            out: String::new(),
            has_begun: false,
            unfinished: None,
            typed: None,
            printed_blocks: 0,
            growing: None,
            calls: HashMap::new(),
        }
    }

    /// Adapts the advice after failures to a host.
    pub(crate) fn for_host(self, host: Abilities) -> Self {
        Self { host, ..self }
    }

    /// Records the text that the user just typed, so that it is not printed again.
    pub(crate) fn typed(&mut self, text: &str) {
        self.typed = Some(text.trim().to_owned());
    }

    /// Returns the text to print for an event: whole lines, or the beginning of one that is
    /// completed later.
    pub(crate) fn event(&mut self, event: &Event) -> String {
        match event {
            Event::MessageStart(message) => {
                if matches!(**message, Message::Assistant(_)) {
                    self.printed_blocks = 0;
                    self.growing = None;
                }
            }
            Event::MessageEnd(message) => self.message_end(message),
            Event::BlockStart { index, block } => self.block_start(*index, block),
            Event::BlockDelta { index, delta } => self.block_delta(*index, delta),
            Event::BlockEnd { index, block } => self.block_end(*index, block),
            Event::ToolStart(run) => self.tool_start(run),
            Event::ToolEnd {
                run,
                output,
                is_error,
                duration,
            } => self.tool_end(run, output, *is_error, *duration),
            Event::RetryStart {
                attempt,
                max_attempts,
                delay,
                ..
            } => {
                let seconds = delay.as_millis().div_ceil(1000);
                self.line(&format!(
                    "Trying again in {seconds} s (retry {attempt} of {max_attempts})."
                ));
            }
            Event::RetryEnd { success: false, .. } => {
                self.line("The request is not retried again.")
            }
            Event::CompactionStart { .. } => self.line("Summarising the conversation …"),
            Event::CompactionEnd {
                result,
                aborted,
                error,
                ..
            } => match (result, error) {
                (Some(_), _) => self.line("The conversation was summarised."),
                (None, _) if *aborted => self.line("Summarising was stopped."),
                (None, Some(error)) => {
                    let error = readable(error);
                    self.line(&format!("Summarising failed: {}", one_line(&error)));
                }
                (None, None) => {}
            },
            Event::Fault {
                source,
                during,
                error,
            } => self.line(&format!(
                "Error in {source} ({during}): {}",
                one_line(error)
            )),
            _ => {}
        }
        std::mem::take(&mut self.out)
    }

    /// Returns the messages of a resumed session.
    pub(crate) fn history(&mut self, messages: &[Arc<Message>]) -> String {
        for message in messages {
            self.printed_blocks = 0;
            match &**message {
                Message::ToolResult(result) => {
                    let subject = self.calls.remove(&result.tool_call_id).unwrap_or_default();
                    let output = ToolOutput {
                        content: result.content.clone(),
                        details: result.details.clone(),
                        ..ToolOutput::default()
                    };
                    self.tool_line(&result.tool_name, &subject);
                    self.tool_result(&result.tool_name, &output, result.is_error, None);
                }
                Message::Assistant(answer) => {
                    for call in answer.tool_calls() {
                        let subject = subject(&call.name, &call.arguments);
                        self.calls.insert(call.id.clone(), subject);
                    }
                    self.message_end(message);
                }
                _ => self.message_end(message),
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Returns a notice of the chat itself.
    pub(crate) fn notice(&mut self, kind: NoticeKind, text: &str) -> String {
        let label = match kind {
            NoticeKind::Information => "",
            NoticeKind::Warning => "Warning: ",
            NoticeKind::Error => "Error: ",
        };
        self.text(label, text);
        std::mem::take(&mut self.out)
    }

    /// Returns the outcome of a shell command of the user.
    pub(crate) fn shell_end(
        &mut self,
        command: &str,
        outcome: Result<&BashOutcome, &str>,
    ) -> String {
        self.shell(command, outcome);
        std::mem::take(&mut self.out)
    }

    /// Ends an incomplete line before anything else is printed.
    fn finish_line(&mut self) {
        if self.unfinished.take().is_some() {
            self.out.push('\n');
        }
    }

    fn line(&mut self, text: &str) {
        self.finish_line();
        self.has_begun = true;
        self.out.push_str(sanitise(text).trim_end());
        self.out.push('\n');
    }

    /// Prints lines, the first with a label.
    fn text(&mut self, label: &str, text: &str) {
        let clean = sanitise(text.trim());
        let mut lines = clean.lines();
        let first = format!("{label}{}", lines.next().unwrap_or(""));
        self.line(&first);
        for line in lines {
            self.line(line);
        }
    }

    /// Prints a blank line between messages.
    fn blank_line(&mut self) {
        if self.has_begun {
            self.line("");
        }
    }

    fn message_end(&mut self, message: &Message) {
        match message {
            Message::User(user) => {
                let text = words_of(&user.content);
                if self.typed.take().is_some_and(|typed| typed == text.trim()) {
                    return;
                }
                self.blank_line();
                self.text("You: ", &text);
                self.images(&user.content);
            }
            Message::Assistant(answer) => {
                self.end_growing();
                for block in answer.content.iter().skip(self.printed_blocks) {
                    self.whole_block(block);
                }
                self.printed_blocks = 0;
                if let Some(ending) = AnswerEnding::of(answer) {
                    let (what, advice) = ending.words(self.host);
                    self.text("", &what);
                    if let Some(advice) = advice {
                        self.line(advice);
                    }
                }
            }
            Message::ToolResult(_) => {}
            Message::BashExecution(bash) => {
                let outcome = BashOutcome {
                    output: bash.output.clone(),
                    exit_code: bash.exit_code,
                    cancelled: bash.cancelled,
                    truncated: bash.truncated,
                    full_output_path: bash.full_output_path.clone(),
                };
                self.shell(&bash.command, Ok(&outcome));
            }
            Message::Custom(custom) if custom.display => {
                self.blank_line();
                let label = format!("{}: ", one_line(&custom.custom_type));
                self.text(&label, &words_of(&custom.content));
                self.images(&custom.content);
            }
            Message::Custom(_) | Message::System(_) => {}
            Message::CompactionSummary(compaction) => {
                self.blank_line();
                self.text("Summary of the earlier conversation: ", &compaction.summary);
            }
            Message::BranchSummary(branch) => {
                self.blank_line();
                self.text("Summary of an abandoned branch: ", &branch.summary);
            }
        }
    }

    fn images(&mut self, content: &Content) {
        if let Content::Blocks(blocks) = content {
            for words in blocks.iter().filter_map(image) {
                self.line(&words);
            }
        }
    }

    fn block_start(&mut self, index: usize, block: &Block) {
        self.end_growing();
        let (kind, text) = match block {
            Block::Text(text) => (GrowingKind::Answer, text.text.as_str()),
            Block::Thinking(thinking) => (GrowingKind::Thinking, thinking.thinking.as_str()),
            Block::ToolCall(_) => (GrowingKind::Call, ""),
            Block::Image { .. } => return,
        };
        self.growing = Some(Growing {
            index,
            kind,
            line: String::new(),
            is_begun: false,
        });
        self.block_delta(index, text);
    }

    fn block_delta(&mut self, index: usize, delta: &str) {
        let Some(growing) = &mut self.growing else {
            return;
        };
        if growing.index != index || growing.kind == GrowingKind::Call {
            return;
        }
        growing.line.push_str(delta);
        while let Some(growing) = &mut self.growing
            && let Some(end) = growing.line.find('\n')
        {
            let line: String = growing.line.drain(..=end).collect();
            self.grown_line(line.trim_end_matches(['\r', '\n']));
        }
    }

    fn block_end(&mut self, index: usize, block: &Block) {
        if self
            .growing
            .as_ref()
            .is_some_and(|growing| growing.index == index)
        {
            self.end_growing();
            self.hidden_thinking(block);
            self.printed_blocks = index + 1;
        }
    }

    /// Prints a complete line of the growing block.
    fn grown_line(&mut self, line: &str) {
        let Some(growing) = &mut self.growing else {
            return;
        };
        if growing.kind == GrowingKind::Thinking && self.thinking == Fold::Folded {
            return;
        }
        let label = match growing.kind {
            GrowingKind::Thinking => "Thinking: ",
            _ => "Assistant: ",
        };
        if growing.is_begun {
            self.line(line);
        } else if !line.trim().is_empty() {
            growing.is_begun = true;
            self.blank_line();
            self.line(&format!("{label}{line}"));
        }
    }

    /// Prints the rest of the growing block.
    fn end_growing(&mut self) {
        let Some(growing) = &mut self.growing else {
            return;
        };
        let index = growing.index;
        let line = std::mem::take(&mut growing.line);
        if !line.trim().is_empty() {
            self.grown_line(&line);
        }
        self.growing = None;
        self.printed_blocks = index + 1;
    }

    /// Prints a block that did not grow.
    fn whole_block(&mut self, block: &Block) {
        match block {
            Block::Text(text) if !text.text.trim().is_empty() => {
                self.blank_line();
                self.text("Assistant: ", &text.text);
            }
            Block::Thinking(thinking)
                if self.thinking == Fold::Unfolded && !thinking.thinking.trim().is_empty() =>
            {
                self.blank_line();
                self.text("Thinking: ", &thinking.thinking);
            }
            block => self.hidden_thinking(block),
        }
    }

    fn hidden_thinking(&mut self, block: &Block) {
        if let Block::Thinking(thinking) = block
            && self.thinking == Fold::Folded
        {
            let is_withheld = thinking.redacted == Some(true);
            if is_withheld || !thinking.thinking.trim().is_empty() {
                self.line("Thinking hidden.");
            }
        }
    }
}

fn words_of(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        blocks => blocks.joined_text("\n"),
    }
}
