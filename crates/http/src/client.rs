//! Builds clients. Reading the system's certificates takes tens of milliseconds, so a client for plain `http://` addresses
//! is built without them, and the other ones are built off the async threads. This module sends no requests.

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Url};

use crate::cause::root_cause;
use crate::is_loopback;
use crate::tls::{extra_certificates, install_crypto};

const USER_AGENT: &str = concat!("pinion/", env!("CARGO_PKG_VERSION"));
const MAX_REDIRECTS: usize = 5;
/// The interval between probes of a silent connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// Time for the answer to a probe over HTTP/2.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// The certificates that a client trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trust {
    /// None, for `http://` addresses.
    Nothing,
    /// Those of the system.
    System,
    /// Those of the system and of `NODE_EXTRA_CA_CERTS`.
    SystemAndExtra,
}

/// The redirects that a client follows by itself, up to five in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Redirects {
    /// None; a redirect is a response like any other.
    None,
    /// Those to the same scheme, host and port, because a redirect sends the headers with keys again.
    SameHost,
    /// Those to `https`, and from `http` to `http`. The client removes authorization headers on the way to another host.
    NoDowngrade,
}

/// The options of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientOptions {
    /// Time for a connection; zero for no limit.
    pub connect_timeout: Duration,
    /// The certificates that it trusts.
    pub trust: Trust,
    /// It uses the proxies of the environment.
    pub proxies: bool,
    /// The redirects that it follows.
    pub redirects: Redirects,
    /// It probes silent connections, which matters while a server thinks for minutes.
    pub keep_alive: bool,
    /// It accepts gzip and decodes it.
    pub gzip: bool,
}

impl ClientOptions {
    /// The options of a client for any server: it trusts the system's certificates, uses proxies, accepts gzip and follows
    /// no redirects.
    pub fn new(connect_timeout: Duration) -> Self {
        Self {
            connect_timeout,
            trust: Trust::System,
            proxies: true,
            redirects: Redirects::None,
            keep_alive: false,
            gzip: true,
        }
    }

    /// The options for `url` of clients that send requests of models and extensions. An `http://` address needs neither
    /// certificates nor, on this machine, a proxy.
    pub(crate) fn for_url(url: &Url, connect_timeout: Duration, redirects: Redirects) -> Self {
        let is_plain = url.scheme() == "http" && (is_loopback(url) || !is_proxy_configured());
        Self {
            trust: if is_plain {
                Trust::Nothing
            } else {
                Trust::SystemAndExtra
            },
            proxies: !is_plain,
            redirects,
            keep_alive: true,
            ..Self::new(connect_timeout)
        }
    }
}

/// Builds a client. Blocks while it reads certificates, unless it trusts none.
///
/// # Errors
///
/// When TLS cannot be set up. The error is a sentence for the user.
pub fn build(options: &ClientOptions) -> Result<Client, String> {
    install_crypto();
    let mut builder = ClientBuilder::new()
        .user_agent(USER_AGENT)
        .tcp_nodelay(true)
        .redirect(policy(options.redirects))
        .referer(false);
    if options.keep_alive {
        builder = builder
            .tcp_keepalive(KEEP_ALIVE_INTERVAL)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
    }
    if !options.connect_timeout.is_zero() {
        builder = builder.connect_timeout(options.connect_timeout);
    }
    if !options.gzip {
        builder = builder.no_gzip();
    }
    if !options.proxies {
        builder = builder.no_proxy();
    }
    builder = match options.trust {
        Trust::Nothing => builder.tls_certs_only([]),
        Trust::System => builder,
        Trust::SystemAndExtra => builder.tls_certs_merge(extra_certificates()?),
    };
    builder.build().map_err(|error| {
        let cause = root_cause(&error);
        format!(
            "TLS could not be set up: {cause}. \
             Install the system's CA certificates, or name a bundle in SSL_CERT_FILE."
        )
    })
}

fn policy(redirects: Redirects) -> Policy {
    let follows: fn(&[Url], &Url) -> bool = match redirects {
        Redirects::None => return Policy::none(),
        Redirects::SameHost => is_same_host,
        Redirects::NoDowngrade => is_no_downgrade,
    };
    Policy::custom(move |attempt| {
        if follows(attempt.previous(), attempt.url()) && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

fn is_same_host(previous: &[Url], next: &Url) -> bool {
    previous.first().is_some_and(|first| {
        first.host_str() == next.host_str()
            && first.port_or_known_default() == next.port_or_known_default()
            && first.scheme() == next.scheme()
    })
}

fn is_no_downgrade(previous: &[Url], next: &Url) -> bool {
    let from = previous.last().map(Url::scheme);
    next.scheme() == "https" || next.scheme() == "http" && from == Some("http")
}

fn is_proxy_configured() -> bool {
    ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn loopback_addresses_never_need_certificates_or_proxies() {
        let options = |address: &str| {
            ClientOptions::for_url(&url(address), Duration::ZERO, Redirects::SameHost)
        };
        for address in [
            "http://localhost:11434/v1",
            "http://127.0.0.1:1",
            "http://[::1]:8080/v1",
        ] {
            let options = options(address);
            assert_eq!(options.trust, Trust::Nothing, "{address}");
            assert!(!options.proxies, "{address}");
        }
        let options = options("https://localhost");
        assert_eq!(options.trust, Trust::SystemAndExtra);
        assert!(options.proxies);
    }

    #[test]
    fn a_redirect_with_keys_stays_on_its_host() {
        let first = [url("https://a.example/1"), url("https://a.example/2")];
        assert!(is_same_host(&first, &url("https://a.example:443/3")));
        assert!(!is_same_host(&first, &url("https://b.example/3")));
        assert!(!is_same_host(&first, &url("https://a.example:444/3")));
        assert!(!is_same_host(&first, &url("http://a.example/3")));
    }

    #[test]
    fn a_redirect_never_leaves_https() {
        let from = |scheme: &str| [url(&format!("{scheme}://a.example"))];
        assert!(is_no_downgrade(&from("https"), &url("https://b.example")));
        assert!(is_no_downgrade(&from("http"), &url("https://b.example")));
        assert!(is_no_downgrade(&from("http"), &url("http://b.example")));
        assert!(!is_no_downgrade(&from("https"), &url("http://b.example")));
        assert!(!is_no_downgrade(&from("http"), &url("ftp://b.example")));
    }
}
