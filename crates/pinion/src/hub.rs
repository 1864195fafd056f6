//! `pinion hub …`: runs, describes and stops a hub, and manages its tokens.

mod agent_sessions;
pub(crate) mod ask;
pub(crate) mod caller;
mod join;
pub(crate) mod login;
mod serve;
pub(crate) mod show;
mod status;
mod tokens;

use std::path::PathBuf;
use std::time::Duration;

use pinion_config::Dirs;

use crate::failure::Failure;
use crate::verb::{Entry, Group, Line};
use pinion_cli::tables;
use pinion_text::duration;

pub(crate) const GROUP: Group = Group {
    above: "pinion",
    command: &tables::hub::HUB,
    entries: &[
        Entry::One(&serve::VERB),
        Entry::One(&status::STATUS),
        Entry::One(&status::STOP),
        Entry::One(&status::INFO),
        Entry::One(&join::VERB),
        Entry::Several(&tokens::GROUP),
        Entry::One(&login::LOGIN),
        Entry::One(&login::LOGOUT),
        Entry::One(&login::WHOAMI),
    ],
    takes_words: false,
};

/// Returns the absolute path of the hub's directory: `--root`, else the environment's, else the default one.
pub(crate) fn root_dir(line: &Line) -> Result<PathBuf, Failure> {
    root_dir_named(line.value("--root"))
}

/// Returns the absolute path of the hub's directory: `named`, else the environment's, else the default one.
pub(crate) fn root_dir_named(named: Option<&str>) -> Result<PathBuf, Failure> {
    Ok(pinion_hub::root_dir(named, || Ok(Dirs::from_env()?.home))?)
}

/// Returns the path of the pid file: `--pid`, else the one in the hub's directory.
pub(crate) fn pid_file(line: &Line) -> Result<PathBuf, Failure> {
    Ok(match line.value("--pid") {
        Some(path) => PathBuf::from(path),
        None => pinion_hub::pid_file(&root_dir(line)?),
    })
}

/// Returns the value of an environment variable.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Parses a duration: `30s`, `5m`, `500ms`, or seconds as a number.
pub(crate) fn duration(line: &Line, flag: &str, text: &str) -> Result<Duration, Failure> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    seconds.or_else(|| duration::parse(text)).ok_or_else(|| {
        line.wrong(format!(
            "{flag} needs a time such as 30s or 5m, not {text:?}"
        ))
    })
}
