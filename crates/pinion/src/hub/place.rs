//! The directory of a hub's files.

use std::path::PathBuf;

use pinion_config::Dirs;

use crate::failure::Failure;
use crate::verb::Line;

/// The environment variable that names the directory.
const VARIABLE: &str = "PINION_HUB_DIR";

/// Returns the hub's directory: `--root`, else the environment's, else `.pinion/hub` in the user's home.
pub(crate) fn root(line: &Line) -> Result<PathBuf, Failure> {
    named_or_usual(line.value("--root"))
}

/// Returns `named`, else the environment's directory, else the default one, as an absolute path.
pub(crate) fn named_or_usual(named: Option<&str>) -> Result<PathBuf, Failure> {
    let named = named.map(PathBuf::from);
    let set = || std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let path = match named.or_else(|| set().map(PathBuf::from)) {
        Some(path) => path,
        None => Dirs::from_env()?.home.join(".pinion").join("hub"),
    };
    Ok(std::path::absolute(path)?)
}
