//! A hub in its cluster: the tasks of one connection after the other, and what outlives them.

mod answerer;
mod claiming;
mod lease;
mod passing_on;
mod reconcile;
mod report;
mod routes;
mod tasks;
mod tokens;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_access::{Record, TokenId};
use pinion_clip::logs::Level;
use pinion_hub::{
    Answers, Claim, Claimed, Hub, HubCall, Neighbours, RemoteProvider, RemoteRequest, Standing,
};
use pinion_status::{Code, Failure};
use pinion_sync::lock;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::lease::LeaseState;
use crate::access::ClusterAccess;
use crate::bus::{BusOptions, Epoch};
use crate::clock::now_unix_ms;
use crate::feed::Cursor;
use crate::members::{Members, Presence};
use crate::mirror::Mirror;
use crate::names::{Bucket, ProcessId};
use crate::rights::{permitted, try_rights};
use crate::servers::{Server, ServerList};
use crate::store::{KeyState, Store};
use crate::stream::Replicas;
use crate::talk::Talk;

const MAX_ID_FILE: u64 = 1_024;
/// The time for everything that a hub does before it is a member.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);
/// The time for the first beats of the others.
const HEARING_TIMEOUT: Duration = Duration::from_millis(1_200);
/// The time a hub waits for others to judge them after it has gained standing.
const JUDGE_AFTER: Duration = Duration::from_secs(20);

/// The properties of a hub in a cluster.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    pub access: ClusterAccess,
    /// The name of the hub among its members.
    pub name: String,
    /// The address of the hub for programs.
    pub url: String,
    /// The directory of the hub, where the id of its last start is stored.
    pub root: PathBuf,
}

/// A key that this hub has written and still holds.
#[derive(Debug, Clone)]
struct Held {
    revision: u64,
    value: bytes::Bytes,
}

/// A hub that is a member of a cluster.
pub struct Node {
    me: ProcessId,
    /// The id of the hub's last start, which has ended.
    earlier: std::sync::OnceLock<ProcessId>,
    options: NodeOptions,
    bucket: Bucket,
    hub: Weak<Hub>,
    this: Weak<Self>,
    talk: Arc<Talk>,
    members: Arc<Mutex<Members>>,
    mirror: Mutex<Mirror>,
    cursor: tokio::sync::Mutex<Cursor>,
    /// Keys of routes and providers.
    held: Mutex<HashMap<String, Held>>,
    /// Keys that were claimed and may not be in the routing table yet, with the number of their claims.
    pending: Mutex<HashMap<String, usize>>,
    store: Mutex<Option<Store>>,
    lease: Mutex<LeaseState>,
    isolation: Mutex<Option<tokens::Isolation>>,
    /// The revision up to which everything was applied.
    seen: watch::Sender<u64>,
    /// The highest revision that others report.
    told: watch::Sender<u64>,
    kick: Notify,
    epoch: AtomicI64,
    left: CancellationToken,
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Node")
            .field("me", &self.me)
            .field("cluster", &self.options.access.cluster)
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Makes `hub` a member of a cluster: connects, reads what the others share, takes a lease and claims the aliases of
    /// the clips installed here. Must be called before the hub answers.
    pub async fn join(hub: &Arc<Hub>, options: NodeOptions) -> Result<Arc<Self>, Failure> {
        let me = ProcessId::of_new_hub()?;
        let members = Arc::new(Mutex::new(Members::default()));
        let talk = Talk::new(
            me.clone(),
            options.access.cluster.clone(),
            members.clone(),
            Arc::new(now_unix_ms),
        );
        let node = Arc::new_cyclic(|this| Self {
            bucket: options.access.cluster.control_bucket(),
            me,
            earlier: std::sync::OnceLock::new(),
            options,
            hub: Arc::downgrade(hub),
            this: this.clone(),
            talk,
            members,
            mirror: Mutex::default(),
            cursor: tokio::sync::Mutex::new(Cursor::new()),
            held: Mutex::default(),
            pending: Mutex::default(),
            store: Mutex::default(),
            lease: Mutex::default(),
            isolation: Mutex::default(),
            seen: watch::Sender::new(0),
            told: watch::Sender::new(0),
            kick: Notify::new(),
            epoch: AtomicI64::new(0),
            left: CancellationToken::new(),
        });
        let first = node.connect_first().await?;
        let store = Store::new(first.clone(), node.bucket.clone());
        let replicas = permitted(&first, store.ensure(node.options.access.replicas)).await?;
        try_rights(&first, &node.options.access.cluster, &node.me, &store).await?;
        if replicas == Replicas(1) {
            let message =
                "the cluster stores everything once: nothing survives the loss of its server";
            hub.write_log(Level::Warn, message);
        }
        node.bury_earlier_start(&store).await?;
        node.talk
            .set_answerer(Arc::new(answerer::HubAnswerer::new(&node)));
        hub.set_neighbours(node.clone());
        tokio::spawn(tasks::run(node.clone(), first.clone()));
        let mut seen = node.seen.subscribe();
        let joining = async {
            let _ = seen.wait_for(|seen| *seen > 0).await;
            node.until_standing().await;
            node.until_others_are_heard().await;
            node.reconcile_once().await;
        };
        let joining = async {
            let joined = tokio::time::timeout(JOIN_TIMEOUT, joining).await;
            joined.map_err(|_| {
                let message = "the cluster's servers did not accept this hub in time; do they have a majority?";
                Failure::new(Code::Unavailable, message)
            })
        };
        if let Err(failure) = Box::pin(permitted(&first, joining)).await {
            node.left.cancel();
            return Err(failure);
        }
        let message = format!(
            "member {} of the cluster {}",
            node.me, node.options.access.cluster
        );
        hub.write_log(Level::Info, &message);
        Ok(node)
    }

