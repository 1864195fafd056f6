//! All registries: lookup of profiles, and merging of stacks.

use std::path::Path;

use crate::config::Config;
use crate::error::{Notice, ProfileError};
use crate::locations::HostContext;
use crate::profile::{Profile, StackEntry};
use crate::registry::Registry;
use crate::slug::Slug;
use crate::source::Source;
use crate::tree::Tree;

/// The deepest stack of profiles.
const MAX_DEPTH: usize = 32;

/// All registries, in the order of their sources.
#[derive(Debug, Default)]
pub struct Library {
    /// The profiles of configuration documents, as the registry `config-inline`.
    pub inline: Option<Registry>,
    /// The registries of the sources.
    pub imported: Vec<Registry>,
    /// The index of the default registry: the first one of the last source.
    default: Option<usize>,
    pub sources: Vec<Source>,
    pub notices: Vec<Notice>,
}

/// A profile merged with its stack.
#[derive(Debug, Clone)]
pub struct Selected {
    pub registry: Slug,
    pub slug: Slug,
    /// The name shown to people.
    pub display_name: Option<String>,
    /// The source, for messages.
    pub origin: String,
    /// The profiles of the stack, lowest first; the profile itself is last.
    pub lineage: Vec<ProfileId>,
    /// The merged settings.
    pub settings: Tree,
    /// The merged extensions.
    pub extensions: Tree,
}

/// A profile by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileId {
    pub registry: Slug,
    pub profile: Slug,
}

impl std::fmt::Display for ProfileId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.registry, self.profile)
    }
}

impl Library {
    /// Opens the sources in `asked`, else those of the documents, else the user's default file.
    pub fn open(
        config: &Config,
        asked: Option<&[String]>,
        host: &HostContext<'_>,
    ) -> Result<Self, ProfileError> {
        let mut library = Self::default();
        if !config.profiles.is_empty() {
            let profiles = config.profiles.iter();
            library.inline = Some(Registry {
                slug: Slug::inline(),
                display_name: None,
                description: None,
                profiles: profiles
                    .map(|profile| (profile.slug.clone(), profile.clone()))
                    .collect(),
                metadata: Tree::default(),
                origin: "configuration documents".to_owned(),
            });
        }
        library.sources = sources(config, asked, host)?;
        for source in library.sources.clone() {
            let registries = source.open(&mut library.notices)?;
            if !registries.is_empty() {
                library.default = Some(library.imported.len());
            }
            for registry in registries {
                library.add(registry)?;
            }
        }
        Ok(library)
    }

    fn add(&mut self, registry: Registry) -> Result<(), ProfileError> {
        let same = |known: &&Registry| known.slug == registry.slug;
        if let Some(known) = self.imported.iter().find(same) {
            return Err(ProfileError::DuplicateRegistry {
                slug: registry.slug.to_string(),
                first: known.origin.clone(),
                second: registry.origin,
            });
        }
        self.imported.push(registry);
        Ok(())
    }

    /// Returns the registries in the order of lookup.
    pub fn registries(&self) -> impl Iterator<Item = &Registry> {
        self.inline.iter().chain(self.imported.iter().rev())
    }

    /// Returns the registry whose default profile is used if none is named.
    pub fn default_registry(&self) -> Option<&Registry> {
        self.inline
            .as_ref()
            .or_else(|| self.imported.get(self.default?))
    }

    /// Returns the named profile, else the default profile of the default registry, else `None`.
    pub fn select(&self, name: Option<&Slug>) -> Result<Option<Selected>, ProfileError> {
        let Some(name) = name else {
            let Some(registry) = self.default_registry() else {
                return Ok(None);
            };
            let default = registry.default_profile();
            return default
                .map(|profile| self.assemble(registry, profile))
                .transpose();
        };
        if self.registries().next().is_none() {
            return Err(ProfileError::NoProfiles {
                slug: name.to_string(),
            });
        }
        let Some((registry, profile)) = self.find(name) else {
            return Err(ProfileError::ProfileNotFound {
                wanted_by: "the chosen profile".to_owned(),
                slug: name.to_string(),
                known: self.names(),
            });
        };
        self.assemble(registry, profile).map(Some)
    }

