//! Clients that are made when first needed and then shared.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, Url};

use crate::client::{ClientOptions, Redirects, Trust, build};

/// Connect timeouts belong to a client, and a process uses only a few different ones.
const MAX_CLIENTS: usize = 8;

/// A set of clients. Copies share it.
#[derive(Debug, Clone)]
pub struct Clients {
    redirects: Redirects,
    made: Arc<Mutex<Vec<(ClientOptions, Client)>>>,
}

impl Clients {
    /// An empty set of clients that follow these redirects.
    pub fn new(redirects: Redirects) -> Self {
        Self {
            redirects,
            made: Arc::default(),
        }
    }

    /// The client for `url` with this connect timeout, zero for none. Reads certificates off the async threads.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up. The error is a sentence for the user.
    pub async fn get(&self, url: &Url, connect_timeout: Duration) -> Result<Client, String> {
        let options = ClientOptions::for_url(url, connect_timeout, self.redirects);
        if let Some(client) = self.known(&options) {
            return Ok(client);
        }
        let client = if options.trust == Trust::Nothing {
            build(&options)
        } else {
            let built = tokio::task::spawn_blocking(move || build(&options)).await;
            built.unwrap_or_else(|error| Err(error.to_string()))
        }?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() >= MAX_CLIENTS {
            made.remove(0);
        }
        made.push((options, client.clone()));
        Ok(client)
    }

    fn known(&self, options: &ClientOptions) -> Option<Client> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made.iter().find(|(known, _)| known == options);
        known.map(|(_, client)| client.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn clients_are_reused_and_the_oldest_gives_way() {
        let clients = Clients::new(Redirects::SameHost);
        let url = Url::parse("http://localhost:1").unwrap();
        let count = || clients.made.lock().unwrap().len();
        assert_eq!(count(), 0);
        for _ in 0..2 {
            clients.get(&url, Duration::from_secs(1)).await.unwrap();
            assert_eq!(count(), 1);
        }
        for seconds in 2..20 {
            clients
                .get(&url, Duration::from_secs(seconds))
                .await
                .unwrap();
        }
        assert_eq!(count(), MAX_CLIENTS);
    }
}
