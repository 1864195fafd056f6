//! A route in the form that hubs share.

use std::sync::Arc;

use pinion_access::Scope;
use pinion_clip::{ClipState, Status};
use pinion_proto::hub::ClipRegistration;

use crate::Hub;
use crate::convert::clip_registration;
use crate::table::{Owner, Route};

/// A route of one hub as the others see it.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedRoute {
    pub alias: String,
    /// The name of the provider, for display.
    pub provider: Arc<str>,
    pub scope: Option<Scope>,
    pub guarded: bool,
    pub status: Status,
    /// The id of the provider's session; empty for clips installed at the hub.
    pub session: String,
    /// The manifest.
    pub registration: ClipRegistration,
}

impl SharedRoute {
    /// Describes a route of this hub; `None` for parts of the program and for routes of other hubs.
    pub fn of(route: &Route) -> Option<Self> {
        let session = match &route.owner {
            Owner::Local => String::new(),
            Owner::Session(id) => id.to_string(),
            Owner::Builtin | Owner::Hub(_) => return None,
        };
        let snapshot = route.endpoint.snapshot();
        let guarded = route.endpoint.is_guarded();
        Some(Self {
            alias: route.alias.clone(),
            provider: route.provider.clone(),
            scope: route.scope.clone(),
            guarded,
            session,
            registration: clip_registration(&route.alias, &snapshot, guarded),
            status: snapshot.status,
        })
    }

    /// Describes a route that will exist, for a claim.
    pub(crate) fn planned(
        alias: &str,
        provider: &str,
        scope: Option<Scope>,
        guarded: bool,
    ) -> Self {
        Self {
            alias: alias.to_owned(),
            provider: provider.into(),
            scope,
            guarded,
            status: Status {
                state: ClipState::Sleeping,
                message: String::new(),
            },
            session: String::new(),
            registration: ClipRegistration::default(),
        }
    }

    /// The name of the clip's state in the cluster.
    pub fn state_name(&self) -> &'static str {
        match self.status.state {
            ClipState::Running => "running",
            ClipState::Sleeping => "sleeping",
            ClipState::Error => "error",
        }
    }
}

/// Reads the name of a clip's state.
pub fn state_of(name: &str) -> ClipState {
    match name {
        "sleeping" => ClipState::Sleeping,
        "error" => ClipState::Error,
        _ => ClipState::Running,
    }
}

impl Hub {
    /// Returns the routes that belong to this hub in the cluster.
    pub fn shared_routes(&self) -> Vec<SharedRoute> {
        let own = self
            .table()
            .routes(|route| matches!(route.owner, Owner::Local | Owner::Session(_)));
        own.iter()
            .filter_map(|route| SharedRoute::of(route))
            .collect()
    }
}
