//! Providers and runtimes: peers that keep a stream open, offer clips on it, and are called through it.
//!
//! A [`Session`] is one provider while it is connected, whichever of the two dialects it speaks ([`heard`]); its clips are
//! endpoints like all others. A task of its own listens to it, because the stream is written to only while the provider
//! reads. What a session may do is decided by the token it came with.

mod chores;
mod clip;
mod conversation;
mod flow;
pub(crate) mod heard;
mod legacy;
mod manage;
mod registration;
mod runtimes;
mod session;
mod sessions;
mod typed;

use std::sync::Arc;

use http::HeaderName;
use pinion_access::{Caller, Lease};
use pinion_connect::{IncomingCall, Requests};
use pinion_status::{Code, Failure};

pub(crate) use manage::Manager;
pub(crate) use session::Session;
pub(crate) use sessions::Sessions;

use crate::Hub;
use crate::table::Departure;
use session::Outgoing;

/// Says that a provider is a hub that passes on clips of its own.
pub(crate) const IS_HUB: HeaderName = HeaderName::from_static("pinion-hub");

/// How the words end with which a session is told that another has its place.
pub(crate) const ANEW: &str = "has connected anew";

impl Hub {
    /// `ProviderStream`.
    pub(crate) async fn provider_stream(
        self: Arc<Self>,
        caller: Caller,
        call: IncomingCall,
    ) -> Result<(), Failure> {
        let lease = self.gate().watch(&caller);
        let is_hub = call.context.headers.contains_key(IS_HUB);
        let codec = call.context.codec;
        let session = Arc::new(Session::new(caller, codec, is_hub, self.limits().clone()));
        session.greet(&self.settings().version);
        let _served = Served(&self, &session);
        tokio::spawn(listen(self.clone(), session.clone(), call.requests, lease));
        let mut answers = call.answers;
        while let Some(message) = session.queue.take().await {
            match message {
                Outgoing::Message(message) => answers.send(&message).await?,
                Outgoing::Raw(message) => answers.send_raw(message).await?,
            }
        }
        session.outcome()
    }

    /// Ends the streams of all providers and runtimes; they are told that the hub is going.
    pub fn dismiss_all(&self) {
        let failure = || Failure::new(Code::Unavailable, "the hub is shutting down");
        for session in self.sessions().providers() {
            self.dismiss(&session, Err(failure()), Departure::Lost);
        }
        for session in self.sessions().runtimes() {
            self.dismiss_runtime(&session, Err(failure()));
        }
    }
}

async fn listen(hub: Arc<Hub>, session: Arc<Session>, mut requests: Requests, lease: Lease) {
    let (outcome, departure) = tokio::select! {
        () = session.closed.cancelled() => return,
        failure = lease.ended() => (Err(failure), Departure::InOrder),
        end = conversation::listen(&hub, &session, &mut requests) => end,
    };
    hub.dismiss(&session, outcome, departure);
}

/// Ends a session that is no longer served: its provider has dropped the stream.
struct Served<'a>(&'a Arc<Hub>, &'a Arc<Session>);

impl Drop for Served<'_> {
    fn drop(&mut self) {
        let failure = Failure::new(Code::Unavailable, "the stream was dropped");
        self.0.dismiss(self.1, Err(failure), Departure::Lost);
    }
}
