//! Installing and removing through a runtime that speaks the typed spelling. It has no message that says how that went:
//! the clip appears or goes, or an error is logged about it.

use std::time::Duration;

use pinion_clip::alias;
use pinion_proto::Text;
use pinion_status::{Code, Failure};
use tokio::sync::oneshot;

use super::flow::disconnected;
use super::heard::Log;
use super::session::{Outgoing, Session};
use super::typed::{self, Granted};

/// Something a typed runtime was asked to do.
#[derive(Debug)]
pub(super) struct Chore {
    id: Text,
    task: Task,
    done: oneshot::Sender<Result<String, Failure>>,
}

#[derive(Debug)]
enum Task {
    Install { package: String, alias: String },
    Remove { name: String },
}

impl Chore {
    pub(super) fn finish(self, end: Result<String, Failure>) {
        let _ = self.done.send(end);
    }

    fn is_meant_by(&self, log: &Log) -> bool {
        let named = match &self.task {
            Task::Install { package, alias } => log.clip == *package || is_same(&log.clip, alias),
            Task::Remove { name } => is_same(&log.clip, name),
        };
        match log.request.as_str() {
            "" => named,
            request => *self.id == *request,
        }
    }
}

/// Forgets a chore when nobody waits for it any more.
struct Forget<'a>(&'a Session, Text);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.state().chores.retain(|chore| chore.id != self.1);
    }
}

impl Session {
    /// Has a package installed; tells the alias it got.
    pub(super) async fn have_installed(
        &self,
        source: &str,
        alias: &str,
        secret: &str,
        limit: Duration,
    ) -> Result<String, Failure> {
        let (package, version) = typed::package_of(source);
        let task = Task::Install {
            package: package.to_owned(),
            alias: alias.to_owned(),
        };
        let message = |id: &str| typed::install(id, package, version, alias, secret);
        self.charge(task, message, limit).await
    }

    /// Has a clip removed that the provider calls `name`.
    pub(super) async fn have_removed(
        &self,
        name: &str,
        purge: bool,
        limit: Duration,
    ) -> Result<(), Failure> {
        let task = Task::Remove {
            name: name.to_owned(),
        };
        let message = |id: &str| typed::uninstall(id, name, purge);
        self.charge(task, message, limit).await.map(drop)
    }

    async fn charge(
        &self,
        task: Task,
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
            state.chores.push(Chore { id, task, done });
        }
        self.queue.push(Outgoing::Raw(message(&id)));
        let _forgotten = Forget(self, id);
        match tokio::time::timeout(limit, end).await {
            Ok(end) => end.unwrap_or_else(|_| Err(disconnected())),
            Err(_) => Err(overdue(&self.name())),
        }
    }

    fn finish_chores(&self, end: impl Fn(&Chore) -> Option<Result<String, Failure>>) {
        let mut state = self.state();
        let (mut finished, mut open) = (Vec::new(), Vec::new());
        for chore in std::mem::take(&mut state.chores) {
            match end(&chore) {
                Some(end) => finished.push((chore, end)),
                None => open.push(chore),
            }
        }
        state.chores = open;
        drop(state);
        for (chore, end) in finished {
            chore.finish(end);
        }
    }

    /// These clips have appeared.
    pub(super) fn note_registered(&self, clips: &[Granted]) {
        self.finish_chores(|chore| match &chore.task {
            Task::Install { package, .. } => {
                let clip = clips.iter().find(|clip| clip.package == *package)?;
                Some(Ok(clip.alias.clone()))
            }
            Task::Remove { .. } => None,
        });
    }

    /// These clips have gone.
    pub(super) fn note_removed(&self, names: &[String]) {
        self.finish_chores(|chore| match &chore.task {
            Task::Remove { name } if names.iter().any(|it| is_same(it, name)) => {
                Some(Ok(name.clone()))
            }
            _ => None,
        });
    }

    /// An error was logged; perhaps something failed that was asked for.
    pub(super) fn note_trouble(&self, log: &Log) {
        self.finish_chores(|chore| {
            let failure = Failure::new(Code::Internal, log.message.clone());
            chore.is_meant_by(log).then_some(Err(failure))
        });
    }
}

/// Whether two names mean the same clip: as it was registered, and as the hub tells it.
fn is_same(one: &str, other: &str) -> bool {
    let name = alias::normalise(one);
    name.is_some() && name == alias::normalise(other)
}

/// That a runtime has not done in time what it was asked for.
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
    async fn what_nobody_waits_for_is_forgotten() {
        let caller = Caller {
            principal: Principal::Super,
            token: None,
            via: Via::Nothing,
        };
        let session = Session::new(caller, Codec::Json, false, std::sync::Arc::default());
        for _ in 0..3 {
            let mut removing = Box::pin(session.have_removed("todo", false, Duration::MAX));
            assert!(removing.as_mut().now_or_never().is_none());
            assert_eq!(session.state().chores.len(), 1);
            drop(removing);
            assert!(session.state().chores.is_empty());
        }
    }
}
