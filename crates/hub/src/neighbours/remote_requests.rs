//! This hub's requests to the others, and what the others may change here.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use pinion_access::{Caller, Method};
use pinion_clip::CallError;
use pinion_clip::logs::Level;
use pinion_proto::Binary;
use pinion_proto::hub::GetLogsRequest;
use pinion_status::{Code, Failure};

use super::answering::read;
use super::peer_clip::ask;
use super::{Claim, Claimant, Claimed, Neighbours, RemoteRequest, SharedRoute, Standing};
use crate::Hub;
use crate::endpoint::Answers;
use crate::service::LogLines;
use crate::table::{Conflict, Owner, Route};

impl Hub {
    /// Makes this hub a member of a cluster. Only the first call has an effect.
    pub fn set_neighbours(&self, neighbours: Arc<dyn Neighbours>) {
        let _ = self.neighbours_cell().set(neighbours);
    }

    /// The other hubs, if this hub belongs to a cluster.
    pub fn neighbours(&self) -> Option<&Arc<dyn Neighbours>> {
        self.neighbours_cell().get()
    }

    /// The state of this hub in its cluster; `None` if it belongs to none.
    pub fn standing(&self) -> Option<Standing> {
        self.neighbours().map(|neighbours| neighbours.standing())
    }

    /// Claims aliases in the cluster. Without a cluster there is nothing to claim.
    pub(crate) async fn claim(
        &self,
        claimant: Claimant,
        conflict: Conflict,
        routes: Vec<SharedRoute>,
    ) -> Result<Option<Claimed>, Failure> {
        let Some(neighbours) = self.neighbours() else {
            return Ok(None);
        };
        let claim = Claim {
            claimant,
            conflict,
            routes,
        };
        neighbours.claim(claim).await.map(Some)
    }

    /// Passes a request on to the hub that holds the route; `None` if this hub holds it.
    pub(crate) async fn pass_on<Q: Binary, A: Binary>(
        &self,
        caller: &Caller,
        method: Method,
        route: &Route,
        request: &Q,
    ) -> Option<Result<A, Failure>> {
        let Owner::Hub(hub) = &route.owner else {
            return None;
        };
        let neighbours = self.neighbours()?;
        let request = RemoteRequest {
            caller: caller.principal.clone(),
            method,
            alias: route.alias.clone(),
            message: request.to_bytes(),
        };
        let asked = ask(&**neighbours, hub.clone(), request).await;
        Some(asked.map_err(CallError::into_failure))
    }

    /// Passes an installation on to the hub to which the named provider is connected; `None` if none is.
    pub(crate) async fn pass_installation_on<Q: Binary, A: Binary>(
        &self,
        caller: &Caller,
        provider: &str,
        request: &Q,
    ) -> Option<Result<A, Failure>> {
        let neighbours = self.neighbours()?;
        let known = neighbours.providers();
        let found = known.into_iter().find(|it| *it.info.name == *provider)?;
        if !caller.sees_provider(found.scope.as_ref()) {
            return None;
        }
        let request = RemoteRequest {
            caller: caller.principal.clone(),
            method: Method::AddClip,
            alias: String::new(),
            message: request.to_bytes(),
        };
        let asked = ask(&**neighbours, found.hub, request).await;
        Some(asked.map_err(CallError::into_failure))
    }

    /// Asks the hub that holds the route for its log; `None` if this hub holds it.
    pub(crate) fn remote_logs(
        &self,
        caller: &Caller,
        route: &Route,
        request: &GetLogsRequest,
    ) -> Option<Answers> {
        let Owner::Hub(hub) = &route.owner else {
            return None;
        };
        let request = RemoteRequest {
            caller: caller.principal.clone(),
            method: Method::GetLogs,
            alias: route.alias.clone(),
            message: request.to_bytes(),
        };
        Some(self.neighbours()?.request(hub.clone(), request))
    }

    /// Answers with the log of a clip of this hub.
    pub(super) fn logs_for_neighbour(
        self: Arc<Self>,
        caller: &Caller,
        message: Bytes,
    ) -> Result<Answers, Failure> {
        let request: GetLogsRequest = read(message)?;
        if request.system {
            let message = "the log of a hub is read at that hub";
            return Err(Failure::new(Code::Unimplemented, message));
        }
        let (name, log) = self.log_of(caller, &request)?;
        let begun = (name, log, request);
        let lines = stream::unfold((Some(begun), None::<LogLines>), |(begun, lines)| async {
            let mut lines = match (begun, lines) {
                (Some((name, log, request)), _) => {
                    match LogLines::open(name, log, &request).await {
                        Ok(lines) => lines,
                        Err(failure) => {
                            return Some((Err(CallError::Unanswered(failure)), (None, None)));
                        }
                    }
                }
                (None, Some(lines)) => lines,
                (None, None) => return None,
            };
            let entry = lines.next().await?;
            Some((Ok(entry.to_bytes()), (None, Some(lines))))
        });
        Ok(Box::pin(lines))
    }

    /// Ends the session of a provider because it has connected to another hub. Returns the aliases that it had.
    pub fn evict_provider(&self, name: &str, owner: &str) -> Vec<String> {
        let Some(session) = self.sessions().provider(name) else {
            return Vec::new();
        };
        tracing::debug!(name, owner, "a provider has connected to another hub");
        let aliases = session.aliases();
        self.dismiss(
            &session,
            "the provider has connected to another hub of the cluster",
        );
        aliases
    }

    /// Reacts to the loss of an alias: another hub took it while this one was away. The session of its provider ends;
    /// a clip installed here is claimed again under another alias.
    pub fn lose_alias(&self, alias: &str) {
        let Some(route) = self.table().get(alias) else {
            return;
        };
        if let Some(session) = self.sessions().owning(&route.owner) {
            let message = format!("\"{alias}\" was taken by another hub of the cluster");
            self.write_log(Level::Warn, &message);
            self.dismiss(&session, "its alias was taken while this hub was away");
        }
    }

    /// Gives a clip installed here another alias in the routing table.
    pub fn rename_local(&self, alias: &str, other: &str) {
        if let Some(route) = self.table().remove(alias, &Owner::Local) {
            let mut renamed = (*route).clone();
            other.clone_into(&mut renamed.alias);
            if let Err(failure) = self.table().insert(vec![renamed], Conflict::Refuse) {
                let message = format!("\"{alias}\" is not offered: {failure}");
                self.write_log(Level::Error, &message);
            }
        }
    }

    /// Returns the names of the providers that are connected to this hub.
    pub fn provider_claims(&self) -> Vec<Claimant> {
        let sessions = self.sessions().providers();
        sessions.iter().map(|session| session.claimant()).collect()
    }

    /// Describes the owner of a route of this hub for a claim; `None` if its session has ended.
    pub fn claimant_of(&self, owner: &Owner) -> Option<Claimant> {
        match owner {
            Owner::Local => Some(Claimant::Local),
            Owner::Session(_) => Some(self.sessions().owning(owner)?.claimant()),
            Owner::Builtin | Owner::Hub(_) => None,
        }
    }
}
