//! Sources of clips, in all forms that users write.
//!
//! | written | means |
//! |---|---|
//! | `@scope/name`, `@scope/name@1.2.0`, `@scope/name:beta` | a package of the configured registry |
//! | `registry:ADDRESS#@scope/name[@version]` | a package of that registry; see [`crate::registry`] for addresses |
//! | `npm/name[@version]`, `npm/@scope/name[@version]` | a package of npm |
//! | `github/user/repository[#branch]` | a repository |
//! | `local/name:/absolute/path` | a directory, or an archive |
//!
//! A version may be a tag like `latest`. The module [`crate::install`] resolves it to an exact version.

mod typed;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::registry::Address;
use crate::{ClipError, Code};

pub use typed::TypedSource;

/// The source of a clip. `Display` writes the normalised form, which is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A package of a registry.
    Registry {
        registry: Address,
        package: PackageName,
        /// The version or tag; the latest version if `None`.
        version: Option<String>,
    },
    /// A package of npm, or of the registry that npm is configured for.
    Npm {
        package: String,
        /// The version or tag; the latest version if `None`.
        version: Option<String>,
    },
    /// A repository on GitHub.
    GitHub {
        /// The owner of the repository.
        user: String,
        repository: String,
        /// The branch; the default branch if `None`.
        branch: Option<String>,
    },
    /// A directory or an archive on this machine.
    Local {
        /// The name of the clip.
        name: String,
        /// The absolute path of a directory, or of a gzipped tar archive.
        path: PathBuf,
    },
}

/// The name of a package in a registry: `@scope/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackageName {
    /// The scope, without the `@`.
    pub scope: String,
    /// The name within the scope.
    pub name: String,
}

impl FromStr for PackageName {
    type Err = ClipError;

    fn from_str(text: &str) -> Result<Self, ClipError> {
        let parts = text.strip_prefix('@').and_then(|rest| rest.split_once('/'));
        let (scope, name) = parts
            .filter(|(scope, name)| is_name(scope) && is_name(name))
            .ok_or_else(|| {
                ClipError::invalid(format!("\"{text}\" is not a package like @scope/name"))
            })?;
        Ok(Self {
            scope: scope.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "@{}/{}", self.scope, self.name)
    }
}

impl Source {
    /// Parses a source. A package without a registry belongs to `registry`.
    pub fn parse(text: &str, registry: Option<&str>) -> Result<Self, ClipError> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("registry:") {
            let (address, package) = rest.rsplit_once('#').ok_or_else(|| {
                ClipError::invalid(format!(
                    "\"{text}\" names no package; write registry:ADDRESS#@scope/name"
                ))
            })?;
            return Self::of_registry(address.parse()?, package);
        }
        if text.starts_with('@') {
            let registry = registry.filter(|registry| !registry.trim().is_empty());
            let registry = registry.ok_or_else(|| {
                ClipError::new(
                    Code::FailedPrecondition,
                    format!("\"{text}\" is a package of a registry, and no registry is configured; name one as registry:ADDRESS#{text}, or set \"registry\" in client.json"),
                )
            })?;
            return Self::of_registry(registry.parse()?, text);
        }
        if let Some(rest) = text.strip_prefix("npm/") {
            return Self::of_npm(rest);
        }
        if let Some(rest) = text.strip_prefix("github/") {
            return Self::of_github(rest);
        }
        if let Some(rest) = text.strip_prefix("local/") {
            return Self::of_path(rest);
        }
        Err(ClipError::invalid(format!(
            "\"{text}\" is not a source; use @scope/name, registry:ADDRESS#@scope/name, npm/name, github/user/repository or local/name:/path"
        )))
    }

    fn of_registry(registry: Address, text: &str) -> Result<Self, ClipError> {
        let (package, version) = versioned(text)?;
        Ok(Self::Registry {
            registry,
            package: package.parse()?,
            version,
        })
    }

    fn of_npm(text: &str) -> Result<Self, ClipError> {
        let (package, version) = versioned(text)?;
        let is_package = match package.strip_prefix('@') {
            Some(_) => package.parse::<PackageName>().is_ok(),
            None => is_name(package),
        };
        if !is_package {
            return Err(ClipError::invalid(format!(
                "\"{package}\" is not the name of an npm package"
            )));
        }
        Ok(Self::Npm {
            package: package.to_owned(),
            version,
        })
    }

