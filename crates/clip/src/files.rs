//! Small files that are ours: written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;

/// Puts `content` in the place of a file, as indented JSON for nobody else to read.
pub fn replace(path: &Path, content: &impl Serialize) -> io::Result<()> {
    replace_with_mode(path, content, 0o600)
}

/// The same for everybody to read.
pub(crate) fn replace_for_all(path: &Path, content: &impl Serialize) -> io::Result<()> {
    replace_with_mode(path, content, 0o644)
}

fn replace_with_mode(path: &Path, content: &impl Serialize, mode: u32) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(content)?;
    text.push(b'\n');
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = Path::new(&unfinished);
    let _ = fs::remove_file(unfinished);
    let mut written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(unfinished)?;
    written.write_all(&text)?;
    written.sync_all()?;
    fs::rename(unfinished, path)?;
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Waits until nobody else holds the file `path`, and holds it until dropped.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    lock.lock()?;
    Ok(lock)
}
