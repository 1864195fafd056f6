//! Completions for shells: of commands, flags and their values.
//!
//! The scripts hold commands, flags and fixed values. Values that only the program can list, such as sessions, come from
//! `PROGRAM __complete KIND PREFIX`.

mod bash;
mod fish;
mod zsh;

use crate::place::Place;
use crate::table::{Command, Kind};

/// The hidden first argument with which a script asks for values.
pub const ARGUMENT: &str = "__complete";

/// A shell for which completions exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    /// The names of all shells.
    pub const NAMES: [&'static str; 3] = ["bash", "zsh", "fish"];

    /// Returns the shell of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            _ => None,
        }
    }
}

/// Returns the completion script of a program.
pub fn script(shell: Shell, root: &'static Command) -> String {
    let root = Place::root(root);
    match shell {
        Shell::Bash => bash::script(&root),
        Shell::Zsh => zsh::script(&root),
        Shell::Fish => fish::script(&root),
    }
}

/// The case patterns of a script, by the text that a shell matches: the words of a command and one more word.
struct Steps {
    /// A word that enters a command, with the words of that command.
    commands: Vec<(String, String)>,
    /// A flag whose value is the next argument, with the kind of the value.
    values: Vec<(String, Kind)>,
}

impl Steps {
    fn of(places: &[Place]) -> Self {
        let mut steps = Self {
            commands: Vec::new(),
            values: Vec::new(),
        };
        for place in places {
            let words = place.words();
            for child in place.children() {
                let names = std::iter::once(&child.command.name).chain(child.command.aliases);
                for name in names {
                    let typed = format!("{words} {name}");
                    steps.commands.push((typed, child.words().to_owned()));
                }
            }
            for flag in flags(place) {
                let Some(kind) = flag.kind() else { continue };
                for spelling in flag.spellings() {
                    steps.values.push((format!("{words} {spelling}"), kind));
                }
            }
        }
        steps
    }
}

/// Returns the flags that may follow the words of a place: its own, and those of the command that runs by default.
fn flags(place: &Place) -> impl Iterator<Item = &'static crate::Flag> + use<> {
    let otherwise = place.command.otherwise.map(Command::all_flags);
    place.all_flags().chain(otherwise.into_iter().flatten())
}

/// Quotes text for bash and zsh.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
