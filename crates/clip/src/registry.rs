//! Registries: stores of packages by name and version, with their checksums.
//!
//! A registry is a service with an HTTP interface, or a directory with an `index.json`, on this machine or on a web
//! server:
//!
//! ```json
//! {"packages": {"@acme/todo": {
//!   "type": "clip", "description": "Tasks", "dist-tags": {"latest": "1.2.0"},
//!   "versions": {"1.2.0": {"dist": {"tarball": "acme-todo-1.2.0.tgz", "shasum": "9f86d0…", "size": 5120}, "pinix": {}}}
//! }}}
//! ```
//!
//! `tarball` is relative to the index and must lie beneath its directory. `shasum` is SHA-256 or, from older services,
//! SHA-1; a package without a checksum is rejected. [`crate::install`] checks the contents of packages.

mod account;
mod address;
mod client;
mod directory;
mod documents;
mod publish;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::clip::Token;
use crate::source::PackageName;
use crate::version;
use crate::{ClipError, Code};
use client::Client;
use documents::PackageDocument;

pub use account::{Accounts, DeviceCode, Login};
pub use address::Address;
pub use documents::{Found, PackageKind, Release};
pub use publish::Publication;
pub(crate) use publish::refuse_local_dependencies;

/// A registry, with the token of the caller.
#[derive(Debug)]
pub struct Registry {
    address: Address,
    client: Client,
}

/// A search for packages.
#[derive(Debug, Clone, Default)]
pub struct Search<'a> {
    /// Words in the name or the description.
    pub words: &'a str,
    /// The category to search in; empty for all.
    pub domain: &'a str,
    /// The kind to search for; all if `None`.
    pub kind: Option<PackageKind>,
    /// The most results; 0 for the registry's default.
    pub limit: usize,
    /// The number of results to skip.
    pub offset: usize,
}

impl Registry {
    /// Creates a client of the registry at an address. Sends nothing yet. The token is sent only to the registry, and
    /// never unencrypted over a network.
    pub fn new(address: Address, token: Option<Token>) -> Self {
        Self {
            client: Client::new(&address, token),
            address,
        }
    }

    /// Finds a version: the one named, the one a tag refers to, or the latest.
    pub async fn find(
        &self,
        package: &PackageName,
        wanted: Option<&str>,
    ) -> Result<Release, ClipError> {
        let document = self.document(package).await?;
        let version = self.pick(&document, package, wanted)?;
        let entry = document.versions.get(&version);
        if let Some(release) = entry.and_then(|entry| Release::read(&document, &version, entry)) {
            return Ok(release);
        }
        let Address::Service(base) = &self.address else {
            return Err(match entry {
                Some(_) => no_checksum(package, &version),
                None => self.no_version(package, &version),
            });
        };
        let url = address::segments(
            base,
            &["packages", &scope(package), &package.name, &version],
        )?;
        let entry = self.client.json(&url).await.map_err(|error| {
            let is_missing = error.code == Code::NotFound;
            if is_missing {
                self.no_version(package, &version)
            } else {
                error
            }
        })?;
        Ok(Release::of_version(&document, &version, &entry))
    }

    /// Fetches the tags and versions of a package.
    async fn document(&self, package: &PackageName) -> Result<PackageDocument, ClipError> {
        let missing = || {
            ClipError::new(
                Code::NotFound,
                format!("package {package} is not in the registry {}", self.address),
            )
        };
        let value = match &self.address {
            Address::Service(base) => {
                let url = address::segments(base, &["packages", &scope(package), &package.name])?;
                match self.client.json(&url).await {
                    Err(error) if error.code == Code::NotFound => return Err(missing()),
                    other => other?,
                }
            }
            _ => {
                let mut index = self.index().await?;
                let entry = index
                    .get_mut("packages")
                    .and_then(|packages| packages.get_mut(package.to_string()));
                entry.map(Value::take).ok_or_else(missing)?
            }
        };
        Ok(PackageDocument::read(package, &value))
    }

    async fn index(&self) -> Result<Value, ClipError> {
        match &self.address {
            Address::Directory(directory) => directory::index(directory),
            Address::Index(url) | Address::Service(url) => self.client.json(url).await,
        }
    }

