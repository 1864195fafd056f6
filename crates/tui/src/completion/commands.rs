//! Commands that can be written after `/`.

use super::matching::{self, Marker};
use super::popup::Entry;
use crate::text::one_line;

/// A command that can be written after `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandEntry {
    /// Its name without the `/`.
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: String,
    /// What follows it: `<name>` must, `[name]` may.
    pub(crate) arguments: String,
    /// Where it comes from, if that is worth saying: `skill`, `extension`.
    pub(crate) source: String,
}

/// The commands that fit what is written, the best first, and how many do.
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
