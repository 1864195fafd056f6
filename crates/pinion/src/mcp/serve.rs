//! `pinion mcp serve`: offers the clips of a hub as the tools of an MCP client.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use pinion_mcp::{Admission, Gateway, GatewayScope, HttpServer, RemoteClips};
use tokio_util::sync::CancellationToken;

use crate::failure::{Context, Failure};
use crate::hub::caller::{self, Caller};
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(crate) const VERB: Verb = Verb::new("pinion mcp", &tables::clip::MCP_SERVE, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let clip = match (line.words.as_slice(), line.value("--clip")) {
        ([], clip) => clip.map(str::to_owned),
        ([clip], None) => Some(clip.clone()),
        _ => return Err(line.wrong("name one clip, or none for all of them")),
    };
    if clip.is_some() && line.has("--all") {
        return Err(line.wrong("--all and a clip exclude each other"));
    }
    let caller = Caller::of(line)?;
    let secret = line.value("--clip-token").unwrap_or_default();
    let clips = Arc::new(RemoteClips::new(caller.client(), secret));
    let scope = clip.clone().map_or(GatewayScope::Hub, GatewayScope::Clip);
    let mut gateway = Gateway::new(clips.clone(), scope);
    if let Some(prefix) = line.value("--tool-prefix") {
        gateway = gateway.with_prefix(prefix);
    }
    let gateway = Arc::new(gateway);
    caller::wait(async {
        caller.explained(gateway.check()).await?;
        if let Some(clip) = clip {
            tokio::spawn(clips.watch(clip));
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
        line.wrong(format!(
            "--http needs an address like 127.0.0.1:9100, not {address:?}"
        ))
    };
    let address: SocketAddr = address.parse().map_err(wrong)?;
    let mut admission = match caller.client().token() {
        Some(token) => Admission::with_token(token),
        None if address.ip().is_loopback() => Admission::without_token(),
        None => {
            let problem =
                format!("without a token every client that reaches {address} could call.");
            return Err(Failure::failed(problem).hint("Give one with --auth-token."));
        }
    };
    for host in line.values("--allow-host") {
        admission = admission.and_host(host);
    }
    for origin in line.values("--allow-origin") {
        admission = admission.and_origin(origin);
    }
    let listener = tokio::net::TcpListener::bind(address).await;
    let listener = listener.context(format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    crate::commands::out(&format!("Listening on http://{address}/mcp\n"))?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let shutdown = CancellationToken::new();
    let server = HttpServer::new(gateway, admission);
    tokio::select! {
        () = server.serve(listener, shutdown.clone()) => {}
        _ = terminate.recv() => shutdown.cancel(),
    }
    Ok(ExitCode::SUCCESS)
}
