//! Finding and fetching an issuer's keys: over safe connections, from the addresses that the issuer itself names, and
//! with limits on time and size.

use std::net::IpAddr;
use std::sync::Once;
use std::time::Duration;

use futures_util::StreamExt;
use pinion_access::KeySet;
use reqwest::{Client, ClientBuilder, Url, redirect};
use serde::Deserialize;

/// The longest duration of a fetch in all, since a caller waits for it.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of a document.
const MAX_DOCUMENT_BYTES: usize = 256 * 1024;

const DISCOVERY_PATH: &str = ".well-known/openid-configuration";
const DEFAULT_KEYS_PATH: &str = ".well-known/jwks.json";

/// The issuer's address and the client that fetches from it.
pub(super) struct KeySource {
    issuer: Url,
    /// Created on first use.
    client: Option<Client>,
}

/// The members of an OpenID discovery document that are read.
#[derive(Deserialize)]
struct Discovery {
    issuer: Option<String>,
    jwks_uri: Option<String>,
}

impl KeySource {
    pub fn of(issuer: &Url) -> Self {
        let mut issuer = issuer.clone();
        let path = format!("{}/", issuer.path().trim_end_matches('/'));
        issuer.set_path(&path);
        let client = None;
        Self { issuer, client }
    }

    /// Fetches the keys. The error is a reason for the log.
    pub async fn fetch(&mut self) -> Result<KeySet, String> {
        let work = self.fetch_without_timeout();
        let late = |_| format!("it took more than {} s", FETCH_TIMEOUT.as_secs());
        tokio::time::timeout(FETCH_TIMEOUT, work)
            .await
            .map_err(late)?
    }

    async fn fetch_without_timeout(&mut self) -> Result<KeySet, String> {
        let client = self.client().await?;
        let discovery_url = self.join(DISCOVERY_PATH)?;
        let keys_url = match get(&client, &discovery_url).await? {
            Some(document) => self.keys_url(&document)?,
            None => None,
        };
        let keys_url = match keys_url {
            Some(keys_url) => keys_url,
            None => self.join(DEFAULT_KEYS_PATH)?,
        };
        let document = get(&client, &keys_url).await?;
        let document = document.ok_or_else(|| format!("there are no keys at {keys_url}"))?;
        KeySet::from_json(&document).map_err(|failure| format!("{keys_url}: {}", failure.message))
    }

    fn join(&self, path: &str) -> Result<Url, String> {
        self.issuer.join(path).map_err(|error| error.to_string())
    }

    /// Returns the keys' address in a discovery document, if it contains one.
    fn keys_url(&self, document: &[u8]) -> Result<Option<Url>, String> {
        let Ok(Discovery { issuer, jwks_uri }) = serde_json::from_slice(document) else {
            return Ok(None);
        };
        let own = self.issuer.as_str().trim_end_matches('/');
        if let Some(other) = issuer.filter(|it| it.trim_end_matches('/') != own) {
            let other: String = other.chars().take(200).collect();
            return Err(format!(
                "its discovery document names another issuer, {other:?}"
            ));
        }
        let Some(keys_url) = jwks_uri else {
            return Ok(None);
        };
        let keys_url = Url::parse(&keys_url)
            .map_err(|error| format!("its discovery document has an invalid jwks_uri: {error}"))?;
        // An issuer that is reached by http on this machine may have its keys there too.
        let is_local = is_loopback(&self.issuer) && is_loopback(&keys_url);
        if keys_url.scheme() == "https" || (keys_url.scheme() == "http" && is_local) {
            Ok(Some(keys_url))
        } else {
            Err(format!("{keys_url} is not an https address"))
        }
    }

    async fn client(&mut self) -> Result<Client, String> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let is_local = self.issuer.scheme() == "http";
        // Loading the system's certificates blocks for a while.
        let built = tokio::task::spawn_blocking(move || build(is_local)).await;
        let client = built.map_err(|error| error.to_string()).flatten()?;
        self.client = Some(client.clone());
        Ok(client)
    }
}

fn build(is_local: bool) -> Result<Client, String> {
    static INSTALL: Once = Once::new();
    // A process has one crypto provider. The first installation wins, and all parts of pinion install the same.
    INSTALL.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder = ClientBuilder::new()
        .user_agent(concat!("pinion/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::none())
        .referer(false);
    // Addresses on this machine are not reached through a proxy.
    let builder = if is_local {
        builder.no_proxy()
    } else {
        builder
    };
    builder.build().map_err(|error| error.to_string())
}

/// Fetches a document; `None` if the server has none there.
async fn get(client: &Client, url: &Url) -> Result<Option<Vec<u8>>, String> {
    let unreachable = |error: reqwest::Error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        format!("{url} cannot be read: {cause}")
    };
    let response = client.get(url.clone()).send().await.map_err(unreachable)?;
    let status = response.status();
    if status.is_server_error() {
        return Err(format!("{url} answered {status}"));
    }
    if !status.is_success() {
        return Ok(None);
    }
    let mut parts = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(unreachable)?;
        if body.len() + part.len() > MAX_DOCUMENT_BYTES {
            return Err(format!(
                "{url} is longer than {} KiB",
                MAX_DOCUMENT_BYTES / 1024
            ));
        }
        body.extend_from_slice(&part);
    }
    Ok(Some(body))
}

/// Reports whether an address is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_address = |host: &str| host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
    host == "localhost" || is_address(host)
}
