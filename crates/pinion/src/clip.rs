//! `pinion clip …`: installs, lists, describes and removes clips of a hub, and shows their data and logs.

mod add;
mod bindings;
mod data;
mod help;
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
use crate::verb::Group;

pub(crate) const GROUP: Group = Group {
    name: "clip",
    help: help::GROUP,
    verbs: &[
        &add::ADD,
        &list::VERB,
        &show::VERB,
        &add::REMOVE,
        &add::UPDATE,
        &logs::VERB,
        &data::VERB,
        &new::VERB,
        &bindings::BIND,
        &bindings::UNBIND,
        &bindings::BINDINGS,
    ],
    otherwise: None,
};

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
