//! Calls of clips over the wire.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use pinion_clip::CallError;
use pinion_clip::manifest::Command;
use pinion_connect::{Client, ClientOptions, Receiver};
use pinion_hub::Answers;
use pinion_proto::Text;
use pinion_proto::hub::{
    CommandInfo, GetManifestRequest, GetManifestResponse, InvokeRequest, InvokeResponse,
    ListClipsRequest, ListClipsResponse,
};
use pinion_status::{Code, Failure};
use pinion_tools::Tool;

use super::{ClipCaller, ClipOffer, MAX_CLIP_TOOLS, tools};

/// Time limit of a request for the list of clips or for a manifest.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The alias of the agent clip, which becomes a tool only if the user names it.
const AGENT: &str = "agent";

/// The address of a hub, and the token for it.
#[derive(Debug)]
pub struct HubAddress {
    pub url: String,
    pub token: Option<String>,
    /// The variable or file that contained the token, for messages.
    pub token_source: String,
}

/// Returns the commands of the clips of a hub as tools: those of the `named` clips, or of all but the agent.
///
/// The failure is a message for the user. More than `MAX_CLIP_TOOLS` commands are one.
pub async fn of_hub(
    hub: &HubAddress,
    named: Option<&[String]>,
) -> Result<Vec<Arc<dyn Tool>>, String> {
    let options = ClientOptions {
        token: hub.token.clone(),
        ..ClientOptions::default()
    };
    let client = Client::new(&hub.url, options)
        .map_err(|failure| format!("--hub {}: {failure}", hub.url))?;
    let remote = RemoteClips {
        client,
        url: hub.url.as_str().into(),
    };
    let offers = match named {
        Some(names) => remote.named(names).await,
        None => remote.all().await,
    };
    let offers = offers.map_err(|failure| advice(failure, hub))?;
    let count: usize = offers.iter().map(ClipOffer::tools).sum();
    if count > MAX_CLIP_TOOLS {
        return Err(format!(
            "the clips have {count} commands together, and models take no more than {MAX_CLIP_TOOLS}. Name the ones you need with --clips."
        ));
    }
    let caller: Arc<dyn ClipCaller> = Arc::new(remote);
    Ok(tools(offers, &caller))
}

/// Returns a message with the failure of the hub and a way to fix it.
fn advice(failure: Failure, hub: &HubAddress) -> String {
    let url = &hub.url;
    match failure.code {
        Code::Unavailable | Code::DeadlineExceeded => format!(
            "no hub answers at {url} ({failure}). Start one with `pinion hub serve`, or name another with --hub URL."
        ),
        Code::Unauthenticated if hub.token.is_none() => format!(
            "the hub at {url} wants a token, and there is none. Set PINIX_TOKEN, or use the hub of this machine."
        ),
        Code::Unauthenticated => format!(
            "the hub at {url} does not take the token from {}: {failure}. Set PINIX_TOKEN to one it knows.",
            hub.token_source
        ),
        _ => format!("the hub at {url}: {failure}"),
    }
}

/// A hub over the wire.
struct RemoteClips {
    client: Client,
    url: Arc<str>,
}

impl RemoteClips {
    async fn list(&self) -> Result<ListClipsResponse, Failure> {
        let request = ListClipsRequest::default();
        let method = "pinix.v2.HubService/ListClips";
        self.client
            .unary(method, &request, Some(REQUEST_TIMEOUT))
            .await
    }

    /// Returns all visible clips except the agent.
    async fn all(&self) -> Result<Vec<ClipOffer>, Failure> {
        let listed = self.list().await?;
        let clips = listed.clips.into_iter();
        let clips = clips.filter(|clip| &*clip.name != AGENT);
        let offers = clips.map(|clip| ClipOffer {
            alias: clip.name.to_string(),
            commands: commands(&clip.commands),
        });
        Ok(offers.collect())
    }

    /// Returns the clips of these names. Fails if one does not exist.
    async fn named(&self, names: &[String]) -> Result<Vec<ClipOffer>, Failure> {
        let mut offers: Vec<ClipOffer> = Vec::new();
        let mut seen = HashSet::new();
        for name in names {
            let request = GetManifestRequest {
                clip_name: Text::new(name),
            };
            let method = "pinix.v2.HubService/GetClipManifest";
            let answer = self
                .client
                .unary(method, &request, Some(REQUEST_TIMEOUT))
                .await;
            let answer: GetManifestResponse = match answer {
                Err(failure) if failure.code == Code::NotFound => {
                    return Err(self.missing(name, failure).await);
                }
                answer => answer?,
            };
            let manifest = answer.manifest.unwrap_or_default();
            if seen.insert(manifest.name.to_string()) {
                offers.push(ClipOffer {
                    alias: manifest.name.to_string(),
                    commands: commands(&manifest.commands),
                });
            }
        }
        Ok(offers)
    }

    /// Returns a failure that names the missing clip and lists the existing ones.
    async fn missing(&self, name: &str, failure: Failure) -> Failure {
        let Ok(listed) = self.list().await else {
            return failure;
        };
        let names: Vec<String> = listed.clips.iter().map(|it| it.name.to_string()).collect();
        let there = match names.len() {
            0 => "It has none".to_owned(),
            1..=20 => format!("It has {}", names.join(", ")),
            count => format!("It has {count} others; `pinion clip list` shows them"),
        };
        let message = format!("there is no clip \"{name}\". {there}.");
        Failure::new(Code::NotFound, message)
    }
}

fn commands(listed: &[CommandInfo]) -> Vec<Command> {
    let command = |info: &CommandInfo| Command {
        name: info.name.to_string(),
        description: info.description.to_string(),
        input: info.input.to_string(),
        output: info.output.to_string(),
    };
    listed.iter().map(command).collect()
}

impl ClipCaller for RemoteClips {
    fn call(&self, clip: &str, command: &str, input: Bytes) -> Answers {
        let request = InvokeRequest {
            clip_name: Text::new(clip),
            command: Text::new(command),
            input,
            ..InvokeRequest::default()
        };
        let state = State::Asking(self.client.clone(), request);
        let url = Arc::clone(&self.url);
        Box::pin(stream::unfold(Some((state, url)), |state| async {
            let (state, url) = state?;
            let mut receiver = match state {
                State::Answering(receiver) => receiver,
                State::Asking(client, request) => {
                    let method = "pinix.v2.HubService/Invoke";
                    match client.server_stream(method, &request, None).await {
                        Ok(receiver) => receiver,
                        Err(failure) => return Some((Err(lost(failure, &url)), None)),
                    }
                }
            };
            let next: Result<Option<InvokeResponse>, Failure> = receiver.next().await;
            match next {
                Err(failure) => Some((Err(lost(failure, &url)), None)),
                Ok(None) => None,
                Ok(Some(InvokeResponse {
                    error: Some(error), ..
                })) => {
                    let code = Code::parse(&error.code);
                    let failure = Failure::new(code, error.message.to_string());
                    Some((Err(CallError::Answered(failure)), None))
                }
                Ok(Some(answer)) => {
                    Some((Ok(answer.output), Some((State::Answering(receiver), url))))
                }
            }
        }))
    }
}

enum State {
    Asking(Client, InvokeRequest),
    Answering(Receiver<InvokeResponse>),
}

fn lost(failure: Failure, url: &str) -> CallError {
    CallError::Unanswered(match failure.code {
        Code::Unavailable => {
            let message = format!("{failure} (hub {url})");
            Failure::new(failure.code, message)
        }
        _ => failure,
    })
}
