//! Descriptions of the hub, its clips, their manifests and pages, and its providers.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinion_access::{Caller, Method, Scope};
use pinion_clip::web::WebRequest;
use pinion_proto::Text;
use pinion_proto::hub::{
    GetClipWebRequest, GetClipWebResponse, GetManifestRequest, GetManifestResponse, HubInfoRequest,
    HubInfoResponse, ListClipsRequest, ListClipsResponse, ListProvidersRequest,
    ListProvidersResponse, ProviderInfo,
};
use pinion_status::{Code, Failure};

use super::required;
use crate::Hub;
use crate::convert::{clip_info, clip_manifest, text};
use crate::hub::LOCAL;
use crate::pages::web_file;

/// The features of this hub beyond the public schema.
const FEATURES: [&str; 4] = ["data", "logs", "invoke-unary", "typed-provider-json"];

impl Hub {
    fn providers(&self, caller: &Caller) -> Vec<ProviderInfo> {
        let own = self.runtime().map(|runtime| ProviderInfo {
            name: LOCAL.into(),
            accepts_manage: true,
            clips: runtime
                .all()
                .iter()
                .map(|it| text(&it.record().name))
                .collect(),
            connected_at: self.started().as_millisecond(),
        });
        let own = own.filter(|_| caller.sees_provider(None));
        let mut all: Vec<ProviderInfo> = own.into_iter().collect();
        // The provider and runtime streams of one peer are one entry, matched by name.
        let mut connected: BTreeMap<Arc<str>, ProviderInfo> = BTreeMap::new();
        for session in self.sessions().providers() {
            if caller.sees_provider(session.caller.scope()) {
                let info = ProviderInfo {
                    name: (&session.name()).into(),
                    accepts_manage: session.manages(),
                    clips: session.aliases().into_iter().map(Text::from).collect(),
                    connected_at: session.connected.as_millisecond(),
                };
                connected.insert(session.name(), info);
            }
        }
        for runtime in self.sessions().runtimes() {
            if caller.sees_provider(runtime.caller.scope()) {
                let since = runtime.connected.as_millisecond();
                let info = connected.entry(runtime.name()).or_insert(ProviderInfo {
                    name: (&runtime.name()).into(),
                    connected_at: since,
                    ..ProviderInfo::default()
                });
                info.accepts_manage = true;
                info.connected_at = info.connected_at.min(since);
            }
        }
        all.extend(connected.into_values());
        if let Some(neighbours) = self.neighbours() {
            let others = neighbours.providers().into_iter();
            let visible = others.filter(|it| caller.sees_provider(it.scope.as_ref()));
            all.extend(visible.map(|it| it.info));
        }
        all
    }

    fn features(&self) -> Vec<Text> {
        let cluster = self.neighbours().map(|_| "cluster");
        FEATURES
            .into_iter()
            .chain(cluster)
            .map(Text::from)
            .collect()
    }

    pub(super) async fn hub_info(
        &self,
        caller: &Caller,
        _: HubInfoRequest,
    ) -> Result<HubInfoResponse, Failure> {
        let settings = self.settings();
        Ok(HubInfoResponse {
            version: text(&settings.version),
            mode: settings.mode.name().into(),
            name: text(&settings.name),
            started_at_unix_ms: self.started().as_millisecond(),
            auth_required: self.gate().mode().requires_token(),
            scope: text(caller.scope().map_or("", Scope::as_str)),
            features: self.features(),
            protocol: "pinix.v2".into(),
        })
    }

    pub(super) async fn list_clips(
        &self,
        caller: &Caller,
        _: ListClipsRequest,
    ) -> Result<ListClipsResponse, Failure> {
        let visible = self.visible(caller);
        let clips = visible.iter().map(|route| clip_info(route)).collect();
        Ok(ListClipsResponse { clips })
    }

    pub(super) async fn list_providers(
        &self,
        caller: &Caller,
        _: ListProvidersRequest,
    ) -> Result<ListProvidersResponse, Failure> {
        Ok(ListProvidersResponse {
            providers: self.providers(caller),
        })
    }

    pub(crate) async fn get_manifest(
        &self,
        caller: &Caller,
        request: GetManifestRequest,
    ) -> Result<GetManifestResponse, Failure> {
        let name = named(&request.clip_name)?;
        let route = self.find(caller, Method::GetClipManifest, name)?;
        let mut snapshot = route.endpoint.snapshot();
        if snapshot.manifest.commands.is_empty() {
            snapshot = route.endpoint.inspect().await?;
        }
        let manifest = Some(clip_manifest(&route.alias, &snapshot));
        Ok(GetManifestResponse { manifest })
    }

    pub(crate) async fn get_clip_web(
        &self,
        caller: &Caller,
        request: GetClipWebRequest,
    ) -> Result<GetClipWebResponse, Failure> {
        let name = named(&request.clip_name)?;
        let route = self.find(caller, Method::GetClipWeb, name)?;
        let position = |what: &str, value: i64| {
            u64::try_from(value).map_err(|_| {
                Failure::invalid(format!("{what} is {value}; it must not be negative"))
            })
        };
        let wanted = WebRequest {
            path: request.path.to_string(),
            if_none_match: request.if_none_match.to_string(),
            offset: position("offset", request.offset)?,
            length: position("length", request.length)?,
        };
        let file = web_file(&route, wanted)
            .await
            .map_err(|failure| match failure.code {
                Code::OutOfRange => Failure::invalid(failure.message),
                _ => failure,
            })?;
        Ok(GetClipWebResponse {
            content: file.content,
            content_type: text(&file.content_type),
            etag: file.etag.into(),
            not_modified: file.not_modified,
            total_size: file.total_size.try_into().unwrap_or(i64::MAX),
        })
    }
}

/// Returns the name of the clip in a request.
pub(super) fn named(name: &Text) -> Result<&str, Failure> {
    match name.trim() {
        "" => Err(required("clip_name")),
        name => Ok(name),
    }
}
