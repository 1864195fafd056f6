//! `trust`: permits a project's settings, extensions and prompts to take effect, or revokes that.

use std::path::PathBuf;
use std::process::ExitCode;

use pinion_config::{Dirs, Trust};

use super::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion", &tables::commands::TRUST, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let named = line.at_most_one()?;
    let revoke = line.has("--revoke");
    let dirs = Dirs::from_env()?;
    let directory = named.map_or_else(|| dirs.cwd.clone(), PathBuf::from);
    if !revoke && !directory.is_dir() {
        return Err(line.wrong(format!(
            "{:?} is not a directory",
            directory.display().to_string()
        )));
    }
    let (mut trust, notices) = Trust::load(&dirs);
    for notice in &notices {
        eprintln!("Warning: {notice}");
    }
    let word = if revoke {
        trust.revoke(&directory)?;
        "No longer trusted"
    } else {
        trust.trust(&directory)?;
        "Trusted"
    };
    out(&format!("{word}: {}\n", directory.display()))
}
