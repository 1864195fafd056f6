//! Registries: named collections of profiles.

use std::collections::BTreeMap;

use pinion_yaml::{Entry, Node, NodeKind, Problem};

use crate::check::Findings;
use crate::error::{Notice, ProfileError};
use crate::profile::{self, Profile, ProfileFormat, slug_at, whole};
use crate::slug::Slug;
use crate::source::Source;
use crate::tree::Tree;

/// A named collection of profiles.
#[derive(Debug, Clone)]
pub struct Registry {
    /// The name, unique among all sources.
    pub slug: Slug,
    /// The name shown to people.
    pub display_name: Option<String>,
    pub description: Option<String>,
    pub profiles: BTreeMap<Slug, Profile>,
    /// Stored as written.
    pub metadata: Tree,
    /// The source, for messages.
    pub origin: String,
}

impl Registry {
    /// Returns the profile to use if none is named: `default`, else the first by name.
    pub fn default_profile(&self) -> Option<&Profile> {
        self.profiles
            .get(&Slug::default_profile())
            .or_else(|| self.profiles.values().next())
    }
}

/// Parses a registry file.
pub(crate) fn read_yaml(
    text: &str,
    source: &Source,
    notices: &mut Vec<Notice>,
) -> Result<Registry, ProfileError> {
    let origin = source.to_string();
    let wrong = |problems: Vec<Problem>| ProfileError::Registry {
        origin: origin.clone(),
        problems,
    };
    let node = pinion_yaml::parse(text).map_err(|problem| wrong(vec![problem]))?;
    let mut findings = Findings::default();
    if let Ok(entries) = node.members("a registry") {
        refuse_old_forms(entries, &mut findings);
    }
    let registry = if findings.problems.is_empty() {
        read(
            &node,
            None,
            ProfileFormat::YamlRegistry,
            &origin,
            &mut findings,
        )
    } else {
        None
    };
    finish(registry, findings, &origin, notices)
}

/// Returns the registry with notices for remarks, or the errors.
pub(crate) fn finish(
    registry: Option<Registry>,
    mut findings: Findings,
    origin: &str,
    notices: &mut Vec<Notice>,
) -> Result<Registry, ProfileError> {
    for remark in &findings.remarks {
        let location = match remark.line {
            0 => format!("{origin}: {remark}"),
            _ => format!("{origin}:{remark}"),
        };
        notices.push(Notice::new(
            "unknown_setting",
            format!("{location}; it has no effect"),
        ));
    }
    match registry.filter(|_| findings.problems.is_empty()) {
        Some(registry) => Ok(registry),
        None => {
            findings
                .problems
                .sort_by_key(|problem| (problem.line, problem.column));
            Err(ProfileError::Registry {
                origin: origin.to_owned(),
                problems: findings.problems,
            })
        }
    }
}

/// Rejects old forms of registries.
fn refuse_old_forms(entries: &[Entry], findings: &mut Findings) {
    for entry in entries {
        let words = match entry.key.as_str() {
            "registries" => {
                "a file holds one registry: put each one of \"registries\" into a file of its own and name them all in profile.registries"
            }
            "default_profile_slug" => {
                "\"default_profile_slug\" is no longer a key: the default profile is the one named `default`, else the first by name; choose another with profile.active"
            }
            _ => continue,
        };
        findings.problems.push(entry.at.problem(words));
    }
    let has = |name: &str| entries.iter().any(|entry| entry.key == name);
    let mappings = entries
        .iter()
        .all(|entry| matches!(entry.value.kind, NodeKind::Map(_)));
    if findings.problems.is_empty()
        && !entries.is_empty()
        && !has("slug")
        && !has("profiles")
        && mappings
    {
        let words = "a map of profiles alone is not a registry: write `slug: NAME` above, and the profiles under `profiles:`, with their settings in `inference_settings`";
        findings.problems.push(entries[0].at.problem(words));
    }
}

/// Parses a registry; `named` is its required name, if it is known from elsewhere.
pub(crate) fn read(
    node: &Node,
    named: Option<&Slug>,
    home: ProfileFormat,
    origin: &str,
    findings: &mut Findings,
) -> Option<Registry> {
    let entries = match node.members("a registry") {
        Ok(entries) => entries,
        Err(problem) => {
            findings.problems.push(problem);
            return None;
        }
    };
    let mut registry = Registry {
        slug: named.cloned().unwrap_or_else(Slug::inline),
        display_name: None,
        description: None,
        profiles: BTreeMap::new(),
        metadata: Tree::default(),
        origin: origin.to_owned(),
    };
    let has_slug = named.is_some() || entries.iter().any(|entry| entry.key == "slug");
    for entry in entries {
        if let Err(problem) = member(&mut registry, entry, home, findings) {
            findings.problems.push(problem);
        }
    }
    if let Some(named) = named
        && registry.slug != *named
    {
        let words = format!(
            "its row is named \"{named}\" and it calls itself \"{}\"",
            registry.slug
        );
        findings.problems.push(node.at.problem(words));
    }
    if !has_slug {
        let words = "a registry needs `slug: NAME`";
        findings.problems.push(node.at.problem(words));
    } else if registry.slug == Slug::inline() && findings.problems.is_empty() {
        let words = "the name \"config-inline\" belongs to the profiles of configuration documents";
        findings.problems.push(node.at.problem(words));
    }
    Some(registry)
}

