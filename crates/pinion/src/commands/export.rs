//! `--export`: a session file as one web page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pinion_session::{Store, export};

use super::out;
use crate::failure::Failure;

pub(super) fn run(input: &str, output: Option<String>) -> Result<ExitCode, Failure> {
    let path = Path::new(input);
    if !path.exists() {
        return Err(Failure::failed(format!("File not found: {input}")));
    }
    let target = write_page(path, output)?;
    out(&format!("Exported to: {target}\n"))
}

/// Writes the page, by default into the current directory; returns its path.
pub(super) fn write_page(path: &Path, output: Option<String>) -> Result<String, Failure> {
    let cwd = std::env::current_dir()?;
    let opened = Store::open_read_only(path, &cwd)?;
    for notice in &opened.notices {
        eprintln!("Warning: {notice}");
    }
    let output = output.map(PathBuf::from);
    let written = export::to_file(
        &opened.store,
        output.as_deref(),
        &cwd,
        export::Extras::default(),
    )?;
    Ok(written.display().to_string())
}
