//! Lists, texts and exports of what the stores hold, for people and for programs.
//!
//! Everything is written as it is read, one turn or one page of events at a time.

mod timeline;
mod turns;

use std::io;

pub use timeline::{TimelineExport, TimelineSelection, list_sessions, show_events, show_timeline};
pub use turns::{TurnExport, TurnSelection, list_turns, show_turn};

use crate::{HistoryError, Transcript};

/// The form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListForm {
    /// Columns below a heading.
    Table,
    /// Columns alone, for programs.
    Columns,
    /// One line of JSON for each row.
    Json,
}

/// The form of one conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShowForm {
    Text,
    Json,
    /// The YAML form of a turn; the text of a timeline.
    Yaml,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    Jsonl,
    Markdown,
    Html,
}

impl ExportForm {
    /// Returns the form with this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "jsonl" => Some(Self::Jsonl),
            "markdown" | "md" => Some(Self::Markdown),
            "html" => Some(Self::Html),
            _ => None,
        }
    }

    /// Returns the form that the extension of a file's name stands for.
    pub fn of_file(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }

    /// Returns a transcript as a page, which JSON lines are not.
    fn page(self, transcript: &Transcript) -> String {
        match self {
            Self::Html => transcript.html(),
            Self::Markdown | Self::Jsonl => transcript.markdown(),
        }
    }
}

/// The reason why a report could not be selected or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Store(#[from] HistoryError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// Nothing matches the selection.
    #[error("{0}")]
    Missing(String),
    /// The selection matches more than the report can hold.
    #[error("{0}")]
    Ambiguous(String),
}

/// Returns rows in columns, under `heading` if `form` has one and there are rows.
fn table<const N: usize>(form: ListForm, heading: [&str; N], mut rows: Vec<[String; N]>) -> String {
    if form == ListForm::Table && !rows.is_empty() {
        rows.insert(0, heading.map(str::to_owned));
    }
    pinion_text::columns(&rows)
}

/// Returns the beginning of a text on one line, without control characters.
fn beginning(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(20).collect();
    let words = words.join(" ");
    words.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let rows = vec![row("é", "x"), row("long", "")];
        let text = table(ListForm::Columns, ["a", "b"], rows.clone());
        assert_eq!(text, "é     x\nlong\n");
        let text = table(ListForm::Table, ["a", "b"], rows);
        assert_eq!(text, "a     b\né     x\nlong\n");
        assert_eq!(table(ListForm::Table, ["a"], Vec::new()), "");
        assert_eq!(beginning("a\n\tb \u{1b}[31mc"), "a b [31mc");
    }

    #[test]
    fn a_file_name_selects_the_form_of_an_export() {
        assert_eq!(ExportForm::of_file("talk.md"), Some(ExportForm::Markdown));
        assert_eq!(ExportForm::of_file("a.b.htm"), Some(ExportForm::Html));
        assert_eq!(ExportForm::of_file("jsonl"), None);
        assert_eq!(ExportForm::named("pdf"), None);
    }
}
