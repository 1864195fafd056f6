//! Calls of clips over the wire.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use pinion_clip::CallError;
use pinion_hub::Answers;
use pinion_hub_client::{ClientSettings, HubClient, HubTarget, commands};
use pinion_proto::Text;
use pinion_proto::hub::InvokeRequest;
use pinion_status::{Code, Failure};
use pinion_tools::Tool;

use super::{ClipCaller, ClipOffer, MAX_CLIP_TOOLS, tools};

/// Time limit of a request for the list of clips or for a manifest.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The alias of the agent clip, which becomes a tool only if the user names it.
const AGENT: &str = "agent";

/// A hub to call.
#[derive(Debug)]
pub struct HubAddress {
    pub target: HubTarget,
    /// The variable or file that contained the token, for messages.
    pub token_source: Option<String>,
}

/// Returns the commands of the clips of a hub as tools: those of the `named` clips, or of all but the agent.
///
/// The failure is a message for the user. More than `MAX_CLIP_TOOLS` commands are one.
pub async fn of_hub(
    hub: HubAddress,
    named: Option<&[String]>,
) -> Result<Vec<Arc<dyn Tool>>, String> {
    let url = hub.target.url.clone();
    let client = HubClient::new(hub.target, ClientSettings::default())
        .map_err(|failure| format!("--hub {url}: {failure}"))?;
    let remote = RemoteClips(client);
    let offers = match named {
        Some(names) => remote.named(names).await,
        None => remote.all().await,
    };
    let offers =
        offers.map_err(|failure| advice(failure, &remote.0, hub.token_source.as_deref()))?;
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
fn advice(failure: Failure, client: &HubClient, token_source: Option<&str>) -> String {
    let url = client.url();
    match failure.code {
        Code::Unavailable | Code::DeadlineExceeded => format!(
            "no hub answers at {url} ({failure}). Start one with `pinion hub serve`, or name another with --hub URL."
        ),
        Code::Unauthenticated if client.token().is_none() => format!(
            "the hub at {url} wants a token, and there is none. Set PINIX_TOKEN, or use the hub of this machine."
        ),
        Code::Unauthenticated => format!(
            "the hub at {url} does not take the token from {}: {failure}. Set PINIX_TOKEN to one it knows.",
            token_source.unwrap_or("the command line")
        ),
        _ => format!("the hub at {url}: {failure}"),
    }
}

/// The clips of a hub over the wire.
struct RemoteClips(HubClient);

impl RemoteClips {
    /// Returns the client for requests for the list of clips or for a manifest.
    fn lookup(&self) -> HubClient {
        self.0.with_timeout(Some(REQUEST_TIMEOUT))
    }

    /// Returns all visible clips except the agent.
    async fn all(&self) -> Result<Vec<ClipOffer>, Failure> {
        let clips = self.lookup().clips().await?.into_iter();
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
            let manifest = match self.lookup().clip_manifest(name).await {
                Err(failure) if failure.code == Code::NotFound => {
                    return Err(self.missing(name, failure).await);
                }
                manifest => manifest?,
            };
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
        let Ok(clips) = self.lookup().clips().await else {
            return failure;
        };
        let names: Vec<String> = clips.iter().map(|it| it.name.to_string()).collect();
        let there = match names.len() {
            0 => "It has none".to_owned(),
            1..=20 => format!("It has {}", names.join(", ")),
            count => format!("It has {count} others; `pinion clip list` shows them"),
        };
        let message = format!("there is no clip \"{name}\". {there}.");
        Failure::new(Code::NotFound, message)
    }
}

impl ClipCaller for RemoteClips {
    fn call(&self, clip: &str, command: &str, input: Bytes) -> Answers {
        let answers = self.0.invoke(InvokeRequest {
            clip_name: Text::new(clip),
            command: Text::new(command),
            input,
            ..InvokeRequest::default()
        });
        let url: Arc<str> = self.0.url().into();
        Box::pin(answers.map(move |output| output.map_err(|error| with_url(error, &url))))
    }
}

/// Adds the URL of the hub to the failure of a call that did not reach it.
fn with_url(error: CallError, url: &str) -> CallError {
    match error {
        CallError::Unanswered(failure) if failure.code == Code::Unavailable => {
            let message = format!("{failure} (hub {url})");
            CallError::Unanswered(Failure::new(failure.code, message))
        }
        error => error,
    }
}
