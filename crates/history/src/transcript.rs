//! What was said, for people: a turn or a timeline as text, Markdown or a web page.

mod html;
mod markdown;
mod timeline;
mod turn;

use serde_json::Value;

/// A conversation to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transcript {
    /// Its name.
    pub title: String,
    /// What is known of it, each with its name.
    pub facts: Vec<(&'static str, String)>,
    /// What was said, in order.
    pub entries: Vec<Entry>,
}

/// One thing that was said, called or returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// By whom.
    pub who: Who,
    /// The tool, where there is one.
    pub label: String,
    /// How it ended, where that is not as usual.
    pub note: String,
    /// What was said.
    pub parts: Vec<Part>,
}

/// Whoever says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The model, to itself.
    Thinking,
    /// Whoever set the model up.
    System,
    /// The model, to a tool.
    ToolCall,
    /// A tool.
    ToolResult,
    /// What went wrong.
    Error,
    /// Anybody else.
    Other,
}

impl Who {
    /// A word for it.
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

/// A piece of what was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Words, perhaps in Markdown.
    Text(String),
    /// Letter by letter: JSON, output of programs.
    Code(String),
}

impl Entry {
    fn new(who: Who) -> Self {
        Self {
            who,
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
        format!("{}{label}{note}", self.who.name())
    }
}

impl Transcript {
    /// Plain text for a terminal, without characters that would do something to it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let parts: Vec<&str> = entry.parts.iter().map(Part::words).collect();
            let words = format!("{}: {}", entry.heading(), parts.join("\n"));
            text.extend(words.trim_end().chars().map(harmless));
            text.push_str("\n\n");
        }
        text
    }

    /// A page in Markdown.
    pub fn markdown(&self) -> String {
        markdown::page(self)
    }

    /// A web page that needs nothing else.
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

fn harmless(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        other if other.is_control() => '\u{fffd}',
        other => other,
    }
}

/// JSON to read: indented; text that holds JSON is taken for it.
fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => indented(&inner),
            // What a tool printed is kept as JSON.
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

/// A moment in milliseconds since 1970 as RFC 3339, or as the number it is where that cannot be said.
pub fn moment(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(at) => at.to_string(),
        Err(_) => at_ms.to_string(),
    }
}
