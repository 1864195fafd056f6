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
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let milliseconds = match &text[number.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let count: Option<u64> = number.parse().ok();
    let time = count.and_then(|count| count.checked_mul(milliseconds));
    match time {
        Some(time) if milliseconds > 0 => Ok(Duration::from_millis(time)),
        _ => Err(line.wrong(&format!(
            "{flag} needs a time such as 30s or 5m, not {text:?}"
        ))),
    }
}
