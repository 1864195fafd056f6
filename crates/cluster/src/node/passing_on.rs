//! Calls and requests to other hubs. A call is opened again at another hub only with proof that no clip has it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use pinion_access::{Principal, Scope};
use pinion_clip::CallError;
use pinion_hub::{Answers, DeadlineOrigin, Hub, HubCall, NotHere, Owner, RemoteRequest, failed};
use pinion_proto::cluster::{Caller, Invoke, Request, open};
use pinion_status::{Code, Failure};
use tokio::time::Instant;

use super::Node;
use crate::names::ProcessId;
use crate::talk::{Call, NewCall, Outcome};

/// Openings of one call, each after proof that the one before was not handed to a clip.
const MAX_OPENINGS: usize = 3;
/// The time for all of them.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// The time that a request has, which is longer than the limits that the other hub has for its own work.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(330);

/// Describes a caller for another hub.
pub(super) fn caller_of(principal: &Principal) -> Caller {
    let mut caller = Caller::default();
    let text = |scope: &Scope| scope.as_str().to_owned().into();
    caller.kind = match principal {
        Principal::Super => "super",
        Principal::Hub { scope, manage, id } => {
            caller.scope = text(scope);
            caller.manage = *manage;
            caller.id = id.as_str().to_owned().into();
            "hub"
        }
        Principal::Clip { alias, owner } => {
            caller.alias = alias.clone().into();
            caller.scope = owner.as_ref().map(text).unwrap_or_default();
            "clip"
        }
        Principal::Metrics => "metrics",
        Principal::Guest => "guest",
        Principal::Anonymous => "anonymous",
    }
    .into();
    caller
}

/// Reads the caller that another hub has named. An unknown one has no rights.
pub(super) fn principal_of(caller: &Caller) -> Principal {
    let scope = || caller.scope.parse::<Scope>().ok();
    match &*caller.kind {
        "super" => Principal::Super,
        "hub" => match scope() {
            Some(scope) if !caller.id.is_empty() => Principal::Hub {
                scope,
                manage: caller.manage,
                id: (&*caller.id).into(),
            },
            _ => Principal::Anonymous,
        },
        // An owner that cannot be read must not become none, which would be a clip that everyone may see.
        "clip" if caller.scope.is_empty() || scope().is_some() => Principal::Clip {
            alias: caller.alias.to_string().into(),
            owner: scope(),
        },
        "metrics" => Principal::Metrics,
        "guest" => Principal::Guest,
        _ => Principal::Anonymous,
    }
}

impl Node {
    pub(super) fn pass_call_on(&self, to: Arc<str>, alias: String, mut call: HubCall) -> Answers {
        let Some(node) = self.this.upgrade() else {
            return failed(CallError::Unanswered(left()));
        };
        let deadline = call.deadline;
        let (time_left, patience) = match call.deadline_origin {
            DeadlineOrigin::Caller => (deadline, None),
            DeadlineOrigin::Hub => (None, deadline),
        };
        let new = NewCall {
            caller: caller_of(&call.caller),
            secret: call.secret.clone().unwrap_or_default(),
            what: open::What::Invoke(Invoke {
                command: call.command.clone().into(),
                ..Invoke::default()
            }),
            body: call.input.clone(),
            deadline: time_left,
            patience,
            more_input: call.more.is_some(),
            alias,
        };
        let answers = async move {
            match node.open_anywhere(to, &new).await {
                Ok(Opened::Elsewhere(mut opened)) => {
                    opened.feed(&new.body, call.more.take());
                    relay(opened)
                }
                Ok(Opened::Here(hub)) => match hub.invoke_for_neighbour(&new.alias, call) {
                    Ok(answers) => answers,
                    Err(NotHere::Moved) => failed(CallError::Unanswered(moved())),
                    Err(NotHere::Refused(failure)) => failed(CallError::Unanswered(failure)),
                },
                Err(failure) => failed(CallError::Unanswered(failure)),
            }
        };
        until(deadline, Box::pin(stream::once(answers).flatten()))
    }

