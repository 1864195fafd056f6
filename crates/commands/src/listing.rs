//! Lists of commands and help pages, for people and programs.

use pinion_text::columns;
use serde_json::{Value, json};

use crate::repository::Listing;
use crate::{EntryKind, HelpPage};

/// Returns commands as JSON.
pub fn commands_json(commands: &[Listing]) -> Value {
    let row = |command: &Listing| {
        json!({
            "command": command.path.join(" "),
            "short": command.short,
            "kind": match command.kind {
                EntryKind::Command => "command",
                EntryKind::Alias => "alias",
            },
            "source": command.source,
        })
    };
    commands.iter().map(row).collect()
}

/// Returns commands in columns.
pub fn commands_table(commands: &[Listing]) -> String {
    let row = |command: &Listing| {
        let mark = match command.kind {
            EntryKind::Command => "",
            EntryKind::Alias => " (alias)",
        };
        [command.path.join(" "), format!("{}{mark}", command.short)]
    };
    columns(&commands.iter().map(row).collect::<Vec<_>>())
}

/// Returns help pages in columns, indented.
pub fn pages_table(pages: &[&HelpPage]) -> String {
    // The empty column indents the others.
    let row = |page: &&HelpPage| [String::new(), page.slug.clone(), page.summary().to_owned()];
    columns(&pages.iter().map(row).collect::<Vec<_>>())
}

/// Returns the list of pages that a command's help ends with; empty without pages.
pub fn related_pages(pages: &[&HelpPage]) -> String {
    if pages.is_empty() {
        return String::new();
    }
    format!("\nMore about it (help TOPIC):\n{}", pages_table(pages))
}
