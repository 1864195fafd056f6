//! Installing, removing and binding clips.

use pinion_access::{Caller, Method, Scope};
use pinion_clip::alias;
use pinion_clip::install::Purge;
use pinion_clip::logs::Level;
use pinion_proto::hub::{AddClipRequest, AddClipResponse, RemoveClipRequest, RemoveClipResponse};
use pinion_status::{Code, Failure};

use super::catalogue::named;
use super::required;
use crate::Hub;
use crate::convert::{clip_info, text};
use crate::hub::{LOCAL, local_route, view};
use crate::neighbours::{Claimant, SharedRoute, own_provider_name};
use crate::provider::Manager;
use crate::table::{Conflict, Owner, Route};

impl Hub {
    pub(crate) async fn add_clip(
        &self,
        caller: &Caller,
        request: AddClipRequest,
    ) -> Result<AddClipResponse, Failure> {
        let source = source(&request)?;
        let requested = [&request.requested_alias, &request.name]
            .into_iter()
            .map(|alias| alias.trim())
            .find(|alias| !alias.is_empty());
        if let Some(requested) = requested {
            let alias = alias::normalise(requested).unwrap_or_default();
            let present = self.table().get(&alias);
            caller.may_install(&alias, present.as_deref().map(view))?;
        }
        let provider = request.provider.trim();
        if !self.knows_manager(caller, provider)
            && let Some(answer) = self.pass_installation_on(caller, provider, &request).await
        {
            return answer;
        }
        match self.install_target(caller, provider)? {
            InstallTarget::Local => {}
            InstallTarget::Remote(manager) => {
                let message = format!("{} has \"{}\" install {source}", **caller, manager.name());
                self.write_log(Level::Info, &message);
                let clip = self
                    .install_at(&manager, &source, requested, &request.clip_token)
                    .await?;
                return Ok(AddClipResponse { clip: Some(clip) });
            }
        }
        let owner = caller.scope().map_or("", Scope::as_str);
        self.write_log(Level::Info, &format!("{} installs {source}", **caller));
        let route = self
            .install_here(requested, &source, &request.clip_token, owner)
            .await?;
        let clip = Some(clip_info(&route));
        Ok(AddClipResponse { clip })
    }

    pub(crate) async fn remove_clip(
        &self,
        caller: &Caller,
        request: RemoveClipRequest,
    ) -> Result<RemoveClipResponse, Failure> {
        let route = self.find(caller, Method::RemoveClip, named(&request.clip_name)?)?;
        if let Some(answer) = self
            .pass_on(caller, Method::RemoveClip, &route, &request)
            .await
        {
            return answer;
        }
        if route.owner != Owner::Local || self.runtime().is_none() {
            self.remove_at(&route, request.purge).await?;
            let message = format!("{} removed \"{}\"", **caller, route.alias);
            self.write_log(Level::Info, &message);
            return Ok(RemoveClipResponse {
                clip_name: text(&route.alias),
            });
        }
        let purge = if request.purge {
            Purge::Data
        } else {
            Purge::Nothing
        };
        let installed = self.runtime().and_then(|runtime| runtime.at(&route));
        let name = installed.map_or_else(|| route.alias.clone(), |it| it.record().name.clone());
        self.remove_here(&route.alias, &name, purge).await?;
        self.write_log(
            Level::Info,
            &format!("{} removed \"{}\"", **caller, route.alias),
        );
        Ok(RemoveClipResponse {
            clip_name: text(&route.alias),
        })
    }
}

/// The machine on which a clip is installed.
enum InstallTarget {
    Local,
    Remote(Manager),
}

impl Hub {
    /// Installs a clip on this machine and adds it to the routing table.
    pub(crate) async fn install_here(
        &self,
        requested: Option<&str>,
        source: &str,
        secret: &str,
        owner: &str,
    ) -> Result<Route, Failure> {
        let runtime = self.runtime().ok_or_else(no_runtime)?;
        let reservation = self.table().reserve(requested, source, &Owner::Local)?;
        let alias = reservation.alias();
        let wanted = SharedRoute::planned(alias, LOCAL, owner.parse().ok(), !secret.is_empty());
        let _claimed = self
            .claim(Claimant::Local, Conflict::Refuse, vec![wanted])
            .await?;
        let installed = runtime
            .install(alias, source, secret, owner)
            .await
            .inspect_err(|failure| {
                let message = format!("\"{alias}\" was not installed: {failure}");
                self.write_log(Level::Warn, &message);
            })?;
        let route = local_route(installed);
        self.table().insert(vec![route.clone()], Conflict::Refuse)?;
        Ok(route)
    }

    /// Removes a clip of this machine: its route, and its installation, whose name differs if another hub of the cluster
    /// holds it.
    pub(crate) async fn remove_here(
        &self,
        alias: &str,
        name: &str,
        purge: Purge,
    ) -> Result<(), Failure> {
        let runtime = self.runtime().ok_or_else(no_runtime)?;
        self.table().remove(alias, &Owner::Local);
        runtime.remove(name, purge).await
    }

    /// Reports whether this hub itself installs for a request that names this provider.
    fn knows_manager(&self, caller: &Caller, provider: &str) -> bool {
        provider.is_empty()
            || provider == LOCAL
            || self
                .managers(caller)
                .iter()
                .any(|it| *it.name() == *provider)
            || self.sessions().provider(provider).is_some()
    }

    /// Chooses the machine for a request that names this provider; empty if it names none.
    fn install_target(&self, caller: &Caller, provider: &str) -> Result<InstallTarget, Failure> {
        let is_own = self
            .neighbours()
            .is_some_and(|it| *provider == own_provider_name(it.name()));
        let provider = if is_own { LOCAL } else { provider };
        if self.runtime().is_some() && (provider.is_empty() || provider == LOCAL) {
            return Ok(InstallTarget::Local);
        }
        let mut managers = self.managers(caller);
        if provider.is_empty() {
            if managers.len() > 1 {
                let message = "provider is required when multiple runtimes are connected";
                return Err(Failure::invalid(message));
            }
            return managers
                .pop()
                .map(InstallTarget::Remote)
                .ok_or_else(no_runtime);
        }
        if let Some(manager) = managers.into_iter().find(|it| *it.name() == *provider) {
            return Ok(InstallTarget::Remote(manager));
        }
        let session = self.sessions().provider(provider);
        let is_known = session.is_some_and(|it| caller.sees_provider(it.caller.scope()));
        Err(if is_known {
            Failure::new(
                Code::PermissionDenied,
                format!("provider \"{provider}\" does not accept manage operations"),
            )
        } else {
            Failure::new(Code::NotFound, format!("provider \"{provider}\" not found"))
        })
    }
}

/// Returns the source of the clip, which a request gives as `source` or as `package` and `version`.
fn source(request: &AddClipRequest) -> Result<String, Failure> {
    let (source, package) = (request.source.trim(), request.package.trim());
    match (source, package, request.version.trim()) {
        ("", "", _) => Err(required("source")),
        ("", package, "") => Ok(package.to_owned()),
        ("", package, version) => Ok(format!("{package}@{version}")),
        (source, ..) => Ok(source.to_owned()),
    }
}

fn no_runtime() -> Failure {
    let message = "this hub runs no clips of its own and no runtime is connected";
    Failure::new(Code::FailedPrecondition, message)
}
