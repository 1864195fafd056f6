//! One profile: named settings, merged onto the profiles of its stack.

use pinion_yaml::{Entry, Node, Problem, SourceLocation};
use serde_json::{Map, Value};

use crate::check::{self, Findings, Unknown, describe_unknown};
use crate::oauth;
use crate::slug::Slug;
use crate::tree::Tree;

/// One profile of a registry.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The name, unique within the registry.
    pub slug: Slug,
    /// The name shown to people.
    pub display_name: Option<String>,
    pub description: Option<String>,
    /// The profiles below it, lowest first.
    pub stack: Vec<StackEntry>,
    pub inference_settings: Tree,
    /// Source, version, dates; stored as written.
    pub metadata: Tree,
    /// Data of other programs, by `namespace.name@vN`.
    pub extensions: Tree,
}

/// A profile in the stack of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackEntry {
    /// The registry; `None` for the same one.
    pub registry_slug: Option<Slug>,
    pub profile_slug: Slug,
}

/// The members of a profile in one document; absent ones do not change the profile.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProfilePart {
    pub slug: Option<Slug>,
    pub display_name: Option<String>,
    pub description: Option<String>,
    pub stack: Option<Vec<StackEntry>>,
    pub inference_settings: Tree,
    pub metadata: Tree,
    pub extensions: Tree,
}

impl Profile {
    pub(crate) fn new(slug: Slug) -> Self {
        Self {
            slug,
            display_name: None,
            description: None,
            stack: Vec::new(),
            inference_settings: Tree::default(),
            metadata: Tree::default(),
            extensions: Tree::default(),
        }
    }

    /// Replaces names, description and stack; merges settings and extensions.
    pub(crate) fn overlay(&mut self, part: ProfilePart) {
        self.display_name = part.display_name.or(self.display_name.take());
        self.description = part.description.or(self.description.take());
        if let Some(stack) = part.stack {
            self.stack = stack;
        }
        self.inference_settings.overlay(&part.inference_settings);
        self.metadata.overlay(&part.metadata);
        self.extensions.overlay(&part.extensions);
    }
}

/// The kind of file with a profile, which decides about the allowed members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfileFormat {
    /// Under `profiles` of a configuration document.
    Document,
    /// In a registry file.
    YamlRegistry,
    /// In a row of a database.
    SqliteRegistry,
}

impl ProfileFormat {
    fn members(self) -> &'static [&'static str] {
        match self {
            Self::Document => &[
                "display_name",
                "description",
                "stack",
                "inference_settings",
                "extensions",
            ],
            Self::YamlRegistry | Self::SqliteRegistry => &[
                "slug",
                "display_name",
                "description",
                "stack",
                "inference_settings",
                "metadata",
                "extensions",
            ],
        }
    }

    fn unknown(self) -> Unknown {
        match self {
            Self::Document => Unknown::Refused,
            Self::YamlRegistry | Self::SqliteRegistry => Unknown::Kept,
        }
    }
}

/// Parses one profile; `named` identifies it in messages.
pub(crate) fn read(
    node: &Node,
    named: &str,
    home: ProfileFormat,
    findings: &mut Findings,
) -> ProfilePart {
    let mut part = ProfilePart::default();
    let entries = match node.members(named) {
        Ok(entries) => entries,
        Err(problem) => {
            findings.problems.push(problem);
            return part;
        }
    };
    for entry in entries {
        if !home.members().contains(&entry.key.as_str()) {
            let words = match (home, entry.key.as_str()) {
                (ProfileFormat::Document, "slug") => {
                    format!("{named} has no \"slug\": its name is the key it stands under")
                }
                _ => describe_unknown(named, &entry.key, home.members().iter().copied()),
            };
            let problem = entry.at.problem(words);
            match home.unknown() {
                Unknown::Refused => findings.problems.push(problem),
                Unknown::Kept => findings.remarks.push(problem),
            }
            continue;
        }
        if let Err(problem) = member(&mut part, entry, named, home, findings) {
            findings.problems.push(problem);
        }
    }
    part
}

