//! Decides which HTTP requests the gateway accepts.
//!
//! A web page must not reach the gateway through a name that resolves to this machine. So the gateway checks the `Host`
//! header, rejects pages of other origins, and requires the token from every client.

use std::fmt;
use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, StatusCode};
use subtle::ConstantTimeEq;

/// The conditions for accepting a request.
#[derive(Clone, Default)]
pub struct Admission {
    token: Option<String>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl fmt::Debug for Admission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Admission")
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish()
    }
}

impl Admission {
    /// Accepts clients that send this token.
    pub fn with_token(token: impl Into<String>) -> Self {
        Self {
            token: Some(token.into()),
            ..Self::default()
        }
    }

    /// Accepts every client that can reach the port. Use it only for ports that no untrusted program can reach.
    pub fn without_token() -> Self {
        Self::default()
    }

    /// Also accepts this host name, besides `localhost` and IP addresses.
    #[must_use]
    pub fn and_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// Also accepts pages of this origin, such as `http://localhost:6274`.
    #[must_use]
    pub fn and_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into().to_ascii_lowercase());
        self
    }

    /// Accepts a request, or returns the reason to refuse it.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if !self.accepts_host(headers) {
            return Err(Refusal::Host);
        }
        if headers.contains_key(ORIGIN) && self.origin(headers).is_none() {
            return Err(Refusal::Origin);
        }
        match &self.token {
            Some(_) if !headers.contains_key(AUTHORIZATION) => Err(Refusal::NoToken),
            Some(token) if !has_token(headers, token) => Err(Refusal::WrongToken),
            _ => Ok(()),
        }
    }

    /// Returns the origin of the page that sent the request, if it is permitted.
    ///
    /// Pages from the host of the request are permitted, because [`Admission::check`] has compared that host with the
    /// names of this server. The server uses plain HTTP, so a page over HTTPS comes from another server.
    pub(super) fn origin<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let origin = headers.get(ORIGIN)?.to_str().ok()?;
        let lower = origin.to_ascii_lowercase();
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let is_own = host.is_some_and(|host| {
            self.accepts_host(headers)
                && lower.strip_prefix("http://") == Some(&host.to_ascii_lowercase())
        });
        (is_own || self.origins.contains(&lower)).then_some(origin)
    }

    fn accepts_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        let Ok(host) = host.to_str() else {
            return false;
        };
        let host = host.to_ascii_lowercase();
        let name = without_port(&host);
        // An IP address always denotes the same machine. Only a name can be made to resolve to another one.
        let is_number = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        let is_known = |known: &String| *known == host || known == name;
        is_number || name == "localhost" || self.hosts.iter().any(is_known)
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    }
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let Some((scheme, given)) = value.to_str().ok().and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let is_token: bool = given.trim().as_bytes().ct_eq(token.as_bytes()).into();
    scheme.eq_ignore_ascii_case("bearer") && is_token
}

/// The reason to refuse a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Host,
    Origin,
    NoToken,
    WrongToken,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
        }
    }

    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Host => {
                "this server does not answer to the name in the Host header; allow the name when starting it"
            }
            Self::Origin => "pages of this origin are not allowed; allow the origin when starting",
            Self::NoToken => "a token is required: send Authorization: Bearer <token>",
            Self::WrongToken => {
                "this token is not the one of this server: send the hub token that pinion mcp was started with"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn check(admission: &Admission, headers: &[(&str, &str)]) -> Option<Refusal> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::try_from(*name).unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect();
        admission.check(&headers).err()
    }

    #[test]
    fn names_that_may_lead_anywhere_are_refused() {
        let open = Admission::without_token().and_host("hub.example:8443");
        for host in [
            "localhost",
            "LOCALHOST:9",
            "127.0.0.1:8080",
            "[::1]:80",
            "[::1]",
            "10.1.2.3",
            "hub.example:8443",
        ] {
            assert_eq!(check(&open, &[("host", host)]), None, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:80",
            "localhost.evil.example",
            "hub.example",
            "127.0.0.1.evil.example",
            "",
        ] {
            assert_eq!(
                check(&open, &[("host", host)]),
                Some(Refusal::Host),
                "{host}"
            );
        }
        assert_eq!(check(&open, &[]), Some(Refusal::Host));
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let open = Admission::without_token().and_origin("http://localhost:6274");
        let with = |origin| check(&open, &[("host", "localhost"), ("origin", origin)]);
        assert_eq!(with("http://localhost:6274"), None);
        assert_eq!(with("http://LOCALHOST"), None, "its own pages");
        for origin in [
            "http://localhost:80",
            "https://localhost",
            "https://localhost:6274",
            "http://localhost.evil",
            "null",
            "",
        ] {
            assert_eq!(with(origin), Some(Refusal::Origin), "{origin}");
        }
        let rebound = [("host", "evil.example"), ("origin", "http://evil.example")];
        assert_eq!(check(&open, &rebound), Some(Refusal::Host));
    }

    #[test]
    fn everybody_needs_the_token() {
        let guarded = Admission::with_token("secret");
        let with = |value| check(&guarded, &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(with("Bearer secret"), None);
        assert_eq!(with("bearer  secret"), None);
        for value in ["Bearer Secret", "Bearer", "secret", "Basic secret", ""] {
            assert_eq!(with(value), Some(Refusal::WrongToken), "{value}");
        }
        assert_eq!(
            check(&guarded, &[("host", "localhost")]),
            Some(Refusal::NoToken)
        );
        assert!(!format!("{guarded:?}").contains("secret"));
    }
}
