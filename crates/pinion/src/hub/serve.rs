//! `hub serve`: runs a hub until it receives a signal.

mod options;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use pinion_access::{LocalToken, TokenStore};
use pinion_clip::logs::{ClipLog, Followed, Level};
use pinion_connect::{Server, ServerOptions};
use pinion_hub::{Endpoint, Hub, Joined, OpenedHub, PREFIXES};
use pinion_text::harmless;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) use self::options::level;
use self::options::{Join, Options};
use super::agent_sessions::AgentFlags;
use super::failed;
use super::mounts::Mounts;
use super::seat::Seat;
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

/// Time that calls in flight have to finish when the hub stops.
const GRACE: Duration = Duration::from_secs(2);
/// Interval at which the hub writes the last use of tokens.
const NOTE_USE: Duration = Duration::from_secs(300);
/// Time limit for writing the last lines of the log to stderr.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(200);

pub(super) const VERB: Verb = Verb::new("pinion hub", &tables::hub::SERVE, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let options = Options::read(line)?;
    crate::descriptors::allow_many();
    let mut seat = Seat::take(&options.root, &options.pid)?;
    let runtime = crate::runtime::on_every_core()?;
    let served = runtime.block_on(serve(options, &mut seat));
    pinion_process::kill_all();
    runtime.shutdown_background();
    served
}

async fn serve(mut options: Options, seat: &mut Seat) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let listener = listen(&options).await?;
    let port = listener.local_addr()?.port();
    let url = options.url(port);
    let settings = options.settings.clone();
    let (root, programs) = (&options.root, options.programs.clone());
    let opened = pinion_hub::open(root, &url, settings, options.auth, programs).map_err(failed)?;
    let OpenedHub {
        hub,
        local_token: entrance,
        skipped: left_out,
    } = &opened;
    for failure in left_out {
        eprintln!("{failure}");
    }
    let read = copy_log(hub.log(), options.level);
    let tokens = hub.gate().store().clone();
    let given = options.super_token.take();
    let given = given.map(|token| tokens.accept_super(token)).transpose();
    let _as_long_as_we_run = given.map_err(failed)?;
    let import = options.import.take();
    if let Some(pinix) = &import {
        pinix.take_tokens(&options.root, &tokens)?;
    }
    let mounts = Mounts::open(&options.root, hub);
    if let Some(agent) = options.agent.take() {
        add_agent(hub, agent);
    }
    if options.schedules && hub.runtime().is_some() {
        add_scheduler(hub, &options.root);
    }
    let server = Server::new(hub.clone(), server_options(&options, &listener));
    if entrance.is_new {
        eprint!("{}", first_words(&url, entrance));
    }
    seat.tell(port, &url)?;
    out(&format!("Listening on {url}\n"))?;
    let joined = options.join.take().map(|join| enter(hub, join, port));
    let joined = joined.transpose()?;
    let noting = tokio::spawn(note_use(tokens.clone()));
    let trimming = tokio::spawn(crate::memory::trim_when_large());
    let importing = async {
        if let Some(pinix) = import {
            let token = entrance.token.reveal();
            pinix.take_clips(hub, &options.root, &url, token).await;
        }
        std::future::pending().await
    };
    let stop = async {
        signals.stop(&tokens).await;
        // Endless streams would otherwise use up the grace period of calls.
        hub.disconnect_all();
    };
    // Polled only once the hub stops, so that it receives the second signal and not the first.
    let cut = async {
        match Signals::listen() {
            Ok(mut again) => tokio::select! {
                () = tokio::time::sleep(GRACE) => {}
                () = again.end() => {}
            },
            Err(_) => tokio::time::sleep(GRACE).await,
        }
    };
    tokio::select! {
        () = server.run_until(listener, stop, cut) => {}
        () = importing => {}
    }
    noting.abort();
    trimming.abort();
    if let Some(joined) = joined {
        joined.leave().await;
    }
    tokio::select! {
        () = end(hub, &mounts, tokens) => {}
        () = signals.end() => return Ok(ExitCode::from(130)),
    }
    let _ = read.recv_timeout(LAST_WORDS);
    Ok(ExitCode::SUCCESS)
}

