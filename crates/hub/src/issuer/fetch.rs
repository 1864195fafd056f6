//! Where an issuer's keys are, and how they are fetched: from whom is meant, in little time, and not much of it.

use std::net::IpAddr;
use std::sync::Once;
use std::time::Duration;

use futures_util::StreamExt;
use pinion_access::KeySet;
use reqwest::{Client, ClientBuilder, Url, redirect};
use serde::Deserialize;

/// How long everything may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to be connected.
const CONNECT: Duration = Duration::from_secs(5);
/// Longer documents are not read.
const LONGEST: usize = 256 * 1024;

const DISCOVERY: &str = ".well-known/openid-configuration";
const USUAL_PLACE: &str = ".well-known/jwks.json";

/// Where keys are fetched.
pub(super) struct Source {
    issuer: Url,
    /// Made when first needed.
    client: Option<Client>,
}

/// What an issuer says about itself.
#[derive(Deserialize)]
struct Discovery {
    issuer: Option<String>,
    jwks_uri: Option<String>,
}

impl Source {
    pub fn of(issuer: &Url) -> Self {
        let mut issuer = issuer.clone();
        let path = format!("{}/", issuer.path().trim_end_matches('/'));
        issuer.set_path(&path);
        let client = None;
        Self { issuer, client }
    }

    /// Fetches the keys, or says why there are none.
    pub async fn fetch(&mut self) -> Result<KeySet, String> {
        let work = self.fetch_patiently();
        let late = |_| format!("it took more than {} s", PATIENCE.as_secs());
        tokio::time::timeout(PATIENCE, work).await.map_err(late)?
    }

    async fn fetch_patiently(&mut self) -> Result<KeySet, String> {
        let client = self.client().await?;
        let named = self.join(DISCOVERY)?;
        let place = match get(&client, &named).await? {
            Some(document) => self.place(&document)?,
            None => None,
        };
        let place = match place {
            Some(place) => place,
            None => self.join(USUAL_PLACE)?,
        };
        let document = get(&client, &place).await?;
        let document = document.ok_or_else(|| format!("there is nothing at {place}"))?;
        KeySet::from_json(&document).map_err(|failure| format!("{place}: {}", failure.message))
    }

    fn join(&self, path: &str) -> Result<Url, String> {
        self.issuer.join(path).map_err(|error| error.to_string())
    }

    /// Where a document says that keys are, if it says so.
    fn place(&self, document: &[u8]) -> Result<Option<Url>, String> {
        let Ok(Discovery { issuer, jwks_uri }) = serde_json::from_slice(document) else {
            return Ok(None);
        };
        let own = self.issuer.as_str().trim_end_matches('/');
        if let Some(other) = issuer.filter(|it| it.trim_end_matches('/') != own) {
            let other: String = other.chars().take(200).collect();
            return Err(format!("it says that it is {other:?}"));
        }
        let Some(place) = jwks_uri else {
            return Ok(None);
        };
        let place = Url::parse(&place).map_err(|error| format!("where its keys are: {error}"))?;
        // Who is reached in clear on this machine may have its keys there too.
        let is_near = is_loopback(&self.issuer) && is_loopback(&place);
        match place.scheme() == "https" || (place.scheme() == "http" && is_near) {
            true => Ok(Some(place)),
            false => Err(format!("{place} is not an https address")),
        }
    }

    async fn client(&mut self) -> Result<Client, String> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let is_near = self.issuer.scheme() == "http";
        // Reading the system's certificates takes its time.
        let built = tokio::task::spawn_blocking(move || build(is_near)).await;
        let client = built.map_err(|error| error.to_string()).flatten()?;
        self.client = Some(client.clone());
        Ok(client)
    }
}

fn build(is_near: bool) -> Result<Client, String> {
    static INSTALL: Once = Once::new();
    // One crypto provider per process; whoever comes first wins, and all of ours are the same.
    INSTALL.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder = ClientBuilder::new()
        .user_agent(concat!("pinion/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .referer(false);
    // Nothing on this machine needs a proxy.
    let builder = if is_near { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| error.to_string())
}

/// What is at an address; `None` if there is nothing.
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
        if body.len() + part.len() > LONGEST {
            return Err(format!("{url} is longer than {} KiB", LONGEST / 1024));
        }
        body.extend_from_slice(&part);
    }
    Ok(Some(body))
}

/// Whether an address is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_address = |host: &str| host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
    host == "localhost" || is_address(host)
}