    /// Removes the lease of the last start of this hub, which has ended: the hub's directory is locked. Its aliases are
    /// free at once.
    async fn bury_earlier_start(&self, store: &Store) -> Result<(), Failure> {
        let path = self.options.root.join(pinion_hub::CLUSTER_ID);
        let earlier = pinion_files::read_named(&path, MAX_ID_FILE).ok();
        let earlier =
            earlier.and_then(|bytes| ProcessId::parse(std::str::from_utf8(&bytes).ok()?.trim()));
        if let Some(earlier) = earlier {
            let key = crate::mirror::hub_key(&earlier);
            if let Some(last) = store.last(&key).await?
                && last.state != KeyState::Removed
            {
                // A conflict means that the lease has just expired.
                let _ = store.remove(&key, last.revision, None).await;
            }
            let _ = self.earlier.set(earlier);
        }
        let written = std::fs::write(&path, format!("{}\n", self.me));
        written.map_err(|error| Failure::io(path.display(), &error))
    }

    /// The id of this start of the hub.
    pub fn id(&self) -> &ProcessId {
        &self.me
    }

    fn bus_options(&self) -> BusOptions {
        let version = env!("CARGO_PKG_VERSION");
        BusOptions {
            name: format!("pinion-hub {} {version}", self.options.name),
            inbox: format!("_INBOX.pn.{}", self.me),
            credentials: self.options.access.credentials.clone(),
            tls: self.options.access.tls.clone(),
        }
    }

