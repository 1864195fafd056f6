//! Results that are lists of lines: cut by bytes, with a note in brackets about everything that is
//! missing.

use pinion_message::Block;
use serde_json::{Map, Value};

use crate::ToolOutput;
use crate::truncate::{self, MAX_BYTES, NO_LINE_LIMIT, Totals, format_size};

/// A list before it is returned to the model.
#[derive(Debug)]
pub(crate) struct Listing {
    text: String,
    notices: Vec<String>,
    details: Map<String, Value>,
}

impl Listing {
    pub fn new(lines: &[String]) -> Self {
        Self {
            text: lines.join("\n"),
            notices: Vec::new(),
            details: Map::new(),
        }
    }

    /// Adds a note about something that is missing: `notice` for the model, `value` under `member`
    /// for programs.
    pub fn note(&mut self, notice: String, member: &str, value: impl Into<Value>) {
        self.notices.push(notice);
        self.details.insert(member.into(), value.into());
    }

    /// Cuts a list that is too long and adds a note about it.
    pub fn cut(&mut self) {
        let cut = truncate::head(&self.text, Totals::of(&self.text), NO_LINE_LIMIT);
        if cut.truncated {
            let notice = format!("{} limit reached", format_size(MAX_BYTES as u64));
            self.note(notice, "truncation", cut.to_value());
            self.text = cut.content;
        }
    }

    pub fn into_output(mut self) -> ToolOutput {
        if !self.notices.is_empty() {
            let notices = self.notices.join(". ");
            self.text.push_str(&format!("\n\n[{notices}]"));
        }
        ToolOutput {
            content: vec![Block::text(self.text)],
            details: (!self.details.is_empty()).then_some(Value::Object(self.details)),
            ..ToolOutput::default()
        }
    }
}
