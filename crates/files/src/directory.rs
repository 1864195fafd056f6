//! Private directories, and the paths of files beside a file.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Creates a directory that only its owner can enter (mode 0700), with its parents. One that exists stays as it is.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns `path` with `ending` appended to its name: `a.json` and `.lock` are `a.json.lock`.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn new_directories_are_private_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let shared = dir.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
        let private = shared.join("a/b");
        for _ in 0..2 {
            create_private_directory(&private).unwrap();
        }
        let modes = [&shared, private.parent().unwrap(), &private].map(mode);
        assert_eq!(modes, [0o755, 0o700, 0o700]);
        fs::write(private.join("file"), "").unwrap();
        create_private_directory(&private.join("file")).unwrap_err();
    }
}
