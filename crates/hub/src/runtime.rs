//! The clips installed here, as endpoints. The runtime starts, installs and removes them; it does not check callers'
//! rights.

mod replaced;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use pinion_access::Principal;
use pinion_clip::bindings::{Binding, Bindings};
use pinion_clip::data::{DataAnswer, DataOperation};
use pinion_clip::install::{Install, Library, Purge, Record};
use pinion_clip::logs::ClipLog;
use pinion_clip::web::{WebAnswer, WebFiles, WebRequest};
use pinion_clip::{
    CallError, Clip, ClipConfig, CrossCalls, Invocation, Snapshot, is_being_replaced,
};
use pinion_status::{Code, Failure};
use tokio::sync::watch;

use self::replaced::{Answer, Successor};
use crate::endpoint::{Answers, Endpoint, HubCall, failed};
use crate::input::with_whole_input;
use crate::table::Route;

/// Completes the configuration of a clip with the owner's address, limits and tokens.
pub type ConfigureClip = Box<dyn Fn(&Record, &mut ClipConfig) + Send + Sync>;

/// The clips installed under one directory.
pub struct Runtime {
    library: Arc<Library>,
    outward: Arc<dyn CrossCalls>,
    configure: ConfigureClip,
    clips: Mutex<BTreeMap<String, Arc<Installed>>>,
    changes: watch::Sender<u64>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    /// Loads the clips installed in `library`. Returns one failure for each clip that could not be read and was
    /// skipped.
    pub fn open(
        library: Library,
        outward: Arc<dyn CrossCalls>,
        configure: ConfigureClip,
    ) -> Result<(Self, Vec<Failure>), Failure> {
        let runtime = Self {
            library: Arc::new(library),
            outward,
            configure,
            clips: Mutex::default(),
            changes: watch::Sender::new(0),
        };
        let mut unreadable = Vec::new();
        for (alias, record) in runtime.library.records()? {
            match runtime.load(record) {
                Ok(_) => {}
                Err(failure) => unreadable.push(Failure::new(
                    failure.code,
                    format!("clip \"{alias}\" is skipped: {failure}"),
                )),
            }
        }
        Ok((runtime, unreadable))
    }

    fn clips(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Installed>>> {
        self.clips.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of clips, their files and logs.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Returns all clips, sorted by alias.
    pub fn all(&self) -> Vec<Arc<Installed>> {
        self.clips().values().cloned().collect()
    }

    /// A receiver that changes whenever a clip is installed or removed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    pub fn get(&self, alias: &str) -> Option<Arc<Installed>> {
        self.clips().get(alias).cloned()
    }

    /// Returns the installed clip of a route, whose alias may differ in a cluster.
    pub(crate) fn at(&self, route: &Route) -> Option<Arc<Installed>> {
        let endpoint = Arc::as_ptr(&route.endpoint).cast::<()>();
        let mut all = self.all().into_iter();
        all.find(|clip| Arc::as_ptr(clip).cast::<()>() == endpoint)
    }

    fn load(&self, record: Record) -> Result<Arc<Installed>, Failure> {
        let mut config = self.library.config(&record)?;
        (self.configure)(&record, &mut config);
        let log = Arc::new(ClipLog::at(self.library.log_file(&record.name)));
        let web = Arc::new(WebFiles::new(record.name.as_str(), &config.package));
        let installed = Arc::new(Installed {
            clip: Clip::new(config, log, self.outward.clone()),
            web,
            library: self.library.clone(),
            record,
            successor: watch::Sender::new(Successor::None),
        });
        let alias = installed.record.name.clone();
        self.clips().insert(alias, installed.clone());
        self.changed();
        Ok(installed)
    }
}

impl Runtime {
    /// Installs a clip under `alias`, or replaces the version that is installed there.
    pub async fn install(
        &self,
        alias: &str,
        source: &str,
        secret: &str,
        owner: &str,
    ) -> Result<Arc<Installed>, Failure> {
        let source = self.library.source_for(alias, source)?;
        let token = self.library.registry_token(&source)?;
        let install = Install {
            alias,
            source: &source,
            owner,
            call_secret: secret,
            registry_token: token.as_ref(),
        };
        let staged = self.library.stage(&install).await?;
        let library = self.library.clone();
        let commit = blocking(move || library.commit(staged));
        let Some(earlier) = self.get(alias) else {
            return self.load(commit.await?);
        };
        // Running calls end before the earlier version's files are removed; calls that arrive meanwhile wait for the
        // new version.
        earlier.successor.send_replace(Successor::Coming);
        earlier.clip.retire_for_replacement().await;
        let installed = match commit.await {
            Ok(record) => self.load(record),
            Err(failure) => {
                // The replacement failed: the earlier version is loaded again.
                let restored = self.load(earlier.record.clone()).ok();
                earlier.hand_over(restored);
                return Err(failure);
            }
        };
        earlier.hand_over(installed.as_ref().ok().cloned());
        if installed.is_err() {
            self.clips().remove(alias);
            self.changed();
        }
        installed
    }

