//! Providers and runtimes: peers that hold a stream open, offer clips on it, and receive calls through it.
//!
//! A [`Session`] is one connected provider, in either of the two dialects ([`incoming`]); its clips are endpoints like
//! all others. A separate task reads each session's messages, because the stream's own task writes only while the
//! provider reads. The token that opened a session decides what the session may do.

mod clip;
mod conversation;
mod earlier_session;
pub(crate) mod incoming;
mod maintenance;
mod manage;
mod pending_call;
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
pub(crate) use registration::manifest_of;
pub(crate) use session::Session;
pub(crate) use sessions::Sessions;

use crate::Hub;
use crate::table::Departure;
use session::Outgoing;

/// The request header of a provider that is a hub and passes on its own clips.
pub(crate) const IS_HUB: HeaderName = HeaderName::from_static("pinion-hub");

/// The end of the message that a session receives when a newer connection replaces it.
pub(crate) const RECONNECTED: &str = "has connected anew";

impl Hub {
    /// Serves `ProviderStream`.
    pub(crate) async fn provider_stream(
        self: Arc<Self>,
        caller: Caller,
        call: IncomingCall,
    ) -> Result<(), Failure> {
        let lease = self.gate().watch(&caller);
        let is_hub = call.context.headers.contains_key(IS_HUB);
        let codec = call.context.codec;
        let session = Arc::new(Session::new(caller, codec, is_hub, self.limits().clone()));
        session.send_hello(&self.settings().version);
        let _guard = EndOnDrop(&self, &session);
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

    /// Ends the streams of all providers and runtimes with the failure that the hub is shutting down.
    pub fn disconnect_all(&self) {
        let failure = || Failure::new(Code::Unavailable, "the hub is shutting down");
        for session in self.sessions().providers() {
            self.end_session(&session, Err(failure()), Departure::Lost);
        }
        for session in self.sessions().runtimes() {
            self.end_runtime(&session, Err(failure()));
        }
    }
}

async fn listen(hub: Arc<Hub>, session: Arc<Session>, mut requests: Requests, lease: Lease) {
    let (outcome, departure) = tokio::select! {
        () = session.closed.cancelled() => return,
        failure = lease.ended() => (Err(failure), Departure::InOrder),
        end = conversation::listen(&hub, &session, &mut requests) => end,
    };
    hub.end_session(&session, outcome, departure);
}

/// Ends a session when its provider has dropped the stream.
struct EndOnDrop<'a>(&'a Arc<Hub>, &'a Arc<Session>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        let failure = Failure::new(Code::Unavailable, "the stream was dropped");
        self.0.end_session(self.1, Err(failure), Departure::Lost);
    }
}
