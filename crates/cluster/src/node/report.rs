//! The report of a hub about its cluster, for people and programs.

use pinion_sync::lock;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Node;
use crate::members::Presence;
use crate::mirror::hub_key;
use crate::names::ProcessId;
use crate::store::KeyState;
use pinion_proto::cluster::BeatState;

impl Node {
    /// Describes the members, routes and servers as this hub knows them.
    pub(super) fn describe(&self) -> Value {
        let now = Instant::now();
        let store = lock(&self.store).clone();
        let server = store.as_ref().map(|store| {
            let epoch = store.epoch();
            json!({
                "url": epoch.server().url(),
                "name": epoch.server_name(),
                "version": epoch.version(),
            })
        });
        let members: Vec<Value> = {
            let mirror = lock(&self.mirror);
            let members = lock(&self.members);
            let mut ids: Vec<ProcessId> = mirror
                .hubs()
                .filter_map(|(id, _)| ProcessId::parse(id))
                .collect();
            for member in members.all() {
                let has_left = mirror
                    .entry(&hub_key(&member.id))
                    .is_some_and(|entry| entry.state == KeyState::Removed);
                let is_there = member.presence(now) == Presence::There && !has_left;
                if is_there && !ids.contains(&member.id) {
                    ids.push(member.id.clone());
                }
            }
            ids.iter()
                .map(|id| {
                    let value = mirror.hub(id);
                    let heard = members.get(id);
                    let name = value.as_ref().map(|it| it.name.clone());
                    let name = name.or_else(|| heard.map(|it| it.name.clone()));
                    json!({
                        "id": id.as_str(),
                        "name": name,
                        "url": value.as_ref().map(|it| it.url.clone()),
                        "version": value.as_ref().map(|it| it.version.clone()),
                        "mode": value.as_ref().map(|it| it.mode.clone()),
                        "this": *id == self.me,
                        "presence": presence(members.presence(id, now)),
                        "state": heard.map(|it| state(it.state)),
                        "lease": value.is_some(),
                        "beat_age_ms": heard.map(|it| now.duration_since(it.last_beat).as_millis() as u64),
                        "seen": heard.map(|it| it.seen),
                        "calls_in": heard.map(|it| it.calls_in),
                        "calls_out": heard.map(|it| it.calls_out),
                        "routes": mirror.routes().filter(|(_, route)| route.hub == id.as_str()).count(),
                    })
                })
                .collect()
        };
        let routes = lock(&self.mirror).routes().count();
        json!({
            "cluster": self.options.access.cluster.as_str(),
            "id": self.me.as_str(),
            "name": self.options.name,
            "standing": if self.has_standing() { "ok" } else { "isolated" },
            "server": server,
            "epoch": self.epoch.load(std::sync::atomic::Ordering::Relaxed),
            "seen": *self.seen.borrow(),
            "told": *self.told.borrow(),
            "conversations": self.talk.open_count(),
            "routes": routes,
            "members": members,
        })
    }
}

fn presence(presence: Presence) -> &'static str {
    match presence {
        Presence::There => "there",
        Presence::Suspect => "suspect",
        Presence::Unheard => "unheard",
    }
}

fn state(state: BeatState) -> &'static str {
    match state {
        BeatState::Up => "up",
        BeatState::Leaving => "leaving",
        BeatState::Isolated => "isolated",
        BeatState::Unspecified | BeatState::Unrecognized(_) => "unknown",
    }
}
