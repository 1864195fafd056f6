//! Directories that pinion writes to.

use std::path::Path;

use nix::unistd::{AccessFlags, access};

use crate::Report;

/// Reports a directory that pinion could not write to, or could not create. `purpose` completes "for".
pub fn check_directory(report: &mut Report, directory: &Path, purpose: &str) {
    let shown = directory.display();
    match directory.metadata() {
        Ok(found) if !found.is_dir() => report.problem(
            "files",
            format!("{shown}, for {purpose}, is not a directory. Move it away."),
        ),
        Ok(_) if !is_writable(directory) => report.problem(
            "files",
            format!("{shown}, for {purpose}, is not writable. Change its owner or its mode."),
        ),
        Ok(_) => {}
        Err(_) => {
            let above = directory.ancestors().skip(1).find(|above| above.exists());
            if let Some(above) = above.filter(|above| !above.is_dir() || !is_writable(above)) {
                let above = above.display();
                report.problem(
                    "files",
                    format!(
                        "{shown}, for {purpose}, cannot be created: {above} is not a writable directory. Change its \
                         owner or its mode."
                    ),
                );
            }
        }
    }
}

fn is_writable(directory: &Path) -> bool {
    access(directory, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(directory: &Path) -> String {
        let mut report = Report::default();
        check_directory(&mut report, directory, "tests");
        if report.problems() == 0 {
            String::new()
        } else {
            report.text()
        }
    }

    #[test]
    fn directories_that_exist_or_can_be_made_are_fine() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(problems(place.path()), "");
        assert_eq!(problems(&place.path().join("a/b")), "");
    }

    #[test]
    fn files_in_their_place_are_problems() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(problems(&file).contains("is not a directory"));
        assert!(problems(&file.join("below")).contains("cannot be created"));
    }
}
