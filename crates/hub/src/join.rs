//! Joining another hub: offering local clips there, as a provider and, on request, as a runtime.
//!
//! Both streams stay open as long as the join lasts, each over its own connection. A lost stream is opened again, with
//! growing waits, and everything is registered again. Calls that were running when a stream was lost are cancelled; the
//! other hub has reported that to their callers. An [`Offer`] decides which clips are offered.

mod calls;
mod link;
mod logs;
mod name;
mod offer;
mod remote;
mod runtime;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinion_clip::install::{Library, Record};
use pinion_clip::logs::{ClipLog, Level, Origin};
use pinion_clip::{ClipConfig, Programs};
use pinion_connect::{Client, ClientOptions, Codec, Protocol};
use pinion_status::{Code, Failure};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use name::{host_name, provider_name, stable_port};
pub use offer::{Offer, OfferedClips};
pub use remote::RemoteHub;

use crate::limits::Limits;
use crate::provider::{IS_HUB, RECONNECTED};
use crate::runtime::Runtime;

/// The longest wait for the other hub when a join ends in order.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);

/// The hub to join, and the way to join it.
#[derive(Clone)]
pub struct JoinOptions {
    /// The address of the hub, as in `http://127.0.0.1:9000`.
    pub url: String,
    /// The token for the other hub.
    pub token: Option<String>,
    /// The provider name in the other hub; see [`provider_name`].
    pub name: String,
    /// The protocol of the streams. Hubs support all of them.
    pub protocol: Protocol,
    pub accepts: Accepts,
    /// The joining program is a hub. The other hub then does not pass its clips on to further hubs, which prevents
    /// circles.
    pub is_hub: bool,
    /// The language runtimes that clips installed by the other hub may require.
    pub runtimes: Vec<String>,
    pub limits: Limits,
}

/// The requests that the other hub may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Calls and files of clips.
    Calls,
    /// Also installations and removals: a caller that may manage the other hub can then run programs here.
    CallsAndInstalls,
}

impl JoinOptions {
    /// Creates options to join the hub at `url` as `name`, for calls only.
    pub fn new(url: impl Into<String>, token: Option<String>, name: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token,
            name: name.into(),
            protocol: Protocol::Grpc,
            accepts: Accepts::Calls,
            is_hub: false,
            runtimes: vec!["bun".into()],
            limits: Limits::default(),
        }
    }

    /// Creates a client of that hub, with its own connections.
    fn client(&self) -> Result<Client, Failure> {
        let mut options = ClientOptions {
            token: self.token.clone(),
            protocol: self.protocol,
            codec: Codec::Proto,
            ..ClientOptions::default()
        };
        if self.is_hub {
            let value = http::HeaderValue::from_static("1");
            options.headers.insert(IS_HUB, value);
        }
        Client::new(&self.url, options)
    }
}

impl fmt::Debug for JoinOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JoinOptions")
            .field("url", &self.url)
            .field("name", &self.name)
            .field("accepts", &self.accepts)
            .finish_non_exhaustive()
    }
}

/// The state of a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinState {
    /// The streams are being opened.
    Connecting,
    /// The clips are offered in the other hub.
    Joined,
    /// The connection failed or was lost; the next attempt follows after this time.
    Waiting(Failure, Duration),
    /// The join was ended from this side.
    Left,
}

/// A join that lasts until [`Self::leave`]. Dropping it also leaves, without waiting.
#[derive(Debug)]
pub struct Joined {
    state: watch::Receiver<JoinState>,
    left: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Joined {
    pub fn state(&self) -> JoinState {
        self.state.borrow().clone()
    }

    /// Returns a receiver of state changes.
    pub fn watch(&self) -> watch::Receiver<JoinState> {
        self.state.clone()
    }

    /// Waits until the clips are offered.
    pub async fn until_joined(&self) {
        let mut state = self.state.clone();
        // The sender outlives this value; if it is gone, there is nothing to wait for.
        let _ = state.wait_for(|state| *state == JoinState::Joined).await;
    }

    /// Withdraws the clips and closes the streams in order.
    pub async fn leave(mut self) {
        self.left.cancel();
        for task in std::mem::take(&mut self.tasks) {
            let _ = tokio::time::timeout(2 * LEAVE_TIMEOUT, task).await;
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.left.cancel();
    }
}

/// Joins another hub and reconnects after every failure. Events are written to `log`.
///
/// Must be called within a tokio runtime. Fails only for an address, token or name that can never work.
pub fn join(
    options: JoinOptions,
    offer: Arc<dyn Offer>,
    log: Arc<ClipLog>,
) -> Result<Joined, Failure> {
    options.client()?;
    if options.name.trim().is_empty() {
        return Err(Failure::invalid("joining a hub requires a provider name"));
    }
    let (state, watched) = watch::channel(JoinState::Connecting);
    let accepts = options.accepts;
    let shared = Arc::new(JoinContext {
        limits: Arc::new(options.limits.clone()),
        options,
        offer,
        log,
        left: CancellationToken::new(),
        state,
        announcer: Mutex::default(),
    });
    let left = shared.left.clone();
    let mut tasks = vec![tokio::spawn(stay_connected(shared.clone(), Role::Provider))];
    if accepts == Accepts::CallsAndInstalls {
        tasks.push(tokio::spawn(stay_connected(shared, Role::Runtime)));
    }
    Ok(Joined {
        state: watched,
        left,
        tasks,
    })
}

/// The state that the two streams of a join share.
#[derive(Debug)]
struct JoinContext {
    options: JoinOptions,
    limits: Arc<Limits>,
    offer: Arc<dyn Offer>,
    log: Arc<ClipLog>,
    left: CancellationToken,
    state: watch::Sender<JoinState>,
    /// The channel of announcements while the provider stream is open.
    announcer: Mutex<Option<mpsc::Sender<link::Announcement>>>,
}

impl JoinContext {
    fn write_log(&self, level: Level, message: &str) {
        self.log.push(level, Origin::System, message);
    }

    fn announcer(&self) -> Option<mpsc::Sender<link::Announcement>> {
        let announcer = self.announcer.lock();
        announcer.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_announcer(&self, sender: Option<mpsc::Sender<link::Announcement>>) {
        let mut announcer = self
            .announcer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *announcer = sender;
    }
}

/// The two streams of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Provider,
    Runtime,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Runtime => "runtime",
        }
    }
}

