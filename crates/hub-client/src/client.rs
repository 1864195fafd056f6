//! Calls to the methods of a hub.

use std::time::Duration;

use futures_util::stream;
use pinion_access::client::CLI_VARIABLE;
use pinion_clip::CallError;
use pinion_clip::manifest::{Command, Manifest};
use pinion_connect::{Client, ClientOptions, Receiver, Roots};
use pinion_hub::Answers;
use pinion_proto::hub::{
    AddClipRequest, AddClipResponse, ClipInfo, ClipManifest, CommandInfo, GetManifestRequest,
    GetManifestResponse, HubError, InvokeRequest, InvokeResponse, ListClipsRequest,
    ListClipsResponse,
};
use pinion_proto::{Binary, Message};
use pinion_status::{Code, Failure};

use crate::HubTarget;

const SERVICE: &str = "pinix.v2.HubService";

/// The settings of a client beside its target.
#[derive(Debug, Clone, Default)]
pub struct ClientSettings {
    /// The certificates to trust if the hub uses TLS.
    pub roots: Roots,
    /// The time limit of each call.
    pub timeout: Option<Duration>,
}

/// A client of one hub. Clones share its connections.
#[derive(Debug, Clone)]
pub struct HubClient {
    client: Client,
    target: HubTarget,
    timeout: Option<Duration>,
}

impl HubClient {
    /// Creates a client. It does not connect yet.
    pub fn new(target: HubTarget, settings: ClientSettings) -> Result<Self, Failure> {
        let token = target.token.as_ref();
        let options = ClientOptions {
            token: token.map(|chosen| chosen.token.reveal().to_owned()),
            roots: settings.roots,
            ..ClientOptions::default()
        };
        Ok(Self {
            client: Client::new(&target.url, options)?,
            target,
            timeout: settings.timeout,
        })
    }

    /// Returns a client on the same connections whose calls have this time limit.
    #[must_use]
    pub fn with_timeout(&self, timeout: Option<Duration>) -> Self {
        Self {
            timeout,
            ..self.clone()
        }
    }

    pub fn url(&self) -> &str {
        &self.target.url
    }

    /// Returns the token that the client sends.
    pub fn token(&self) -> Option<&str> {
        self.target.token.as_ref().map(|it| it.token.reveal())
    }

