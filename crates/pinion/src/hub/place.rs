//! Where a hub keeps what is its own.

use std::path::PathBuf;

use pinion_config::Dirs;

use crate::failure::Failure;
use crate::verb::Line;

/// The variable that names the directory.
const VARIABLE: &str = "PINION_HUB_DIR";

/// The directory the command line means: `--root`, else the environment, else one in the home of the user.
pub(crate) fn root(line: &Line) -> Result<PathBuf, Failure> {
    named_or_usual(line.value("--root"))
}

/// The directory somebody named, else that of the environment, else the usual one.
pub(crate) fn named_or_usual(named: Option<&str>) -> Result<PathBuf, Failure> {
    let named = named.map(PathBuf::from);
    let set = || std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let path = match named.or_else(|| set().map(PathBuf::from)) {
        Some(path) => path,
        None => Dirs::from_env()?.home.join(".pinion").join("hub"),
    };
    Ok(std::path::absolute(path)?)
}