    fn of_github(text: &str) -> Result<Self, ClipError> {
        let (path, branch) = match text.split_once('#') {
            Some((path, branch)) => (path, Some(branch.trim())),
            None => (text, None),
        };
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let parts = path.split_once('/');
        let (user, repository) = parts
            .filter(|(user, repository)| is_name(user) && is_name(repository))
            .ok_or_else(|| {
                ClipError::invalid(format!(
                    "\"github/{text}\" is not a repository like github/user/repository"
                ))
            })?;
        let branch = branch.filter(|branch| !branch.is_empty());
        if let Some(branch) = branch.filter(|branch| !is_branch(branch)) {
            return Err(ClipError::invalid(format!("\"{branch}\" is not a branch")));
        }
        Ok(Self::GitHub {
            user: user.to_owned(),
            repository: repository.to_owned(),
            branch: branch.map(str::to_owned),
        })
    }

    fn of_path(text: &str) -> Result<Self, ClipError> {
        let (name, path) = text.split_once(':').unwrap_or((text, ""));
        if !is_name(name) {
            return Err(ClipError::invalid(format!(
                "\"{name}\" is not a name for a clip of this machine"
            )));
        }
        let path = Path::new(path);
        if !path.is_absolute() {
            return Err(ClipError::invalid(format!(
                "\"local/{name}\" has no absolute path; write local/{name}:/absolute/path"
            )));
        }
        Ok(Self::Local {
            name: name.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Returns the name of the package, without its version.
    pub fn package(&self) -> String {
        match self {
            Self::Registry { package, .. } => package.to_string(),
            Self::Npm { package, .. } => package.clone(),
            Self::GitHub {
                user, repository, ..
            } => format!("github/{user}/{repository}"),
            Self::Local { name, .. } => format!("local/{name}"),
        }
    }

    /// Returns the version or tag, if the source names one.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Registry { version, .. } | Self::Npm { version, .. } => version.as_deref(),
            Self::GitHub { .. } | Self::Local { .. } => None,
        }
    }

    /// Returns the source with another version. A source without versions stays as it is.
    pub fn with_version(&self, wanted: Option<&str>) -> Result<Self, ClipError> {
        let wanted = wanted.map(checked_version).transpose()?;
        let mut source = self.clone();
        match &mut source {
            Self::Registry { version, .. } | Self::Npm { version, .. } => *version = wanted,
            Self::GitHub { .. } | Self::Local { .. } => {}
        }
        Ok(source)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, (mark, end)) = match self {
            Self::Registry {
                registry,
                package,
                version,
            } => (format!("registry:{registry}#{package}"), ("@", version)),
            Self::Npm { package, version } => (format!("npm/{package}"), ("@", version)),
            Self::GitHub {
                user,
                repository,
                branch,
            } => (format!("github/{user}/{repository}"), ("#", branch)),
            Self::Local { name, path } => (format!("local/{name}:{}", path.display()), ("", &None)),
        };
        formatter.write_str(&start)?;
        match end {
            Some(end) => write!(formatter, "{mark}{end}"),
            None => Ok(()),
        }
    }
}

/// Splits a package from the version after `@` or `:`.
fn versioned(text: &str) -> Result<(&str, Option<String>), ClipError> {
    let text = text.trim();
    let start = usize::from(text.starts_with('@'));
    match text[start..].split_once(['@', ':']) {
        Some((package, version)) => {
            let version = checked_version(version)?;
            Ok((&text[..start + package.len()], Some(version)))
        }
        None => Ok((text, None)),
    }
}

pub(crate) fn checked_version(text: &str) -> Result<String, ClipError> {
    let text = text.trim();
    let is_version = text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.len() <= 128
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".+-_".contains(&byte));
    is_version
        .then(|| text.to_owned())
        .ok_or_else(|| ClipError::invalid(format!("\"{text}\" is not a version or a tag")))
}

/// Reports whether a text can be used in addresses and command lines without quoting.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && text.len() <= 128
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte))
}

