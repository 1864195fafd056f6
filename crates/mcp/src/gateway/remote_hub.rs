//! The clips of a hub on the network.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use pinion_clip::CallError;
use pinion_clip::manifest::Manifest;
use pinion_hub_client::HubClient;
use pinion_proto::hub::{ClipInfo, InvokeRequest};
use pinion_status::Failure;
use tokio::sync::watch;

use super::clips::{ClipSummary, Clips, Outputs};

/// The interval between checks for a changed clip, and the time limit of one.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The clips of a hub, called over its service.
#[derive(Debug)]
pub struct RemoteClips {
    client: HubClient,
    /// The secret for calls of protected clips; empty for none.
    secret: String,
    changes: watch::Sender<u64>,
}

impl RemoteClips {
    /// Creates the clips of the hub of `client`. Calls have no time limit.
    pub fn new(client: &HubClient, secret: impl Into<String>) -> Self {
        Self {
            client: client.with_timeout(None),
            secret: secret.into(),
            changes: watch::Sender::new(0),
        }
    }

    /// Checks regularly whether a clip has changed, because hubs send no notice of it.
    pub async fn watch(self: Arc<Self>, alias: String) {
        let mut known = self.listed(&alias).await;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = self.listed(&alias).await;
            if let Ok(now) = &now
                && known.as_ref().is_ok_and(|known| known != now)
            {
                self.changes.send_modify(|version| *version += 1);
            }
            // While the hub is unreachable, the last known state stays.
            known = now.or(known);
        }
    }

    /// Returns the entry of a clip in the hub's list, without its status, because a new status is not a new clip.
    async fn listed(&self, alias: &str) -> Result<Option<ClipInfo>, Failure> {
        let client = self.client.with_timeout(Some(POLL_INTERVAL));
        let mut clips = client.clips().await?.into_iter();
        let found = clips.find(|clip| *clip.name == *alias);
        Ok(found.map(|clip| ClipInfo {
            status: Default::default(),
            status_message: Default::default(),
            ..clip
        }))
    }
}

impl Clips for RemoteClips {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ClipSummary>, Failure>> {
        Box::pin(async { Ok(self.client.clips().await?.iter().map(summary).collect()) })
    }

    fn manifest<'a>(&'a self, clip: &'a str) -> BoxFuture<'a, Result<Manifest, Failure>> {
        Box::pin(self.client.manifest(clip))
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn invoke(&self, clip: &str, command: &str, input: Bytes) -> Outputs {
        let answers = self.client.invoke(InvokeRequest {
            clip_name: clip.to_owned().into(),
            command: command.to_owned().into(),
            input,
            clip_token: self.secret.clone().into(),
        });
        Box::pin(answers.map(|output| output.map_err(CallError::into_failure)))
    }
}

fn summary(clip: &ClipInfo) -> ClipSummary {
    ClipSummary {
        name: clip.name.to_string(),
        provider: clip.provider.to_string(),
        domain: clip.domain.to_string(),
        commands: clip.commands.iter().map(|it| it.name.to_string()).collect(),
        token_protected: clip.token_protected,
    }
}
