//! The bindings of dependency slots to clips. Only clips installed here have bindings, which are stored with the clip.

use std::sync::Arc;

use pinion_access::{Caller, Method};
use pinion_clip::bindings::Binding;
use pinion_proto::hub::{
    ClipBinding, GetBindingsRequest, GetBindingsResponse, RemoveBindingRequest,
    RemoveBindingResponse, SetBindingRequest, SetBindingResponse,
};
use pinion_status::{Code, Failure};

use super::catalogue::named;
use super::required;
use crate::Hub;
use crate::convert::{dependency_slot, text};
use crate::runtime::{Installed, Runtime};
use crate::table::Route;

impl Hub {
    pub(crate) async fn get_bindings(
        &self,
        caller: &Caller,
        request: GetBindingsRequest,
    ) -> Result<GetBindingsResponse, Failure> {
        let route = self.find(caller, Method::GetBindings, named(&request.clip_name)?)?;
        if let Some(answer) = self
            .pass_on(caller, Method::GetBindings, &route, &request)
            .await
        {
            return answer;
        }
        let (runtime, clip) = self.bound(&route)?;
        let bindings = runtime.bindings(&clip).await?;
        let manifest = clip.clip().manifest();
        let slots = manifest.dependencies.iter();
        Ok(GetBindingsResponse {
            bindings: bindings
                .iter()
                .map(|(slot, binding)| (text(slot), without_secrets(binding)))
                .collect(),
            dependency_slots: slots
                .map(|(slot, wanted)| (text(slot), dependency_slot(wanted)))
                .collect(),
        })
    }

    pub(crate) async fn set_binding(
        &self,
        caller: &Caller,
        request: SetBindingRequest,
    ) -> Result<SetBindingResponse, Failure> {
        let route = self.find(caller, Method::SetBinding, named(&request.clip_name)?)?;
        if let Some(answer) = self
            .pass_on(caller, Method::SetBinding, &route, &request)
            .await
        {
            return answer;
        }
        let (runtime, clip) = self.bound(&route)?;
        let wanted = request.binding.ok_or_else(|| required("binding.alias"))?;
        let binding = Binding {
            alias: wanted.alias.to_string(),
            hub: wanted.hub.to_string(),
            hub_token: wanted.hub_token.to_string(),
            clip_token: wanted.clip_token.to_string(),
        };
        runtime.bind(&clip, &request.slot, Some(binding)).await?;
        Ok(SetBindingResponse {})
    }

    pub(crate) async fn remove_binding(
        &self,
        caller: &Caller,
        request: RemoveBindingRequest,
    ) -> Result<RemoveBindingResponse, Failure> {
        let route = self.find(caller, Method::RemoveBinding, named(&request.clip_name)?)?;
        if let Some(answer) = self
            .pass_on(caller, Method::RemoveBinding, &route, &request)
            .await
        {
            return answer;
        }
        let (runtime, clip) = self.bound(&route)?;
        if request.slot.trim().is_empty() {
            return Err(required("slot"));
        }
        runtime.bind(&clip, &request.slot, None).await?;
        Ok(RemoveBindingResponse {})
    }

    fn bound(&self, route: &Route) -> Result<(&Arc<Runtime>, Arc<Installed>), Failure> {
        let runtime = self.runtime();
        let installed = runtime.and_then(|runtime| Some((runtime, runtime.at(route)?)));
        installed.ok_or_else(|| {
            let message = format!(
                "clip \"{}\" is not installed here; only installed clips have bindings",
                route.alias
            );
            Failure::new(Code::FailedPrecondition, message)
        })
    }
}

/// Omits the tokens of a binding: the hub never returns them.
fn without_secrets(binding: &Binding) -> ClipBinding {
    ClipBinding {
        alias: text(&binding.alias),
        hub: text(&binding.hub),
        ..ClipBinding::default()
    }
}
