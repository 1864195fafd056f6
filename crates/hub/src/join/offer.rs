//! The clips that are offered to a hub that is joined.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_clip::alias;
use pinion_clip::install::Purge;
use pinion_status::{Code, Failure};
use tokio::sync::watch;

use crate::Hub;
use crate::endpoint::Endpoint;
use crate::runtime::Runtime;
use crate::table::{Owner, Route};

/// A changing set of clips that are offered to another hub.
pub trait Offer: fmt::Debug + Send + Sync + 'static {
    /// Returns all clips, by alias.
    fn clips(&self) -> BTreeMap<String, Arc<dyn Endpoint>>;

    fn get(&self, alias: &str) -> Option<Arc<dyn Endpoint>> {
        self.clips().remove(alias)
    }

    /// Returns a receiver that changes when a clip is added, replaced or removed.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Installs a clip and returns its alias, which the offer chooses if `alias` is empty.
    fn install<'a>(
        &'a self,
        alias: &'a str,
        source: &'a str,
        secret: &'a str,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        let _ = (alias, source, secret);
        Box::pin(async { Err(cannot()) })
    }

    /// Removes a clip; `purge` decides whether its data is deleted too.
    fn remove<'a>(&'a self, alias: &'a str, purge: Purge) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = (alias, purge);
        Box::pin(async { Err(cannot()) })
    }
}

fn cannot() -> Failure {
    Failure::new(Code::Unimplemented, "this program does not install clips")
}

impl Offer for Runtime {
    fn clips(&self) -> BTreeMap<String, Arc<dyn Endpoint>> {
        let clips = self.all().into_iter();
        clips
            .map(|clip| (clip.record().name.clone(), clip as Arc<dyn Endpoint>))
            .collect()
    }

    fn get(&self, alias: &str) -> Option<Arc<dyn Endpoint>> {
        Self::get(self, alias).map(|clip| clip as Arc<dyn Endpoint>)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        Self::changes(self)
    }

    fn install<'a>(
        &'a self,
        alias: &'a str,
        source: &'a str,
        secret: &'a str,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            // A requested alias that is in use is upgraded.
            let taken = |wanted: &str| alias.is_empty() && Self::get(self, wanted).is_some();
            let alias = alias::choose(Some(alias), source, taken)?;
            Self::install(self, &alias, source, secret, "").await?;
            Ok(alias)
        })
    }

    fn remove<'a>(&'a self, alias: &'a str, purge: Purge) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(Self::remove(self, alias, purge))
    }
}

/// The clips of a hub that it offers to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferedClips {
    /// Clips installed here.
    Installed,
    /// Also parts of this program and clips of providers, except of providers that are hubs, whose clips could
    /// otherwise travel in circles.
    All,
}

impl Hub {
    /// Returns the clips that this hub offers to another. Only clips that everyone may see or that the local user owns
    /// are included.
    pub fn offer(self: &Arc<Self>, shown: OfferedClips) -> Arc<dyn Offer> {
        Arc::new(HubOffer {
            hub: self.clone(),
            shown,
        })
    }
}

struct HubOffer {
    hub: Arc<Hub>,
    shown: OfferedClips,
}

impl fmt::Debug for HubOffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("HubOffer")
            .field(&self.shown)
            .finish()
    }
}

impl HubOffer {
    fn shows(&self, route: &Route) -> bool {
        // The other hub does not have this hub's scopes, so clips of a scope are not offered.
        let is_open = route.scope.is_none();
        is_open
            && match (&route.owner, self.shown) {
                (Owner::Local, _) | (Owner::Builtin, OfferedClips::All) => true,
                (Owner::Session(_), OfferedClips::All) => self
                    .hub
                    .sessions()
                    .owning(&route.owner)
                    .is_some_and(|session| !session.is_hub),
                _ => false,
            }
    }
}

impl Offer for HubOffer {
    fn clips(&self) -> BTreeMap<String, Arc<dyn Endpoint>> {
        let routes = self.hub.table().routes(|_| true);
        let shown = routes.iter().filter(|route| self.shows(route));
        shown
            .map(|route| (route.alias.clone(), route.endpoint.clone()))
            .collect()
    }

    fn get(&self, alias: &str) -> Option<Arc<dyn Endpoint>> {
        let route = self.hub.table().get(alias)?;
        self.shows(&route).then(|| route.endpoint.clone())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.hub.table().changes()
    }

    fn install<'a>(
        &'a self,
        alias: &'a str,
        source: &'a str,
        secret: &'a str,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        let requested = Some(alias).filter(|alias| !alias.is_empty());
        Box::pin(async move {
            let route = self.hub.install_here(requested, source, secret, "").await?;
            Ok(route.alias)
        })
    }

    fn remove<'a>(&'a self, alias: &'a str, purge: Purge) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.hub.remove_here(alias, alias, purge))
    }
}
