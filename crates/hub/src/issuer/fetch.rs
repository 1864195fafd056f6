//! Finding and fetching an issuer's keys: over safe connections, from the addresses that the issuer itself names, and
//! with limits on time and size.

use std::time::Duration;

use pinion_access::KeySet;
use pinion_http::{BodyError, Client, ClientOptions, Url, is_loopback, root_cause};
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
        let options = ClientOptions {
            // Addresses on this machine are not reached through a proxy.
            proxies: !is_local,
            ..ClientOptions::new(CONNECT_TIMEOUT)
        };
        // Loading the system's certificates blocks for a while.
        let built = tokio::task::spawn_blocking(move || pinion_http::build(&options)).await;
        let client = built.map_err(|error| error.to_string()).flatten()?;
        self.client = Some(client.clone());
        Ok(client)
    }
}

/// Fetches a document; `None` if the server has none there.
async fn get(client: &Client, url: &Url) -> Result<Option<Vec<u8>>, String> {
    let unreachable =
        |error: pinion_http::Error| format!("{url} cannot be read: {}", root_cause(&error));
    let response = client.get(url.clone()).send().await.map_err(unreachable)?;
    let status = response.status();
    if status.is_server_error() {
        return Err(format!("{url} answered {status}"));
    }
    if !status.is_success() {
        return Ok(None);
    }
    let body = pinion_http::read_body(response, MAX_DOCUMENT_BYTES).await;
    body.map(Some).map_err(|error| match error {
        BodyError::Broken(error) => unreachable(error),
        BodyError::TooLong => format!("{url} is longer than {} KiB", MAX_DOCUMENT_BYTES / 1024),
    })
}