fn member(
    registry: &mut Registry,
    entry: &Entry,
    home: ProfileFormat,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let value = &entry.value;
    match entry.key.as_str() {
        "slug" => registry.slug = slug_at(value.at, "registry", &value.text("slug")?)?,
        "display_name" => registry.display_name = Some(value.text("display_name")?),
        "description" => registry.description = Some(value.text("description")?),
        "metadata" => registry.metadata = Tree::new(whole(value.members("metadata")?)),
        "profiles" => {
            for entry in value.members("profiles")? {
                if let Err(problem) = one_profile(registry, entry, home, findings) {
                    findings.problems.push(problem);
                }
            }
        }
        other if home == ProfileFormat::YamlRegistry => {
            let known = [
                "slug",
                "display_name",
                "description",
                "profiles",
                "metadata",
            ];
            let words = crate::check::describe_unknown("a registry", other, known.into_iter());
            findings.remarks.push(entry.at.problem(words));
        }
        // Rows are written by programs, which may be newer than this one.
        _ => {}
    }
    Ok(())
}

fn one_profile(
    registry: &mut Registry,
    entry: &Entry,
    home: ProfileFormat,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let slug = slug_at(entry.at, "profile", &entry.key)?;
    let part = profile::read(&entry.value, &format!("profiles.{slug}"), home, findings);
    if let Some(own) = part.slug.as_ref().filter(|own| **own != slug) {
        return Err(entry.at.problem(format!(
            "profile \"{slug}\" calls itself \"{own}\"; make both the same"
        )));
    }
    let mut profile = Profile::new(slug.clone());
    profile.overlay(part);
    if registry.profiles.insert(slug.clone(), profile).is_some() {
        let words = format!("profile \"{slug}\" is defined twice");
        return Err(entry.at.problem(words));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> Result<(Registry, Vec<Notice>), String> {
        let mut notices = Vec::new();
        let source = Source::Yaml("r.yaml".into());
        match read_yaml(text, &source, &mut notices) {
            Ok(registry) => Ok((registry, notices)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_registry_has_a_name_profiles_and_a_default() {
        let text = "slug: Team\ndisplay_name: T\ndescription: d\nmetadata: {a: 1}\nprofiles:\n  zed: {}\n  alpha:\n    slug: alpha\n    metadata: {version: 3}\n    extensions: {pinocchio.oauth@v1: {kind: oauth_bearer}}\n";
        let (registry, notices) = reading(text).unwrap();
        assert!(notices.is_empty());
        assert_eq!(registry.slug.as_str(), "team");
        let default = |registry: &Registry| {
            registry
                .default_profile()
                .map(|profile| profile.slug.to_string())
        };
        assert_eq!(default(&registry).as_deref(), Some("alpha"));
        let (registry, _) = reading("slug: t\nprofiles: {a: , default: }\n").unwrap();
        assert_eq!(default(&registry).as_deref(), Some("default"));
        let (registry, _) = reading("slug: t\n").unwrap();
        assert_eq!(default(&registry), None);
    }

    #[test]
    fn old_forms_and_mistakes_are_refused_with_their_lines() {
        for (text, start) in [
            (
                "slug: a\nregistries: {}\n",
                "r.yaml:2:1: a file holds one registry",
            ),
            (
                "slug: a\ndefault_profile_slug: x\n",
                "r.yaml:2:1: \"default_profile_slug\"",
            ),
            (
                "fast:\n  ai-chat: {ai-engine: x}\n",
                "r.yaml:1:1: a map of profiles alone",
            ),
            (
                "profiles: {}\n",
                "r.yaml:1:1: a registry needs `slug: NAME`",
            ),
            ("", "r.yaml:1:1: a registry needs"),
            ("slug: 'a b'\n", "r.yaml:1:7: \"a b\" cannot be"),
            (
                "slug: config-inline\n",
                "r.yaml:1:1: the name \"config-inline\"",
            ),
            (
                "slug: a\nprofiles: {x: {slug: y}}\n",
                "r.yaml:2:12: profile \"x\" calls itself \"y\"",
            ),
            (
                "slug: a\nprofiles:\n  A: {}\n  a: {}\n",
                "r.yaml:4:3: profile \"a\" is defined twice",
            ),
            (
                "slug: a\nprofiles: {x: {inference_settings: {api_keys: {}}}}\n",
                "r.yaml:2:37: keys belong under `api`",
            ),
            (
                "slug: a\nprofiles: {x: {inference_settings: {chat: {top_p: x}}}}\n",
                "r.yaml:2:51: chat.top_p must be a number",
            ),
            ("- a\n", "r.yaml:1:1: a registry must be a mapping"),
            ("slug: [\n", "r.yaml:"),
        ] {
            let told = reading(text).err().unwrap_or_default();
            assert!(told.starts_with(start), "{text:?}: {told}");
        }
    }

    #[test]
    fn what_nobody_knows_is_kept_and_told() {
        let text = "slug: a\ncolour: x\nprofiles:\n  x:\n    speed: 1\n    inference_settings: {chat: {engin: m}}\n";
        let (_, notices) = reading(text).unwrap();
        let told: Vec<&str> = notices
            .iter()
            .map(|notice| notice.message.as_str())
            .collect();
        assert_eq!(
            told,
            [
                "r.yaml:2:1: a registry has no \"colour\"; it has no effect",
                "r.yaml:5:5: profiles.x has no \"speed\"; it has no effect",
                "r.yaml:6:33: chat has no \"engin\"; did you mean engine?; it has no effect",
            ]
        );
    }
}
