//! The directory of a hub's files.

use std::io;
use std::path::PathBuf;

/// The environment variable that names the directory.
const VARIABLE: &str = "PINION_HUB_DIR";

/// Returns the absolute path of the hub's directory: `named`, else `PINION_HUB_DIR`, else `.pinion/hub` in the user's
/// directory, which `home` returns.
pub fn root_dir(
    named: Option<&str>,
    home: impl FnOnce() -> io::Result<PathBuf>,
) -> io::Result<PathBuf> {
    let named = named.map(PathBuf::from);
    let set = || std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let path = match named.or_else(|| set().map(PathBuf::from)) {
        Some(path) => path,
        None => home()?.join(".pinion").join("hub"),
    };
    std::path::absolute(path)
}
