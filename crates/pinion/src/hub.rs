//! `pinion hub …`: runs, describes and stops a hub, and manages its tokens.

mod agent_sessions;
pub(crate) mod ask;
pub(crate) mod caller;
mod import;
mod join;
pub(crate) mod login;
mod mounts;
pub(crate) mod place;
pub(crate) mod seat;
mod serve;
pub(crate) mod show;
mod standing;
mod tokens;

use std::process::ExitCode;
use std::time::Duration;

use crate::failure::Failure;
use crate::verb::{Entry, Group, Line};
use pinion_cli::tables;
use pinion_text::duration;

pub(crate) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::hub::HUB,
    entries: &[
        Entry::One(&serve::VERB),
        Entry::One(&standing::STATUS),
        Entry::One(&standing::STOP),
        Entry::One(&standing::INFO),
        Entry::One(&join::VERB),
        Entry::Several(&tokens::GROUP),
        Entry::One(&login::LOGIN),
        Entry::One(&login::LOGOUT),
        Entry::One(&login::WHOAMI),
    ],
};

/// Runs the command after `hub`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Failure> {
    GROUP.run(arguments)
}

/// Converts a failure of the hub's crates to one of the program.
pub(crate) fn failed(failure: pinion_connect::Failure) -> Failure {
    Failure::failed(format!("Error: {}", failure.message))
}

/// Parses a duration: `30s`, `5m`, `500ms`, or seconds as a number.
pub(crate) fn duration(line: &Line, flag: &str, text: &str) -> Result<Duration, Failure> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    seconds.or_else(|| duration::parse(text)).ok_or_else(|| {
        line.wrong(&format!(
            "{flag} needs a time such as 30s or 5m, not {text:?}"
        ))
    })
}
