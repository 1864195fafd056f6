//! Joining another hub: offering clips of ours there, as a provider and, if wanted, as a runtime.
//!
//! Both streams are kept open for as long as the join lasts, each over a connection of its own: what is lost is dialled again, with
//! growing waits, and everything is registered anew. Calls that were open when a stream was lost are cancelled; the other hub
//! has told their callers. Which clips there are is the business of an [`Offer`].

mod abroad;
mod calls;
mod link;
mod logs;
mod offer;
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

pub use abroad::Abroad;
pub use offer::{Offer, Shown};

use crate::limits::Limits;
use crate::provider::{ANEW, IS_HUB};
use crate::runtime::Runtime;

/// How long an orderly farewell may take.
const FAREWELL: Duration = Duration::from_secs(3);

/// Which hub to join, and how.
#[derive(Clone)]
pub struct JoinOptions {
    /// Its address, as in `http://127.0.0.1:9000`.
    pub url: String,
    /// The token to show there.
    pub token: Option<String>,
    /// The name to go by there; see [`provider_name`].
    pub name: String,
    /// The protocol to speak. Hubs understand both.
    pub protocol: Protocol,
    /// What the other hub may ask for.
    pub accepts: Accepts,
    /// Whether we are a hub, whose providers' clips should not be passed on in a circle.
    pub is_hub: bool,
    /// The programs that clips installed from there may be written for.
    pub runtimes: Vec<String>,
    /// How much and how long.
    pub limits: Limits,
}

/// What another hub may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Calls and files of clips.
    Calls,
    /// Also that clips are installed and removed here: whoever may manage there runs programs here.
    CallsAndInstalls,
}

impl JoinOptions {
    /// Joins the hub at `url` as `name`, for calls only.
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

    /// A client of that hub, with connections of its own.
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

/// How a join stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinState {
    /// The other hub is being dialled.
    Connecting,
    /// Our clips are offered there.
    Joined,
    /// It did not work, or no longer does; it is tried again after this time.
    Waiting(Failure, Duration),
    /// It is over, because we wanted it.
    Left,
}

