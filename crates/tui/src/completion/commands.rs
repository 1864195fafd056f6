//! Commands that follow `/`.

use super::matching::{self, Marker};
use super::popup::Entry;
use crate::text::one_line;

/// A command that follows `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandEntry {
    /// The name without `/`.
    pub(crate) name: String,
    pub(crate) description: String,
    /// The arguments: `<name>` is required, `[name]` optional.
    pub(crate) arguments: String,
    /// The origin, if it matters to the user: `skill`, `extension`.
    pub(crate) source: String,
}

/// The commands that match, the best first, and their number.
pub(super) fn entries(commands: &[CommandEntry], query: &str) -> (Vec<Entry>, usize) {
    let names: Vec<&str> = commands
        .iter()
        .map(|command| command.name.as_str())
        .collect();
    let best = matching::best_words(&names, query);
    let fitting = best
        .positions
        .iter()
        .filter_map(|position| commands.get(*position));
    let mut marker = Marker::new(query);
    (
        fitting.map(|command| entry(command, &mut marker)).collect(),
        best.total,
    )
}

fn entry(command: &CommandEntry, marker: &mut Marker) -> Entry {
    let description = one_line(&command.description);
    let about = match command.source.as_str() {
        "" => description,
        source if description.is_empty() => source.to_owned(),
        source => format!("{description} ({source})"),
    };
    let marks = marker.marks(&command.name).into_iter().map(|mark| mark + 1);
    Entry {
        name: format!("/{}", command.name),
        marks: marks.collect(),
        hint: one_line(&command.arguments),
        about,
    }
}
