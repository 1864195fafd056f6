//! `pinion clip …`: installs, lists, describes and removes clips of a hub, and shows their data and logs.

mod add;
mod bindings;
mod data;
mod list;
mod logs;
mod new;
mod schema;
mod show;
mod source;

use std::process::ExitCode;

pub(crate) use self::schema::fields;
pub(crate) use self::show::{described, manifest};
use crate::failure::Failure;
use crate::verb::{Entry, Group};
use pinion_cli::tables;

pub(crate) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::clip::CLIP,
    entries: &[
        Entry::One(&add::ADD),
        Entry::One(&list::VERB),
        Entry::One(&show::VERB),
        Entry::One(&add::REMOVE),
        Entry::One(&add::UPDATE),
        Entry::One(&logs::VERB),
        Entry::One(&data::VERB),
        Entry::One(&new::VERB),
        Entry::One(&bindings::BIND),
        Entry::One(&bindings::UNBIND),
        Entry::One(&bindings::BINDINGS),
    ],
};

/// Returns the aliases of the clips that the hub of this machine shows, for completions.
pub(crate) fn aliases() -> Result<Vec<String>, Failure> {
    list::aliases()
}

/// Lists clips in the format of `pinix`: one line each, separated by tabs.
pub(crate) fn list_in_tabs(arguments: &[String]) -> Result<ExitCode, Failure> {
    list::IN_TABS.run(arguments)
}

/// Describes a clip as text unless `--json` is given, even if stdout is not a terminal.
pub(crate) fn info(arguments: &[String]) -> Result<ExitCode, Failure> {
    show::INFO.run(arguments)
}

/// Runs the command after `clip`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Failure> {
    GROUP.run(arguments)
}
