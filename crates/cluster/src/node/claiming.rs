//! Claims of aliases: every key is created or changed with the number that was seen, so that one hub wins.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use pinion_access::{Caller, Principal};
use pinion_clip::alias;
use pinion_hub::{Claim, Claimant, Claimed, Conflict, Owner, SharedRoute};
use pinion_proto::cluster::{Evict, open};
use pinion_status::{Code, Failure};
use pinion_sync::lock;

use super::{Held, Node};
use crate::clock::now_unix_ms;
use crate::mirror::{manifest_key, provider_key, route_key};
use crate::names::ProcessId;
use crate::store::{Expected, KeyState, Lifetime, Store, WriteError};
use crate::talk::NewCall;
use crate::values::{Manifest, ProviderValue, RouteValue, Value};

/// Writes of one registration that are under way at the same time.
const PARALLEL_WRITES: usize = 256;
/// Seconds for which a manifest is stored after its last use was noted.
const MANIFEST_SECONDS: u32 = 30 * 86_400;
/// Attempts to claim a key whose state changes meanwhile.
const ATTEMPTS: usize = 8;
const EVICT_TIMEOUT: Duration = Duration::from_secs(2);

/// The treatment of a key that this hub wants to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    /// It is free: write it with this expectation.
    Write(Expected),
    /// This hub holds it.
    Held,
    /// Another hub holds it.
    Taken,
}

/// Protects keys that were claimed and may not be in the routing table yet from being given back.
struct ClaimGuard {
    node: Arc<Node>,
    keys: Vec<String>,
}

impl ClaimGuard {
    fn protect(&mut self, key: String) {
        *lock(&self.node.pending).entry(key.clone()).or_default() += 1;
        self.keys.push(key);
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        let mut pending = lock(&self.node.pending);
        for key in &self.keys {
            if let Some(count) = pending.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    pending.remove(key);
                }
            }
        }
        drop(pending);
        self.node.kick.notify_one();
    }
}

/// Returns the identity of a provider's token. Equal identities may replace each other.
pub(super) fn token_identity(caller: &Caller) -> String {
    match (&caller.token, &caller.principal) {
        (Some(token), principal) => format!("{} {principal}", token.as_str()),
        // Without tokens, every local caller has all rights.
        (None, Principal::Super) => "super".to_owned(),
        (None, _) => String::new(),
    }
}

impl Node {
    fn arc(&self) -> Result<Arc<Self>, Failure> {
        let this = self.this.upgrade();
        this.ok_or_else(|| Failure::new(Code::Unavailable, "this hub has left its cluster"))
    }

    /// Claims all aliases of a claim, or none.
    pub(super) async fn claim_routes(&self, claim: Claim) -> Result<Claimed, Failure> {
        let node = self.arc()?;
        let store = self.writable()?;
        // From now on the aliases are protected from being given back.
        let mut guard = ClaimGuard {
            node: node.clone(),
            keys: Vec::new(),
        };
        if let Claimant::Provider {
            name,
            session,
            caller,
            manages,
        } = &claim.claimant
        {
            self.claim_provider(&store, name, session, caller, *manages)
                .await?;
        }
        let mut manifests: BTreeMap<String, Manifest> = BTreeMap::new();
        let mut routes = Vec::with_capacity(claim.routes.len());
        for route in claim.routes {
            let manifest = Manifest::of(&route.registration)?;
            manifests.insert(manifest.hash.clone(), manifest.clone());
            routes.push((route, manifest));
        }
        self.write_manifests(&store, manifests.into_values())
            .await?;
        let wanted: Vec<String> = routes
            .iter()
            .map(|(route, _)| route.alias.clone())
            .collect();
        let claims = routes
            .into_iter()
            .enumerate()
            .map(|(at, (route, manifest))| {
                let (node, store) = (&node, &store);
                let others: Vec<String> = match claim.conflict {
                    Conflict::Refuse => Vec::new(),
                    Conflict::Rename => wanted[..at].to_vec(),
                };
                async move {
                    (
                        at,
                        node.claim_route(store, route, &manifest, claim.conflict, &others)
                            .await,
                    )
                }
            });
        let mut claimed: Vec<(usize, Result<ClaimedAlias, Failure>)> = stream::iter(claims)
            .buffer_unordered(PARALLEL_WRITES)
            .collect()
            .await;
        claimed.sort_by_key(|(at, _)| *at);
        let mut aliases = Vec::with_capacity(claimed.len());
        let mut refused = None;
        for (_, outcome) in claimed {
            match outcome {
                Ok(mut granted) => {
                    guard.keys.append(&mut granted.guard.keys);
                    aliases.push(granted.alias);
                }
                Err(failure) => refused = refused.or(Some(failure)),
            }
        }
        match refused {
            // The guard gives back what was claimed.
            Some(failure) => Err(failure),
            None => {
                let guard: Box<dyn Any + Send + Sync> = Box::new(guard);
                Ok(Claimed { aliases, guard })
            }
        }
    }

