//! Sources as the user writes them, the versions they stand for, and the way back into a registry.

use std::path::Path;

use super::{Library, Record, STAGING, fetch, settings};
use crate::clip::Token;
use crate::manifest::{Identity, Manifest};
use crate::package::Package;
use crate::registry::Publication;
use crate::source::Source;
use crate::{ClipError, Code};

impl Library {
    /// Understands a source. Packages without a registry are of the one in `client.json`.
    pub fn source(&self, text: &str) -> Result<Source, ClipError> {
        let registry = settings::registry(&self.root)?;
        Source::parse(text, registry.as_deref())
    }

    /// The same for a clip that may be there already: without a registry named, a package stays with the one it came from.
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

    /// Who the user is for the registry of a source, going by `credentials.json`.
    pub fn registry_token(&self, source: &Source) -> Result<Option<Token>, ClipError> {
        match source {
            Source::Registry { registry, .. } => settings::token(&self.root, registry),
            _ => Ok(None),
        }
    }

    /// The source with the very version it stands for at the moment.
    pub async fn pin(&self, source: &Source, token: Option<&Token>) -> Result<Source, ClipError> {
        fetch::pin(source, token, &self.programs).await
    }

    /// What to install to bring a clip to the latest version, or the one `wanted`; `None` if it is that already. Only
    /// packages of registries and of npm have versions to choose from.
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

    /// Makes the clip in a directory ready to be published, running it once to hear what it is.
    pub async fn publication(
        &self,
        directory: &Path,
        tag: Option<&str>,
    ) -> Result<Publication, ClipError> {
        let package = Package::read(directory)?;
        let said = if package.is_edge {
            package.manifest.clone()
        } else {
            package.entry()?;
            let staging = self.directory(&format!("{STAGING}publish-{}", uuid::Uuid::new_v4()));
            self.try_out("publish", &package, &staging).await?.0
        };
        let identity = Identity::default();
        let said = Manifest::assemble(identity, &package.manifest, Some(&said));
        let tag = tag.map(str::to_owned);
        let work = move || Publication::new(&package, &said, tag.as_deref());
        match tokio::task::spawn_blocking(work).await {
            Ok(publication) => publication,
            Err(error) => Err(ClipError::new(Code::Internal, error.to_string())),
        }
    }
}