    /// Removes a clip; `purge` decides whether its data is deleted too.
    pub async fn remove(&self, alias: &str, purge: Purge) -> Result<(), Failure> {
        let removed = self.clips().remove(alias);
        if let Some(removed) = removed {
            self.changed();
            removed.clip.retire().await;
        }
        let (library, alias) = (self.library.clone(), alias.to_owned());
        blocking(move || library.remove(&alias, purge).map(drop)).await
    }

    /// Returns the bindings of a clip's dependency slots.
    pub async fn bindings(&self, clip: &Installed) -> Result<Bindings, Failure> {
        let (library, alias) = (self.library.clone(), clip.record.name.clone());
        blocking(move || library.bindings(&alias)).await
    }

    /// Sets the binding of a slot, or removes it if `binding` is `None`. The clip's process is replaced, because a
    /// process reads its bindings only when it starts.
    pub async fn bind(
        &self,
        clip: &Installed,
        slot: &str,
        binding: Option<Binding>,
    ) -> Result<(), Failure> {
        let (library, alias) = (self.library.clone(), clip.record.name.clone());
        let slot = slot.to_owned();
        blocking(move || match binding {
            Some(binding) => library.set_binding(&alias, &slot, binding),
            None => library.remove_binding(&alias, &slot),
        })
        .await?;
        clip.clip.renew();
        Ok(())
    }

    /// Ends all processes and rejects further calls.
    pub async fn shut_down(&self) {
        let clips = std::mem::take(&mut *self.clips());
        let ending = clips.values().map(|installed| installed.clip.retire());
        futures_util::future::join_all(ending).await;
    }
}

/// An installed clip.
#[derive(Debug)]
pub struct Installed {
    clip: Clip,
    web: Arc<WebFiles>,
    library: Arc<Library>,
    record: Record,
    successor: watch::Sender<Successor>,
}

impl Installed {
    /// The installation record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The clip's process and manifest.
    pub fn clip(&self) -> &Clip {
        &self.clip
    }

    fn hand_over(&self, to: Option<Arc<Self>>) {
        let successor = to.map_or(Successor::Never, Successor::Here);
        self.successor.send_replace(successor);
    }

    /// Waits for the clip that replaces this one.
    async fn wait_for_successor(&self) -> Result<Arc<Self>, Failure> {
        let mut successor = self.successor.subscribe();
        let settled = successor.wait_for(|successor| !matches!(successor, Successor::Coming));
        match settled.await.as_deref() {
            Ok(Successor::Here(next)) => Ok(next.clone()),
            _ => {
                let alias = &self.record.name;
                let message = format!("clip \"{alias}\" could not be replaced by another version");
                Err(Failure::new(Code::Unavailable, message))
            }
        }
    }

    fn check_call_secret(&self, call: &HubCall) -> Result<(), Failure> {
        match &call.caller {
            Principal::Clip { alias, .. } if **alias == self.record.name => Ok(()),
            _ => self.record.check_secret(call.secret.as_deref()),
        }
    }

    /// Makes a call whose input is complete.
    fn call(self: Arc<Self>, call: HubCall) -> Answers {
        let mut invocation = Invocation::new(call.command.as_str(), call.input.clone());
        invocation.deadline = call.deadline;
        match self.clip.invoke(invocation) {
            Ok(answer) => Box::pin(Answer::new(answer, self, call)),
            Err(failure) if is_being_replaced(&failure) => self.pass_on(call),
            Err(failure) => failed(CallError::Unanswered(failure)),
        }
    }

    /// Passes the call to the clip that replaces this one.
    fn pass_on(self: Arc<Self>, call: HubCall) -> Answers {
        let passed_on = async move {
            match self.wait_for_successor().await {
                Ok(next) => next.invoke(call),
                Err(failure) => failed(CallError::Unanswered(failure)),
            }
        };
        Box::pin(stream::once(passed_on).flatten())
    }
}

impl Endpoint for Installed {
    fn snapshot(&self) -> Snapshot {
        self.clip.snapshot()
    }

    fn watch(&self) -> Option<watch::Receiver<Snapshot>> {
        Some(self.clip.watch())
    }

    fn is_guarded(&self) -> bool {
        self.record.is_token_protected()
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        if !matches!(*self.successor.borrow(), Successor::None) {
            return self.pass_on(call);
        }
        if let Err(failure) = self.check_call_secret(&call) {
            return failed(CallError::Answered(failure));
        }
        with_whole_input(self, call, Self::call)
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Snapshot, Failure>> {
        Box::pin(async {
            self.clip.inspect().await?;
            Ok(self.snapshot())
        })
    }

    fn data(
        &self,
        path: String,
        operation: DataOperation,
    ) -> BoxFuture<'_, Result<DataAnswer, Failure>> {
        let (store, alias) = (self.library.data().clone(), self.record.name.clone());
        let work = move || store.perform(&alias, operation, &path);
        Box::pin(blocking(work))
    }

    fn web(&self, request: WebRequest) -> BoxFuture<'_, Result<WebAnswer, Failure>> {
        Box::pin(self.web.serve(request))
    }

    fn log(&self) -> Option<Arc<ClipLog>> {
        Some(self.clip.logs())
    }
}

/// Runs `work`, which waits for the disk, on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Failure::new(Code::Internal, error.to_string())),
    }
}
