//! The server that could not be reached. Clients expect the recorded text of a failed answer, which
//! contains neither the address nor the cause; people read both here.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pinion_http::Url;

/// A server that could not be reached, since the last response of any server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    /// The address of the requests, without user, password and query.
    pub url: String,
    /// The cause of the last failure.
    pub cause: String,
    /// The number of failed requests.
    pub tries: u32,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tries = if self.tries == 1 { "try" } else { "tries" };
        write!(
            f,
            "{} could not be reached: {} ({} {tries}).",
            self.url, self.cause, self.tries
        )
    }
}

/// The last server that could not be reached. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastUnreachable(Arc<Mutex<Option<Unreachable>>>);

impl LastUnreachable {
    pub(crate) fn get(&self) -> Option<Unreachable> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Call it when a server answered.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Adds a request to `url` that failed before there was a response.
    pub(crate) fn add(&self, url: &Url, cause: String) {
        let mut url = url.clone();
        url.set_query(None);
        url.set_fragment(None);
        // Fails only where there is nothing to remove.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let url = url.to_string();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.take().filter(|last| last.url == url);
        *last = Some(Unreachable {
            url,
            cause,
            tries: before.map_or(0, |last| last.tries).saturating_add(1),
        });
    }
}
