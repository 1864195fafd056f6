//! `pinion clip …`: what is installed on a hub, what it keeps, and what it says.

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

/// Lists clips as `pinix` does: a line each, with tabs.
pub(crate) fn list_in_tabs(arguments: &[String]) -> Result<ExitCode, Failure> {
    list::IN_TABS.run(arguments)
}

/// Describes a clip to people, whoever reads.
pub(crate) fn info(arguments: &[String]) -> Result<ExitCode, Failure> {
    show::INFO.run(arguments)
}

/// Runs the command after `clip`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Failure> {
    GROUP.run(arguments)
}
