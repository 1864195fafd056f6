//! Clips of other hubs, as endpoints.

use std::fmt;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use pinion_access::{Method, Principal};
use pinion_clip::data::{DataAnswer, DataOperation};
use pinion_clip::web::{WebAnswer, WebRequest};
use pinion_clip::{CallError, Snapshot};
use pinion_proto::hub::{
    ClipRegistration, DataRequest, DataResponse, DataResult, GetClipWebRequest, GetClipWebResponse,
    GetManifestRequest, GetManifestResponse,
};
use pinion_proto::{Binary, Text};
use pinion_status::{Code, Failure};
use tokio::sync::watch;

use super::{Neighbours, RemoteRequest, SharedRoute};
use crate::Hub;
use crate::convert::{data_answer, operation_name, text};
use crate::endpoint::{Answers, Endpoint, HubCall, failed};
use crate::provider::manifest_of;
use crate::table::{Owner, Route};

/// A clip that another hub holds.
pub(super) struct PeerClip {
    hub: Arc<str>,
    alias: String,
    guarded: bool,
    snapshot: watch::Sender<Snapshot>,
    neighbours: Weak<dyn Neighbours>,
}

impl fmt::Debug for PeerClip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PeerClip")
            .field("hub", &self.hub)
            .field("alias", &self.alias)
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// Builds the routing table's row for a clip of another hub.
    pub fn neighbours_route(
        &self,
        hub: Arc<str>,
        shared: SharedRoute,
        neighbours: Weak<dyn Neighbours>,
    ) -> Route {
        let snapshot = Snapshot {
            manifest: manifest_of(&shared.registration).into(),
            status: shared.status,
        };
        let clip = PeerClip {
            hub: hub.clone(),
            alias: shared.alias.clone(),
            guarded: shared.guarded,
            snapshot: watch::Sender::new(snapshot),
            neighbours,
        };
        Route {
            alias: shared.alias,
            owner: Owner::Hub(hub),
            provider: shared.provider,
            scope: shared.scope,
            endpoint: Arc::new(clip),
        }
    }
}

/// Passes a request on and reads its only answer.
pub(super) async fn ask<T: Binary>(
    neighbours: &dyn Neighbours,
    hub: Arc<str>,
    request: RemoteRequest,
) -> Result<T, CallError> {
    let mut answers = neighbours.request(hub, request);
    let answer = answers.next().await.transpose()?;
    let answer = answer.and_then(|answer| T::decode(answer).ok());
    answer.ok_or_else(|| {
        let message = "the other hub has sent an answer that cannot be read";
        CallError::Unanswered(Failure::new(Code::Internal, message))
    })
}

impl PeerClip {
    fn neighbours(&self) -> Result<Arc<dyn Neighbours>, Failure> {
        let neighbours = self.neighbours.upgrade();
        neighbours.ok_or_else(|| Failure::new(Code::Unavailable, "this hub has left its cluster"))
    }

    /// Passes a request on. This hub has judged the rights of its caller.
    async fn ask<T: Binary>(&self, method: Method, message: Bytes) -> Result<T, CallError> {
        let neighbours = self.neighbours().map_err(CallError::Unanswered)?;
        let request = RemoteRequest {
            caller: Principal::Super,
            method,
            alias: self.alias.clone(),
            message,
        };
        ask(&*neighbours, self.hub.clone(), request).await
    }

    fn name(&self) -> Text {
        text(&self.alias)
    }
}

impl Endpoint for PeerClip {
    fn snapshot(&self) -> Snapshot {
        self.snapshot.borrow().clone()
    }

    fn watch(&self) -> Option<watch::Receiver<Snapshot>> {
        Some(self.snapshot.subscribe())
    }

    fn accepts(&self, command: &str) -> bool {
        self.snapshot.borrow().manifest.accepts(command)
    }

    fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// The hub of the clip checks inputs, against the manifest that is valid then.
    fn checks_inputs(&self) -> bool {
        true
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        match self.neighbours() {
            Ok(neighbours) => neighbours.invoke(self.hub.clone(), self.alias.clone(), call),
            Err(failure) => failed(CallError::Unanswered(failure)),
        }
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Snapshot, Failure>> {
        Box::pin(async {
            let request = GetManifestRequest {
                clip_name: self.name(),
            };
            let asked = self.ask::<GetManifestResponse>(Method::GetManifest, request.to_bytes());
            let response = asked.await.map_err(CallError::into_failure)?;
            let manifest = response.manifest.unwrap_or_default();
            let registration = ClipRegistration {
                alias: manifest.name,
                package: manifest.package,
                version: manifest.version,
                domain: manifest.domain,
                description: manifest.description,
                commands: manifest.commands,
                dependencies: manifest.dependencies,
                has_web: manifest.has_web,
                patterns: manifest.patterns,
                entities: manifest.entities,
                dependency_slots: manifest.dependency_slots,
                groups: manifest.groups,
                schedules: manifest.schedules,
                ..ClipRegistration::default()
            };
            self.snapshot
                .send_modify(|snapshot| snapshot.manifest = manifest_of(&registration).into());
            Ok(self.snapshot())
        })
    }

    fn data(
        &self,
        path: String,
        operation: DataOperation,
    ) -> BoxFuture<'_, Result<DataAnswer, Failure>> {
        let answer = self.ask_for_data(path, operation);
        Box::pin(async { answer.await.map_err(CallError::into_failure) })
    }

    fn ask_for_data(
        &self,
        path: String,
        operation: DataOperation,
    ) -> BoxFuture<'_, Result<DataAnswer, CallError>> {
        Box::pin(async move {
            let name = operation_name(&operation);
            let (content, mime) = match operation {
                DataOperation::Write { content, mime } => (content, mime),
                _ => Default::default(),
            };
            let request = DataRequest {
                clip_name: self.name(),
                operation: name.into(),
                path: path.into(),
                content,
                mime: mime.into(),
                ..DataRequest::default()
            };
            let asked = self.ask::<DataResponse>(Method::Data, request.to_bytes());
            let response = asked.await?;
            let result = DataResult {
                content: response.content,
                uri: response.uri,
                entries: response.entries,
                stat: response.stat,
                error: response.error,
                ..DataResult::default()
            };
            data_answer(name, result).map_err(CallError::Answered)
        })
    }

    fn web(&self, request: WebRequest) -> BoxFuture<'_, Result<WebAnswer, Failure>> {
        Box::pin(async move {
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let request = GetClipWebRequest {
                clip_name: self.name(),
                path: request.path.into(),
                offset: number(request.offset),
                length: number(request.length),
                if_none_match: request.if_none_match.into(),
            };
            let asked = self.ask::<GetClipWebResponse>(Method::GetClipWeb, request.to_bytes());
            let response = asked.await.map_err(CallError::into_failure)?;
            Ok(WebAnswer {
                content: response.content,
                content_type: response.content_type.to_string().into(),
                etag: response.etag.to_string(),
                total_size: u64::try_from(response.total_size).unwrap_or_default(),
                not_modified: response.not_modified,
                is_fallback: false,
            })
        })
    }
}
