//! Documents of registries about packages, in all forms that are in use.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Search;
use crate::source::PackageName;
use crate::version;

/// The kind of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageKind {
    /// A program that can be run.
    Clip,
    /// The description of a clip that runs elsewhere.
    Edge,
}

impl PackageKind {
    /// Returns the name of the kind in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clip => "clip",
            Self::Edge => "edge-clip",
        }
    }

    fn read(text: &str) -> Self {
        if text == Self::Edge.name() {
            Self::Edge
        } else {
            Self::Clip
        }
    }
}

/// One version of a package.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    pub package: PackageName,
    pub version: String,
    pub kind: PackageKind,
    /// The registry's reason for not using this version any more; empty if there is none.
    pub deprecated: String,
    /// The checksum of the archive in hexadecimal digits; empty if the registry does not send it.
    pub checksum: String,
    /// The length of the archive in bytes, if the registry sends it.
    pub size: Option<u64>,
    /// The location of the archive, as the registry sent it.
    pub(crate) tarball: String,
    /// The package's metadata as it was published.
    pub manifest: Value,
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub name: String,
    /// The latest version.
    pub version: String,
    pub description: String,
    /// A category, in free words.
    pub domain: String,
    pub kind: PackageKind,
}

/// A package with its tags and the versions that the registry sent along.
#[derive(Debug)]
pub(super) struct PackageDocument {
    package: PackageName,
    kind: Option<PackageKind>,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) versions: BTreeMap<String, Value>,
}

impl PackageDocument {
    pub(super) fn read(package: &PackageName, value: &Value) -> Self {
        let kind = value
            .get("type")
            .and_then(Value::as_str)
            .map(PackageKind::read);
        let tags = object(any(value, &["dist_tags", "dist-tags"]));
        let versions = object(value.get("versions"));
        Self {
            package: package.clone(),
            kind,
            tags: tags
                .filter_map(|(tag, version)| Some((tag.clone(), version.as_str()?.to_owned())))
                .collect(),
            versions: versions
                .map(|(version, entry)| (version.clone(), entry.clone()))
                .collect(),
        }
    }
}

impl Release {
    /// Reads a version from the document of its package; `None` if that document has too little about it.
    pub(super) fn read(document: &PackageDocument, version: &str, entry: &Value) -> Option<Self> {
        let release = Self::of_version(document, version, entry);
        let is_enough = !release.checksum.is_empty()
            || release.kind == PackageKind::Edge && entry.get("pinix").is_some();
        is_enough.then_some(release)
    }

    /// Reads a version from its own document.
    pub(super) fn of_version(document: &PackageDocument, version: &str, entry: &Value) -> Self {
        let dist = entry.get("dist").unwrap_or(&Value::Null);
        let kind = entry
            .get("type")
            .and_then(Value::as_str)
            .map(PackageKind::read);
        Self {
            package: document.package.clone(),
            version: version.to_owned(),
            kind: kind.or(document.kind).unwrap_or(PackageKind::Clip),
            deprecated: match entry.get("deprecated") {
                Some(Value::Bool(true)) => "it is deprecated".to_owned(),
                other => text(other),
            },
            checksum: text(any(dist, &["shasum", "Shasum"])),
            size: any(dist, &["size", "Size"]).and_then(Value::as_u64),
            tarball: text(any(dist, &["tarball", "TarballURL", "tarball_url"])),
            manifest: entry.get("pinix").cloned().unwrap_or_default(),
        }
    }
}

/// Reads the search results of a service.
pub(super) fn found(answer: &Value) -> Vec<Found> {
    let list = any(answer, &["results", "packages"]).and_then(Value::as_array);
    let items = list.map(Vec::as_slice).unwrap_or_default().iter();
    let item = |item: &Value| Found {
        name: text(item.get("name")),
        version: text(item.get("version")),
        description: text(item.get("description")),
        domain: text(item.get("domain")),
        kind: PackageKind::read(&text(item.get("type"))),
    };
    items
        .map(item)
        .filter(|item| !item.name.is_empty())
        .collect()
}

/// Searches an index. The results are sorted by name.
pub(super) fn search(index: &Value, search: &Search<'_>) -> Vec<Found> {
    let words = search.words.to_lowercase();
    let all = object(index.get("packages")).filter_map(|(name, value)| {
        let document = PackageDocument::read(&name.parse().ok()?, value);
        let latest = document.tags.get("latest").cloned().or_else(|| {
            let newest = document
                .versions
                .keys()
                .max_by(|left, right| version::compare(left, right));
            newest.cloned()
        });
        Some(Found {
            name: name.clone(),
            version: latest.unwrap_or_default(),
            description: text(value.get("description")),
            domain: text(value.get("domain")),
            kind: document.kind.unwrap_or(PackageKind::Clip),
        })
    });
    let fits = |found: &Found| {
        let has = |text: &str| text.to_lowercase().contains(&words);
        (has(&found.name) || has(&found.description))
            && (search.domain.is_empty() || search.domain == found.domain)
            && search.kind.is_none_or(|kind| kind == found.kind)
    };
    let limit = if search.limit == 0 {
        usize::MAX
    } else {
        search.limit
    };
    all.filter(fits).skip(search.offset).take(limit).collect()
}

/// Returns the value of the first of several keys that exists.
fn any<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|key| value.get(key))
}

fn text(value: Option<&Value>) -> String {
    let text = value.and_then(Value::as_str);
    text.unwrap_or_default().trim().to_owned()
}

fn object(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    let object = value.and_then(Value::as_object);
    object.into_iter().flatten()
}
