//! The routing table and the bucket: routes of other hubs appear and disappear with their keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pinion_access::Scope;
use pinion_hub::{Departure, Neighbours, RemoteProvider};
use pinion_proto::Text;
use pinion_proto::hub::ProviderInfo;
use pinion_sync::lock;

use super::Node;
use crate::mirror::{Subject, route_key};
use crate::names::ProcessId;
use crate::store::{Change, KeyState};

/// The note on a removed key whose provider may come back.
pub(super) const LOST: &str = "lost";

impl Node {
    /// Applies a change of the bucket.
    pub(super) fn apply_change(&self, change: Change) {
        let subject = lock(&self.mirror).apply(change);
        match subject {
            Subject::Route(alias) => self.settle_route(&alias),
            Subject::Hub(id) => {
                let aliases = lock(&self.mirror).aliases_of(id.as_str());
                for alias in aliases {
                    self.settle_route(&alias);
                }
            }
            Subject::Manifest(hash) => {
                let aliases: Vec<String> = {
                    let mirror = lock(&self.mirror);
                    let users = mirror.routes().filter(|(_, route)| route.manifest == hash);
                    users.map(|(alias, _)| alias.to_owned()).collect()
                };
                for alias in aliases {
                    self.settle_route(&alias);
                }
            }
            Subject::Token(id) => self.settle_token(&id),
            Subject::Other => {}
        }
    }

    /// Puts the whole bucket in the place of what was known of it.
    pub(super) fn replace_all(&self, changes: Vec<Change>) {
        let mut aliases: BTreeSet<String> = BTreeSet::new();
        {
            let mut mirror = lock(&self.mirror);
            aliases.extend(mirror.routes().map(|(alias, _)| alias.to_owned()));
            mirror.clear();
            for change in changes {
                if let Subject::Route(alias) = mirror.apply(change) {
                    aliases.insert(alias);
                }
            }
        }
        for alias in aliases {
            self.settle_route(&alias);
        }
        self.settle_all_tokens();
        self.kick.notify_one();
    }

    /// Makes the routing table agree with the bucket about one alias.
    pub(super) fn settle_route(&self, alias: &str) {
        let Some(hub) = self.hub() else {
            return;
        };
        let (value, revision, departure) = {
            let mirror = lock(&self.mirror);
            let entry = mirror.entry(&route_key(alias));
            let departure = match entry.map(|entry| (&entry.state, entry.departure.as_deref())) {
                Some((KeyState::Expired, _) | (_, Some(LOST))) => Departure::Lost,
                _ => Departure::InOrder,
            };
            let revision = entry.map_or(0, |entry| entry.revision);
            (mirror.route(alias), revision, departure)
        };
        let Some(value) = value else {
            hub.table().retract(alias, departure);
            return;
        };
        if value.hub == self.me.as_str() {
            hub.table().retract(alias, Departure::InOrder);
            return;
        }
        let is_lost = {
            let mut held = lock(&self.held);
            let key = route_key(alias);
            let is_lost = held.get(&key).is_some_and(|held| held.revision < revision);
            if is_lost {
                held.remove(&key);
            }
            is_lost
        };
        if is_lost {
            hub.lose_alias(alias);
            self.kick.notify_one();
        }
        let Some(holder) = ProcessId::parse(&value.hub) else {
            return;
        };
        if self.is_gone(&holder) {
            hub.table().retract(alias, Departure::Lost);
            return;
        }
        let registration = lock(&self.mirror).manifest(&value.manifest);
        let neighbours: std::sync::Weak<dyn Neighbours> = self.this.clone();
        let shared = value.shared(alias, registration);
        let route = hub.neighbours_route(holder.as_str().into(), shared, neighbours);
        hub.table().place(route);
    }

    /// Takes the routes of hubs that are gone by now out of the routing table.
    pub(super) fn settle_gone(&self) {
        let holders: BTreeSet<String> = {
            let Some(hub) = self.hub() else {
                return;
            };
            hub.table()
                .holders()
                .into_iter()
                .map(|it| it.to_string())
                .collect()
        };
        for holder in holders {
            let Some(id) = ProcessId::parse(&holder) else {
                continue;
            };
            if self.is_gone(&id) {
                let aliases = lock(&self.mirror).aliases_of(&holder);
                for alias in aliases {
                    self.settle_route(&alias);
                }
            }
        }
    }

    /// Returns the providers that are connected to other hubs, and those hubs themselves.
    pub(super) fn remote_providers(&self) -> Vec<RemoteProvider> {
        let mirror = lock(&self.mirror);
        let mut found: Vec<RemoteProvider> = Vec::new();
        let mut aliases: BTreeMap<(String, String), Vec<Text>> = BTreeMap::new();
        for (alias, route) in mirror.routes() {
            let theirs = aliases.entry((route.hub, route.session)).or_default();
            theirs.push(Text::new(alias));
        }
        for (_, provider) in mirror.providers() {
            let Some(id) = ProcessId::parse(&provider.hub).filter(|id| *id != self.me) else {
                continue;
            };
            let clips = aliases.remove(&(provider.hub.clone(), provider.session.clone()));
            found.push(RemoteProvider {
                hub: Arc::from(id.as_str()),
                scope: provider
                    .scope
                    .as_ref()
                    .and_then(|scope| scope.parse::<Scope>().ok()),
                info: ProviderInfo {
                    name: provider.name.into(),
                    accepts_manage: provider.manages,
                    clips: clips.unwrap_or_default(),
                    connected_at: provider.since,
                },
            });
        }
        for (id, hub) in mirror.hubs().filter(|(id, _)| *id != self.me.as_str()) {
            let installed = aliases.remove(&(id.to_owned(), String::new()));
            found.push(RemoteProvider {
                hub: Arc::from(id),
                scope: None,
                info: ProviderInfo {
                    name: pinion_hub::own_provider_name(&hub.name).into(),
                    accepts_manage: hub.mode == "full",
                    clips: installed.unwrap_or_default(),
                    connected_at: hub.started,
                },
            });
        }
        drop(mirror);
        found.retain(|provider| {
            ProcessId::parse(&provider.hub).is_some_and(|id| !self.is_gone(&id))
        });
        found
    }
}
