//! Helpers shared by the tests.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::path::{Path, PathBuf};

use jiff::Zoned;
use pinion_commands::{BUILT_INS, Command, CommandError, CommandLine, Origin, Parsed, World};

/// The command files that tests of the whole program use too.
pub fn commands() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pinocchio/commands")
}

/// A Monday.
pub fn now() -> Zoned {
    let stamp: jiff::Timestamp = "2026-11-16T07:10:28Z".parse().unwrap();
    stamp.to_zoned(jiff::tz::TimeZone::UTC)
}

pub fn world(directory: &Path) -> World {
    World::new(directory).at(now())
}

/// A command from text, as file `prompts/x.yaml`.
pub fn read(text: &str) -> Result<Command, CommandError> {
    let origin = Origin {
        name: "prompts/x.yaml".to_owned(),
        path: None,
        text: text.to_owned(),
    };
    Command::read(origin, BUILT_INS)
}

pub fn parse(command: &Command, words: &[&str]) -> Result<Parsed, CommandError> {
    parse_in(command, words, &mut world(Path::new("/nowhere")))
}

pub fn parse_in(
    command: &Command,
    words: &[&str],
    world: &mut World,
) -> Result<Parsed, CommandError> {
    command.parse(&CommandLine::new(words.iter().copied()), BUILT_INS, world)
}

/// Renders the prompt of a command with these words on its command line.
pub fn prompt(command: &Command, words: &[&str], world: &mut World) -> String {
    let parsed = parse_in(command, words, world).unwrap();
    command
        .render(&parsed, world)
        .unwrap()
        .prompt
        .unwrap_or_default()
}
