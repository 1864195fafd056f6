//! What is offered to a hub that is joined.

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

/// Clips that are offered to another hub.
pub trait Offer: fmt::Debug + Send + Sync + 'static {
    /// All of them, by alias.
    fn clips(&self) -> BTreeMap<String, Arc<dyn Endpoint>>;

    /// The one of this alias.
    fn get(&self, alias: &str) -> Option<Arc<dyn Endpoint>> {
        self.clips().remove(alias)
    }

    /// Told when one is added, replaced or removed.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Installs a clip, under an alias of our choice if none is given; tells the alias.
    fn install<'a>(
        &'a self,
        alias: &'a str,
        source: &'a str,
        secret: &'a str,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        let _ = (alias, source, secret);
        Box::pin(async { Err(cannot()) })
    }

    /// Removes a clip, with its data if so wished.
    fn remove<'a>(&'a self, alias: &'a str, purge: Purge) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = (alias, purge);
        Box::pin(async { Err(cannot()) })
    }
}

fn cannot() -> Failure {
    Failure::new(Code::Unimplemented, "nothing can be installed here")
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
            // Asked for by name, what is there is upgraded.
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

/// Which of its clips a hub shows to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Those installed here.
    Installed,
    /// Also parts of this program and clips of providers, but not of providers that are hubs themselves: what they pass on would
    /// go in circles.
    All,
}

impl Hub {
    /// What this hub has to offer to another. Only clips without an owner, or of the local user, are shown.
    pub fn offer(self: &Arc<Self>, shown: Shown) -> Arc<dyn Offer> {
        Arc::new(HubOffer {
            hub: self.clone(),
            shown,
        })
    }
}

struct HubOffer {
    hub: Arc<Hub>,
    shown: Shown,
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
        // Whoever has a scope here is known to this hub and not to another.
        let is_open = route.scope.is_none();
        is_open
            && match (&route.owner, self.shown) {
                (Owner::Local, _) | (Owner::Builtin, Shown::All) => true,
                (Owner::Session(_), Shown::All) => self
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
        Box::pin(self.hub.remove_here(alias, purge))
    }
}
