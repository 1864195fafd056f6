//! `pinion mcp`: offers the clips of a hub as the tools of an MCP client.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use pinion_clip::manifest::Manifest;
use pinion_connect::{Client, Code, Failure as Refusal, Receiver};
use pinion_mcp::{Admission, ClipSummary, Clips, Gateway, GatewayScope, HttpServer, Outputs};
use pinion_proto::Message;
use pinion_proto::hub::{
    ClipInfo, GetManifestRequest, GetManifestResponse, InvokeRequest, InvokeResponse,
    ListClipsRequest, ListClipsResponse,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::hub::caller::{self, Caller, path_of};
use crate::invoke::refusal;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

/// The interval between checks whether the clip whose commands are tools has changed.
const LOOK: Duration = Duration::from_secs(2);

pub(crate) const VERB: Verb = Verb::new("pinion", &tables::clip::MCP, run);

/// Runs `mcp` with the arguments after it.
pub(crate) fn run_words(arguments: &[String]) -> Result<ExitCode, Failure> {
    VERB.run(arguments)
}

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let clip = match (line.words.as_slice(), line.value("--clip")) {
        ([], clip) => clip.map(str::to_owned),
        ([clip], None) => Some(clip.clone()),
        _ => return Err(line.wrong("one clip, or all of them")),
    };
    if clip.is_some() && line.has("--all") {
        return Err(line.wrong("--all and a clip exclude each other"));
    }
    let caller = Caller::of(line)?;
    let far = Arc::new(Far {
        client: caller.client().clone(),
        secret: line.value("--clip-token").unwrap_or_default().to_owned(),
        changes: watch::Sender::new(0),
    });
    let exposes = clip.clone().map_or(GatewayScope::Hub, GatewayScope::Clip);
    let mut gateway = Gateway::new(far.clone(), exposes);
    if let Some(prefix) = line.value("--tool-prefix") {
        gateway = gateway.with_prefix(prefix);
    }
    let gateway = Arc::new(gateway);
    caller::wait(async {
        gateway
            .check()
            .await
            .map_err(|refusal| caller.explain(refusal))?;
        if let Some(clip) = clip {
            tokio::spawn(far.watch(clip));
        }
        match line.value("--http") {
            None => {
                let output = pinion_jsonl::stdio::claim_stdout()?;
                pinion_mcp::stdio(gateway, std::io::stdin(), output).await?;
                Ok(ExitCode::SUCCESS)
            }
            Some(address) => over_http(line, &caller, gateway, address).await,
        }
    })
}

async fn over_http(
    line: &Line,
    caller: &Caller,
    gateway: Arc<Gateway>,
    address: &str,
) -> Result<ExitCode, Failure> {
    let wrong = |_| {
        line.wrong(&format!(
            "--http needs an address like 127.0.0.1:9100, not {address:?}"
        ))
    };
    let address: SocketAddr = address.parse().map_err(wrong)?;
    let mut admission = match caller.token() {
        Some(token) => Admission::with_token(token),
        None if address.ip().is_loopback() => Admission::without_token(),
        None => {
            return Err(Failure::failed(format!(
                "Error: without a token everybody who reaches {address} could call. Give one with --auth-token."
            )));
        }
    };
    for host in line.values("--allow-host") {
        admission = admission.and_host(host);
    }
    for origin in line.values("--allow-origin") {
        admission = admission.and_origin(origin);
    }
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(|error| Failure::failed(format!("Error: cannot listen on {address}: {error}")))?;
    let address = listener.local_addr()?;
    crate::commands::out(&format!("Listening on http://{address}/mcp\n"))?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let ending = CancellationToken::new();
    let server = HttpServer::new(gateway, admission);
    tokio::select! {
        () = server.serve(listener, ending.clone()) => {}
        _ = terminate.recv() => ending.cancel(),
    }
    Ok(ExitCode::SUCCESS)
}

/// The clips of a hub that pinion reaches over its service.
#[derive(Debug)]
struct Far {
    client: Client,
    secret: String,
    changes: watch::Sender<u64>,
}

impl Far {
    /// Checks regularly whether a clip has changed, because hubs send no notice of it.
    async fn watch(self: Arc<Self>, alias: String) {
        let mut known = self.listed(&alias).await;
        loop {
            tokio::time::sleep(LOOK).await;
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
    async fn listed(&self, alias: &str) -> Result<Option<ClipInfo>, Refusal> {
        let method = path_of("ListClips");
        let request = ListClipsRequest::default();
        let listed = self.client.unary(&method, &request, Some(LOOK)).await?;
        let ListClipsResponse { clips } = listed;
        let found = clips.into_iter().find(|clip| *clip.name == *alias);
        Ok(found.map(|clip| ClipInfo {
            status: Default::default(),
            status_message: Default::default(),
            ..clip
        }))
    }
}

impl Clips for Far {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ClipSummary>, Refusal>> {
        Box::pin(async {
            let request = ListClipsRequest::default();
            let method = path_of("ListClips");
            let listed = self.client.unary(&method, &request, None).await?;
            let ListClipsResponse { clips } = listed;
            Ok(clips.iter().map(summary).collect())
        })
    }

    fn manifest<'a>(&'a self, clip: &'a str) -> BoxFuture<'a, Result<Manifest, Refusal>> {
        Box::pin(async move {
            let request = GetManifestRequest {
                clip_name: clip.to_owned().into(),
            };
            let method = path_of("GetClipManifest");
            let told = self.client.unary(&method, &request, None).await?;
            let GetManifestResponse { manifest } = told;
            let text = manifest.unwrap_or_default().to_json();
            let manifest = serde_json::from_str(&text)
                .map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
            Ok(Manifest::read(&manifest))
        })
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn invoke(&self, clip: &str, command: &str, input: Bytes) -> Outputs {
        let request = InvokeRequest {
            clip_name: clip.to_owned().into(),
            command: command.to_owned().into(),
            input,
            clip_token: self.secret.clone().into(),
        };
        Box::pin(stream::unfold(
            Calling::Ahead(self.client.clone(), Box::new(request)),
            Calling::next,
        ))
    }
}

/// The state of a call.
enum Calling {
    Ahead(Client, Box<InvokeRequest>),
    Under(Box<Receiver<InvokeResponse>>),
    Over,
}

impl Calling {
    async fn next(self) -> Option<(Result<Bytes, Refusal>, Self)> {
        let mut answers = match self {
            Self::Over => return None,
            Self::Under(answers) => answers,
            Self::Ahead(client, request) => {
                match client
                    .server_stream(&path_of("Invoke"), &*request, None)
                    .await
                {
                    Ok(answers) => Box::new(answers),
                    Err(refusal) => return Some((Err(refusal), Self::Over)),
                }
            }
        };
        match answers.next().await {
            Ok(None) => None,
            Err(refusal) => Some((Err(refusal), Self::Over)),
            Ok(Some(InvokeResponse {
                error: Some(error), ..
            })) => Some((Err(refusal(&error)), Self::Over)),
            Ok(Some(answer)) => Some((Ok(answer.output), Self::Under(answers))),
        }
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
