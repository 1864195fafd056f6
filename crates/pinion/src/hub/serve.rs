//! `hub serve`: runs a hub until it receives a signal.

mod options;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use pinion_access::LocalToken;
use pinion_clip::logs::{ClipLog, Followed, Level};
use pinion_cluster::access::ClusterAccess;
use pinion_cluster::{Node, NodeOptions};
use pinion_hub::{Hub, HubLock, Joined, OpenedHub, ServiceState, Signals};
use pinion_mcp::Mounts;

pub(super) use self::options::level;
use self::options::{Join, Options};
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless;

/// Time limit for writing the last lines of the log to stderr.
pub(super) const LOG_TIMEOUT: Duration = Duration::from_millis(200);

pub(super) const VERB: Verb = Verb::new("pinion hub", &tables::hub::SERVE, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let options = Options::read(line)?;
    crate::descriptors::allow_many();
    let mut lock = HubLock::acquire(&options.root, &options.pid)?;
    let runtime = crate::runtime::on_every_core()?;
    let served = runtime.block_on(serve(options, &mut lock));
    pinion_process::kill_all();
    runtime.shutdown_background();
    served
}

async fn serve(mut options: Options, lock: &mut HubLock) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    pinion_telemetry::start_metrics();
    let listener = options.listening.bind().await?;
    let (port, url) = (listener.port(), listener.url());
    let (root, programs) = (&options.root, options.programs);
    let opened = pinion_hub::open(root, &url, options.settings, options.auth, programs);
    let OpenedHub {
        hub,
        local_token,
        skipped,
    } = opened?;
    for failure in &skipped {
        eprintln!("{failure}");
    }
    let log_end = copy_log(hub.log(), options.level);
    let tokens = hub.gate().store().clone();
    let super_token = options.super_token.take();
    let accepted = super_token.map(|token| tokens.accept_super(token));
    let _while_the_hub_runs = accepted.transpose()?;
    if let Some(pinix) = &options.import
        && let Some(warning) = pinix.import_tokens(&hub, root)?
    {
        eprintln!("{warning}");
    }
    let mounts = Mounts::open(root, &hub);
    if let Some(agent) = options.agent.take() {
        let agent = agent.into_options();
        let clip = agent.and_then(|agent| pinion_agent_clip::agent_clip(&hub, agent));
        hub.add_optional_builtin(pinion_agent_clip::ALIAS, clip);
    }
    if options.schedules && hub.runtime().is_some() {
        let alias = pinion_scheduler::ALIAS;
        let clip = pinion_scheduler::scheduler(&hub, &root.join("data").join(alias));
        hub.add_optional_builtin(alias, clip);
    }
    let node = match options.cluster.take() {
        Some(access) => Some(become_member(&hub, access, root, port, &url).await?),
        None => None,
    };
    if local_token.is_new {
        eprint!("{}", first_use(&url, &local_token));
    }
    lock.record_hub(port, &url)?;
    out(&format!("Listening on {url}\n"))?;
    pinion_hub::report(ServiceState::Ready);
    let joined = options.join.take().map(|join| enter(&hub, join, port));
    let joined = joined.transpose()?;
    let trimming = tokio::spawn(pinion_process::memory::trim_when_large());
    let importing = async {
        if let Some(pinix) = options.import.take() {
            let token = local_token.token.reveal();
            pinix.import_clips(&hub, root, &url, token).await;
        }
        std::future::pending().await
    };
    let stop = async {
        signals.stop(&tokens).await;
        // Calls of other hubs that arrive from now on are refused, and their callers know that nothing was started.
        if let Some(node) = &node {
            node.announce_leaving().await;
        }
    };
    // Listens only once the hub stops, so that it receives the second signal and not the first.
    let stop_now = async {
        match Signals::listen() {
            Ok(mut signals) => signals.end().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = listener.serve(&hub, stop, stop_now) => {}
        () = importing => {}
    }
    trimming.abort();
    if let Some(node) = &node {
        node.leave().await;
    }
    if let Some(joined) = joined {
        joined.leave().await;
    }
    let shut_down = async {
        mounts.stop().await;
        pinion_hub::shut_down(&hub).await;
    };
    tokio::select! {
        () = shut_down => {}
        () = signals.end() => return Ok(ExitCode::from(130)),
    }
    let _ = log_end.recv_timeout(LOG_TIMEOUT);
    Ok(ExitCode::SUCCESS)
}

/// Makes the hub a member of a cluster, under the name of this machine and the port.
async fn become_member(
    hub: &Arc<Hub>,
    access: ClusterAccess,
    root: &Path,
    port: u16,
    url: &str,
) -> Result<Arc<Node>, Failure> {
    let options = NodeOptions {
        access,
        name: pinion_cluster::names::member_name(&pinion_hub::host_name(), port),
        url: url.to_owned(),
        root: root.to_owned(),
    };
    Ok(Node::join(hub, options).await?)
}

/// Joins another hub and offers this hub's clips to it.
fn enter(hub: &Arc<Hub>, join: Join, port: u16) -> Result<Joined, Failure> {
    let mut options = join.options;
    if !join.is_named {
        options.name = pinion_hub::provider_name(&pinion_hub::host_name(), port);
    }
    let (offered, log) = (hub.offer(join.shown), hub.log().clone());
    Ok(pinion_hub::join(options, offered, log)?)
}

/// Copies log lines of at least the level `least` to stderr, on a thread that may block. The receiver gets a message
/// when the log has ended.
pub(super) fn copy_log(log: &Arc<ClipLog>, least: Level) -> mpsc::Receiver<()> {
    let (ended, wait) = mpsc::sync_channel(1);
    let mut follower = log.follow(0);
    let handle = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        handle.block_on(async {
            while let Some(followed) = follower.next().await {
                match followed {
                    Followed::Line(line) if line.level >= least => {
                        let message = harmless(&line.message);
                        eprintln!("{} {:5} {message}", line.time, line.level.name());
                    }
                    Followed::Line(_) => {}
                    Followed::Missed(count) => eprintln!("{count} lines of the log are left out"),
                }
            }
        });
        let _ = ended.send(());
    });
    wait
}

/// Returns instructions for the first use of a new hub.
fn first_use(url: &str, local_token: &LocalToken) -> String {
    let path: &Path = &local_token.path;
    let path = path.display();
    format!(
        "This hub is new. Commands on this machine find their token in {path}; other users cannot read it.\n\
         \x20 pinion clip list                               what the hub can do\n\
         \x20 {url}/                         the portal; it asks for the token in that file\n\
         \x20 pinion hub token create --kind hub --scope @me a token for another user\n"
    )
}
