//! Finds the release of pi that the user has, so that pinion can speak the same form of its protocol.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::text_file::read_text;
use crate::{Dirs, Settings};

/// The names under which pi was published on npm, newest first.
const PACKAGES: [&str; 2] = [
    "@earendil-works/pi-coding-agent",
    "@mariozechner/pi-coding-agent",
];

/// Directories between a program of a package and its `package.json`, at most.
const PACKAGE_DEPTH: usize = 6;

/// A release of pi, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPi {
    pub version: String,
    /// The setting or the file that names the version.
    pub source: String,
}

impl InstalledPi {
    /// Returns the release that last ran with the user's settings, else the package beside `link`, the path by which
    /// this program was called, else the package of the first `pi` in `path`, a list as in `PATH`.
    pub fn find(
        dirs: &Dirs,
        settings: &Settings,
        link: Option<&Path>,
        path: Option<&OsStr>,
    ) -> Option<Self> {
        let last_run = || {
            let version = settings.get_global("lastChangelogVersion")?.as_str()?;
            Some(Self {
                version: version.to_owned(),
                source: format!(
                    "lastChangelogVersion in {}",
                    dirs.global_settings().display()
                ),
            })
        };
        let beside_link = || packages_near(link?.parent()?).find_map(|file| Self::read(&file));
        let on_path = || {
            let own = std::env::current_exe()
                .and_then(|own| own.canonicalize())
                .ok();
            std::env::split_paths(path?)
                .filter(|directory| directory.is_absolute())
                .map(|directory| directory.join("pi"))
                .filter(|program| program.exists())
                .filter_map(|program| program.canonicalize().ok())
                .filter(|program| Some(program) != own.as_ref())
                .find_map(|program| Self::of_program(&program))
        };
        last_run().or_else(beside_link).or_else(on_path)
    }

    /// Returns the release whose package contains `program`.
    fn of_program(program: &Path) -> Option<Self> {
        let directories = program.ancestors().skip(1).take(PACKAGE_DEPTH);
        directories
            .map(|directory| directory.join("package.json"))
            .find_map(|file| Self::read(&file))
    }

    /// Reads the `package.json` of pi. `None` for that of another package.
    fn read(file: &Path) -> Option<Self> {
        let text = read_text(file).ok()?;
        let package: Value = serde_json::from_str(&text).ok()?;
        let name = package.get("name")?.as_str()?;
        let version = package.get("version")?.as_str()?;
        PACKAGES.contains(&name).then(|| Self {
            version: version.to_owned(),
            source: file.display().to_string(),
        })
    }
}

/// The places where npm puts the packages of a directory of programs: `node_modules/.bin` of a project, `bin` of a
/// global installation.
fn packages_near(programs: &Path) -> impl Iterator<Item = PathBuf> {
    let modules = [programs.join(".."), programs.join("../lib/node_modules")];
    modules
        .into_iter()
        .flat_map(|modules| PACKAGES.map(|package| modules.join(package).join("package.json")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    fn package(directory: &Path, name: &str, version: &str) {
        fs::create_dir_all(directory.join("dist")).unwrap();
        let text = json!({"name": name, "version": version}).to_string();
        fs::write(directory.join("package.json"), text).unwrap();
        fs::write(directory.join("dist/cli.js"), "").unwrap();
    }

    fn dirs(root: &Path) -> Dirs {
        let home = root.join("home");
        Dirs::new(root.to_owned(), |name| {
            (name == "HOME").then(|| home.clone().into_os_string())
        })
    }

    #[test]
    fn the_settings_name_the_release_that_ran_last() {
        let root = tempfile::tempdir().unwrap();
        let settings = Settings::from_values(json!({"lastChangelogVersion": "0.87.1"}), json!({}));
        let found = InstalledPi::find(&dirs(root.path()), &settings, None, None).unwrap();
        assert_eq!(found.version, "0.87.1");
        assert!(
            found.source.ends_with(".pi/agent/settings.json"),
            "{}",
            found.source
        );
    }

    #[test]
    fn a_project_cannot_name_the_release() {
        let root = tempfile::tempdir().unwrap();
        let settings = Settings::from_values(json!({}), json!({"lastChangelogVersion": "1.5.0"}));
        assert_eq!(
            InstalledPi::find(&dirs(root.path()), &settings, None, None),
            None
        );
    }

    #[test]
    fn packages_beside_the_link_and_on_the_path_are_found() {
        let root = tempfile::tempdir().unwrap();
        let (dirs, settings) = (dirs(root.path()), Settings::default());
        let global = root
            .path()
            .join("lib/node_modules/@earendil-works/pi-coding-agent");
        package(&global, PACKAGES[0], "1.5.0");
        let programs = root.path().join("bin");
        fs::create_dir(&programs).unwrap();
        let link = programs.join("pi");
        let found = InstalledPi::find(&dirs, &settings, Some(&link), None).unwrap();
        assert_eq!(found.version, "1.5.0");

        let elsewhere = root.path().join("elsewhere");
        package(&elsewhere.join("pi"), PACKAGES[1], "0.73.1");
        let other = root.path().join("other");
        package(&other.join("tool"), "some-other-pi", "3.0.0");
        for (directory, program) in [("a", other.join("tool")), ("b", elsewhere.join("pi"))] {
            let directory = root.path().join(directory);
            fs::create_dir(&directory).unwrap();
            symlink(program.join("dist/cli.js"), directory.join("pi")).unwrap();
        }
        let path = std::env::join_paths([root.path().join("a"), root.path().join("b")]).unwrap();
        let found = InstalledPi::find(&dirs, &settings, None, Some(&path)).unwrap();
        assert_eq!(found.version, "0.73.1");
    }

    #[test]
    fn broken_packages_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let modules = root.path().join("node_modules");
        let directory = modules.join("@mariozechner/pi-coding-agent");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("package.json"), "{").unwrap();
        let link = modules.join(".bin/pi");
        fs::create_dir(modules.join(".bin")).unwrap();
        let found = InstalledPi::find(&dirs(root.path()), &Settings::default(), Some(&link), None);
        assert_eq!(found, None);
    }
}
