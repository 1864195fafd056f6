//! Bindings: the choice of the clip that fills a slot of another, stored in `bindings.json` of the calling clip.
//!
//! The file is written in the clip's directory and beside its program, because programs look for it in either place.
//! The first one found is read. A running process has read it already: see [`crate::Clip::renew`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files;
use crate::manifest::Dependency;
use crate::package::Package;
use crate::version::{self, Range};
use crate::{ClipError, Code};

pub(crate) const FILE: &str = "bindings.json";

/// The clip that fills a slot.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Binding {
    /// The alias of the clip.
    pub alias: String,
    /// The address of that clip's hub; empty for the hub of the calling clip.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hub: String,
    /// The token for that hub; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hub_token: String,
    /// The secret that the clip requires; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub clip_token: String,
}

impl fmt::Debug for Binding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |secret: &str| if secret.is_empty() { "" } else { "***" };
        formatter
            .debug_struct("Binding")
            .field("alias", &self.alias)
            .field("hub", &self.hub)
            .field("hub_token", &shown(&self.hub_token))
            .field("clip_token", &shown(&self.clip_token))
            .finish()
    }
}

/// Bindings by the name of the slot.
pub type Bindings = BTreeMap<String, Binding>;

/// Reads the bindings of an installed clip.
pub(crate) fn read(package: &Package) -> Result<Bindings, ClipError> {
    for place in places(package) {
        match files::read_if_present(&place) {
            Ok(Some(text)) => {
                return serde_json::from_slice(&text).map_err(|error| {
                    let message = format!(
                        "{} is not an object of bindings: {error}. Repair it or remove it",
                        place.display()
                    );
                    ClipError::new(Code::FailedPrecondition, message)
                });
            }
            Ok(None) => {}
            Err(error) => return Err(ClipError::io(place.display(), &error)),
        }
    }
    Ok(Bindings::new())
}

/// Writes the bindings of a clip to all places where programs look for them. Without bindings, the files are removed.
pub(crate) fn write(package: &Package, bindings: &Bindings) -> Result<(), ClipError> {
    for place in places(package) {
        let written = if bindings.is_empty() {
            crate::data::remove_if_there(&place)
        } else {
            files::replace(&place, bindings)
        };
        written.map_err(|error| ClipError::io(place.display(), &error))?;
    }
    Ok(())
}

/// Returns the paths of the file: in the clip's directory, and beside its program.
fn places(package: &Package) -> Vec<PathBuf> {
    let mut places = vec![package.directory.join(FILE)];
    let entry = package.entry().ok();
    let beside = entry.as_deref().and_then(Path::parent);
    if let Some(beside) = beside.filter(|beside| !same(beside, &package.directory)) {
        places.push(beside.join(FILE));
    }
    places
}

fn same(left: &Path, right: &Path) -> bool {
    left == right
        || matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}

/// Checks and trims a slot's name and its binding.
pub(crate) fn checked(slot: &str, binding: Binding) -> Result<(String, Binding), ClipError> {
    let slot = slot.trim();
    if slot.is_empty() {
        return Err(ClipError::invalid("slot is required"));
    }
    let binding = Binding {
        alias: binding.alias.trim().to_owned(),
        hub: binding.hub.trim().trim_end_matches('/').to_owned(),
        ..binding
    };
    if binding.alias.is_empty() {
        return Err(ClipError::invalid("binding.alias is required"));
    }
    let is_address = ["http://", "https://"].iter().any(|scheme| {
        let host = binding.hub.strip_prefix(scheme);
        host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
    });
    if !binding.hub.is_empty() && !is_address {
        return Err(ClipError::invalid(format!(
            "\"{}\" is not the address of a hub like https://hub.example:9000",
            binding.hub
        )));
    }
    Ok((slot.to_owned(), binding))
}

/// A clip that may fill a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    pub alias: &'a str,
    pub package: &'a str,
    pub version: &'a str,
}

