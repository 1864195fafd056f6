//! Addresses of registries.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pinion_http::Url;

use crate::{ClipError, Code};

pub(super) const INDEX: &str = "index.json";

/// The address of a registry. `Display` writes the normalised form, which is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A service: `https://registry.example`.
    Service(Url),
    /// An index on a web server: `https://files.example/clips/index.json`.
    Index(Url),
    /// A directory with an index: `/srv/clips` or `file:///srv/clips`.
    Directory(PathBuf),
}

impl FromStr for Address {
    type Err = ClipError;

    fn from_str(text: &str) -> Result<Self, ClipError> {
        let text = text.trim();
        let invalid = || {
            ClipError::invalid(format!(
                "\"{text}\" is not the address of a registry: an http or https address, or an absolute directory"
            ))
        };
        if text.starts_with('/') {
            return Ok(Self::directory(Path::new(text)));
        }
        let mut url = Url::parse(text).map_err(|_| invalid())?;
        if url.scheme() == "file" {
            let path = url.to_file_path().map_err(|()| invalid())?;
            return Ok(Self::directory(&path));
        }
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let has_host = url.host_str().is_some_and(|host| !host.is_empty());
        if !matches!(url.scheme(), "http" | "https") || !has_host || !is_plain {
            return Err(invalid());
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        if path.ends_with(&format!("/{INDEX}")) {
            return Ok(Self::Index(url));
        }
        Ok(Self::Service(url))
    }
}

impl Address {
    /// Returns the address of a directory, also if `path` names its index.
    fn directory(path: &Path) -> Self {
        // `components` drops doubled and trailing slashes.
        let path: PathBuf = path.components().collect();
        match path.parent() {
            Some(parent) if path.ends_with(INDEX) => Self::Directory(parent.to_owned()),
            _ => Self::Directory(path),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(url) | Self::Index(url) => {
                formatter.write_str(url.as_str().trim_end_matches('/'))
            }
            Self::Directory(path) => match Url::from_file_path(path) {
                Ok(url) => formatter.write_str(url.as_str()),
                Err(()) => path.display().fmt(formatter),
            },
        }
    }
}

/// Appends `names` to the path of `base`, each escaped as one segment.
pub(super) fn segments(base: &Url, names: &[&str]) -> Result<Url, ClipError> {
    let mut url = base.clone();
    match url.path_segments_mut() {
        Ok(mut path) => path.pop_if_empty().extend(names),
        Err(()) => {
            return Err(ClipError::invalid(format!(
                "\"{base}\" is not an address that paths can be added to"
            )));
        }
    };
    Ok(url)
}

/// Resolves `relative` against an index. The result must lie beneath the directory of the index.
pub(super) fn beneath(index: &Url, relative: &str) -> Result<Url, ClipError> {
    let directory = index.path().rsplit_once('/').map_or("", |(path, _)| path);
    let url = index.join(relative).ok();
    let inside = |url: &Url| {
        url.origin() == index.origin()
            && url.username().is_empty()
            && url.path().starts_with(&format!("{directory}/"))
            && url.path() != index.path()
    };
    url.filter(inside).ok_or_else(|| {
        ClipError::new(
            Code::FailedPrecondition,
            format!("the index {index} names an archive outside of its directory: \"{relative}\""),
        )
    })
}

/// Resolves an address that a service sent, if it belongs to the same origin.
pub(super) fn same_origin(base: &Url, text: &str) -> Option<Url> {
    let url = base.join(text).ok().filter(|_| !text.is_empty())?;
    (url.origin() == base.origin() && url.username().is_empty()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_spelling() {
        for (text, kept) in [
            ("https://r.example", "https://r.example"),
            ("HTTPS://R.example:443//", "https://r.example"),
            ("http://127.0.0.1:8080/a/", "http://127.0.0.1:8080/a"),
            (
                "https://r.example/x/index.json",
                "https://r.example/x/index.json",
            ),
            ("/srv//clips/", "file:///srv/clips"),
            ("/srv/clips/index.json", "file:///srv/clips"),
            ("file:///srv/a%23b", "file:///srv/a%23b"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), kept, "{text}");
            assert_eq!(kept.parse::<Address>().unwrap(), address);
        }
        for wrong in [
            "",
            "srv/clips",
            "https://",
            "ftp://r.example",
            "https://a:b@r.example",
            "https://r.example?x",
            "https://r.example#x",
            "javascript:alert(1)",
            "data:text/plain,x",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_stay_one_segment_each() {
        let base = Url::parse("https://r.example/api").unwrap();
        let url = segments(&base, &["packages", "@a", "b/../c", "1.0+x"]).unwrap();
        assert_eq!(
            url.as_str(),
            "https://r.example/api/packages/@a/b%2F..%2Fc/1.0+x"
        );
    }

    #[test]
    fn archives_lie_beneath_their_index() {
        let index = Url::parse("https://r.example/x/index.json").unwrap();
        assert_eq!(beneath(&index, "a/b.tgz").unwrap().path(), "/x/a/b.tgz");
        for outside in [
            "../b.tgz",
            "/b.tgz",
            "//evil.example/x/b.tgz",
            "http://r.example/x/b.tgz",
            "file:///x/b.tgz",
            "",
            "a/../../b.tgz",
            "https://r.example/xy/b.tgz",
            "%2e%2e/b.tgz",
            "index.json",
        ] {
            assert!(beneath(&index, outside).is_err(), "{outside}");
        }
        let base = Url::parse("https://r.example").unwrap();
        assert!(same_origin(&base, "/b.tgz").is_some());
        for other in [
            "https://cdn.example/b.tgz",
            "http://r.example/b.tgz",
            "",
            "file:///b",
        ] {
            assert!(same_origin(&base, other).is_none(), "{other}");
        }
    }
}
