//! Openings of other hubs, answered by this hub.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_access::Method;
use pinion_hub::{Answers, DeadlineOrigin, Hub, HubCall, Input, NotHere, RemoteRequest, answered};
use pinion_proto::cluster::{Evict, Invoke, open};
use pinion_status::{Code, Failure};

use super::Node;
use super::passing_on::principal_of;
use crate::talk::{Answerer, Decision, Opening, Refusal};

#[derive(Debug)]
pub(super) struct HubAnswerer(Weak<Node>);

impl HubAnswerer {
    pub fn new(node: &Arc<Node>) -> Self {
        Self(Arc::downgrade(node))
    }
}

impl Answerer for HubAnswerer {
    fn answer(&self, opening: Opening, input: Option<Input>) -> BoxFuture<'_, Decision> {
        async move {
            let node = self.0.upgrade();
            let hub = node.as_ref().and_then(|node| node.hub());
            let (Some(node), Some(hub)) = (node, hub) else {
                return Decision::Refuse {
                    reason: Refusal::Leaving,
                    failure: Failure::new(
                        Code::Unavailable,
                        "the hub that runs the clip is shutting down",
                    ),
                };
            };
            let what = opening.open.what.clone();
            let decided = match what {
                Some(open::What::Invoke(invoke)) => invoked(&hub, opening, invoke, input),
                Some(open::What::Request(request)) => requested(&hub, opening, &request.method),
                Some(open::What::Evict(evict)) => Ok(evicted(&node, &hub, &evict).await),
                None => Err(NotHere::Refused(Failure::new(
                    Code::Unimplemented,
                    "the hub that runs the clip does not know this request of another hub",
                ))),
            };
            match decided {
                Ok(answers) => Decision::Answer(answers),
                Err(NotHere::Moved) => Decision::Refuse {
                    reason: Refusal::Moved,
                    failure: Failure::new(
                        Code::Unavailable,
                        "the clip has moved to another hub; try again",
                    ),
                },
                Err(NotHere::Refused(failure)) => Decision::Refuse {
                    reason: Refusal::Failed,
                    failure,
                },
            }
        }
        .boxed()
    }
}

fn invoked(
    hub: &Arc<Hub>,
    opening: Opening,
    invoke: Invoke,
    input: Option<Input>,
) -> Result<Answers, NotHere> {
    let caller = principal_of(&opening.open.caller.clone().unwrap_or_default());
    let mut call = HubCall::new(caller, invoke.command.to_string(), opening.body);
    call.more = input;
    let secret = opening.open.call_token.to_string();
    call.secret = Some(secret).filter(|secret| !secret.is_empty());
    (call.deadline, call.deadline_origin) = match (opening.deadline, opening.patience) {
        (Some(deadline), _) => (Some(deadline), DeadlineOrigin::Caller),
        (None, patience) => (patience, DeadlineOrigin::Hub),
    };
    hub.invoke_for_neighbour(&opening.open.alias, call)
}

fn requested(hub: &Arc<Hub>, opening: Opening, method: &str) -> Result<Answers, NotHere> {
    let method = Method::from_name(method).ok_or_else(|| {
        let message = format!("the hub that runs the clip does not know the method \"{method}\"");
        NotHere::Refused(Failure::new(Code::Unimplemented, message))
    })?;
    hub.answer_neighbour(RemoteRequest {
        caller: principal_of(&opening.open.caller.clone().unwrap_or_default()),
        method,
        alias: opening.open.alias.to_string(),
        message: opening.body,
    })
}

/// Ends the session of a provider that has connected to another hub. Answers with the number of the last change.
async fn evicted(node: &Node, hub: &Arc<Hub>, evict: &Evict) -> Answers {
    let aliases = hub.evict_provider(&evict.provider, &evict.owner);
    let revision = node.release_provider(&evict.provider, &aliases).await;
    answered(Bytes::from(revision.to_string()))
}
