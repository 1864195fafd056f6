//! Errors of configuration, with stable codes.

use std::fmt;
use std::path::PathBuf;

use pinion_yaml::Problem;
use thiserror::Error;

/// A setting that was left out or has no effect; for stderr, after `Warning: `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// A stable name, for programs.
    pub code: &'static str,
    /// The event, and what to do next.
    pub message: String,
}

impl Notice {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// An error in settings or in the choice of a model.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the members are")]
pub enum ProfileError {
    /// A configuration document has errors.
    #[error("{}", listed(origin, problems))]
    Document {
        origin: String,
        problems: Vec<Problem>,
    },
    /// A registry has errors.
    #[error("{}", listed(origin, problems))]
    Registry {
        origin: String,
        problems: Vec<Problem>,
    },
    /// A value of the command line, the environment or a command file is invalid.
    #[error("{origin}: {message}")]
    Setting { origin: String, message: String },
    /// A file cannot be read.
    #[error("{}: the {what} cannot be read: {reason}", path.display())]
    Unreadable {
        what: &'static str,
        path: PathBuf,
        reason: String,
    },
    /// The file that `--config-file` names does not exist.
    #[error("{}: there is no such file; --config-file must name one that exists", path.display())]
    ConfigNotFound { path: PathBuf },
    /// An old name of configuration.
    #[error(
        "{}: files of this name are not read; move what it says to .pinocchio.yml, as `profile.active` and `profiles`",
        path.display()
    )]
    RefusedName { path: PathBuf },
    /// The text is not a slug.
    #[error(
        "{origin}: \"{text}\" cannot be the name of a {what}; use up to 128 of a-z, 0-9, \".\", \"_\" and \"-\", beginning and ending with a letter or digit"
    )]
    Slug {
        origin: String,
        what: &'static str,
        text: String,
    },
    /// Two sources define one registry.
    #[error(
        "registry \"{slug}\" is defined by both {first} and {second}; name only one of them in profile.registries"
    )]
    DuplicateRegistry {
        slug: String,
        first: String,
        second: String,
    },
    /// The registry does not exist.
    #[error(
        "{wanted_by}: there is no registry \"{slug}\"; {}",
        those(known, "registries")
    )]
    RegistryNotFound {
        wanted_by: String,
        slug: String,
        known: Vec<String>,
    },
    /// The profile does not exist.
    #[error(
        "{wanted_by}: there is no profile \"{slug}\"; {}",
        those(known, "profiles")
    )]
    ProfileNotFound {
        wanted_by: String,
        slug: String,
        known: Vec<String>,
    },
    /// A profile is requested, but there are no registries.
    #[error(
        "profile \"{slug}\" is asked for, but no profiles are configured; write them under `profiles` in a configuration document, or name a registry with --profile-registries"
    )]
    NoProfiles { slug: String },
    /// A stack contains itself.
    #[error("the stack of profile {} leads back to itself; take one of these out", path.join(" -> "))]
    StackCycle { path: Vec<String> },
    #[error("the stack of profile {} is more than 32 profiles deep", path.first().map_or("", String::as_str))]
    StackTooDeep { path: Vec<String> },
    /// The kind of API is unknown.
    #[error(
        "chat.api_type \"{api_type}\" is unknown; use openai, open-responses, openai-responses, claude, gemini, anyscale, fireworks or offline"
    )]
    UnknownApiType { api_type: String },
    /// The kind of API has no implementation.
    #[error("chat.api_type \"{api_type}\" is only a name: no engine speaks it; {instead}")]
    UnsupportedApiType {
        api_type: String,
        instead: &'static str,
    },
    /// `provider/id` is not a model.
    #[error("{message}")]
    UnknownModel { message: String },
    /// The chosen engine has no key.
    #[error(
        "no API key for engine \"{engine}\" (chat.api_type {api_type}): set {variables} in the environment, or api.api_keys.{key} in a profile{instead}"
    )]
    MissingKey {
        engine: String,
        api_type: String,
        key: String,
        variables: String,
        /// Names models that have a key; empty if there are none.
        instead: String,
    },
    /// No engine is named, and no key is configured.
    #[error(
        "no model is configured: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or choose a profile; to try the command without one, use --model offline/demo"
    )]
    NoModel,
    /// A model of pinion's own registry has no key.
    #[error("{message}")]
    MissingCredential { message: String },
    /// The chosen engine has no base URL.
    #[error(
        "chat.api_type {api_type} has no default address: set api.base_urls.{key} in a profile"
    )]
    MissingBaseUrl { api_type: String, key: String },
    /// The base URL is not permitted.
    #[error("{key} \"{url}\" {reason}")]
    UrlNotAllowed {
        key: String,
        url: String,
        reason: String,
    },
    /// The login cannot be used.
    #[error("profile \"{profile}\": {message}")]
    OAuth { profile: String, message: String },
}

impl ProfileError {
    /// Returns a stable name, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document { .. } => "invalid_config",
            Self::Registry { .. } => "invalid_registry",
            Self::Setting { .. } => "invalid_setting",
            Self::Unreadable { .. } => "unreadable_file",
            Self::ConfigNotFound { .. } => "config_not_found",
            Self::RefusedName { .. } => "config_refused",
            Self::Slug { .. } => "invalid_slug",
            Self::DuplicateRegistry { .. } => "duplicate_registry",
            Self::RegistryNotFound { .. } => "registry_not_found",
            Self::ProfileNotFound { .. } => "profile_not_found",
            Self::NoProfiles { .. } => "no_profiles",
            Self::StackCycle { .. } => "profile_cycle",
            Self::StackTooDeep { .. } => "profile_stack_too_deep",
            Self::UnknownApiType { .. } => "unknown_api_type",
            Self::UnsupportedApiType { .. } => "unsupported_api_type",
            Self::UnknownModel { .. } => "unknown_model",
            Self::MissingKey { .. } | Self::MissingCredential { .. } | Self::NoModel => {
                "no_api_key"
            }
            Self::MissingBaseUrl { .. } => "no_base_url",
            Self::UrlNotAllowed { .. } => "url_not_allowed",
            Self::OAuth { .. } => "login_unusable",
        }
    }
}

/// Prints every error on its own line, like a compiler.
fn listed(origin: &str, problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| match problem.line {
            0 => format!("{origin}: {problem}"),
            _ => format!("{origin}:{problem}"),
        })
        .collect();
    lines.join("\n")
}

fn those(names: &[String], what: &str) -> String {
    match names {
        [] => format!("there are no {what}"),
        names => format!("the {what} are: {}", names.join(", ")),
    }
}