/// The reason for the end of a stream.
#[derive(Debug)]
enum StreamEnd {
    /// The join was ended from this side.
    Left,
    /// The other hub refused the stream.
    Refused(Failure),
    /// The stream was open and failed.
    Broken(Failure),
    /// Another provider joined under the same name.
    Displaced(Failure),
    /// The stream could not be opened.
    Unreached(Failure),
}

/// Opens one stream again and again until the join ends.
async fn stay_connected(shared: Arc<JoinContext>, role: Role) {
    let (first, longest) = (shared.limits.backoff, shared.limits.max_backoff);
    let mut wait = first;
    let report = |state| {
        if role == Role::Provider {
            shared.state.send_replace(state);
        }
    };
    loop {
        report(JoinState::Connecting);
        let lost = match role {
            Role::Provider => Box::pin(link::run_stream(&shared)).await,
            Role::Runtime => Box::pin(runtime::run_stream(&shared)).await,
        };
        let url = &shared.options.url;
        let (failure, pause) = match lost {
            StreamEnd::Left => {
                report(JoinState::Left);
                return;
            }
            // An early attempt would be refused again.
            StreamEnd::Refused(failure) => (failure, longest),
            // Two providers of the same name that reconnect at once would replace each other without end.
            StreamEnd::Displaced(failure) => {
                let message = format!(
                    "{failure}: another program also joins as \"{}\"; give one of them another name",
                    shared.options.name
                );
                (Failure::new(failure.code, message), longest)
            }
            StreamEnd::Broken(failure) => {
                wait = first;
                (failure, first)
            }
            StreamEnd::Unreached(failure) => (failure, wait),
        };
        wait = (2 * wait.max(first)).min(longest);
        shared.write_log(
            Level::Warn,
            &format!(
                "cannot join {url} as {}: {failure}; next attempt in {} s",
                role.name(),
                pause.as_secs_f32()
            ),
        );
        report(JoinState::Waiting(failure, pause));
        tokio::select! {
            () = shared.left.cancelled() => {
                report(JoinState::Left);
                return;
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Distinguishes a refusal, after which an early attempt is useless, from other failures to open a stream.
fn classify(failure: Failure) -> StreamEnd {
    match failure.code {
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented => {
            StreamEnd::Refused(failure)
        }
        _ => StreamEnd::Unreached(failure),
    }
}

/// Classifies the failure of an open stream.
fn broken(failure: Failure) -> StreamEnd {
    if failure.code == Code::Unavailable && failure.message.ends_with(RECONNECTED) {
        StreamEnd::Displaced(failure)
    } else {
        StreamEnd::Broken(failure)
    }
}

/// Returns the path of a method.
fn method(name: &str) -> String {
    format!("pinix.v2.HubService/{name}")
}

/// Opens the clips installed in `root` for a program that joins a hub and is not a hub itself. The clips call others
/// through that hub.
///
/// Also returns one failure for each clip that could not be read and was skipped.
pub fn open_runtime(
    root: &Path,
    options: &JoinOptions,
    programs: Programs,
) -> Result<(Arc<Runtime>, Vec<Failure>), Failure> {
    let library = Library::open(root, programs)?;
    let remote = RemoteHub::new(options.client()?, library.data().clone());
    let url = options.url.clone();
    let configure = move |_: &Record, config: &mut ClipConfig| {
        config.hub_url.clone_from(&url);
    };
    let (runtime, skipped) = Runtime::open(library, Arc::new(remote), Box::new(configure))?;
    Ok((Arc::new(runtime), skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_named_after_host_and_port() {
        for (host, name) in [
            ("box", "pinixd-box-9001"),
            ("My.Box", "pinixd-my-box-9001"),
            ("a..b__c", "pinixd-a-b-c-9001"),
            ("-x-", "pinixd-x-9001"),
            ("", "pinixd-9001"),
        ] {
            assert_eq!(provider_name(host, 9001), name, "{host}");
        }
    }
}