    /// Sends one request and returns its answer.
    pub async fn call<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
    ) -> Result<Resp, Failure> {
        let method = format!("{SERVICE}/{method}");
        // Boxed, because the future of a call is large and every caller would hold a copy.
        Box::pin(self.client.unary(&method, request, self.timeout)).await
    }

    /// Sends one request and returns a stream of answers.
    pub async fn stream<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
    ) -> Result<Receiver<Resp>, Failure> {
        let method = format!("{SERVICE}/{method}");
        let receiver = self.client.server_stream(&method, request, self.timeout);
        Box::pin(receiver).await
    }

    /// Returns the clips that the caller may see.
    pub async fn clips(&self) -> Result<Vec<ClipInfo>, Failure> {
        let request = ListClipsRequest::default();
        let listed: ListClipsResponse = self.call("ListClips", &request).await?;
        Ok(listed.clips)
    }

    /// Returns the manifest of a clip as the hub sends it.
    pub async fn clip_manifest(&self, alias: &str) -> Result<ClipManifest, Failure> {
        let request = GetManifestRequest {
            clip_name: alias.to_owned().into(),
        };
        let answer: GetManifestResponse = self.call("GetClipManifest", &request).await?;
        Ok(answer.manifest.unwrap_or_default())
    }

    /// Returns the manifest of a clip, normalised.
    pub async fn manifest(&self, alias: &str) -> Result<Manifest, Failure> {
        let text = self.clip_manifest(alias).await?.to_json();
        let manifest = serde_json::from_str(&text)
            .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        Ok(Manifest::read(&manifest))
    }

    /// Calls a command. Every failure is an item of the answer.
    pub fn invoke(&self, request: InvokeRequest) -> Answers {
        let call = InvokeState::Request(self.clone(), Box::new(request));
        Box::pin(stream::unfold(call, InvokeState::next))
    }

    /// Installs a clip.
    pub async fn add_clip(&self, request: &AddClipRequest) -> Result<ClipInfo, Failure> {
        let added: AddClipResponse = self.call("AddClip", request).await?;
        Ok(added.clip.unwrap_or_default())
    }

    /// Installs another version of a clip that came from a registry: the newest one unless `version` is given.
    ///
    /// Without `registry`, a clip stays with the registry it came from: the same name in another registry may belong
    /// to another author.
    pub async fn update_clip(
        &self,
        clip: &ClipInfo,
        version: Option<&str>,
        registry: Option<&str>,
    ) -> Result<ClipInfo, Failure> {
        if !is_from_registry(clip) {
            let alias = clip.name.as_str();
            return Err(Failure::new(
                Code::FailedPrecondition,
                format!(
                    "{alias} did not come from a registry. `pinion clip add SOURCE --alias {alias}` puts another version in its place."
                ),
            ));
        }
        let mut source = clip.package.to_string();
        if let Some(version) = version {
            source = format!("{source}@{version}");
        }
        if let Some(registry) = registry {
            source = format!("registry:{}#{source}", registry.trim_end_matches('/'));
        }
        let request = AddClipRequest {
            source: source.into(),
            requested_alias: clip.name.clone(),
            ..AddClipRequest::default()
        };
        self.add_clip(&request).await
    }

    /// Updates the clip `alias`, or all clips that come from a registry. Returns each clip before and after it.
    ///
    /// `report` receives the failures of single clips among all; the failure for `alias` is returned.
    pub async fn update_clips(
        &self,
        alias: Option<&str>,
        version: Option<&str>,
        registry: Option<&str>,
        mut report: impl FnMut(&ClipInfo, Failure),
    ) -> Result<Vec<(ClipInfo, ClipInfo)>, Failure> {
        let mut updated = Vec::new();
        let clips = self
            .clips()
            .await
            .map_err(|failure| self.explain(failure))?;
        for clip in clips {
            let is_wanted = match alias {
                Some(alias) => clip.name == *alias,
                None => is_from_registry(&clip),
            };
            if !is_wanted {
                continue;
            }
            let update = self.update_clip(&clip, version, registry).await;
            match update.map_err(|failure| self.explain(failure)) {
                Ok(now) => updated.push((clip, now)),
                Err(failure) if alias.is_some() => return Err(failure),
                Err(failure) => report(&clip, failure),
            }
        }
        match alias {
            Some(alias) if updated.is_empty() => Err(Failure::new(
                Code::NotFound,
                format!("clip \"{alias}\" not found"),
            )),
            _ => Ok(updated),
        }
    }

    /// Returns a failure of a call as a message for the user, with a way to fix it.
    #[must_use]
    pub fn explain(&self, failure: Failure) -> Failure {
        let message = &failure.message;
        let url = self.url();
        let message = match failure.code {
            Code::Unavailable if message.starts_with("no connection to") => format!(
                "no hub answers at {url} ({message}). Start one with `pinion hub serve`, or name another with --server."
            ),
            Code::Unavailable if message.starts_with("the connection to") => format!(
                "the hub at {url} went away before it had answered ({message}). What was asked may have been done."
            ),
            Code::Unauthenticated if self.target.token.is_none() => format!(
                "the hub at {url} needs a token. Log in with `pinion hub login`, or give one with --auth-token or {CLI_VARIABLE}; \
                 the owner of the hub makes one with `pinion hub token create`."
            ),
            Code::Unauthenticated => format!(
                "the hub at {url} does not accept this token: {message}. The owner of the hub makes another with \
                 `pinion hub token create`; `pinion hub login` stores it."
            ),
            _ => return failure,
        };
        Failure::new(failure.code, message)
    }
}

/// Reports whether a clip comes from a registry. Built-in clips have packages too, but are part of the hub.
pub fn is_from_registry(clip: &ClipInfo) -> bool {
    clip.package.starts_with('@') && clip.provider != *"builtin"
}

/// Converts the commands of a clip from the form of the wire.
pub fn commands(commands: &[CommandInfo]) -> Vec<Command> {
    let command = |info: &CommandInfo| Command {
        name: info.name.to_string(),
        description: info.description.to_string(),
        input: info.input.to_string(),
        output: info.output.to_string(),
    };
    commands.iter().map(command).collect()
}

/// Converts a clip's error from the form of the wire.
pub fn hub_error(error: &HubError) -> Failure {
    Failure::new(Code::parse(&error.code), error.message.to_string())
}

/// The state of a call whose outputs are read one by one.
enum InvokeState {
    Request(HubClient, Box<InvokeRequest>),
    Response(Box<Receiver<InvokeResponse>>),
    Ended,
}

impl InvokeState {
    async fn next(self) -> Option<(Result<bytes::Bytes, CallError>, Self)> {
        let mut receiver = match self {
            Self::Ended => return None,
            Self::Response(receiver) => receiver,
            Self::Request(client, request) => match client.stream("Invoke", &*request).await {
                Ok(receiver) => Box::new(receiver),
                Err(failure) => return Some((Err(CallError::Unanswered(failure)), Self::Ended)),
            },
        };
        match receiver.next().await {
            Ok(None) => None,
            Err(failure) => Some((Err(CallError::Unanswered(failure)), Self::Ended)),
            Ok(Some(InvokeResponse {
                error: Some(error), ..
            })) => Some((Err(CallError::Answered(hub_error(&error))), Self::Ended)),
            Ok(Some(answer)) => Some((Ok(answer.output), Self::Response(receiver))),
        }
    }
}
