//! A directory beside the destination in which a package is prepared, so that it appears in one step and a failure
//! leaves nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

const PREFIX: &str = ".install-";
/// The age from which a stage counts as left behind by a killed process.
const STALE: Duration = Duration::from_secs(3600);

/// The stage; dropping it removes its directory.
pub(super) struct Stage {
    base: PathBuf,
    directory: TempDir,
}

impl Stage {
    /// Opens a stage in `base`, the agent directory or a project's `.pi`.
    pub fn open(base: &Path) -> io::Result<Self> {
        fs::create_dir_all(base)?;
        sweep(base);
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
        Ok(Self {
            base: base.to_owned(),
            directory,
        })
    }

    /// Returns the directory of the stage.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Moves `ready` to `place`, runs `record`, and restores everything if that fails.
    pub fn finish<T, E: From<io::Error>>(
        self,
        ready: &Path,
        place: &Path,
        record: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        let before = self.path().join("before");
        let at_place =
            |error: io::Error| io::Error::new(error.kind(), format!("{} {error}", place.display()));
        let replaces = pinion_files::set_aside(place, &before).map_err(at_place)?;
        let moved = pinion_files::rename_new(ready, place);
        let is_moved = moved.is_ok();
        let result = moved.map_err(E::from).and_then(|()| record());
        if result.is_err() {
            // A directory that cannot be moved back is removed with the stage; the settings do not name it.
            if is_moved {
                let _ = pinion_files::rename_new(place, &self.path().join("failed"));
            }
            if replaces {
                let _ = pinion_files::rename_new(&before, place);
            }
            remove_empty_parents(place, &self.base);
        }
        result
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Removes the base only if it is empty without the stage.
        let _ = fs::remove_dir_all(self.directory.path());
        let _ = fs::remove_dir(&self.base);
    }
}

/// Removes empty directories above `place`, up to `base`.
pub(super) fn remove_empty_parents(place: &Path, base: &Path) {
    let parents = place.ancestors().skip(1);
    for parent in parents.take_while(|parent| parent.starts_with(base) && *parent != base) {
        if fs::remove_dir(parent).is_err() {
            break;
        }
    }
}

fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_stage = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_stale = || {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE))
        };
        if is_stage && is_stale() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn finish(base: &Path, place: &Path, recorded: io::Result<()>) -> io::Result<()> {
        let stage = Stage::open(base).unwrap();
        let ready = stage.path().join("ready");
        fs::create_dir(&ready).unwrap();
        fs::write(ready.join("new"), "").unwrap();
        stage.finish(&ready, place, || recorded)
    }

    #[test]
    fn only_files_and_directories_make_way_for_a_package() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let base = at("base");
        let failed = || Err(io::ErrorKind::Other.into());
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        for name in ["fifo", "dangling"] {
            finish(&base, &at(name), Ok(())).unwrap_err();
        }
        let fifo = fs::symlink_metadata(at("fifo")).unwrap().file_type();
        assert!(fifo.is_fifo() && at("dangling").is_symlink());

        fs::create_dir(at("old")).unwrap();
        fs::write(at("old/kept"), "").unwrap();
        finish(&base, &at("old"), failed()).unwrap_err();
        assert!(at("old/kept").exists());
        finish(&base, &at("old"), Ok(())).unwrap();
        assert!(at("old/new").exists() && !at("old/kept").exists());
    }
}
