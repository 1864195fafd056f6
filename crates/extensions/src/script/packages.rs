//! Reads `package.json`: the entry of a package, and the files that its `exports` permit.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::load::MAX_SOURCE_BYTES;

/// The kind of request: an `import` or a `require`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ImportKind {
    Import,
    Require,
}

impl ImportKind {
    fn accepts(self, condition: &str) -> bool {
        match condition {
            "default" | "node" | "module-sync" => true,
            "import" => self == Self::Import,
            "require" => self == Self::Require,
            _ => false,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Import => Self::Require,
            Self::Require => Self::Import,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) directory: PathBuf,
    manifest: Value,
}

/// The result of looking up a subpath in `exports`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exported {
    /// The package has no `exports`, so any file may be imported.
    Open,
    /// This file is exported.
    File(PathBuf),
    /// The subpath is not exported.
    Refused,
}

impl Package {
    /// Reads the manifest in `directory`.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let text = pinion_files::read(&directory.join("package.json"), MAX_SOURCE_BYTES).ok()?;
        let manifest = serde_json::from_slice(&text).ok()?;
        Some(Self {
            directory: directory.to_owned(),
            manifest,
        })
    }

    /// Returns the package of `file`: the nearest manifest above it.
    pub(crate) fn around(file: &Path) -> Option<Self> {
        for directory in file.ancestors().skip(1) {
            if directory
                .file_name()
                .is_some_and(|name| name == "node_modules")
            {
                return None;
            }
            if let Some(package) = Self::read(directory) {
                return Some(package);
            }
        }
        None
    }

    /// Returns `type`, which determines how `.js` files are read.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.text("type")
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.text("name")
    }

    /// Returns the files to try for the package itself, in order, when there is no `exports`.
    pub(crate) fn entries(&self) -> impl Iterator<Item = PathBuf> + '_ {
        ["main", "module"]
            .into_iter()
            .filter_map(|field| self.text(field))
            .map(|path| self.directory.join(path))
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.manifest.get(field).and_then(Value::as_str)
    }

    /// Looks up `subpath` (`.` or `./x`) in `exports`.
    pub(crate) fn exported(&self, subpath: &str, wanted: ImportKind) -> Exported {
        let Some(exports) = self
            .manifest
            .get("exports")
            .filter(|exports| !exports.is_null())
        else {
            return Exported::Open;
        };
        let target = exports_target(exports, subpath, wanted)
            .or_else(|| exports_target(exports, subpath, wanted.other()));
        self.inside(target)
    }

    /// Looks up `name` (`#x`) in `imports`.
    pub(crate) fn imported(&self, name: &str, wanted: ImportKind) -> Option<String> {
        let imports = self.manifest.get("imports")?.as_object()?;
        matching(imports, name, wanted)
    }

    fn inside(&self, target: Option<String>) -> Exported {
        match target
            .as_deref()
            .and_then(|target| target.strip_prefix("./"))
        {
            Some(path) if !path.split('/').any(|part| part == "..") => {
                Exported::File(self.directory.join(path.trim_start_matches('/')))
            }
            _ => Exported::Refused,
        }
    }
}

/// Returns the target that `exports` names for `subpath`.
pub(crate) fn exports_target(exports: &Value, subpath: &str, wanted: ImportKind) -> Option<String> {
    let subpaths = exports
        .as_object()
        .filter(|map| map.keys().next().is_some_and(|key| key.starts_with('.')));
    match subpaths {
        Some(map) => matching(map, subpath, wanted),
        None if subpath == "." => conditional(exports, None, wanted),
        None => None,
    }
}

fn matching(
    map: &serde_json::Map<String, Value>,
    name: &str,
    wanted: ImportKind,
) -> Option<String> {
    if !name.contains('*')
        && let Some(target) = map.get(name)
    {
        return conditional(target, None, wanted);
    }
    let mut best: Option<(&str, &Value, &str)> = None;
    for (pattern, target) in map {
        let Some(star) = star_part(pattern, name) else {
            continue;
        };
        let prefix = pattern.split('*').next().unwrap_or_default();
        if best.is_none_or(|(longest, ..)| prefix.len() > longest.len()) {
            best = Some((prefix, target, star));
        }
    }
    best.and_then(|(_, target, star)| conditional(target, Some(star), wanted))
}

