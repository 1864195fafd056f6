//! The source of a package: parses the text of a `packages` entry or of `-e`.
//!
//! | text | meaning |
//! |---|---|
//! | `npm:name`, `npm:@scope/name@1.2.0` | a package of the npm registry; a version pins it |
//! | `git:host/path`, `git:user@host:path`, `https://…`, `ssh://…`, each with `@ref` | a repository |
//! | anything else, `file:` in front or not | a directory or a file on this machine |

use std::path::{Path, PathBuf};

use crate::{Dirs, Scope, paths};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSource {
    text: String,
    kind: SourceKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceKind {
    /// The npm registry.
    Npm {
        /// With its scope, if it has one.
        name: String,
        /// A version or a range; pins the package.
        version: Option<String>,
    },
    /// A git repository.
    Git(GitSource),
    /// A directory or a file on this machine, absolute.
    Local(PathBuf),
}

/// A git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// The argument of `git clone`.
    pub url: String,
    pub host: String,
    /// The path on the host, without `.git`.
    pub path: String,
    /// A branch, a tag or a commit; pins the package.
    pub reference: Option<String>,
}

impl PackageSource {
    /// Parses `text`, whose relative paths are relative to `base`. The error describes what is
    /// wrong with it.
    pub fn parse(text: &str, base: &Path, home: &Path) -> Result<Self, String> {
        let text = text.trim();
        let kind = if let Some(spec) = text.strip_prefix("npm:") {
            parse_npm(spec)?
        } else if let Some(spec) = git_spec(text) {
            SourceKind::Git(parse_git(spec, base, home)?)
        } else {
            let path = text.strip_prefix("file:").unwrap_or(text);
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err("it names nothing".into());
            }
            SourceKind::Local(paths::resolve(path, base, home))
        };
        Ok(Self {
            text: text.to_owned(),
            kind,
        })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn kind(&self) -> &SourceKind {
        &self.kind
    }

    /// A text that is equal for two sources of one package, regardless of their versions.
    pub fn identity(&self) -> String {
        match &self.kind {
            SourceKind::Npm { name, .. } => format!("npm:{name}"),
            SourceKind::Git(git) => format!("git:{}/{}", git.host, git.path),
            SourceKind::Local(path) => path.display().to_string(),
        }
    }

    /// Reports whether it names one version, which updates do not change.
    pub fn is_pinned(&self) -> bool {
        match &self.kind {
            SourceKind::Npm { version, .. } => version.is_some(),
            SourceKind::Git(git) => git.reference.is_some(),
            SourceKind::Local(_) => false,
        }
    }

    /// The directory pinion installs it to and removes it from. `None` for a package that stays
    /// where it is.
    pub fn install_directory(&self, dirs: &Dirs, scope: Scope) -> Option<PathBuf> {
        let base = match scope {
            Scope::Project => &dirs.project_dir,
            Scope::User | Scope::Temporary => &dirs.agent_dir,
        };
        match &self.kind {
            SourceKind::Npm { name, .. } => Some(base.join("npm").join("node_modules").join(name)),
            SourceKind::Git(git) => Some(base.join("git").join(&git.host).join(&git.path)),
            SourceKind::Local(_) => None,
        }
    }

    /// The directory of the package: a local path, the directory it was installed to, or npm's
    /// directory of global packages.
    pub fn locate(&self, dirs: &Dirs, scope: Scope) -> Option<PathBuf> {
        if let SourceKind::Local(path) = &self.kind {
            return path.exists().then(|| path.clone());
        }
        let own = self.install_directory(dirs, scope);
        if let Some(directory) = own.filter(|directory| directory.is_dir()) {
            return Some(directory);
        }
        match &self.kind {
            SourceKind::Npm { name, .. } if scope != Scope::Project => {
                let roots = global_npm_roots(&dirs.home).into_iter();
                let mut directories = roots.map(|root| root.join(name));
                directories.find(|directory| directory.is_dir())
            }
            _ => None,
        }
    }
}

