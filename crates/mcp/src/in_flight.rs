//! The requests of one client that are being answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::rpc::{Fault, Id, Notification, code};

/// A client has so many requests at once; more are refused.
const MAX_CALLS: usize = 256;

/// The requests that are being answered, by their ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<HashMap<Id, CancellationToken>>>);

/// A request that is being answered, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Underway {
    calls: Calls,
    id: Id,
    /// Told when the client does not want the answer any more.
    pub(crate) cancelled: CancellationToken,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to answer `id`.
    pub(crate) fn begin(&self, id: &Id) -> Result<Underway, Fault> {
        let mut calls = self.lock();
        if calls.len() >= MAX_CALLS {
            let message = format!(
                "{MAX_CALLS} requests are being answered already; wait for one of them to end"
            );
            return Err(Fault::new(code::INTERNAL, message));
        }
        if calls.contains_key(id) {
            let message = "a request with this id is being answered already";
            return Err(Fault::new(code::INVALID_REQUEST, message));
        }
        let cancelled = CancellationToken::new();
        calls.insert(id.clone(), cancelled.clone());
        Ok(Underway {
            calls: self.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// Does what a client tells about its requests, which is that it does not want one of them.
    pub(crate) fn heed(&self, notification: &Notification) {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "requestId")]
            id: Id,
        }
        if notification.method != "notifications/cancelled" {
            return;
        }
        let params = notification.params.as_ref();
        let params = params.and_then(|params| serde_json::from_str::<Params>(params.get()).ok());
        let cancelled = params.and_then(|params| self.lock().get(&params.id).cloned());
        if let Some(cancelled) = cancelled {
            cancelled.cancel();
        }
    }

    /// Nobody wants any of them.
    pub(crate) fn cancel_all(&self) {
        for cancelled in self.lock().values() {
            cancelled.cancel();
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.id);
    }
}