/// Returns the part of `name` that the `*` of `pattern` matches; a pattern that ends in `/` has a `*` at its end.
fn star_part<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    let (prefix, suffix) = match pattern.split_once('*') {
        Some(parts) => parts,
        None if pattern.ends_with('/') => (pattern, ""),
        None => return None,
    };
    let star = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    (!star.is_empty()).then_some(star)
}

fn conditional(target: &Value, star: Option<&str>, wanted: ImportKind) -> Option<String> {
    match target {
        Value::String(path) => Some(match star {
            Some(star) if path.contains('*') => path.replace('*', star),
            Some(star) if path.ends_with('/') => format!("{path}{star}"),
            _ => path.clone(),
        }),
        Value::Object(conditions) => conditions
            .iter()
            .filter(|(condition, _)| wanted.accepts(condition))
            .find_map(|(_, target)| conditional(target, star, wanted)),
        Value::Array(targets) => targets
            .iter()
            .find_map(|target| conditional(target, star, wanted)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn target(exports: Value, subpath: &str, wanted: ImportKind) -> Option<String> {
        exports_target(&exports, subpath, wanted)
    }

    #[test]
    fn conditions_are_tried_in_their_order() {
        let exports = json!({ "types": "./t", "browser": "./b", "node": { "import": "./ni", "require": "./nr" }, "default": "./d" });
        assert_eq!(
            target(exports.clone(), ".", ImportKind::Import).as_deref(),
            Some("./ni")
        );
        assert_eq!(
            target(exports.clone(), ".", ImportKind::Require).as_deref(),
            Some("./nr")
        );
        assert_eq!(target(exports, "./x", ImportKind::Import), None);
        let first_default = json!({ ".": { "default": "./d", "import": "./i" } });
        assert_eq!(
            target(first_default, ".", ImportKind::Import).as_deref(),
            Some("./d")
        );
        let list = json!([{ "browser": "./b" }, "./fallback"]);
        assert_eq!(
            target(list, ".", ImportKind::Import).as_deref(),
            Some("./fallback")
        );
    }

    #[test]
    fn the_longest_pattern_wins_and_null_closes() {
        let exports = json!({ "./*": "./all/*", "./in/*": "./in/*.js", "./in/secret/*": null, "./old/": "./legacy/", "./in/exact": "./exact" });
        for (subpath, expected) in [
            ("./x", Some("./all/x")),
            ("./in/a/b", Some("./in/a/b.js")),
            ("./in/secret/a", None),
            ("./in/exact", Some("./exact")),
            ("./old/a.js", Some("./legacy/a.js")),
        ] {
            let found = target(exports.clone(), subpath, ImportKind::Import);
            assert_eq!(found.as_deref(), expected, "{subpath}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_gives_back_what_its_star_stood_for(
            prefix in "[a-z/]{0,8}", star in "[a-z/.]{1,12}", suffix in "[a-z.]{0,6}",
        ) {
            let mut map = serde_json::Map::new();
            map.insert(format!("./{prefix}*{suffix}"), json!("./to/*/end"));
            let found = exports_target(
                &Value::Object(map),
                &format!("./{prefix}{star}{suffix}"),
                ImportKind::Import,
            );
            prop_assert_eq!(found, Some(format!("./to/{star}/end")));
        }

        #[test]
        fn no_target_leaves_its_package(path in "[a-z./]{0,16}") {
            let package = Package {
                directory: PathBuf::from("/p"),
                manifest: json!({ "exports": format!("./{path}") }),
            };
            if let Exported::File(file) = package.exported(".", ImportKind::Import) {
                prop_assert!(!file.components().any(|part| part.as_os_str() == ".."));
                prop_assert!(file.starts_with("/p"));
            }
        }
    }
}