    /// Writes manifests that the bucket does not have.
    pub(super) async fn write_manifests(
        &self,
        store: &Store,
        manifests: impl Iterator<Item = Manifest>,
    ) -> Result<(), Failure> {
        let missing: Vec<Manifest> = {
            let mirror = lock(&self.mirror);
            manifests
                .filter(|it| mirror.manifest(&it.hash).is_none())
                .collect()
        };
        let writes = missing.into_iter().map(|manifest| async move {
            let key = manifest_key(&manifest.hash);
            let mut expected = Expected::Nothing;
            for _ in 0..ATTEMPTS {
                let lifetime = Lifetime::Seconds(MANIFEST_SECONDS);
                match store
                    .put(&key, manifest.bytes.clone(), expected, lifetime)
                    .await
                {
                    Ok(_) => return Ok(()),
                    Err(WriteError::Unavailable(failure)) => return Err(failure),
                    Err(WriteError::Conflict(last)) => {
                        match store.last(&key).await?.map(|it| it.state) {
                            Some(KeyState::Value(_)) => return Ok(()),
                            _ => expected = Expected::Revision(last),
                        }
                    }
                }
            }
            Err(busy(&key))
        });
        let written: Vec<Result<(), Failure>> = stream::iter(writes)
            .buffer_unordered(PARALLEL_WRITES)
            .collect()
            .await;
        written.into_iter().collect()
    }

    async fn claim_route(
        self: &Arc<Self>,
        store: &Store,
        mut route: SharedRoute,
        manifest: &Manifest,
        conflict: Conflict,
        others: &[String],
    ) -> Result<ClaimedAlias, Failure> {
        let requested = route.alias.clone();
        for _ in 0..ATTEMPTS {
            let alias = route.alias.clone();
            let key = route_key(&alias);
            let mut guard = ClaimGuard {
                node: self.clone(),
                keys: Vec::new(),
            };
            guard.protect(key.clone());
            let value =
                RouteValue::of(&route, self.me.as_str(), manifest, now_unix_ms()).to_bytes();
            if self.take(store, &key, value).await? {
                return Ok(ClaimedAlias { alias, guard });
            }
            drop(guard);
            match conflict {
                Conflict::Refuse => return Err(exists(&alias)),
                Conflict::Rename => {
                    route.alias = alias::choose(None, &requested, |alias| {
                        others.iter().any(|other| other == alias) || self.is_used(alias)
                    })?;
                }
            }
        }
        Err(busy(&requested))
    }

    /// Reports whether an alias is used anywhere, as far as this hub knows.
    fn is_used(&self, alias: &str) -> bool {
        let in_bucket = lock(&self.mirror).route(alias).is_some();
        in_bucket
            || self
                .hub()
                .is_some_and(|hub| hub.table().get(alias).is_some())
    }

    /// Makes this hub the holder of a key, unless another hub holds it.
    async fn take(&self, store: &Store, key: &str, value: bytes::Bytes) -> Result<bool, Failure> {
        let mut decision = self.decide_by_mirror(key);
        for _ in 0..ATTEMPTS {
            let expected = match decision {
                Decision::Held => return Ok(true),
                Decision::Write(expected) => expected,
                // The mirror may be behind.
                Decision::Taken => match self.decide_by_store(store, key, 0).await? {
                    Decision::Taken => return Ok(false),
                    Decision::Held => return Ok(true),
                    Decision::Write(expected) => expected,
                },
            };
            match store
                .put(key, value.clone(), expected, Lifetime::Endless)
                .await
            {
                Ok(revision) => {
                    let held = Held { revision, value };
                    lock(&self.held).insert(key.to_owned(), held);
                    return Ok(true);
                }
                Err(WriteError::Conflict(last)) => {
                    decision = self.decide_by_store(store, key, last).await?;
                }
                Err(WriteError::Unavailable(failure)) => return Err(failure),
            }
        }
        Err(busy(key))
    }

    fn decide_by_mirror(&self, key: &str) -> Decision {
        if lock(&self.held).contains_key(key) {
            return Decision::Held;
        }
        let entry = lock(&self.mirror).entry(key).cloned();
        match entry {
            None => Decision::Write(Expected::Nothing),
            Some(entry) => self.decide(&entry.state, entry.revision),
        }
    }

