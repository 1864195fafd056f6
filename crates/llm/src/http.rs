//! HTTP clients, made when first needed and then shared. Reading the system's certificates takes
//! tens of milliseconds, so plain `http://` addresses get a client without them; the other one is
//! built off the async threads. This module sends no requests.

use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Url};

use crate::unreachable::LastUnreachable;

/// Connect timeouts belong to a client, and a process uses only a few different ones.
const MAX_CLIENTS: usize = 8;
const MAX_REDIRECTS: usize = 5;

#[derive(Debug, Clone, Default)]
pub(crate) struct Clients {
    made: Arc<Mutex<Vec<(ClientKind, Duration, Client)>>>,
    pub(crate) unreachable: LastUnreachable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientKind {
    /// Without certificates and proxies, for `http://` addresses.
    Plain,
    /// With the system's certificates and the proxies of the environment.
    Full,
}

impl ClientKind {
    pub(crate) fn of(url: &Url) -> Self {
        let plain = url.scheme() == "http" && (is_loopback(url) || !proxy_configured());
        if plain { Self::Plain } else { Self::Full }
    }
}

impl Clients {
    /// The client for `url`. The error is a sentence for the user.
    pub(crate) async fn get(&self, url: &Url, connect: Duration) -> Result<Client, String> {
        let kind = ClientKind::of(url);
        if let Some(client) = self.known(kind, connect) {
            return Ok(client);
        }
        let client = match kind {
            ClientKind::Plain => build(kind, connect),
            ClientKind::Full => {
                let built = tokio::task::spawn_blocking(move || build(kind, connect)).await;
                built.unwrap_or_else(|error| Err(error.to_string()))
            }
        }?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() >= MAX_CLIENTS {
            made.remove(0);
        }
        made.push((kind, connect, client.clone()));
        Ok(client)
    }

    fn known(&self, kind: ClientKind, connect: Duration) -> Option<Client> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(known, timeout, _): &&(ClientKind, Duration, Client)| {
            *known == kind && *timeout == connect
        };
        made.iter().find(same).map(|(_, _, client)| client.clone())
    }
}

fn build(kind: ClientKind, connect: Duration) -> Result<Client, String> {
    build_with(kind, connect, same_host())
}

/// A client with the redirect policy `redirects`.
pub(crate) fn build_with(
    kind: ClientKind,
    connect: Duration,
    redirects: Policy,
) -> Result<Client, String> {
    install_crypto();
    let mut builder = ClientBuilder::new()
        .user_agent(concat!("pinion/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .http2_keep_alive_interval(Duration::from_secs(30))
        .http2_keep_alive_timeout(Duration::from_secs(20))
        .redirect(redirects)
        .referer(false);
    if !connect.is_zero() {
        builder = builder.connect_timeout(connect);
    }
    builder = match kind {
        ClientKind::Plain => builder.tls_certs_only([]).no_proxy(),
        ClientKind::Full => builder.tls_certs_merge(extra_certificates()?),
    };
    builder.build().map_err(|error| {
        let cause = crate::transport::root_cause(&error);
        format!(
            "TLS could not be set up: {cause}. \
             Install the system's CA certificates, or name a bundle in SSL_CERT_FILE."
        )
    })
}

/// Installs the crypto provider of the process. The first call counts; every caller in pinion
/// installs the same one.
fn install_crypto() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Follows redirects to the same host only: a redirect would send the headers with keys to another
/// host.
fn same_host() -> Policy {
    Policy::custom(|attempt| {
        let follows = match attempt.previous().first() {
            Some(first) => {
                let same = first.host_str() == attempt.url().host_str()
                    && first.port_or_known_default() == attempt.url().port_or_known_default();
                same && first.scheme() == attempt.url().scheme()
            }
            None => false,
        };
        if follows && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// `NODE_EXTRA_CA_CERTS` adds to the system's certificates; `SSL_CERT_FILE` and `SSL_CERT_DIR`
/// replace them, which the certificate reader does by itself.
fn extra_certificates() -> Result<Vec<Certificate>, String> {
    let Some(path) = std::env::var_os("NODE_EXTRA_CA_CERTS").filter(|path| !path.is_empty()) else {
        return Ok(Vec::new());
    };
    let unusable = |error: &dyn std::fmt::Display| {
        format!(
            "NODE_EXTRA_CA_CERTS names {}, which cannot be used: {error}",
            path.display()
        )
    };
    let bundle = pinion_files::read(path.as_ref(), 16 << 20).map_err(|error| unusable(&error))?;
    Certificate::from_pem_bundle(&bundle).map_err(|error| unusable(&error))
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

fn proxy_configured() -> bool {
    ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_never_need_certificates_or_proxies() {
        for url in [
            "http://localhost:11434/v1",
            "http://127.0.0.1:1",
            "http://[::1]:8080/v1",
        ] {
            assert_eq!(
                ClientKind::of(&Url::parse(url).unwrap()),
                ClientKind::Plain,
                "{url}"
            );
        }
        assert_eq!(
            ClientKind::of(&Url::parse("https://localhost").unwrap()),
            ClientKind::Full
        );
    }
}
