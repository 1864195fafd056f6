//! Installing, removing and binding clips.

use pinion_access::{Caller, Method, Scope};
use pinion_clip::install::Purge;
use pinion_clip::logs::Level;
use pinion_proto::hub::{AddClipRequest, AddClipResponse, RemoveClipRequest, RemoveClipResponse};
use pinion_status::{Code, Failure};

use super::catalogue::named;
use super::required;
use crate::Hub;
use crate::convert::{clip_info, text};
use crate::hub::{local_route, view};
use crate::table::{Conflict, Owner};

impl Hub {
    pub(super) async fn add_clip(
        &self,
        caller: &Caller,
        request: AddClipRequest,
    ) -> Result<AddClipResponse, Failure> {
        let source = source(&request)?;
        let requested = [&request.requested_alias, &request.name]
            .into_iter()
            .map(|alias| alias.trim())
            .find(|alias| !alias.is_empty());
        let runtime = self.runtime().ok_or_else(no_runtime)?;
        if let Some(requested) = requested {
            let present = self.table().get(requested);
            caller.may_install(requested, present.as_deref().map(view))?;
        }
        let reservation = self.table().reserve(requested, &source, &Owner::Local)?;
        let owner = caller.scope().map_or("", Scope::as_str);
        let alias = reservation.alias();
        self.say(
            Level::Info,
            &format!("{} installs \"{alias}\" from {source}", **caller),
        );
        let installed = runtime
            .install(alias, &source, &request.clip_token, owner)
            .await
            .inspect_err(|failure| {
                self.say(
                    Level::Warn,
                    &format!("\"{alias}\" was not installed: {failure}"),
                );
            })?;
        let route = local_route(installed);
        let clip = Some(clip_info(&route));
        self.table().insert(vec![route], Conflict::Refuse)?;
        Ok(AddClipResponse { clip })
    }

    pub(super) async fn remove_clip(
        &self,
        caller: &Caller,
        request: RemoveClipRequest,
    ) -> Result<RemoveClipResponse, Failure> {
        let route = self.find(caller, Method::RemoveClip, named(&request.clip_name)?)?;
        let runtime = match (&route.owner, self.runtime()) {
            (Owner::Local, Some(runtime)) => runtime,
            _ => {
                let message = format!(
                    "provider \"{}\" does not accept manage operations",
                    route.provider
                );
                return Err(Failure::new(Code::PermissionDenied, message));
            }
        };
        let purge = if request.purge {
            Purge::Data
        } else {
            Purge::Nothing
        };
        self.table().remove(&route.alias, &Owner::Local);
        runtime.remove(&route.alias, purge).await?;
        self.say(
            Level::Info,
            &format!("{} removed \"{}\"", **caller, route.alias),
        );
        Ok(RemoveClipResponse {
            clip_name: text(&route.alias),
        })
    }
}

/// Where the clip is to come from, however the request says it.
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
