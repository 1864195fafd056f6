//! The address of a server.

use std::fmt;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use pinion_status::{Code, Failure};

use super::HttpVersion;

#[derive(Debug)]
pub(super) struct Address {
    pub(super) secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) authority: Authority,
    /// The path before the service name, without a slash at its end.
    path: String,
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &dyn fmt::Display| {
            Failure::invalid(format!(
                "{text:?} is not the address of a server ({why}); it looks like http://127.0.0.1:9000"
            ))
        };
        let url = url::Url::parse(text).map_err(|error| wrong(&error))?;
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong(&"neither http nor https")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            let message =
                "the address contains a user name; remove it and pass the token separately";
            return Err(Failure::invalid(message));
        }
        let host = url.host_str().ok_or_else(|| wrong(&"no host"))?.to_owned();
        let port = url
            .port_or_known_default()
            .ok_or_else(|| wrong(&"no port"))?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        };
        let authority = Authority::try_from(authority).map_err(|error| wrong(&error))?;
        let path = url.path().trim_end_matches('/').to_owned();
        Ok(Self {
            secure,
            host,
            port,
            authority,
            path,
        })
    }

    pub(super) fn unreachable(&self, why: &dyn fmt::Display) -> Failure {
        let authority = &self.authority;
        let message = format!("no connection to {authority}: {why}");
        Failure::new(Code::Unavailable, message)
    }

    /// The failure of a connection that was open and broke.
    pub(super) fn lost(&self, why: &dyn fmt::Display) -> Failure {
        let authority = &self.authority;
        let message = format!("the connection to {authority} was lost: {why}");
        Failure::new(Code::Unavailable, message)
    }

    /// Returns the URI of a method in the form that a request of this HTTP version has.
    pub(super) fn uri(&self, method: &str, http: HttpVersion) -> Result<Uri, Failure> {
        let path = format!("{}/{method}", self.path);
        let path = PathAndQuery::try_from(path).map_err(|error| {
            Failure::invalid(format!("{method:?} is not the name of a method: {error}"))
        })?;
        let mut parts = http::uri::Parts::default();
        parts.path_and_query = Some(path);
        if http == HttpVersion::Two {
            parts.scheme = Some(if self.secure {
                Scheme::HTTPS
            } else {
                Scheme::HTTP
            });
            parts.authority = Some(self.authority.clone());
        }
        Uri::from_parts(parts).map_err(|error| Failure::invalid(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_refused() {
        let uri = |text: &str, http| {
            Address::parse(text)
                .unwrap()
                .uri("s/M", http)
                .unwrap()
                .to_string()
        };
        assert_eq!(
            uri("http://127.0.0.1:9000", HttpVersion::Two),
            "http://127.0.0.1:9000/s/M"
        );
        assert_eq!(
            uri("https://hub.example/", HttpVersion::Two),
            "https://hub.example/s/M"
        );
        assert_eq!(
            uri("http://[::1]:9000/deep/", HttpVersion::One),
            "/deep/s/M"
        );
        for bad in [
            "",
            "127.0.0.1:9000",
            "ftp://x",
            "http://",
            "unix:/x",
            "http://me:pw@host",
        ] {
            let failure = Address::parse(bad).unwrap_err();
            assert_eq!(failure.code, Code::InvalidArgument, "{bad}");
            assert!(!failure.message.contains("pw@"), "{bad}");
        }
    }
}
