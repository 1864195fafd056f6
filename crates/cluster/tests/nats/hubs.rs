//! Hubs of a cluster in this process, each in a runtime of its own that can be ended like a crash.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use pinion_access::{Mode as AuthMode, Principal};
use pinion_clip::manifest::{Command, Manifest};
use pinion_clip::{CallError, ClipState, Programs, Snapshot, Status};
use pinion_cluster::access::ClusterAccess;
use pinion_cluster::bus::TlsFiles;
use pinion_cluster::credentials::Credentials;
use pinion_cluster::names::ClusterName;
use pinion_cluster::servers::ServerList;
use pinion_cluster::{Node, NodeOptions};
use pinion_hub::{
    Answers, Conflict, Endpoint, Hub, HubCall, Mode, Owner, Route, Settings, answered, failed,
};
use pinion_status::{Code, Failure};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A hub of a cluster.
pub struct Member {
    pub hub: Arc<Hub>,
    pub node: Arc<Node>,
    pub clip: Arc<TestClip>,
    _root: TempDir,
    runtime: Option<Runtime>,
}

/// A clip whose calls are recorded.
#[derive(Debug, Default)]
pub struct TestClip {
    /// The inputs of the command `note`, in the order of the calls.
    pub notes: Mutex<Vec<String>>,
    /// The same with their times.
    pub times: Mutex<Vec<(String, std::time::Instant)>>,
    /// Calls of `wait` that run.
    pub waiting: Arc<AtomicUsize>,
}

struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Endpoint for TestClip {
    fn snapshot(&self) -> Snapshot {
        let commands = ["echo", "note", "count", "wait", "sum", "boom", "large"];
        let manifest = Manifest {
            name: "test".into(),
            package: "@acme/test".into(),
            commands: commands
                .iter()
                .map(|name| Command {
                    name: (*name).into(),
                    description: String::new(),
                    input: String::new(),
                    output: String::new(),
                })
                .collect(),
            ..Manifest::default()
        };
        Snapshot {
            status: Status {
                state: ClipState::Running,
                message: String::new(),
            },
            manifest: manifest.into(),
        }
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        let number = || {
            String::from_utf8_lossy(&call.input)
                .parse::<usize>()
                .unwrap_or(0)
        };
        match call.command.as_str() {
            "echo" => answered(call.input),
            "note" => {
                let text = String::from_utf8_lossy(&call.input).into_owned();
                let now = std::time::Instant::now();
                self.times.lock().unwrap().push((text.clone(), now));
                self.notes.lock().unwrap().push(text);
                answered(call.input)
            }
            "count" => {
                let parts = (0..number()).map(|at| Ok(Bytes::from(at.to_string())));
                Box::pin(stream::iter(parts))
            }
            "large" => answered(vec![b'x'; number()]),
            "wait" => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                let waiting = Waiting(self.waiting.clone());
                Box::pin(stream::once(async move {
                    let _waiting = waiting;
                    std::future::pending().await
                }))
            }
            "sum" => {
                let more = call.more;
                let first = call.input;
                Box::pin(stream::once(async move {
                    let mut total = first.len();
                    let Some(mut more) = more else {
                        return Ok(total.to_string().into());
                    };
                    while let Some(part) = more.next().await {
                        total += part.map_err(CallError::Unanswered)?.data.len();
                    }
                    Ok(total.to_string().into())
                }))
            }
            _ => failed(CallError::Answered(Failure::new(Code::Aborted, "boom"))),
        }
    }
}

impl Member {
    /// Starts a hub that connects to the servers at these addresses.
    pub fn start(urls: &str, name: &str) -> Self {
        Self::try_start(urls, name).unwrap()
    }

    pub fn try_start(urls: &str, name: &str) -> Result<Self, Failure> {
        Self::start_with(urls, name, Arc::default())
    }

    /// Starts a hub whose clip may have been that of an earlier hub.
    pub fn start_with(urls: &str, name: &str, clip: Arc<TestClip>) -> Result<Self, Failure> {
        let access = ClusterAccess {
            cluster: ClusterName::default(),
            servers: ServerList::parse(urls)?,
            credentials: Credentials::None,
            tls: TlsFiles::default(),
            replicas: None,
        };
        Self::with(access, name, clip)
    }

    pub fn with_access(access: ClusterAccess, name: &str) -> Result<Self, Failure> {
        Self::with(access, name, Arc::default())
    }

    fn with(access: ClusterAccess, name: &str, clip: Arc<TestClip>) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let root = tempfile::tempdir().unwrap();
        let settings = Settings {
            name: name.into(),
            mode: Mode::HubOnly,
            ..Settings::default()
        };
        let opened = pinion_hub::open(
            root.path(),
            "http://127.0.0.1:1",
            settings,
            AuthMode::Secured,
            Programs::default(),
        )?;
        let hub = opened.hub;
        let options = NodeOptions {
            access,
            name: name.into(),
            url: "http://127.0.0.1:1".into(),
            root: root.path().to_owned(),
        };
        let node = runtime.block_on(Node::join(&hub, options))?;
        Ok(Self {
            hub,
            node,
            clip,
            _root: root,
            runtime: Some(runtime),
        })
    }

    /// Adds the test clip under an alias, as an installed one.
    pub fn offer(&self, alias: &str) {
        let route = Route {
            alias: alias.into(),
            owner: Owner::Local,
            provider: "pinixd".into(),
            scope: None,
            endpoint: self.clip.clone(),
        };
        self.hub
            .table()
            .insert(vec![route], Conflict::Refuse)
            .unwrap();
    }

    /// Waits until the hub has a route that satisfies `check`, or none if `check` accepts that.
    pub fn wait_for(&self, alias: &str, check: impl Fn(Option<&Route>) -> bool) {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        loop {
            let route = self.hub.table().get(alias);
            if check(route.as_deref()) {
                return;
            }
            assert!(std::time::Instant::now() < until, "{alias}: {route:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until another hub offers this alias here.
    pub fn sees(&self, alias: &str) {
        self.wait_for(alias, |route| route.is_some());
    }

    pub fn call(
        &self,
        alias: &str,
        command: &str,
        input: impl Into<Bytes>,
    ) -> Result<Bytes, Failure> {
        let call = HubCall::new(Principal::Super, command, input);
        self.ask(alias, call)
    }

    pub fn ask(&self, alias: &str, call: HubCall) -> Result<Bytes, Failure> {
        self.block_on(self.hub.ask(alias, call))
    }

    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(work)
    }

    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.runtime.as_ref().unwrap().spawn(work)
    }

    pub fn handle(&self) -> tokio::runtime::Handle {
        self.runtime.as_ref().unwrap().handle().clone()
    }

    /// Ends the hub as a kill would: nothing is released.
    pub fn crash(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Leaves the cluster in order.
    pub fn leave(self) {
        self.block_on(self.node.leave());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The outcome that a failure carries for programs.
pub fn outcome(failure: &Failure) -> &str {
    let detail = failure
        .details
        .iter()
        .find(|it| it.type_name == pinion_cluster::talk::OUTCOME_DETAIL);
    detail.map_or("", |detail| std::str::from_utf8(&detail.value).unwrap())
}
