//! Commands that can be written after `/`.

use super::matching::{self, Marker};
use super::popup::Entry;

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
    let about = match command.source.as_str() {
        "" => command.description.clone(),
        source if command.description.is_empty() => source.to_owned(),
        source => format!("{} ({source})", command.description),
    };
    let marks = marker.marks(&command.name).into_iter().map(|mark| mark + 1);
    Entry {
        name: format!("/{}", command.name),
        marks: marks.collect(),
        hint: command.arguments.clone(),
        about,
    }
}
