//! Resolves sources and versions, and prepares packages for publishing.

use std::path::Path;

use super::{Library, Record, STAGING, fetch, settings};
use crate::clip::Token;
use crate::manifest::{Identity, Manifest};
use crate::package::Package;
use crate::registry::Publication;
use crate::source::Source;
use crate::{ClipError, Code};

impl Library {
    /// Parses a source. A package without a registry belongs to the registry in `client.json`.
    pub fn source(&self, text: &str) -> Result<Source, ClipError> {
        let registry = settings::registry(&self.root)?;
        Source::parse(text, registry.as_deref())
    }

    /// Parses a source for a clip that may be installed already: without a registry, the package stays with the
    /// registry it came from.
    pub fn source_for(&self, alias: &str, text: &str) -> Result<Source, ClipError> {
        if let Some(record) = self.records()?.remove(alias)
            && let Ok(Source::Registry {
                registry, package, ..
            }) = Source::parse(&record.source, None)
            && let named = registry.to_string()
            && let Ok(source) = Source::parse(text, Some(&named))
            && matches!(&source, Source::Registry { registry: its, package: wanted, .. }
                if *its == registry && *wanted == package)
        {
            return Ok(source);
        }
        self.source(text)
    }

    /// Returns the token for the registry of a source, from `credentials.json`.
    pub fn registry_token(&self, source: &Source) -> Result<Option<Token>, ClipError> {
        match source {
            Source::Registry { registry, .. } => settings::token(&self.root, registry),
            _ => Ok(None),
        }
    }

    /// Resolves a source to an exact version.
    pub async fn pin(&self, source: &Source, token: Option<&Token>) -> Result<Source, ClipError> {
        fetch::pin(source, token, &self.programs).await
    }

    /// Returns the source of the latest version of a clip, or of the version `wanted`; `None` if that version is
    /// installed already. Only packages of registries and of npm have versions.
    pub async fn newer(
        &self,
        record: &Record,
        wanted: Option<&str>,
        token: Option<&Token>,
    ) -> Result<Option<Source>, ClipError> {
        let installed = Source::parse(&record.source, None)?;
        if matches!(installed, Source::GitHub { .. } | Source::Local { .. }) {
            let message = format!(
                "clip \"{}\" comes from {}, which has no versions; add it again to renew it",
                record.name, record.source
            );
            return Err(ClipError::new(Code::FailedPrecondition, message));
        }
        let target = self.pin(&installed.with_version(wanted)?, token).await?;
        let current = installed.version().unwrap_or(&record.version);
        Ok((target.version() != Some(current)).then_some(target))
    }

    /// Prepares the clip in a directory for publishing. Runs it once for its manifest.
    pub async fn publication(
        &self,
        directory: &Path,
        tag: Option<&str>,
    ) -> Result<Publication, ClipError> {
        let package = Package::read(directory)?;
        let manifest = if package.is_edge {
            package.manifest.clone()
        } else {
            package.entry()?;
            let staging = self.directory(&format!("{STAGING}publish-{}", uuid::Uuid::new_v4()));
            self.try_out("publish", &package, &staging).await?.0
        };
        let identity = Identity::default();
        let manifest = Manifest::assemble(identity, &package.manifest, Some(&manifest));
        let tag = tag.map(str::to_owned);
        let work = move || Publication::new(&package, &manifest, tag.as_deref());
        match tokio::task::spawn_blocking(work).await {
            Ok(publication) => publication,
            Err(error) => Err(ClipError::new(Code::Internal, error.to_string())),
        }
    }
}