fn is_branch(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-".contains(&byte);
    text.len() <= 255
        && !text.starts_with('-')
        && text.bytes().all(is_plain)
        && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REGISTRY: Option<&str> = Some("https://packages.example/");

    #[test]
    fn every_spelling_has_one_form_that_is_kept() {
        for (text, kept) in [
            ("@acme/todo", "registry:https://packages.example#@acme/todo"),
            (
                "@acme/todo@1.2.0",
                "registry:https://packages.example#@acme/todo@1.2.0",
            ),
            (
                "@acme/todo@beta",
                "registry:https://packages.example#@acme/todo@beta",
            ),
            (
                " @acme/todo:1.2.0 ",
                "registry:https://packages.example#@acme/todo@1.2.0",
            ),
            (
                "registry:http://127.0.0.1:8080/x//#@a/b",
                "registry:http://127.0.0.1:8080/x#@a/b",
            ),
            ("registry:https://h.example/#frag#@a/b@1", ""),
            (
                "registry:/srv/clips#@a/b@1",
                "registry:file:///srv/clips#@a/b@1",
            ),
            (
                "registry:file:///srv/my%20clips/#@a/b",
                "registry:file:///srv/my%20clips#@a/b",
            ),
            (
                "registry:https://h.example/clips/index.json#@a/b",
                "registry:https://h.example/clips/index.json#@a/b",
            ),
            ("npm/left-pad", "npm/left-pad"),
            ("npm/@acme/todo@latest", "npm/@acme/todo@latest"),
            ("github/user/repo", "github/user/repo"),
            ("github/user/repo.git/#", "github/user/repo"),
            (
                "github/user/repo.git#feature/x",
                "github/user/repo#feature/x",
            ),
            (
                "local/notes:/home/me/my notes",
                "local/notes:/home/me/my notes",
            ),
        ] {
            match Source::parse(text, REGISTRY) {
                Ok(source) => {
                    assert_eq!(source.to_string(), kept, "{text}");
                    assert_eq!(Source::parse(kept, None).unwrap(), source, "{kept}");
                }
                Err(error) => assert!(kept.is_empty(), "{text}: {error}"),
            }
        }
    }

    #[test]
    fn a_text_that_is_not_a_source_is_rejected() {
        for text in [
            "",
            "todo",
            "acme/todo",
            "@acme",
            "@acme/",
            "@/todo",
            "@acme/to do",
            "@acme/../x",
            "@acme/todo@",
            "@acme/todo@-x",
            "@acme/todo@1 2",
            "@acme/todo/more",
            "registry:https://h.example",
            "registry:#@a/b",
            "registry:ftp://h.example#@a/b",
            "registry:https://#@a/b",
            "registry:relative/dir#@a/b",
            "registry:https://user:pass@h.example#@a/b",
            "npm/",
            "npm/--version",
            "npm/git+https://x",
            "npm/./dir",
            "npm/@a/b/c",
            "npm/a@file:../x",
            "github/user",
            "github/user/repo/more",
            "github/-u/repo",
            "github/user/repo#--upload-pack=x",
            "github/user/repo#a b",
            "local/",
            "local/notes",
            "local/notes:relative",
            "local/a b:/x",
            "https://h.example/x.tgz",
        ] {
            let error = Source::parse(text, REGISTRY).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{text}: {error}");
        }
        let error = Source::parse("@acme/todo", None).unwrap_err();
        assert_eq!(error.code, Code::FailedPrecondition);
    }

    #[test]
    fn versions_can_be_changed_where_there_are_any() {
        let source = Source::parse("@acme/todo@1", REGISTRY).unwrap();
        assert_eq!(source.version(), Some("1"));
        assert_eq!(source.package(), "@acme/todo");
        let next = source.with_version(Some("2.0.0")).unwrap();
        assert_eq!(next.version(), Some("2.0.0"));
        assert_eq!(source.with_version(None).unwrap().version(), None);
        assert!(source.with_version(Some("../x")).is_err());
        let local = Source::parse("local/a:/b", None).unwrap();
        assert_eq!(local.with_version(Some("2")).unwrap(), local);
        assert_eq!(local.package(), "local/a");
    }

    proptest! {
        #[test]
        fn the_stored_form_of_a_source_is_parsed_again(text in "(@|npm/|npm/@|github/|local/|registry:https://h.example#@|registry:/d#@)[a-z]{1,4}(/[a-z.@:#/-]{0,9}|:/[ -~]{0,9})") {
            if let Ok(source) = Source::parse(&text, REGISTRY) {
                let kept = source.to_string();
                prop_assert_eq!(Source::parse(&kept, None).unwrap(), source, "{}", kept);
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>(), prefix in prop::sample::select(vec!["", "@", "npm/", "github/", "local/", "registry:"])) {
            let _ = Source::parse(&format!("{prefix}{text}"), REGISTRY);
        }
    }
}
