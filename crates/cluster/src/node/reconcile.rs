//! Makes the bucket agree with the routing table of this hub: what is new is claimed, what has changed is written, what
//! has gone is removed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use pinion_clip::logs::Level;
use pinion_hub::{Claim, Claimant, Conflict, Owner, Route, SharedRoute};
use pinion_status::{Code, Failure};
use pinion_sync::lock;

use super::routes::LOST;
use super::{Held, Node};
use crate::mirror::{hub_key, provider_key, route_key};
use crate::store::{Expected, Lifetime, Store, WriteError};
use crate::values::{Manifest, ProviderValue, RouteValue, Value};

/// Interval at which states of clips are compared.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn run(node: &Node) {
    let Some(mut changes) = node.hub().map(|hub| hub.table().changes()) else {
        return;
    };
    loop {
        node.reconcile_once().await;
        tokio::select! {
            () = node.kick.notified() => {}
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

impl Node {
    /// Compares once. What fails is tried again with the next comparison.
    pub(super) async fn reconcile_once(&self) {
        let (Some(hub), Ok(store)) = (self.hub(), self.writable()) else {
            return;
        };
        let own = hub
            .table()
            .routes(|route| matches!(route.owner, Owner::Local | Owner::Session(_)));
        drop(hub);
        let mut unclaimed: HashMap<Owner, Vec<Arc<Route>>> = HashMap::new();
        let mut present = HashSet::new();
        for route in own {
            let key = route_key(&route.alias);
            let held = lock(&self.held).get(&key).cloned();
            match held {
                _ if lock(&self.pending).contains_key(&key) => {}
                Some(held) => self.update(&store, &key, &route, &held).await,
                None => unclaimed
                    .entry(route.owner.clone())
                    .or_default()
                    .push(route),
            }
            present.insert(key);
        }
        for (owner, routes) in unclaimed {
            for route in routes {
                self.claim_again(&owner, &route).await;
            }
        }
        let providers = self
            .hub()
            .map(|hub| hub.provider_claims())
            .unwrap_or_default();
        for provider in providers {
            if let Claimant::Provider {
                name,
                session,
                caller,
                manages,
            } = &provider
            {
                let key = provider_key(name);
                let held = lock(&self.held).get(&key).cloned();
                match held {
                    _ if lock(&self.pending).contains_key(&key) => {}
                    Some(held) => self.update_session(&store, &key, session, &held).await,
                    None => {
                        let claimed = self.claim_provider(&store, name, session, caller, *manages);
                        if let Err(failure) = claimed.await {
                            tracing::warn!(%failure, "a provider is not shared yet");
                        }
                    }
                }
                present.insert(key);
            }
        }
        self.remove_absent(&store, &present).await;
    }

    /// Writes the value of a route if it has changed.
    async fn update(&self, store: &Store, key: &str, route: &Route, held: &Held) {
        let Some(shared) = SharedRoute::of(route) else {
            return;
        };
        let Ok(manifest) = Manifest::of(&shared.registration) else {
            return;
        };
        let since = RouteValue::read(&held.value).map_or(0, |value| value.since);
        let value = RouteValue::of(&shared, self.me.as_str(), &manifest, since).to_bytes();
        if value == held.value {
            return;
        }
        if self
            .write_manifests(store, [manifest].into_iter())
            .await
            .is_err()
        {
            return;
        }
        let expected = Expected::Revision(held.revision);
        match store
            .put(key, value.clone(), expected, Lifetime::Endless)
            .await
        {
            Ok(revision) => {
                lock(&self.held).insert(key.to_owned(), Held { revision, value });
            }
            // Another hub has taken it, or an earlier write was not acknowledged; it is claimed again.
            Err(WriteError::Conflict(_)) => drop(lock(&self.held).remove(key)),
            Err(WriteError::Unavailable(failure)) => {
                tracing::warn!(%failure, key, "a route was not written");
            }
        }
    }

    /// Writes the session of a provider that has reconnected at this hub.
    async fn update_session(&self, store: &Store, key: &str, session: &str, held: &Held) {
        let Some(mut value) = ProviderValue::read(&held.value).filter(|it| it.session != session)
        else {
            return;
        };
        session.clone_into(&mut value.session);
        let value = value.to_bytes();
        let expected = Expected::Revision(held.revision);
        match store
            .put(key, value.clone(), expected, Lifetime::Endless)
            .await
        {
            Ok(revision) => {
                lock(&self.held).insert(key.to_owned(), Held { revision, value });
            }
            Err(WriteError::Conflict(_)) => drop(lock(&self.held).remove(key)),
            Err(WriteError::Unavailable(failure)) => {
                tracing::warn!(%failure, key, "a provider was not written");
            }
        }
    }

    /// Claims the alias of a route that is in the table of this hub only.
    async fn claim_again(&self, owner: &Owner, route: &Route) {
        let (Some(shared), Some(hub)) = (SharedRoute::of(route), self.hub()) else {
            return;
        };
        let claimed = self.claim_one(owner, &hub, shared.clone()).await;
        let alias = &route.alias;
        match (claimed, owner) {
            (Ok(_), _) => {}
            (Err(failure), Owner::Local) if failure.code == Code::AlreadyExists => {
                let other = format!("{alias}-{}", self.options.name);
                let other = pinion_clip::alias::normalise(&other).unwrap_or(other);
                let renamed = SharedRoute {
                    alias: other.clone(),
                    ..shared
                };
                if self.claim_one(owner, &hub, renamed).await.is_ok() {
                    hub.rename_local(alias, &other);
                    self.settle_route(alias);
                    let message = format!(
                        "another hub of the cluster holds \"{alias}\"; the clip of this hub is offered as \"{other}\""
                    );
                    self.log(Level::Warn, &message);
                }
            }
            (Err(failure), Owner::Session(_)) if failure.code == Code::AlreadyExists => {
                hub.lose_alias(alias);
            }
            (Err(failure), _) => tracing::warn!(%failure, alias, "a route is not shared yet"),
        }
    }

    async fn claim_one(
        &self,
        owner: &Owner,
        hub: &pinion_hub::Hub,
        shared: SharedRoute,
    ) -> Result<(), Failure> {
        let claimant = match owner {
            Owner::Session(_) => hub
                .claimant_of(owner)
                .ok_or_else(|| Failure::new(Code::Unavailable, "the provider has left"))?,
            _ => Claimant::Local,
        };
        let claim = Claim {
            claimant,
            conflict: Conflict::Refuse,
            routes: vec![shared],
        };
        self.claim_routes(claim).await.map(drop)
    }

    /// Removes keys of routes and providers that this hub no longer has.
    async fn remove_absent(&self, store: &Store, present: &HashSet<String>) {
        let absent: Vec<(String, Held)> = {
            let pending = lock(&self.pending);
            let held = lock(&self.held);
            let absent = held
                .iter()
                .filter(|(key, _)| !present.contains(*key) && !pending.contains_key(*key));
            absent
                .map(|(key, held)| (key.clone(), held.clone()))
                .collect()
        };
        for (key, held) in absent {
            // The alias may have come back meanwhile.
            let alias = key.strip_prefix("a.");
            if alias.is_some_and(|alias| self.local_owner(alias).is_some()) {
                continue;
            }
            let is_lost = alias
                .zip(self.hub())
                .is_some_and(|(alias, hub)| hub.table().may_return(alias));
            self.remove_key(store, &key, &held, is_lost.then_some(LOST))
                .await;
        }
    }

    async fn remove_key(
        &self,
        store: &Store,
        key: &str,
        held: &Held,
        departure: Option<&str>,
    ) -> Option<u64> {
        match store.remove(key, held.revision, departure).await {
            Ok(revision) => {
                lock(&self.held).remove(key);
                Some(revision)
            }
            Err(WriteError::Conflict(_)) => {
                lock(&self.held).remove(key);
                None
            }
            Err(WriteError::Unavailable(failure)) => {
                tracing::warn!(%failure, key, "a key was not removed");
                None
            }
        }
    }

    /// Removes the keys of a provider whose session has ended. Returns the number of the last change.
    pub(super) async fn release_provider(&self, name: &str, aliases: &[String]) -> u64 {
        let Ok(store) = self.writable() else {
            return 0;
        };
        let keys = aliases
            .iter()
            .map(|alias| route_key(alias))
            .chain([provider_key(name)]);
        let mut last = 0;
        for key in keys {
            let held = lock(&self.held).get(&key).cloned();
            if let Some(held) = held {
                let revision = self.remove_key(&store, &key, &held, Some(LOST)).await;
                last = last.max(revision.unwrap_or(0));
            }
        }
        last
    }

    /// Removes everything that this hub holds, and its lease at last.
    pub(super) async fn release_all(&self) {
        let Ok(store) = self.writable() else {
            return;
        };
        let held: Vec<(String, Held)> = lock(&self.held).drain().collect();
        let removals = held
            .iter()
            .map(|(key, held)| store.remove(key, held.revision, None));
        futures_util::future::join_all(removals).await;
        let lease = lock(&self.lease).revision();
        if let Some(revision) = lease {
            let _ = store.remove(&hub_key(&self.me), revision, None).await;
        }
    }
}