    fn pick(
        &self,
        document: &PackageDocument,
        package: &PackageName,
        wanted: Option<&str>,
    ) -> Result<String, ClipError> {
        let wanted = wanted.unwrap_or("latest");
        if let Some(version) = document.tags.get(wanted) {
            return Ok(version.clone());
        }
        if wanted != "latest" {
            return Ok(wanted.to_owned());
        }
        let versions = document.versions.keys();
        let is_release = |text: &&String| {
            text.parse::<version::Version>()
                .is_ok_and(|version| version.is_release())
        };
        let newest = versions.filter(is_release).max_by(|left, right| {
            let (left, right): (&str, &str) = (left, right);
            version::compare(left, right)
        });
        newest
            .cloned()
            .ok_or_else(|| self.no_version(package, wanted))
    }

    fn no_version(&self, package: &PackageName, version: &str) -> ClipError {
        ClipError::new(
            Code::NotFound,
            format!(
                "package {package} has no version \"{version}\" in the registry {}",
                self.address
            ),
        )
    }

    /// Downloads the archive of a version to `place` and returns its path. An archive in a local directory is not
    /// copied; its own path is returned.
    pub(crate) async fn download(
        &self,
        release: &Release,
        place: &Path,
    ) -> Result<PathBuf, ClipError> {
        let url = match &self.address {
            Address::Directory(directory) => return directory::archive(directory, release),
            Address::Index(index) => address::beneath(index, &release.tarball)?,
            Address::Service(base) => {
                let package = &release.package;
                let own = address::same_origin(base, &release.tarball);
                match own {
                    Some(own) => own,
                    None => address::segments(
                        base,
                        &[
                            "packages",
                            &scope(package),
                            &package.name,
                            &release.version,
                            "download",
                        ],
                    )?,
                }
            }
        };
        self.client.download(&url, place, release.size).await?;
        Ok(place.to_owned())
    }

    pub async fn search(&self, search: &Search<'_>) -> Result<Vec<Found>, ClipError> {
        let Address::Service(base) = &self.address else {
            return Ok(documents::search(&self.index().await?, search));
        };
        let mut url = address::segments(base, &["search"])?;
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("q", search.words);
            if !search.domain.is_empty() {
                query.append_pair("domain", search.domain);
            }
            if let Some(kind) = search.kind {
                query.append_pair("type", kind.name());
            }
            for (name, number) in [("limit", search.limit), ("offset", search.offset)] {
                if number > 0 {
                    query.append_pair(name, &number.to_string());
                }
            }
        }
        Ok(documents::found(&self.client.json(&url).await?))
    }

    /// Adds a version to the registry. A published version is never changed.
    pub async fn publish(&self, publication: &Publication) -> Result<(), ClipError> {
        let package: PackageName = publication.text("name").parse()?;
        match &self.address {
            Address::Directory(directory) => directory::publish(directory, &package, publication),
            Address::Service(base) => {
                let path = ["packages", &scope(&package), &package.name, "versions"];
                let url = address::segments(base, &path)?;
                let (content_type, body) = publication.multipart()?;
                self.client.put(&url, &content_type, body).await
            }
            Address::Index(_) => Err(self.read_only()),
        }
    }

    /// Returns the tags of a package with the versions they refer to.
    pub async fn tags(&self, package: &PackageName) -> Result<BTreeMap<String, String>, ClipError> {
        Ok(self.document(package).await?.tags)
    }

    /// Sets the version that a tag refers to.
    pub async fn tag(
        &self,
        package: &PackageName,
        tag: &str,
        version: &str,
    ) -> Result<(), ClipError> {
        match &self.address {
            Address::Directory(directory) => directory::tag(directory, package, tag, version),
            Address::Service(base) => {
                let path = ["packages", &scope(package), &package.name, "dist-tags", tag];
                let url = address::segments(base, &path)?;
                let body = serde_json::json!({ "version": version }).to_string();
                self.client.put(&url, "application/json", body.into()).await
            }
            Address::Index(_) => Err(self.read_only()),
        }
    }

    fn read_only(&self) -> ClipError {
        ClipError::new(
            Code::Unimplemented,
            format!(
                "{} is a file that can only be read; publish into its directory",
                self.address
            ),
        )
    }
}

fn scope(package: &PackageName) -> String {
    format!("@{}", package.scope)
}

/// The error for a version without a checksum: a download of it could not be verified.
pub(crate) fn no_checksum(package: &PackageName, version: &str) -> ClipError {
    ClipError::new(
        Code::FailedPrecondition,
        format!("the registry has no checksum for {package}@{version}, so it is not installed"),
    )
}