fn member(
    part: &mut ProfilePart,
    entry: &Entry,
    named: &str,
    home: ProfileFormat,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let value = &entry.value;
    let what = format!("{named}.{}", entry.key);
    match entry.key.as_str() {
        "slug" => part.slug = Some(slug_at(value.at, "profile", &value.text(&what)?)?),
        "display_name" => part.display_name = Some(value.text(&what)?),
        "description" => part.description = Some(value.text(&what)?),
        "stack" => part.stack = Some(stack(value, &what, findings)?),
        "inference_settings" => {
            part.inference_settings = check::settings(value, home.unknown(), findings);
        }
        "metadata" => part.metadata = Tree::new(whole(value.members(&what)?)),
        _ => part.extensions = extensions(value, &what, home, findings)?,
    }
    Ok(())
}

fn stack(node: &Node, what: &str, findings: &mut Findings) -> Result<Vec<StackEntry>, Problem> {
    let mut stack = Vec::new();
    for item in node.items(what)? {
        let mut registry_slug = None;
        let mut profile_slug = None;
        for entry in item.members(&format!("each entry of {what}"))? {
            match entry.key.as_str() {
                "registry_slug" => {
                    let text = entry.value.text("registry_slug")?;
                    registry_slug = Some(slug_at(entry.value.at, "registry", &text)?);
                }
                "profile_slug" => {
                    let text = entry.value.text("profile_slug")?;
                    profile_slug = Some(slug_at(entry.value.at, "profile", &text)?);
                }
                other => {
                    let known = ["registry_slug", "profile_slug"].into_iter();
                    let words = describe_unknown(what, other, known);
                    findings.problems.push(entry.at.problem(words));
                }
            }
        }
        match profile_slug {
            Some(profile_slug) => stack.push(StackEntry {
                registry_slug,
                profile_slug,
            }),
            None => {
                let words = format!("each entry of {what} must name a profile_slug");
                findings.problems.push(item.at.problem(words));
            }
        }
    }
    Ok(stack)
}

fn extensions(
    node: &Node,
    what: &str,
    home: ProfileFormat,
    findings: &mut Findings,
) -> Result<Tree, Problem> {
    let entries = node.members(what)?;
    for entry in entries {
        if !is_extension_key(&entry.key) {
            let words = format!(
                "\"{}\" cannot be the key of an extension; write namespace.name@v1",
                entry.key
            );
            findings.problems.push(entry.at.problem(words));
        }
        if entry.key == oauth::EXTENSION && home != ProfileFormat::YamlRegistry {
            let words = format!(
                "{} may stand only in a YAML registry file, where a login can be written to",
                oauth::EXTENSION
            );
            findings.problems.push(entry.at.problem(words));
        }
    }
    Ok(Tree::new(whole(entries)))
}

/// `namespace.name@vN`.
fn is_extension_key(key: &str) -> bool {
    let Some((name, version)) = key.rsplit_once("@v") else {
        return false;
    };
    let word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let digits = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    digits && name.contains('.') && name.split('.').all(word)
}

pub(crate) fn slug_at(at: SourceLocation, what: &str, text: &str) -> Result<Slug, Problem> {
    Slug::new(text).ok_or_else(|| {
        at.problem(format!(
            "\"{text}\" cannot be the name of a {what}; use a-z, 0-9, \".\", \"_\" and \"-\", beginning and ending with a letter or digit"
        ))
    })
}

pub(crate) fn whole(entries: &[Entry]) -> Map<String, Value> {
    let pair = |entry: &Entry| (entry.key.clone(), entry.value.to_value());
    entries.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_keys_have_a_namespace_and_a_version() {
        for (key, fits) in [
            ("pinocchio.oauth@v1", true),
            ("a.b.c_d-e@v12", true),
            ("oauth@v1", false),
            ("pinocchio.oauth", false),
            ("pinocchio.oauth@v", false),
            ("pinocchio..x@v1", false),
            ("a b.c@v1", false),
        ] {
            assert_eq!(is_extension_key(key), fits, "{key}");
        }
    }
}
