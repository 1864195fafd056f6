//! `completions` and `man`: the command line for shells and for man.

use std::process::ExitCode;

use pinion_cli::complete::{Shell, script};
use pinion_cli::{Place, manual, tables};
use pinion_text::nearest;

use super::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};

pub(super) const VERB: Verb = Verb::new("pinion", &tables::commands::COMPLETIONS, completions);
pub(super) const MAN: Verb = Verb::new("pinion", &tables::commands::MAN, man);

fn completions(line: &Line) -> Result<ExitCode, Failure> {
    let (typed, name) = line.one_or_two()?;
    let shell = Shell::named(typed).ok_or_else(|| {
        line.wrong(match nearest(typed, Shell::NAMES) {
            Some(nearest) => format!("unknown shell {typed:?}, did you mean {nearest}"),
            None => format!("unknown shell {typed:?}; use bash, zsh or fish"),
        })
    })?;
    let name = name.unwrap_or(tables::root::PINION.name);
    let names = tables::PROGRAMS.map(|program| program.name);
    let program = tables::program(name).ok_or_else(|| {
        line.wrong(match nearest(name, names) {
            Some(nearest) => format!("unknown program {name:?}, did you mean {nearest}"),
            None => format!("unknown program {name:?}; use {}", names.join(", ")),
        })
    })?;
    out(&script(shell, program))
}

fn man(line: &Line) -> Result<ExitCode, Failure> {
    let mut words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    let named = words.first().and_then(|word| tables::program(word));
    if named.is_some() {
        words.remove(0);
    }
    let root = named.unwrap_or(&tables::root::PINION);
    let place = Place::find(root, words.iter().copied());
    match words.get(place.name().split_whitespace().count()) {
        None => out(&manual::page(&place, env!("CARGO_PKG_VERSION"))),
        Some(word) => Err(line.wrong(match nearest(word, place.command.words()) {
            Some(nearest) => format!("unknown command {word:?}, did you mean {nearest}"),
            None => format!("unknown command {word:?}"),
        })),
    }
}
