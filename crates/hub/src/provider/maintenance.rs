//! Installing and removing clips through a runtime that speaks the typed dialect. That dialect has no result message: a
//! request succeeds when the clip appears or disappears, and fails when an error about it is logged.

use std::time::Duration;

use pinion_clip::alias;
use pinion_proto::Text;
use pinion_status::{Code, Failure};
use tokio::sync::oneshot;

use super::incoming::LogLine;
use super::pending_call::disconnected;
use super::session::{Outgoing, Session};
use super::typed::{self, Granted};

/// An installation or removal requested from a typed runtime.
#[derive(Debug)]
pub(super) struct MaintenanceRequest {
    id: Text,
    task: MaintenanceTask,
    done: oneshot::Sender<Result<String, Failure>>,
}

#[derive(Debug)]
enum MaintenanceTask {
    Install { package: String, alias: String },
    Remove { name: String },
}

impl MaintenanceRequest {
    pub(super) fn finish(self, end: Result<String, Failure>) {
        let _ = self.done.send(end);
    }

    fn matches_log(&self, log: &LogLine) -> bool {
        let named = match &self.task {
            MaintenanceTask::Install { package, alias } => {
                log.clip == *package || is_same(&log.clip, alias)
            }
            MaintenanceTask::Remove { name } => is_same(&log.clip, name),
        };
        match log.request.as_str() {
            "" => named,
            request => *self.id == *request,
        }
    }
}

/// Removes a request when its caller stops waiting.
struct RemoveOnDrop<'a>(&'a Session, Text);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        self.0
            .state()
            .maintenance
            .retain(|request| request.id != self.1);
    }
}

impl Session {
    /// Requests the installation of a package and returns the alias it got.
    pub(super) async fn request_install(
        &self,
        source: &str,
        alias: &str,
        secret: &str,
        limit: Duration,
    ) -> Result<String, Failure> {
        let (package, version) = typed::package_of(source);
        let task = MaintenanceTask::Install {
            package: package.to_owned(),
            alias: alias.to_owned(),
        };
        let message = |id: &str| typed::install(id, package, version, alias, secret);
        self.request(task, message, limit).await
    }

    /// Requests the removal of the clip that the provider calls `name`.
    pub(super) async fn request_removal(
        &self,
        name: &str,
        purge: bool,
        limit: Duration,
    ) -> Result<(), Failure> {
        let task = MaintenanceTask::Remove {
            name: name.to_owned(),
        };
        let message = |id: &str| typed::uninstall(id, name, purge);
        self.request(task, message, limit).await.map(drop)
    }

    async fn request(
        &self,
        task: MaintenanceTask,
        message: impl FnOnce(&str) -> bytes::Bytes,
        limit: Duration,
    ) -> Result<String, Failure> {
        let id: Text = uuid::Uuid::new_v4().to_string().into();
        let (done, end) = oneshot::channel();
        {
            let mut state = self.state();
            if state.outcome.is_some() {
                return Err(disconnected());
            }
            let id = id.clone();
            state
                .maintenance
                .push(MaintenanceRequest { id, task, done });
        }
        self.queue.push(Outgoing::Raw(message(&id)));
        let _guard = RemoveOnDrop(self, id);
        match tokio::time::timeout(limit, end).await {
            Ok(end) => end.unwrap_or_else(|_| Err(disconnected())),
            Err(_) => Err(overdue(&self.name())),
        }
    }

    fn finish_matching(
        &self,
        end: impl Fn(&MaintenanceRequest) -> Option<Result<String, Failure>>,
    ) {
        let mut state = self.state();
        let (mut finished, mut open) = (Vec::new(), Vec::new());
        for request in std::mem::take(&mut state.maintenance) {
            match end(&request) {
                Some(end) => finished.push((request, end)),
                None => open.push(request),
            }
        }
        state.maintenance = open;
        drop(state);
        for (request, end) in finished {
            request.finish(end);
        }
    }

    /// Completes the installations of these clips.
    pub(super) fn note_registered(&self, clips: &[Granted]) {
        self.finish_matching(|request| match &request.task {
            MaintenanceTask::Install { package, .. } => {
                let clip = clips.iter().find(|clip| clip.package == *package)?;
                Some(Ok(clip.alias.clone()))
            }
            MaintenanceTask::Remove { .. } => None,
        });
    }

    /// Completes the removals of these clips.
    pub(super) fn note_removed(&self, names: &[String]) {
        self.finish_matching(|request| match &request.task {
            MaintenanceTask::Remove { name } if names.iter().any(|it| is_same(it, name)) => {
                Some(Ok(name.clone()))
            }
            _ => None,
        });
    }

    /// Fails the requests that a logged error refers to.
    pub(super) fn note_error(&self, log: &LogLine) {
        self.finish_matching(|request| {
            let failure = Failure::new(Code::Internal, log.message.clone());
            request.matches_log(log).then_some(Err(failure))
        });
    }
}

/// Reports whether two spellings mean the same clip: the provider's own and the hub's, which is normalised.
fn is_same(one: &str, other: &str) -> bool {
    let name = alias::normalise(one);
    name.is_some() && name == alias::normalise(other)
}

/// The failure of a request that the runtime has not completed in time.
pub(super) fn overdue(name: &str) -> Failure {
    let message = format!("runtime \"{name}\" has not finished in time");
    Failure::new(Code::DeadlineExceeded, message)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use pinion_access::{Caller, Principal, Via};
    use pinion_connect::Codec;

    use super::*;

    #[tokio::test]
    async fn requests_without_a_waiting_caller_are_removed() {
        let caller = Caller {
            principal: Principal::Super,
            token: None,
            via: Via::Nothing,
        };
        let session = Session::new(caller, Codec::Json, false, std::sync::Arc::default());
        for _ in 0..3 {
            let mut removing = Box::pin(session.request_removal("todo", false, Duration::MAX));
            assert!(removing.as_mut().now_or_never().is_none());
            assert_eq!(session.state().maintenance.len(), 1);
            drop(removing);
            assert!(session.state().maintenance.is_empty());
        }
    }
}