/// A join that lasts until it is left. Dropping it leaves, too, without waiting for that.
#[derive(Debug)]
pub struct Joined {
    state: watch::Receiver<JoinState>,
    left: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Joined {
    /// How it stands.
    pub fn state(&self) -> JoinState {
        self.state.borrow().clone()
    }

    /// Tells of every change.
    pub fn watch(&self) -> watch::Receiver<JoinState> {
        self.state.clone()
    }

    /// Takes our clips back and ends the streams, in order.
    pub async fn leave(mut self) {
        self.left.cancel();
        for task in std::mem::take(&mut self.tasks) {
            let _ = tokio::time::timeout(2 * FAREWELL, task).await;
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.left.cancel();
    }
}

/// Joins another hub and stays joined, whatever happens to the network. What happens is said in `log`.
///
/// Must be called within a tokio runtime; only an address or token that can never work fails here.
pub fn join(
    options: JoinOptions,
    offer: Arc<dyn Offer>,
    log: Arc<ClipLog>,
) -> Result<Joined, Failure> {
    options.client()?;
    if options.name.trim().is_empty() {
        return Err(Failure::invalid("a name is needed to join a hub"));
    }
    let (state, watched) = watch::channel(JoinState::Connecting);
    let accepts = options.accepts;
    let shared = Arc::new(Shared {
        limits: Arc::new(options.limits.clone()),
        options,
        offer,
        log,
        left: CancellationToken::new(),
        state,
        announce: Mutex::default(),
    });
    let left = shared.left.clone();
    let mut tasks = vec![tokio::spawn(stay(shared.clone(), Role::Provider))];
    if accepts == Accepts::CallsAndInstalls {
        tasks.push(tokio::spawn(stay(shared, Role::Runtime)));
    }
    Ok(Joined {
        state: watched,
        left,
        tasks,
    })
}

/// What the two streams of a join have in common.
#[derive(Debug)]
struct Shared {
    options: JoinOptions,
    limits: Arc<Limits>,
    offer: Arc<dyn Offer>,
    log: Arc<ClipLog>,
    left: CancellationToken,
    state: watch::Sender<JoinState>,
    /// Who tells the other hub of clips, while that can be done.
    announce: Mutex<Option<mpsc::Sender<link::Announce>>>,
}

impl Shared {
    fn say(&self, level: Level, message: &str) {
        self.log.push(level, Origin::System, message);
    }

    fn announcer(&self) -> Option<mpsc::Sender<link::Announce>> {
        let announce = self.announce.lock();
        announce.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_announcer(&self, sender: Option<mpsc::Sender<link::Announce>>) {
        let mut announce = self.announce.lock().unwrap_or_else(PoisonError::into_inner);
        *announce = sender;
    }
}

/// Which of the two streams.
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

/// Why a stream is no longer there.
#[derive(Debug)]
enum Lost {
    /// We wanted it.
    Left,
    /// The other hub does not want us.
    Refused(Failure),
    /// It worked, until this.
    Broken(Failure),
    /// Somebody else joined under our name.
    Displaced(Failure),
    /// It did not even begin.
    Unreached(Failure),
}

/// Keeps one stream open.
async fn stay(shared: Arc<Shared>, role: Role) {
    let (first, longest) = (shared.limits.backoff, shared.limits.longest_backoff);
    let mut wait = first;
    let tell = |state| {
        if role == Role::Provider {
            shared.state.send_replace(state);
        }
    };
    loop {
        tell(JoinState::Connecting);
        let lost = match role {
            Role::Provider => Box::pin(link::attend(&shared)).await,
            Role::Runtime => Box::pin(runtime::attend(&shared)).await,
        };
        let url = &shared.options.url;
        let (failure, pause) = match lost {
            Lost::Left => {
                tell(JoinState::Left);
                return;
            }
            // Tried again before long would be refused again.
            Lost::Refused(failure) => (failure, longest),
            // Two of the same name that return at once would take turns for ever.
            Lost::Displaced(failure) => {
                let message = format!(
                    "{failure}: another joins as \"{}\" too, one of them needs another name",
                    shared.options.name
                );
                (Failure::new(failure.code, message), longest)
            }
            Lost::Broken(failure) => {
                wait = first;
                (failure, first)
            }
            Lost::Unreached(failure) => (failure, wait),
        };
        wait = (2 * wait.max(first)).min(longest);
        shared.say(
            Level::Warn,
            &format!(
                "not joined to {url} as {}: {failure}; tried again in {} s",
                role.name(),
                pause.as_secs_f32()
            ),
        );
        tell(JoinState::Waiting(failure, pause));
        tokio::select! {
            () = shared.left.cancelled() => {
                tell(JoinState::Left);
                return;
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Whether trying again soon makes no sense.
fn classify(failure: Failure) -> Lost {
    match failure.code {
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented => {
            Lost::Refused(failure)
        }
        _ => Lost::Unreached(failure),
    }
}

/// How a stream ended that worked.
fn broken(failure: Failure) -> Lost {
    match failure.code == Code::Unavailable && failure.message.ends_with(ANEW) {
        true => Lost::Displaced(failure),
        false => Lost::Broken(failure),
    }
}

/// The path of a method.
fn method(name: &str) -> String {
    format!("pinix.v2.HubService/{name}")
}

/// The name a runtime goes by: `pinixd-<host>-<port>`, the host in lower case, with a dash for everything that is no letter and
/// no digit.
pub fn provider_name(host: &str, port: u16) -> String {
    let mut name = String::from("pinixd-");
    for letter in host.trim().chars().flat_map(char::to_lowercase) {
        match letter {
            'a'..='z' | '0'..='9' => name.push(letter),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let end = name.trim_end_matches('-').len();
    name.truncate(end);
    format!("{name}-{port}")
}

/// The name of this machine.
pub fn host_name() -> String {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let read = files
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok());
    let name = read.unwrap_or_default().trim().to_owned();
    match name.is_empty() {
        true => "localhost".into(),
        false => name,
    }
}

/// Opens the clips installed in `root` for a program that joins a hub and is none itself: they call others through that hub.
///
/// Also tells what was left out because it could not be read.
pub fn open_runtime(
    root: &Path,
    options: &JoinOptions,
    programs: Programs,
) -> Result<(Arc<Runtime>, Vec<Failure>), Failure> {
    let library = Library::open(root, programs)?;
    let abroad = Abroad::new(options.client()?, library.data().clone());
    let url = options.url.clone();
    let equip = move |_: &Record, config: &mut ClipConfig| {
        config.hub_url.clone_from(&url);
    };
    let (runtime, left_out) = Runtime::open(library, Arc::new(abroad), Box::new(equip))?;
    Ok((Arc::new(runtime), left_out))
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