fn parse_npm(spec: &str) -> Result<SourceKind, String> {
    let scoped = usize::from(spec.starts_with('@'));
    let (name, version) = match spec[scoped..].find('@') {
        Some(at) => (&spec[..scoped + at], Some(&spec[scoped + at + 1..])),
        None => (spec, None),
    };
    let parts: Vec<&str> = name[scoped..].split('/').collect();
    if parts.len() != scoped + 1 || !parts.iter().all(|part| is_plain_name(part)) {
        return Err("npm: must be followed by a package name such as name or @scope/name".into());
    }
    Ok(SourceKind::Npm {
        name: name.to_owned(),
        version: version
            .filter(|version| !version.is_empty())
            .map(str::to_owned),
    })
}

/// Reports whether a name stays inside the directory it is joined to.
fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

const PROTOCOLS: &[&str] = &["https://", "http://", "ssh://", "git://"];

/// The text after `git:`, or all of a text that can only be a repository.
fn git_spec(text: &str) -> Option<&str> {
    let is_url = PROTOCOLS.iter().any(|protocol| text.starts_with(protocol));
    if is_url || text.starts_with("git@") {
        return Some(text);
    }
    text.strip_prefix("git:")
        .or_else(|| text.strip_prefix("git+"))
}

fn parse_git(spec: &str, base: &Path, home: &Path) -> Result<GitSource, String> {
    let (address, reference) = split_reference(spec);
    let (url, host, path) = if let Some((protocol, rest)) = address.split_once("://") {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let machine = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let machine = machine.split(':').next().unwrap_or_default();
        let host = if protocol == "file" {
            "localhost"
        } else {
            machine
        };
        (address.to_owned(), host.to_owned(), path.to_owned())
    } else if address.starts_with(['/', '.', '~']) {
        let path = paths::resolve(address, base, home).display().to_string();
        (path.clone(), "localhost".to_owned(), path)
    } else if let Some((machine, path)) = scp_address(address) {
        let host = machine.rsplit_once('@').map_or(machine, |(_, host)| host);
        (address.to_owned(), host.to_owned(), path.to_owned())
    } else {
        let (host, path) = address.split_once('/').unwrap_or((address, ""));
        (
            format!("https://{address}"),
            host.to_owned(),
            path.to_owned(),
        )
    };
    let path = path.trim_matches('/').trim_end_matches(".git").to_owned();
    let is_path = |text: &str| {
        let mut names = text.split('/');
        names.all(|name| !matches!(name, "" | "." | "..") && !name.contains('\\'))
    };
    if !is_path(&host) || host.contains('/') || !is_path(&path) || url.starts_with('-') {
        return Err("git: must be followed by a repository such as host/owner/name".into());
    }
    if reference.is_some_and(|reference| reference.starts_with('-')) {
        return Err("a branch, tag or commit does not begin with -".into());
    }
    Ok(GitSource {
        url,
        host: host.to_lowercase(),
        path,
        reference: reference.map(str::to_owned),
    })
}

/// `user@host:path`, the form `ssh` and `git` share.
fn scp_address(address: &str) -> Option<(&str, &str)> {
    let (machine, path) = address.split_once(':')?;
    (!machine.contains('/')).then_some((machine, path))
}

/// Splits off `@ref` or `#ref`, which follow the last name of the address.
fn split_reference(spec: &str) -> (&str, Option<&str>) {
    if let Some((address, reference)) = spec.split_once('#') {
        return (address, Some(reference).filter(|text| !text.is_empty()));
    }
    // The text before the first name of the path may contain the `@` of a user.
    let path = match spec.find("://") {
        Some(at) => spec[at + 3..].find('/').map(|slash| at + 3 + slash),
        None => spec.find(['/', ':']),
    };
    let path = path.unwrap_or(spec.len());
    match spec[path..].find('@') {
        Some(at) if at + 1 < spec.len() - path => {
            (&spec[..path + at], Some(&spec[path + at + 1..]))
        }
        _ => (spec, None),
    }
}