    /// Decides by the key's last change, which has at least the number `least`.
    async fn decide_by_store(
        &self,
        store: &Store,
        key: &str,
        least: u64,
    ) -> Result<Decision, Failure> {
        for _ in 0..ATTEMPTS {
            match store.last(key).await? {
                Some(last) if last.revision >= least => {
                    return Ok(self.decide(&last.state, last.revision));
                }
                None if least == 0 => return Ok(Decision::Write(Expected::Nothing)),
                // The answering server is behind.
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        Err(busy(key))
    }

    fn decide(&self, state: &KeyState, revision: u64) -> Decision {
        let KeyState::Value(value) = state else {
            return Decision::Write(Expected::Revision(revision));
        };
        // Both kinds of keys name their hub.
        let holder = serde_json::from_slice::<serde_json::Value>(value).ok();
        let holder = holder.and_then(|value| ProcessId::parse(value["hub"].as_str()?));
        match holder {
            Some(holder) if holder == self.me => Decision::Write(Expected::Revision(revision)),
            Some(holder) if self.is_gone(&holder) => Decision::Write(Expected::Revision(revision)),
            _ => Decision::Taken,
        }
    }

    /// Takes the name of a provider. An earlier session of the same provider at another hub is ended first.
    pub(super) async fn claim_provider(
        &self,
        store: &Store,
        name: &str,
        session: &str,
        caller: &Caller,
        manages: bool,
    ) -> Result<(), Failure> {
        let key = provider_key(name);
        let token = token_identity(caller);
        let value = ProviderValue {
            v: ProviderValue::VERSION,
            name: name.to_owned(),
            hub: self.me.as_str().to_owned(),
            session: session.to_owned(),
            token: token.clone(),
            scope: caller.scope().map(|scope| scope.as_str().to_owned()),
            manages,
            since: now_unix_ms(),
        };
        if lock(&self.held).contains_key(&key) {
            // An earlier session at this hub, which the hub itself replaces or protects.
            return Ok(());
        }
        if self.take(store, &key, value.to_bytes()).await? {
            return Ok(());
        }
        let last = store.last(&key).await?;
        let holder = last.and_then(|last| match last.state {
            KeyState::Value(value) => ProviderValue::read(&value),
            KeyState::Removed | KeyState::Expired => None,
        });
        if let Some(holder) = holder {
            let id = ProcessId::parse(&holder.hub);
            match id {
                Some(id) if !token.is_empty() && holder.token == token => {
                    self.evict(&id, name, &holder.session).await?;
                }
                _ => {
                    let message = format!("provider \"{name}\" already connected");
                    return Err(Failure::new(Code::AlreadyExists, message));
                }
            }
        }
        if self.take(store, &key, value.to_bytes()).await? {
            return Ok(());
        }
        let message = format!("provider \"{name}\" connects to another hub at the same time");
        Err(Failure::new(Code::Unavailable, message))
    }

    /// Asks another hub to end the session of a provider that has come here.
    async fn evict(&self, hub: &ProcessId, name: &str, session: &str) -> Result<(), Failure> {
        let new = NewCall {
            alias: String::new(),
            caller: super::passing_on::caller_of(&Principal::Super),
            secret: String::new(),
            what: open::What::Evict(Evict {
                provider: name.to_owned().into(),
                owner: session.to_owned().into(),
            }),
            body: bytes::Bytes::new(),
            deadline: None,
            patience: None,
            more_input: false,
        };
        let evicting = async {
            let mut call = self.talk.open(hub, &new).await.map_err(|it| it.failure)?;
            let answer = call.next().await.transpose().map_err(|it| it.failure)?;
            let text = answer.map(|answer| String::from_utf8_lossy(&answer).into_owned());
            Ok(text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0))
        };
        let evicted: Result<u64, Failure> = tokio::time::timeout(EVICT_TIMEOUT, evicting)
            .await
            .unwrap_or_else(|_| Err(Failure::new(Code::Unavailable, "no answer")));
        match evicted {
            Ok(revision) => {
                self.wait_for_revision(revision, EVICT_TIMEOUT).await;
                Ok(())
            }
            Err(failure) => {
                let message = format!(
                    "provider \"{name}\" is still connected to another hub, which does not release it: {failure}; try again"
                );
                Err(Failure::new(Code::Unavailable, message))
            }
        }
    }

    /// Returns the owner of the route that this hub has for an alias.
    pub(super) fn local_owner(&self, alias: &str) -> Option<Owner> {
        let route = self.hub()?.table().get(alias)?;
        Some(route.owner.clone()).filter(|owner| !matches!(owner, Owner::Hub(_)))
    }
}

struct ClaimedAlias {
    alias: String,
    guard: ClaimGuard,
}

fn exists(alias: &str) -> Failure {
    let message = format!("clip \"{alias}\" already exists");
    Failure::new(Code::AlreadyExists, message)
}

fn busy(what: &str) -> Failure {
    let message = format!("\"{what}\" is changed by several hubs at the same time; try again");
    Failure::new(Code::Unavailable, message)
}
