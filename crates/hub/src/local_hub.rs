//! Calls, listings and file requests that clips installed here make to their own hub.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pinion_access::{Method, Principal};
use pinion_clip::data::{DataAnswer, DataOperation, DataRequest};
use pinion_clip::{CrossCall, CrossCalls, Listing};
use pinion_status::{Code, Failure};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Hub;
use crate::endpoint::HubCall;

/// Passes requests of installed clips to their own hub. Requests fail with `unavailable` before [`Self::set_hub`] and
/// after the hub was dropped, to which it holds a weak reference.
#[derive(Debug, Clone, Default)]
pub struct LocalHub(Arc<LocalHubState>);

#[derive(Debug, Default)]
struct LocalHubState {
    hub: OnceLock<Weak<Hub>>,
    /// The remaining calls that clips may make to a clip, by its alias.
    permits: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The most simultaneous calls that clips make to one clip. Fewer than a clip can answer, so that a clip that calls
/// itself without end leaves room for other callers.
const MAX_CROSS_CALLS: usize = 192;
/// The longest wait of a clip's call for one of these permits. Clips that call each other in a circle would otherwise
/// wait without end.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(5);

impl LocalHub {
    /// Sets the hub. Only the first call has an effect.
    pub fn set_hub(&self, hub: &Arc<Hub>) {
        let _ = self.0.hub.set(Arc::downgrade(hub));
    }

    fn hub(&self) -> Result<Arc<Hub>, Failure> {
        let hub = self.0.hub.get().and_then(Weak::upgrade);
        hub.ok_or_else(|| Failure::new(Code::Unavailable, "the hub is shutting down"))
    }

    /// Waits for a permit to call `alias`.
    async fn permit(&self, alias: &str) -> Result<OwnedSemaphorePermit, Failure> {
        let permits = {
            let mut permits = self
                .0
                .permits
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let permits = permits.entry(alias.to_owned());
            permits
                .or_insert_with(|| Arc::new(Semaphore::new(MAX_CROSS_CALLS)))
                .clone()
        };
        match tokio::time::timeout(PERMIT_TIMEOUT, permits.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Failure::new(
                Code::ResourceExhausted,
                format!(
                    "clip \"{alias}\" already has {MAX_CROSS_CALLS} calls from clips; check that clips do not call themselves or each other without end"
                ),
            )),
        }
    }
}

/// The principal of a calling clip: it sees what its owner sees.
fn clip(hub: &Hub, alias: &str) -> Principal {
    let owner = hub.table().get(alias).and_then(|route| route.scope.clone());
    Principal::Clip {
        alias: alias.into(),
        owner,
    }
}

impl CrossCalls for LocalHub {
    fn invoke<'a>(
        &'a self,
        from: &'a str,
        call: CrossCall,
    ) -> BoxFuture<'a, Result<Bytes, Failure>> {
        Box::pin(async move {
            let hub = self.hub()?;
            let caller = clip(&hub, from);
            let alias = hub.find(&caller, Method::Invoke, &call.clip)?.alias.clone();
            let _permit = self.permit(&alias).await?;
            let mut asked = HubCall::new(caller, call.command, call.input);
            asked.secret = call.clip_token;
            hub.ask(&call.clip, asked).await
        })
    }

    fn list_clips<'a>(&'a self, from: &'a str) -> BoxFuture<'a, Result<Vec<Listing>, Failure>> {
        Box::pin(async move {
            let hub = self.hub()?;
            let visible = hub.visible(&clip(&hub, from));
            let listings = visible.iter().map(|route| {
                let mut listing = Listing::from(&*route.endpoint.snapshot().manifest);
                listing.name.clone_from(&route.alias);
                listing
            });
            Ok(listings.collect())
        })
    }

    fn data<'a>(
        &'a self,
        from: &'a str,
        request: DataRequest,
    ) -> BoxFuture<'a, Result<DataAnswer, Failure>> {
        Box::pin(async move {
            let hub = self.hub()?;
            let right = match request.operation {
                DataOperation::Write { .. } | DataOperation::Delete => Method::DataWrite,
                DataOperation::Read | DataOperation::List | DataOperation::Stat => Method::DataRead,
            };
            let target = request.clip.as_deref().unwrap_or(from);
            let route = hub.find(&clip(&hub, from), right, target)?;
            route.endpoint.data(request.path, request.operation).await
        })
    }
}