/// The directories of `npm install --global`, as far as they are known without running npm.
fn global_npm_roots(home: &Path) -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let prefixes = ["npm_config_prefix", "NPM_CONFIG_PREFIX"];
    let mut roots: Vec<PathBuf> = prefixes
        .into_iter()
        .filter_map(variable)
        .map(PathBuf::from)
        .collect();
    let path = variable("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path).filter(|bin| bin.join("npm").is_file());
    roots.extend(programs.filter_map(|bin| bin.parent().map(Path::to_owned)));
    roots.push(home.join(".npm-global"));
    roots
        .into_iter()
        .map(|prefix| prefix.join("lib").join("node_modules"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PackageSource, String> {
        PackageSource::parse(text, "/base".as_ref(), "/home/u".as_ref())
    }

    #[test]
    fn npm_names_and_versions() {
        for (text, identity, version) in [
            ("npm:tools", "npm:tools", None),
            ("npm:tools@1.2.3", "npm:tools", Some("1.2.3")),
            ("npm:@me/tools", "npm:@me/tools", None),
            ("npm:@me/tools@^2", "npm:@me/tools", Some("^2")),
            ("npm:tools@", "npm:tools", None),
        ] {
            let source = parse(text).unwrap();
            assert_eq!(source.identity(), identity, "{text}");
            assert_eq!(source.is_pinned(), version.is_some(), "{text}");
            let SourceKind::Npm { version: found, .. } = source.kind() else {
                panic!("{text}")
            };
            assert_eq!(found.as_deref(), version, "{text}");
        }
        for text in [
            "npm:",
            "npm:@me",
            "npm:../x",
            "npm:a/b",
            "npm:.x",
            "npm:@me/../x",
            "npm:a b",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn repositories_have_one_identity_however_they_are_written() {
        for (text, url, reference) in [
            ("git:host.org/o/r", "https://host.org/o/r", None),
            ("git:host.org/o/r@v1", "https://host.org/o/r", Some("v1")),
            ("https://host.org/o/r.git", "https://host.org/o/r.git", None),
            (
                "https://u:p@HOST.org/o/r@main",
                "https://u:p@HOST.org/o/r",
                Some("main"),
            ),
            (
                "ssh://git@host.org:22/o/r",
                "ssh://git@host.org:22/o/r",
                None,
            ),
            ("git:git@host.org:o/r@v2", "git@host.org:o/r", Some("v2")),
            ("git@host.org:o/r.git", "git@host.org:o/r.git", None),
            ("git:host.org/o/r#abc", "https://host.org/o/r", Some("abc")),
            (
                "git:host.org/o/r@feature/x",
                "https://host.org/o/r",
                Some("feature/x"),
            ),
        ] {
            let source = parse(text).unwrap();
            assert_eq!(source.identity(), "git:host.org/o/r", "{text}");
            let SourceKind::Git(git) = source.kind() else {
                panic!("{text}")
            };
            assert_eq!(git.url, url, "{text}");
            assert_eq!(git.reference.as_deref(), reference, "{text}");
        }
        let local = parse("git:./repo.git").unwrap();
        assert_eq!(local.identity(), "git:localhost/base/repo");
        let local = parse("git:file:///srv/repo.git@v1").unwrap();
        assert_eq!(local.identity(), "git:localhost/srv/repo");
        for text in [
            "git:",
            "git:host",
            "git:host/../../x",
            "https://host/",
            "git:h/o/r@-x",
            "git:../../..",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn everything_else_is_a_path() {
        for (text, path) in [
            ("./p", "/base/p"),
            ("p/q.ts", "/base/p/q.ts"),
            ("~/p", "/home/u/p"),
            ("/abs", "/abs"),
            ("file:../p.tgz", "/p.tgz"),
            ("file:///abs/p", "/abs/p"),
        ] {
            let source = parse(text).unwrap();
            assert_eq!(source.kind(), &SourceKind::Local(path.into()), "{text}");
        }
        assert!(parse(" ").is_err());
    }

    #[test]
    fn packages_are_installed_below_their_scope() {
        let dirs = Dirs::new("/project".into(), |name| {
            (name == "HOME").then(|| "/home/u".into())
        });
        let npm = parse("npm:@me/tools").unwrap();
        let directory = npm.install_directory(&dirs, Scope::User).unwrap();
        assert_eq!(
            directory,
            Path::new("/home/u/.pi/agent/npm/node_modules/@me/tools")
        );
        let git = parse("git:host.org/o/r").unwrap();
        let directory = git.install_directory(&dirs, Scope::Project).unwrap();
        assert_eq!(directory, Path::new("/project/.pi/git/host.org/o/r"));
    }
}