    /// Connects to the first server that accepts it. A reason that no later attempt changes is returned at once.
    async fn connect_first(&self) -> Result<Arc<Epoch>, Failure> {
        let mut last = None;
        for server in &self.options.access.servers.servers {
            match Epoch::open(server, &self.bus_options()).await {
                Ok(epoch) => return Ok(epoch),
                Err(failure) if failure.code == Code::Unavailable => last = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        Err(last.unwrap_or_else(|| Failure::invalid("the cluster has no server")))
    }

    /// The known servers: those that were named first, then those that they have announced.
    fn servers(&self, epoch: Option<&Epoch>) -> Vec<Server> {
        let mut servers = self.options.access.servers.servers.clone();
        for text in epoch.into_iter().flat_map(Epoch::discovered) {
            if let Ok(found) = ServerList::parse(text) {
                for server in found.servers {
                    if !servers
                        .iter()
                        .any(|it| it.host == server.host && it.port == server.port)
                    {
                        servers.push(server);
                    }
                }
            }
        }
        servers
    }

    fn hub(&self) -> Option<Arc<Hub>> {
        self.hub.upgrade()
    }

    fn log(&self, level: Level, message: &str) {
        if let Some(hub) = self.hub() {
            hub.write_log(level, message);
        }
    }

    /// Returns the bucket, if this hub is connected and has standing.
    fn writable(&self) -> Result<Store, Failure> {
        let store = lock(&self.store).clone();
        store
            .filter(|_| self.has_standing())
            .ok_or_else(pinion_hub::isolated)
    }

    fn has_standing(&self) -> bool {
        lock(&self.lease).has_standing(Instant::now())
    }

    async fn until_standing(&self) {
        while !self.has_standing() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits for a beat of every hub that has a lease, for a little longer than the interval of beats: some of them may
    /// be dead.
    async fn until_others_are_heard(&self) {
        let waiting = async {
            loop {
                let is_complete = {
                    let mirror = lock(&self.mirror);
                    let members = lock(&self.members);
                    let mut ids = mirror.hubs().filter_map(|(id, _)| ProcessId::parse(id));
                    ids.all(|id| members.get(&id).is_some())
                };
                if is_complete {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(HEARING_TIMEOUT, waiting).await;
    }

    /// Reports whether a process is gone: its lease was given up, or has expired and it is silent. Silence counts only
    /// after this hub has been listening with standing for the life of a lease.
    fn is_gone(&self, id: &ProcessId) -> bool {
        if *id == self.me {
            return false;
        }
        if self.earlier.get() == Some(id) {
            return true;
        }
        let now = Instant::now();
        let state = lock(&self.mirror)
            .entry(&crate::mirror::hub_key(id))
            .map(|entry| entry.state.clone());
        match state {
            Some(KeyState::Removed) => true,
            Some(KeyState::Value(_)) => false,
            Some(KeyState::Expired) | None => {
                let is_there = lock(&self.members).presence(id, now) == Presence::There;
                !is_there && lock(&self.lease).judges(now, JUDGE_AFTER)
            }
        }
    }

    /// Waits up to `limit` until everything up to `revision` was applied.
    async fn wait_for_revision(&self, revision: u64, limit: Duration) -> bool {
        self.told.send_if_modified(|told| {
            let is_newer = *told < revision;
            *told = (*told).max(revision);
            is_newer
        });
        let mut seen = self.seen.subscribe();
        let waiting = seen.wait_for(|seen| *seen >= revision);
        tokio::time::timeout(limit, waiting).await.is_ok()
    }

    /// Announces that this hub will leave: calls of other hubs are refused from now on, and not started.
    pub async fn announce_leaving(&self) {
        self.talk.leave();
        tasks::beat(self).await;
    }

    /// Gives up everything that this hub holds, in order: new calls are refused, routes and the lease are removed.
    pub async fn leave(&self) {
        self.announce_leaving().await;
        self.release_all().await;
        self.left.cancel();
    }

    fn next_epoch(&self) -> i64 {
        self.epoch.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Neighbours for Node {
    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Claimed, Failure>> {
        Box::pin(self.claim_routes(claim))
    }

    fn invoke(&self, hub: Arc<str>, alias: String, call: HubCall) -> Answers {
        self.pass_call_on(hub, alias, call)
    }

    fn request(&self, hub: Arc<str>, request: RemoteRequest) -> Answers {
        self.pass_request_on(hub, request)
    }

    fn providers(&self) -> Vec<RemoteProvider> {
        self.remote_providers()
    }

    fn share_token(&self, record: Record) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(self.store_token(record))
    }

    fn revoke_token(&self, id: TokenId) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(self.remove_token(id))
    }

    fn name(&self) -> &str {
        &self.options.name
    }

    fn standing(&self) -> Standing {
        if self.has_standing() {
            Standing::Ok
        } else {
            Standing::Isolated
        }
    }

    fn report(&self) -> serde_json::Value {
        self.describe()
    }
}
