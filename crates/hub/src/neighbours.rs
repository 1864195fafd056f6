//! The other hubs of a cluster, as this hub knows them: a trait that the owner of the program implements, the clips of
//! other hubs as endpoints, and the answers to requests that other hubs pass on.
//!
//! Without a cluster nothing of it exists, and the routing table has routes of this hub only.

mod answering;
mod peer_clip;
mod remote_requests;
mod shared_route;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pinion_access::{Caller, Method, Principal, Record, Scope, TokenId};
use pinion_proto::hub::ProviderInfo;
use pinion_status::{Code, Failure};

use crate::endpoint::{Answers, HubCall};
use crate::table::Conflict;

pub use self::answering::NotHere;
pub use self::shared_route::{SharedRoute, state_of};

/// The file in the directory of a hub with the id of its last start in a cluster.
pub const CLUSTER_ID: &str = "cluster-id";

/// The other hubs of a cluster.
pub trait Neighbours: fmt::Debug + Send + Sync {
    /// Claims aliases for this hub, all of them or none, before their provider receives an answer.
    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Claimed, Failure>>;

    /// Calls a clip of another hub. Returns at once; every failure is an item of the answer.
    fn invoke(&self, hub: Arc<str>, alias: String, call: HubCall) -> Answers;

    /// Passes a request on to another hub. The answer consists of messages, one unless the method is a stream.
    fn request(&self, hub: Arc<str>, request: RemoteRequest) -> Answers;

    /// Returns the providers that are connected to other hubs, with the hub of each.
    fn providers(&self) -> Vec<RemoteProvider>;

    /// Stores a token for all hubs. They accept it once the feed of the cluster has reached them.
    fn share_token(&self, record: Record) -> BoxFuture<'_, Result<(), Failure>>;

    /// Revokes a token that the cluster stores. Every hub with standing refuses it within a second.
    fn revoke_token(&self, id: TokenId) -> BoxFuture<'_, Result<(), Failure>>;

    /// The name of this hub among the members.
    fn name(&self) -> &str;

    /// Reports whether this hub can change what all hubs share.
    fn standing(&self) -> Standing;

    /// Describes the members of the cluster for people and programs.
    fn report(&self) -> serde_json::Value;
}

/// Aliases that this hub wants to hold.
#[derive(Debug)]
pub struct Claim {
    pub claimant: Claimant,
    pub conflict: Conflict,
    /// The routes, under the requested aliases.
    pub routes: Vec<SharedRoute>,
}

/// The owner of claimed aliases.
#[derive(Debug, Clone)]
pub enum Claimant {
    /// The clips installed on this hub.
    Local,
    /// A provider that is connected to this hub.
    Provider {
        name: Arc<str>,
        session: Arc<str>,
        caller: Caller,
        manages: bool,
    },
}

/// Aliases that were claimed. They are given back if they are not in the routing table when this is dropped.
pub struct Claimed {
    /// The granted aliases, in the order of the claim.
    pub aliases: Vec<String>,
    pub guard: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Claimed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Claimed")
            .field("aliases", &self.aliases)
            .finish_non_exhaustive()
    }
}

/// A request of the hub's service, for another hub.
#[derive(Debug, Clone)]
pub struct RemoteRequest {
    pub caller: Principal,
    pub method: Method,
    /// The clip, which must be held by the other hub; empty for requests without a clip.
    pub alias: String,
    /// The encoded message of the service.
    pub message: Bytes,
}

/// A provider that is connected to another hub.
#[derive(Debug, Clone)]
pub struct RemoteProvider {
    pub hub: Arc<str>,
    pub scope: Option<Scope>,
    pub info: ProviderInfo,
}

/// The state of a hub in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It can change what all hubs share.
    Ok,
    /// It cannot reach the servers that decide.
    Isolated,
}

impl Standing {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Isolated => "isolated",
        }
    }
}

/// The name under which the other hubs list the clips installed at a hub.
pub fn own_provider_name(hub: &str) -> String {
    format!("{}@{hub}", crate::hub::LOCAL)
}

/// The failure of a change that needs the cluster while this hub is isolated.
pub fn isolated() -> Failure {
    let message = "this hub cannot reach the majority of the cluster's servers; try again later";
    Failure::new(Code::Unavailable, message)
}
