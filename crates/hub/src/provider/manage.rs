//! Installing and removing clips through connected runtimes.

use std::sync::Arc;

use pinion_access::{Principal, Scope};
use pinion_clip::logs::Level;
use pinion_proto::hub::ClipInfo;
use pinion_status::{Code, Failure};

use super::incoming::Dialect;
use super::runtimes::RuntimeSession;
use super::session::Session;
use crate::Hub;
use crate::convert::clip_info;
use crate::table::{Owner, Route, Table};

/// A peer that installs clips on its machine.
#[derive(Debug, Clone)]
pub(crate) enum Manager {
    /// A runtime with a stream for installations.
    Stream(Arc<RuntimeSession>),
    /// A typed provider that receives installations on its provider stream.
    Typed(Arc<Session>),
}

impl Manager {
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
    /// Returns the peers that install clips and that `caller` may see.
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

    /// Returns the session on which `manager` offers its clips.
    fn offering(&self, manager: &Manager) -> Result<Arc<Session>, Failure> {
        let session = match manager {
            Manager::Typed(session) => Some(session.clone()),
            Manager::Stream(runtime) => self.sessions().provider(&runtime.name()),
        };
        session.ok_or_else(|| Failure::new(Code::Unavailable, "provider stream is not connected"))
    }

    /// Installs a clip through `manager`. Returns once the clip can be called.
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
                let limit = session.limits.install_timeout;
                session
                    .request_install(source, alias, secret, limit)
                    .await?
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
        let route = settled(self.table(), session.limits.settle_timeout, |table| {
            offered(table).filter(is_new)
        });
        // The runtime may have left an identical version in place.
        let route = route.await.or_else(|| offered(self.table()));
        let route = route.ok_or_else(|| {
            let message =
                format!("runtime \"{name}\" has installed \"{granted}\" but does not offer it");
            self.write_log(Level::Warn, &message);
            Failure::new(Code::Unavailable, message)
        })?;
        Ok(clip_info(&route))
    }

    /// Removes a clip through its provider. Returns once the clip can no longer be called.
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
            .name_at_provider(&route.alias)
            .ok_or_else(|| Failure::no_clip(&route.alias))?;
        if let Some(runtime) = self.sessions().runtime(&session.name()) {
            runtime.remove(&name, purge).await?;
        } else if session.manages() {
            let limit = session.limits.install_timeout;
            session.request_removal(&name, purge, limit).await?;
        } else {
            return Err(refused());
        }
        let gone = settled(self.table(), session.limits.settle_timeout, |table| {
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

/// Waits up to `limit` until `find` succeeds on the routing table. Needed because messages of one peer's two streams
/// may arrive out of order.
async fn settled<T>(
    table: &Table,
    limit: std::time::Duration,
    find: impl Fn(&Table) -> Option<T>,
) -> Option<T> {
    let mut changes = table.changes();
    let waiting = async {
        loop {
            changes.borrow_and_update();
            if let Some(found) = find(table) {
                return Some(found);
            }
            changes.changed().await.ok()?;
        }
    };
    tokio::time::timeout(limit, waiting).await.ok().flatten()
}
