//! The hub as the clips installed on it see it.

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
use crate::endpoint::Call;

/// What clips ask for beyond themselves, asked of a hub. It is made before the hub and told of it once.
#[derive(Debug, Clone, Default)]
pub struct Inside(Arc<State>);

#[derive(Debug, Default)]
struct State {
    hub: OnceLock<Weak<Hub>>,
    /// How often clips call a clip at once, by its alias.
    places: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// So many calls of other clips, or of itself, a clip has at once. Fewer than it can have: a clip that calls itself without end
/// leaves room for others.
const PLACES: usize = 192;
/// How long a call of a clip waits for a place. Those that wait for each other in a circle would wait for ever.
const PATIENCE: Duration = Duration::from_secs(5);

impl Inside {
    /// From now on this is the hub.
    pub fn of(&self, hub: &Arc<Hub>) {
        let _ = self.0.hub.set(Arc::downgrade(hub));
    }

    fn hub(&self) -> Result<Arc<Hub>, Failure> {
        let hub = self.0.hub.get().and_then(Weak::upgrade);
        hub.ok_or_else(|| Failure::new(Code::Unavailable, "the hub is shutting down"))
    }

    /// A place among the calls that clips make to `alias`.
    async fn place(&self, alias: &str) -> Result<OwnedSemaphorePermit, Failure> {
        let places = {
            let mut places = self.0.places.lock().unwrap_or_else(PoisonError::into_inner);
            let places = places.entry(alias.to_owned());
            places
                .or_insert_with(|| Arc::new(Semaphore::new(PLACES)))
                .clone()
        };
        match tokio::time::timeout(PATIENCE, places.acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Failure::new(
                Code::ResourceExhausted,
                format!(
                    "clips call \"{alias}\" {PLACES} times at once already; do they call each other without end?"
                ),
            )),
        }
    }
}

/// A clip as a caller: it sees what whoever owns it sees.
fn clip(hub: &Hub, alias: &str) -> Principal {
    let owner = hub.table().get(alias).and_then(|route| route.scope.clone());
    Principal::Clip {
        alias: alias.into(),
        owner,
    }
}

impl CrossCalls for Inside {
    fn invoke<'a>(
        &'a self,
        from: &'a str,
        call: CrossCall,
    ) -> BoxFuture<'a, Result<Bytes, Failure>> {
        Box::pin(async move {
            let hub = self.hub()?;
            let caller = clip(&hub, from);
            let alias = hub.find(&caller, Method::Invoke, &call.clip)?.alias.clone();
            let _place = self.place(&alias).await?;
            let mut asked = Call::new(caller, call.command, call.input);
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
