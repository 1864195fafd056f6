//! `pinion clip …`: installs, lists, describes and removes clips of a hub, and shows their data and logs.

mod add;
mod bindings;
mod data;
mod list;
mod logs;
mod new;
mod show;

pub(crate) use self::list::IN_TABS as LIST_IN_TABS;
pub(crate) use self::show::{INFO, described, manifest};
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
    takes_words: false,
};

/// Returns the aliases of the clips that the hub of this machine shows, for completions.
pub(crate) fn aliases() -> Result<Vec<String>, Failure> {
    list::aliases()
}