/// Returns those of `clips` that may fill a slot: the clips of its package or of its name, in a version within its
/// range. Clips of the package come first, then newer versions.
pub fn candidates<'a>(
    slot: &str,
    dependency: &Dependency,
    clips: impl IntoIterator<Item = Candidate<'a>>,
) -> Vec<Candidate<'a>> {
    let range = Range::parse(&dependency.version);
    let fits = |clip: &Candidate<'_>| {
        clip.package == dependency.package || clip.package == slot || clip.alias == slot
    };
    let mut found: Vec<Candidate<'a>> = clips
        .into_iter()
        .filter(|clip| fits(clip) && range.contains(clip.version))
        .collect();
    found.sort_by(|left, right| {
        let own = |clip: &Candidate<'_>| clip.package == dependency.package;
        own(right)
            .cmp(&own(left))
            .then_with(|| version::compare(right.version, left.version))
            .then_with(|| left.alias.cmp(right.alias))
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn package(main: &str) -> (tempfile::TempDir, Package) {
        let place = tempfile::tempdir().unwrap();
        let entry = place.path().join(main);
        fs::create_dir_all(entry.parent().unwrap()).unwrap();
        fs::write(entry, "").unwrap();
        let text = serde_json::json!({ "main": main }).to_string();
        fs::write(place.path().join("clip.json"), text).unwrap();
        let package = Package::read(place.path()).unwrap();
        (place, package)
    }

    fn to(alias: &str) -> Binding {
        Binding {
            alias: alias.into(),
            ..Binding::default()
        }
    }

    #[test]
    fn both_places_have_the_same_file_and_none_without_bindings() {
        for (main, count) in [("src/index.ts", 2), ("./index.ts", 1)] {
            let (_place, package) = package(main);
            let places = places(&package);
            assert_eq!(places.len(), count, "{main}");
            let mut bindings = Bindings::from([("store".to_owned(), to("db"))]);
            bindings.insert(
                "mail".into(),
                Binding {
                    hub: "https://hub.example".into(),
                    hub_token: "h".into(),
                    clip_token: "c".into(),
                    ..to("post")
                },
            );
            write(&package, &bindings).unwrap();
            for place in &places {
                let text = fs::read_to_string(place).unwrap();
                assert_eq!(
                    text,
                    "{\n  \"mail\": {\n    \"alias\": \"post\",\n    \"hub\": \"https://hub.example\",\n    \"hub_token\": \"h\",\n    \"clip_token\": \"c\"\n  },\n  \"store\": {\n    \"alias\": \"db\"\n  }\n}\n"
                );
                let mode = fs::metadata(place).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
            }
            assert_eq!(read(&package).unwrap(), bindings);
            fs::remove_file(&places[0]).unwrap();
            assert_eq!(
                read(&package).unwrap().len(),
                if count == 2 { 2 } else { 0 }
            );
            write(&package, &Bindings::new()).unwrap();
            assert!(places.iter().all(|place| !place.exists()));
            fs::write(&places[0], "[").unwrap();
            assert_eq!(read(&package).unwrap_err().code, Code::FailedPrecondition);
        }
    }

    #[test]
    fn invalid_bindings_are_rejected() {
        for (slot, binding) in [
            (" ", to("a")),
            ("a", to(" ")),
            (
                "a",
                Binding {
                    hub: "hub.example".into(),
                    ..to("a")
                },
            ),
            (
                "a",
                Binding {
                    hub: "ftp://hub.example".into(),
                    ..to("a")
                },
            ),
            (
                "a",
                Binding {
                    hub: "http://".into(),
                    ..to("a")
                },
            ),
        ] {
            let error = checked(slot, binding).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument);
        }
        let remote = Binding {
            hub: " https://hub.example/ ".into(),
            ..to(" db ")
        };
        let (slot, binding) = checked(" store ", remote).unwrap();
        assert_eq!(
            (slot.as_str(), binding.alias.as_str(), binding.hub.as_str()),
            ("store", "db", "https://hub.example")
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let binding = Binding {
            hub_token: "hidden".into(),
            clip_token: "hidden".into(),
            ..to("a")
        };
        assert!(!format!("{binding:?}").contains("hidden"));
    }

    #[test]
    fn candidates_are_of_the_package_in_a_version_that_fits() {
        let clip = |alias, package, version| Candidate {
            alias,
            package,
            version,
        };
        let clips = [
            clip("db-old", "@me/db", "1.0.0"),
            clip("db-2", "@me/db", "1.10.0"),
            clip("db-1", "@me/db", "1.9.0"),
            clip("db-next", "@me/db", "2.0.0"),
            clip("store", "@other/thing", "1.5.0"),
            clip("x", "store", "1.6.0"),
            clip("y", "@me/dbx", "1.6.0"),
        ];
        let names = |version: &str| {
            let dependency = Dependency {
                package: "@me/db".into(),
                version: version.into(),
            };
            let found = candidates("store", &dependency, clips);
            found.iter().map(|clip| clip.alias).collect::<Vec<_>>()
        };
        assert_eq!(names("^1.5"), ["db-2", "db-1", "x", "store"]);
        assert_eq!(
            names(""),
            ["db-next", "db-2", "db-1", "db-old", "x", "store"]
        );
        assert_eq!(names("^3"), [""; 0]);
    }
}
