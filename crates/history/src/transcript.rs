//! Conversations for people to read: a turn or a timeline as text, Markdown or a web page.

mod html;
mod markdown;
mod timeline;
mod turn;

use pinion_text::harmless;
use serde_json::Value;

/// A conversation to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transcript {
    pub title: String,
    /// Facts about it, each with its name.
    pub facts: Vec<(&'static str, String)>,
    /// The entries, in order.
    pub entries: Vec<Entry>,
}

/// One message, tool call or result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub author: Author,
    /// The tool's name; empty for other entries.
    pub label: String,
    /// The result, if it is unusual.
    pub note: String,
    pub parts: Vec<Part>,
}

/// The author of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    User,
    Assistant,
    /// The model's reasoning.
    Thinking,
    /// The system prompt.
    System,
    ToolCall,
    ToolResult,
    /// An error.
    Error,
    /// Any other author.
    Other,
}

impl Author {
    /// Returns the author's name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Assistant => "Assistant",
            Self::Thinking => "Thinking",
            Self::System => "System",
            Self::ToolCall => "Call",
            Self::ToolResult => "Result",
            Self::Error => "Error",
            Self::Other => "Other",
        }
    }
}

/// A part of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text, possibly in Markdown.
    Text(String),
    /// Literal text: JSON, output of programs.
    Code(String),
}

impl Entry {
    fn new(author: Author) -> Self {
        Self {
            author,
            label: String::new(),
            note: String::new(),
            parts: Vec::new(),
        }
    }

    fn text(mut self, text: Option<&str>) -> Self {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.parts.push(Part::Text(text.to_owned()));
        }
        self
    }

    fn code(mut self, code: Option<String>) -> Self {
        self.parts
            .extend(code.filter(|code| !code.is_empty()).map(Part::Code));
        self
    }

    fn heading(&self) -> String {
        let label = match self.label.as_str() {
            "" => String::new(),
            label => format!(" {label}"),
        };
        let note = match self.note.as_str() {
            "" => String::new(),
            note => format!(" ({note})"),
        };
        format!("{}{label}{note}", self.author.name())
    }
}

impl Transcript {
    /// Returns plain text for a terminal, without control characters that would affect it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let parts: Vec<&str> = entry.parts.iter().map(Part::words).collect();
            let words = format!("{}: {}", entry.heading(), parts.join("\n"));
            text.push_str(&harmless(words.trim_end()));
            text.push_str("\n\n");
        }
        text
    }

    /// Returns a Markdown page.
    pub fn markdown(&self) -> String {
        markdown::page(self)
    }

    /// Returns a self-contained web page.
    pub fn html(&self) -> String {
        html::page(self)
    }
}

impl Part {
    fn words(&self) -> &str {
        match self {
            Self::Text(words) | Self::Code(words) => words,
        }
    }
}

/// Prints JSON with indentation; text that contains JSON is printed as JSON.
fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => indented(&inner),
            // The output of a tool is stored as JSON.
            Ok(Value::String(inner)) => inner,
            _ => text.clone(),
        },
        Value::Null => String::new(),
        other => indented(other),
    }
}

fn indented(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

/// Prints milliseconds since 1970 as RFC 3339, or as a number if they are out of range.
pub fn moment(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(at) => at.to_string(),
        Err(_) => at_ms.to_string(),
    }
}
