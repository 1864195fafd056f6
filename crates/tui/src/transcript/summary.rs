//! Summaries that replace a part of the conversation: compactions, and abandoned branches.

use pinion_message::Message;
use pinion_text::amount;
use ratatui::text::Line;

use super::preview::wrapped;
use super::{Fold, Look};
use crate::markdown::Markdown;

/// Shows a summary, folded to its title.
pub(super) fn lines(message: &Message, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let (title, summary) = match message {
        Message::CompactionSummary(compaction) => {
            let tokens = thousands(compaction.tokens_before);
            (
                format!("Summary of the earlier conversation ({tokens} tokens)"),
                compaction.summary.trim(),
            )
        }
        Message::BranchSummary(branch) => (
            "Summary of an abandoned branch".to_owned(),
            branch.summary.trim(),
        ),
        _ => return Vec::new(),
    };
    match look.tools {
        Fold::Folded => {
            let count = amount::count(summary.lines().count(), "line");
            wrapped(
                &format!("{title} … {count} (Ctrl-O)"),
                width,
                look.theme.accent,
            )
        }
        Fold::Unfolded => {
            let mut markdown = Markdown::from_text(summary);
            let body = markdown.lines(width, look.theme, look.highlighter);
            let mut lines = wrapped(&title, width, look.theme.accent);
            lines.extend_from_slice(body);
            lines
        }
    }
}

/// "12,345".
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(super::thousands(0), "0");
        assert_eq!(super::thousands(999), "999");
        assert_eq!(super::thousands(1000), "1,000");
        assert_eq!(super::thousands(1_234_567), "1,234,567");
    }
}
