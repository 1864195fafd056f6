//! The requests of one client that are in flight.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::rpc::{Fault, Id, Notification, code};

/// Concurrent requests of one client; more are refused.
const MAX_CALLS: usize = 256;

/// The requests in flight, by their ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlightRequests(Arc<Mutex<HashMap<Id, CancellationToken>>>);

/// A request in flight; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    calls: InFlightRequests,
    id: Id,
    /// Cancelled when the client no longer wants the answer.
    pub(crate) cancelled: CancellationToken,
}

impl InFlightRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to answer `id`.
    pub(crate) fn begin(&self, id: &Id) -> Result<InFlightRequest, Fault> {
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
        Ok(InFlightRequest {
            calls: self.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// Cancels the request that a client's notification names.
    pub(crate) fn handle_notification(&self, notification: &Notification) {
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

    /// Cancels all requests.
    pub(crate) fn cancel_all(&self) {
        for cancelled in self.lock().values() {
            cancelled.cancel();
        }
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.id);
    }
}
