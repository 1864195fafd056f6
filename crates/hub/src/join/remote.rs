//! Calls, listings and file requests that clips installed here make to the hub they are offered to. A clip's own files
//! are local.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pinion_clip::data::{DataAnswer, DataRequest, DataStore};
use pinion_clip::manifest::Command;
use pinion_clip::{Aggregate, CrossCall, CrossCalls, Listing};
use pinion_connect::Client;
use pinion_proto::hub::{
    self as wire, ClipInfo, DataResponse, DataResult, InvokeRequest, InvokeResponse,
    ListClipsRequest, ListClipsResponse,
};
use pinion_status::{Code, Failure};

use super::method;
use crate::convert::{data_answer, failure, operation_name, text};

/// The joined hub that serves requests of local clips.
#[derive(Debug)]
pub struct RemoteHub {
    client: Client,
    own: Arc<DataStore>,
}

impl RemoteHub {
    /// Creates the adapter for the hub that `client` reaches; `own` holds the files of local clips.
    pub fn new(client: Client, own: Arc<DataStore>) -> Self {
        Self { client, own }
    }
}

impl CrossCalls for RemoteHub {
    fn invoke<'a>(&'a self, _: &'a str, call: CrossCall) -> BoxFuture<'a, Result<Bytes, Failure>> {
        Box::pin(async move {
            let request = InvokeRequest {
                clip_name: text(&call.clip),
                command: text(&call.command),
                input: call.input,
                clip_token: text(call.clip_token.as_deref().unwrap_or_default()),
            };
            // Every hub supports the streaming form; only pinion's also answers with a single message.
            let mut answers = self
                .client
                .server_stream::<_, InvokeResponse>(&method("Invoke"), &request, None)
                .await?;
            let mut whole = Aggregate::default();
            while let Some(answer) = answers.next().await? {
                if let Some(error) = &answer.error {
                    return Err(failure(error));
                }
                whole.push(answer.output)?;
            }
            Ok(whole.finish())
        })
    }

    fn list_clips<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Listing>, Failure>> {
        Box::pin(async move {
            let request = ListClipsRequest {};
            let answer: ListClipsResponse = self
                .client
                .unary(&method("ListClips"), &request, None)
                .await?;
            Ok(answer.clips.iter().map(listing).collect())
        })
    }

    fn data<'a>(
        &'a self,
        from: &'a str,
        request: DataRequest,
    ) -> BoxFuture<'a, Result<DataAnswer, Failure>> {
        Box::pin(async move {
            let clip = request.clip.as_deref().unwrap_or(from).to_owned();
            if clip == from {
                let own = self.own.clone();
                let work = move || own.perform(&clip, request.operation, &request.path);
                return match tokio::task::spawn_blocking(work).await {
                    Ok(done) => done,
                    Err(error) => Err(Failure::new(Code::Internal, error.to_string())),
                };
            }
            let operation = operation_name(&request.operation);
            let (content, mime) = match request.operation {
                pinion_clip::data::DataOperation::Write { content, mime } => (content, mime),
                _ => Default::default(),
            };
            let asked = wire::DataRequest {
                clip_name: text(&clip),
                operation: operation.into(),
                path: request.path.into(),
                content,
                mime: mime.into(),
                ..wire::DataRequest::default()
            };
            let answer: DataResponse = self.client.unary(&method("Data"), &asked, None).await?;
            let result = DataResult {
                content: answer.content,
                uri: answer.uri,
                entries: answer.entries,
                stat: answer.stat,
                error: answer.error,
                ..DataResult::default()
            };
            data_answer(operation, result)
        })
    }
}

fn listing(clip: &ClipInfo) -> Listing {
    let commands = clip.commands.iter().map(|command| Command {
        name: command.name.to_string(),
        description: command.description.to_string(),
        input: command.input.to_string(),
        output: command.output.to_string(),
    });
    Listing {
        name: clip.name.to_string(),
        package: clip.package.to_string(),
        version: clip.version.to_string(),
        domain: clip.domain.to_string(),
        description: clip.description.to_string(),
        patterns: Vec::new(),
        commands: commands.collect(),
    }
}