    /// Returns the first profile of this name.
    pub fn find(&self, name: &Slug) -> Option<(&Registry, &Profile)> {
        self.registries()
            .find_map(|registry| Some((registry, registry.profiles.get(name)?)))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .registries()
            .flat_map(|registry| registry.profiles.keys())
            .map(ToString::to_string)
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Merges a profile with its stack.
    pub fn assemble(
        &self,
        registry: &Registry,
        profile: &Profile,
    ) -> Result<Selected, ProfileError> {
        let mut walk = StackWalk {
            library: self,
            path: Vec::new(),
            found: Vec::new(),
        };
        walk.visit(registry, profile)?;
        let (mut settings, mut extensions) = (Tree::default(), Tree::default());
        for (_, profile) in &walk.found {
            settings.overlay(&profile.inference_settings);
            extensions.overlay(&profile.extensions);
        }
        Ok(Selected {
            registry: registry.slug.clone(),
            slug: profile.slug.clone(),
            display_name: profile.display_name.clone(),
            origin: registry.origin.clone(),
            lineage: walk.found.into_iter().map(|(id, _)| id).collect(),
            settings,
            extensions,
        })
    }

    fn registry(&self, slug: &Slug) -> Option<&Registry> {
        self.registries().find(|registry| registry.slug == *slug)
    }

    /// Returns the profile that a stack entry names.
    fn below(
        &self,
        registry: &Registry,
        profile: &Profile,
        entry: &StackEntry,
    ) -> Result<(&Registry, &Profile), ProfileError> {
        let wanted_by = format!("profile \"{}\" in {}", profile.slug, registry.origin);
        let not_found = |registry: &Registry| ProfileError::ProfileNotFound {
            wanted_by: wanted_by.clone(),
            slug: entry.profile_slug.to_string(),
            known: registry.profiles.keys().map(ToString::to_string).collect(),
        };
        let named = entry.registry_slug.as_ref().unwrap_or(&registry.slug);
        let Some(home) = self.registry(named) else {
            return Err(ProfileError::RegistryNotFound {
                wanted_by,
                slug: named.to_string(),
                known: self
                    .registries()
                    .map(|known| known.slug.to_string())
                    .collect(),
            });
        };
        match home.profiles.get(&entry.profile_slug) {
            Some(found) => Ok((home, found)),
            // A document may stack on imported profiles without naming their registry.
            None if entry.registry_slug.is_none() && home.slug == Slug::inline() => self
                .find(&entry.profile_slug)
                .ok_or_else(|| not_found(home)),
            None => Err(not_found(home)),
        }
    }
}

struct StackWalk<'a> {
    library: &'a Library,
    /// The path from the chosen profile to the current one.
    path: Vec<ProfileId>,
    /// Completed profiles, lowest first.
    found: Vec<(ProfileId, &'a Profile)>,
}

impl<'a> StackWalk<'a> {
    fn visit(&mut self, registry: &Registry, profile: &Profile) -> Result<(), ProfileError> {
        let id = ProfileId {
            registry: registry.slug.clone(),
            profile: profile.slug.clone(),
        };
        if self.found.iter().any(|(known, _)| *known == id) {
            return Ok(());
        }
        let cycle = self.path.contains(&id);
        self.path.push(id.clone());
        let path = || self.path.iter().map(ToString::to_string).collect();
        if cycle {
            return Err(ProfileError::StackCycle { path: path() });
        }
        if self.path.len() > MAX_DEPTH {
            return Err(ProfileError::StackTooDeep { path: path() });
        }
        // Looked up again to borrow it from the library.
        let home = self.library.registry(&registry.slug);
        let Some(profile) = home.and_then(|home| home.profiles.get(&profile.slug)) else {
            return Ok(());
        };
        for entry in &profile.stack {
            let (registry, below) = self.library.below(registry, profile, entry)?;
            self.visit(registry, below)?;
        }
        self.path.pop();
        self.found.push((id, profile));
        Ok(())
    }
}

fn sources(
    config: &Config,
    asked: Option<&[String]>,
    host: &HostContext<'_>,
) -> Result<Vec<Source>, ProfileError> {
    let (named, base, origin): (&[String], &Path, &str) = match (asked, &config.registries) {
        (Some(asked), _) => (asked, host.cwd, "--profile-registries"),
        (None, Some((base, named))) => (named, base, "profile.registries"),
        (None, None) => {
            let path = host.user_config().join("pinocchio/profiles.yaml");
            let source = path.is_file().then_some(Source::Yaml(path));
            return Ok(source.into_iter().collect());
        }
    };
    let texts = named.iter().flat_map(|text| text.split(','));
    let texts = texts.filter(|text| !text.trim().is_empty());
    let mut sources = Vec::new();
    for text in texts {
        let source = Source::parse(text, base, host);
        let source = source.ok_or_else(|| ProfileError::Setting {
            origin: origin.to_owned(),
            message: format!(
                "\"{text}\" names no registry; write yaml:PATH, sqlite:PATH, sqlite-dsn:DSN or a path"
            ),
        })?;
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    Ok(sources)
}
