//! Installing and removing clips through whoever does that at another place.

use std::sync::Arc;

use pinion_access::{Principal, Scope};
use pinion_clip::logs::Level;
use pinion_proto::hub::ClipInfo;
use pinion_status::{Code, Failure};

use super::heard::Dialect;
use super::runtimes::RuntimeSession;
use super::session::Session;
use crate::Hub;
use crate::convert::clip_info;
use crate::table::{Owner, Route, Table};

/// Somebody who installs clips at another place.
#[derive(Debug, Clone)]
pub(crate) enum Manager {
    /// Over a stream of its own.
    Stream(Arc<RuntimeSession>),
    /// Over the stream on which it offers clips.
    Typed(Arc<Session>),
}

impl Manager {
    /// Its name.
    pub(crate) fn name(&self) -> Arc<str> {
        match self {
            Self::Stream(runtime) => runtime.name(),
            Self::Typed(session) => session.name(),
        }
    }

    fn scope(&self) -> Option<&Scope> {
        match self {
            Self::Stream(runtime) => runtime.caller.scope(),
            Self::Typed(session) => session.caller.scope(),
        }
    }
}

impl Hub {
    /// Who installs clips, among those that `caller` may know of.
    pub(crate) fn managers(&self, caller: &Principal) -> Vec<Manager> {
        let streams = self.sessions().runtimes().into_iter();
        let typed = self.sessions().providers().into_iter();
        let typed = typed.filter(|it| it.manages() && it.dialect() == Dialect::Typed);
        let all = streams
            .map(Manager::Stream)
            .chain(typed.map(Manager::Typed));
        all.filter(|manager| caller.sees_provider(manager.scope()))
            .collect()
    }

    /// The session on which the clips of `manager` are offered.
    fn offering(&self, manager: &Manager) -> Result<Arc<Session>, Failure> {
        let session = match manager {
            Manager::Typed(session) => Some(session.clone()),
            Manager::Stream(runtime) => self.sessions().provider(&runtime.name()),
        };
        session.ok_or_else(|| Failure::new(Code::Unavailable, "provider stream is not connected"))
    }

    /// Has a clip installed at another place. Done when it can be called.
    pub(crate) async fn install_at(
        &self,
        manager: &Manager,
        source: &str,
        requested: Option<&str>,
        secret: &str,
    ) -> Result<ClipInfo, Failure> {
        let session = self.offering(manager)?;
        let reservation = self.table().reserve(requested, source, &session.owner)?;
        let alias = reservation.alias();
        let before = self.table().get(alias);
        let granted = match manager {
            Manager::Stream(runtime) => {
                let clip = runtime.install(source, alias, secret).await?;
                let name = pinion_clip::alias::normalise(&clip.name);
                name.unwrap_or_else(|| alias.to_owned())
            }
            Manager::Typed(session) => {
                let limit = session.limits.install;
                session.have_installed(source, alias, secret, limit).await?
            }
        };
        let name = session.name();
        let offered = |table: &Table| {
            let is_theirs = |route: &Arc<Route>| {
                matches!(route.owner, Owner::Session(_)) && route.provider == name
            };
            table.get(&granted).filter(is_theirs)
        };
        let is_new = |route: &Arc<Route>| !before.as_ref().is_some_and(|it| Arc::ptr_eq(it, route));
        let route = settled(self.table(), session.limits.settling, |table| {
            offered(table).filter(is_new)
        });
        // One that was there before may have been good enough.
        let route = route.await.or_else(|| offered(self.table()));
        let route = route.ok_or_else(|| {
            let message =
                format!("runtime \"{name}\" has installed \"{granted}\" but does not offer it");
            self.say(Level::Warn, &message);
            Failure::new(Code::Unavailable, message)
        })?;
        Ok(clip_info(&route))
    }

    /// Has a clip removed at another place. Done when it can no longer be called.
    pub(crate) async fn remove_at(&self, route: &Route, purge: bool) -> Result<(), Failure> {
        let refused = || {
            let message = format!(
                "provider \"{}\" does not accept manage operations",
                route.provider
            );
            Failure::new(Code::PermissionDenied, message)
        };
        let session = self.sessions().owning(&route.owner).ok_or_else(refused)?;
        let name = session
            .own_name(&route.alias)
            .ok_or_else(|| Failure::no_clip(&route.alias))?;
        if let Some(runtime) = self.sessions().runtime(&session.name()) {
            runtime.remove(&name, purge).await?;
        } else if session.manages() {
            let limit = session.limits.install;
            session.have_removed(&name, purge, limit).await?;
        } else {
            return Err(refused());
        }
        let gone = settled(self.table(), session.limits.settling, |table| {
            let still = table.get(&route.alias);
            still
                .is_none_or(|still| still.owner != route.owner)
                .then_some(())
        });
        if gone.await.is_none() {
            self.withdraw(&session, &[name]);
        }
        Ok(())
    }
}

/// Waits until the table is as it should be, for a while: what happens on one stream may be heard before what happened
/// earlier on another.
async fn settled<T>(
    table: &Table,
    limit: std::time::Duration,
    look: impl Fn(&Table) -> Option<T>,
) -> Option<T> {
    let mut changes = table.changes();
    let waiting = async {
        loop {
            changes.borrow_and_update();
            if let Some(found) = look(table) {
                return Some(found);
            }
            changes.changed().await.ok()?;
        }
    };
    tokio::time::timeout(limit, waiting).await.ok().flatten()
}