    pub(super) fn pass_request_on(&self, to: Arc<str>, request: RemoteRequest) -> Answers {
        let Some(node) = self.this.upgrade() else {
            return failed(CallError::Unanswered(left()));
        };
        let is_stream = request.method == pinion_access::Method::GetLogs;
        let deadline = (!is_stream).then(|| Instant::now() + REQUEST_TIMEOUT);
        let new = NewCall {
            alias: request.alias,
            caller: caller_of(&request.caller),
            secret: String::new(),
            what: open::What::Request(Request {
                method: request.method.as_str().into(),
                ..Request::default()
            }),
            body: request.message,
            deadline: None,
            patience: None,
            more_input: false,
        };
        let answers = async move {
            // A route that has moved meanwhile is found by the caller's next attempt.
            let opened = match ProcessId::parse(&to) {
                Some(to) => node.talk.open(&to, &new).await,
                None => return failed(CallError::Unanswered(left())),
            };
            match opened {
                Ok(mut opened) => {
                    opened.feed(&new.body, None);
                    relay(opened)
                }
                Err(refused) => {
                    failed(CallError::Unanswered(refused.outcome.note(refused.failure)))
                }
            }
        };
        until(deadline, Box::pin(stream::once(answers).flatten()))
    }

    /// Opens a call at the hub that holds the alias, which may change meanwhile.
    async fn open_anywhere(&self, to: Arc<str>, new: &NewCall) -> Result<Opened, Failure> {
        let until = Instant::now() + RESOLVE_TIMEOUT;
        let mut to = to;
        let mut openings = 0;
        loop {
            let id = ProcessId::parse(&to).ok_or_else(left)?;
            openings += 1;
            let refused = match self.talk.open(&id, new).await {
                Ok(call) => return Ok(Opened::Elsewhere(call)),
                Err(refused) => refused,
            };
            let failure = refused.outcome.note(refused.failure);
            let Some(revision) = refused.moved.filter(|_| openings < MAX_OPENINGS) else {
                return Err(failure);
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(failure);
            }
            self.wait_for_revision(revision, left).await;
            tokio::time::sleep(RETRY_INTERVAL.min(left)).await;
            let Some(hub) = self.hub() else {
                return Err(failure);
            };
            match hub.table().get(&new.alias).map(|route| route.owner.clone()) {
                None => return Err(failure),
                Some(Owner::Hub(other)) => to = other,
                Some(_) => return Ok(Opened::Here(hub)),
            }
        }
    }
}

enum Opened {
    Elsewhere(Call),
    /// The alias has moved to this hub.
    Here(Arc<Hub>),
}

fn moved() -> Failure {
    let message = "the clip has moved to another hub; try again";
    Outcome::NotStarted.note(Failure::new(Code::Unavailable, message))
}

fn left() -> Failure {
    Failure::new(Code::Unavailable, "this hub has left its cluster")
}

/// Turns a conversation into the answer of a call.
fn relay(call: Call) -> Answers {
    Box::pin(stream::unfold(Some(call), |call| async {
        let mut call = call?;
        match call.next().await? {
            Ok(output) => Some((Ok(output), Some(call))),
            Err(failed) => {
                let error = if failed.answered {
                    CallError::Answered(failed.failure)
                } else {
                    CallError::Unanswered(failed.failure)
                };
                Some((Err(error), None))
            }
        }
    }))
}

/// Ends an answer at its deadline, which cancels the call.
fn until(deadline: Option<Instant>, answers: Answers) -> Answers {
    let Some(deadline) = deadline else {
        return answers;
    };
    Box::pin(stream::unfold(Some(answers), move |answers| async move {
        let mut answers = answers?;
        match tokio::time::timeout_at(deadline, answers.next()).await {
            Ok(item) => {
                let item: Result<Bytes, CallError> = item?;
                let rest = item.is_ok().then_some(answers);
                Some((item, rest))
            }
            Err(_) => {
                let failure = Failure::new(
                    Code::DeadlineExceeded,
                    "the provider did not answer in time",
                );
                Some((
                    Err(CallError::Unanswered(Outcome::Unknown.note(failure))),
                    None,
                ))
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_come_back_and_unknown_ones_have_no_rights() {
        let scope: Scope = "@ann".parse().unwrap();
        for principal in [
            Principal::Super,
            Principal::Hub {
                scope: scope.clone(),
                manage: true,
                id: "k3v9q2mx".into(),
            },
            Principal::Clip {
                alias: "todo".into(),
                owner: Some(scope),
            },
            Principal::Clip {
                alias: "todo".into(),
                owner: None,
            },
            Principal::Metrics,
            Principal::Guest,
            Principal::Anonymous,
        ] {
            assert_eq!(principal_of(&caller_of(&principal)), principal);
        }
        for (kind, scope) in [
            ("root", ""),
            ("", ""),
            ("hub", "@a/b"),
            ("hub", ""),
            ("clip", "@a/b"),
        ] {
            let caller = Caller {
                kind: kind.into(),
                scope: scope.into(),
                ..Caller::default()
            };
            assert_eq!(
                principal_of(&caller),
                Principal::Anonymous,
                "{kind} {scope}"
            );
        }
    }
}
