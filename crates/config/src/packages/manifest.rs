//! The `package.json` of a directory, and the resources it lists.

use std::path::Path;

use serde_json::{Map, Value};

use crate::{Notice, ResourceKind, json_file};

/// The members of a `package.json` that pinion uses.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) version: Option<String>,
    /// Its `pi` member: lists of paths by kind.
    pi: Option<Map<String, Value>>,
}

impl Manifest {
    /// Reads the manifest of a directory. Without one the result is empty.
    pub(crate) fn read(directory: &Path, notices: &mut Vec<Notice>) -> Self {
        let mut object = json_file::read(&directory.join("package.json"), notices);
        let version = object.get("version").and_then(Value::as_str);
        let version = version.map(str::to_owned);
        let pi = match object.shift_remove("pi") {
            Some(Value::Object(pi)) => Some(pi),
            _ => None,
        };
        Self { version, pi }
    }

    /// Reports whether it lists resources at all; if so, the conventional directories are ignored.
    pub(crate) fn names_resources(&self) -> bool {
        self.pi.is_some()
    }

    /// The paths and patterns of one kind.
    pub(crate) fn entries(&self, kind: ResourceKind) -> Vec<&str> {
        let list = self.pi.as_ref().and_then(|pi| pi.get(kind.key()));
        let list = list.and_then(Value::as_array);
        list.map_or_else(Vec::new, |list| {
            list.iter().filter_map(Value::as_str).collect()
        })
    }
}