/// Joins another hub and offers this hub's clips to it.
fn enter(hub: &Arc<Hub>, join: Join, port: u16) -> Result<Joined, Failure> {
    let mut options = join.options;
    if !join.is_named {
        options.name = pinion_hub::provider_name(&pinion_hub::host_name(), port);
    }
    pinion_hub::join(options, hub.offer(join.shown), hub.log().clone()).map_err(failed)
}

fn add_agent(hub: &Arc<Hub>, flags: AgentFlags) {
    let options = flags.into_options();
    let clip = options.and_then(|options| pinion_agent_clip::agent_clip(hub, options));
    add_builtin(hub, pinion_agent_clip::ALIAS, clip);
}

/// Adds the clip that calls other clips on a schedule.
fn add_scheduler(hub: &Arc<Hub>, root: &Path) {
    let alias = pinion_scheduler::ALIAS;
    let directory = root.join("data").join(alias);
    add_builtin(hub, alias, pinion_scheduler::scheduler(hub, &directory));
}

/// Adds a built-in clip. The hub also runs without it; a failure is written to its log.
fn add_builtin(
    hub: &Arc<Hub>,
    alias: &str,
    clip: Result<Arc<dyn Endpoint>, pinion_status::Failure>,
) {
    if let Err(failure) = clip.and_then(|clip| hub.add_builtin(alias, clip)) {
        let message = format!("there is no {alias}: {failure}");
        let origin = pinion_clip::logs::Origin::System;
        hub.log().push(Level::Error, origin, &message);
    }
}

async fn listen(options: &Options) -> Result<TcpListener, Failure> {
    let address = options.address;
    TcpListener::bind(address).await.map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                " Another program listens there; --port 0 takes any that is free."
            }
            _ => "",
        };
        Failure::failed(format!("Error: cannot listen on {address}: {error}.{hint}"))
    })
}

fn server_options(options: &Options, listener: &TcpListener) -> ServerOptions {
    let mut server = ServerOptions::at(PREFIXES);
    server.origins = options.origins.clone();
    server.tls.clone_from(&options.tls);
    let local = listener.local_addr().is_ok_and(|it| it.ip().is_loopback());
    match local {
        true => {
            let own = options.address.ip().to_string();
            let mut names = options.origin_hosts();
            names.push(own);
            server.loopback_and(names)
        }
        false => server,
    }
}

/// Stops servers and clips, and writes the last use of tokens.
async fn end(hub: &Arc<Hub>, mounts: &Mounts, tokens: TokenStore) {
    mounts.stop().await;
    if let Some(runtime) = hub.runtime() {
        runtime.shut_down().await;
    }
    let written = tokio::task::spawn_blocking(move || tokens.write_last_use()).await;
    if let Ok(Err(failure)) = written {
        let message = format!("the use of tokens was not written down: {failure}");
        let origin = pinion_clip::logs::Origin::System;
        hub.log().push(Level::Warn, origin, &message);
    }
    hub.log().close();
}

async fn note_use(tokens: TokenStore) {
    loop {
        tokio::time::sleep(NOTE_USE).await;
        let tokens = tokens.clone();
        // A failed write is tried again; at the end of the hub it is reported.
        let _ = tokio::task::spawn_blocking(move || tokens.write_last_use()).await;
    }
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
                        let said = harmless(&line.message);
                        eprintln!("{} {:5} {said}", line.time, line.level.name());
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
fn first_words(url: &str, entrance: &LocalToken) -> String {
    let path: &Path = &entrance.path;
    let path = path.display();
    format!(
        "This hub is new. Commands on this machine find their token in {path}; nobody else can read it.\n\
         \x20 pinion clip list                               what the hub can do\n\
         \x20 {url}/                         the portal; it asks for the token in that file\n\
         \x20 pinion hub token create --kind hub --scope @me a token for somebody else\n"
    )
}

pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for SIGTERM or SIGINT. SIGHUP reloads the tokens meanwhile.
    async fn stop(&mut self, tokens: &TokenStore) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => {
                    let tokens = tokens.clone();
                    let _ = tokio::task::spawn_blocking(move || tokens.refresh()).await;
                }
            }
        }
    }

    /// Waits for SIGTERM or SIGINT.
    pub async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
