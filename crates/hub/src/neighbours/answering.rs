//! Answers to calls and requests that other hubs pass on. The caller's rights are judged again.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use pinion_access::{Caller, Method, Principal, Via};
use pinion_clip::CallError;
use pinion_proto::{Binary, Message};
use pinion_status::{Code, Failure};

use super::RemoteRequest;
use crate::Hub;
use crate::endpoint::{Answers, HubCall};
use crate::table::{Owner, Route};

/// The reason why a request of another hub is not answered here.
#[derive(Debug)]
pub enum NotHere {
    /// This hub does not hold the alias.
    Moved,
    /// The request is refused.
    Refused(Failure),
}

impl Hub {
    /// Finds a route of this hub for a request that another hub passes on.
    fn held(&self, caller: &Principal, method: Method, alias: &str) -> Result<Arc<Route>, NotHere> {
        match self.table().get(alias) {
            Some(route) if !matches!(route.owner, Owner::Hub(_)) => {
                self.find(caller, method, alias).map_err(NotHere::Refused)?;
                Ok(route)
            }
            _ => Err(NotHere::Moved),
        }
    }

    /// Calls a clip of this hub for another hub. Nothing was handed to the clip if this fails.
    pub fn invoke_for_neighbour(&self, alias: &str, call: HubCall) -> Result<Answers, NotHere> {
        let route = self.held(&call.caller, Method::Invoke, alias)?;
        Ok(self.call_route(&route, call))
    }

    /// Answers a request that another hub passes on. Nothing was done if this fails.
    pub fn answer_neighbour(self: &Arc<Self>, request: RemoteRequest) -> Result<Answers, NotHere> {
        let RemoteRequest {
            caller,
            method,
            alias,
            message,
        } = request;
        if !alias.is_empty() {
            let right = match method {
                // The operation decides about the right; the handler looks at it.
                Method::Data | Method::DataRead | Method::DataWrite => Method::DataRead,
                method => method,
            };
            match self.table().get(&alias) {
                Some(route) if !matches!(route.owner, Owner::Hub(_)) => {}
                _ => return Err(NotHere::Moved),
            }
            caller.may(right).map_err(NotHere::Refused)?;
        }
        let caller = Caller {
            principal: caller,
            token: None,
            via: Via::Token,
        };
        let hub = self.clone();
        if method == Method::GetLogs {
            return hub
                .logs_for_neighbour(&caller, message)
                .map_err(NotHere::Refused);
        }
        let answer = async move {
            let answered = hub.answer_one(&caller, method, message).await;
            answered.map_err(CallError::Unanswered)
        };
        Ok(Box::pin(stream::once(answer)))
    }

    async fn answer_one(
        &self,
        caller: &Caller,
        method: Method,
        message: Bytes,
    ) -> Result<Bytes, Failure> {
        macro_rules! answer {
            ($handler:ident) => {{ Ok(self.$handler(caller, read(message)?).await?.to_bytes()) }};
        }
        match method {
            Method::GetClipManifest | Method::GetManifest => answer!(get_manifest),
            Method::GetClipWeb => answer!(get_clip_web),
            Method::DataRead | Method::DataWrite | Method::Data => {
                let response = self.data(caller, method, read(message)?).await?;
                Ok(response.to_bytes())
            }
            Method::AddClip => answer!(add_clip),
            Method::RemoveClip => answer!(remove_clip),
            Method::GetBindings => answer!(get_bindings),
            Method::SetBinding => answer!(set_binding),
            Method::RemoveBinding => answer!(remove_binding),
            _ => {
                let message = format!("{method} is not passed on between hubs");
                Err(Failure::new(Code::Unimplemented, message))
            }
        }
    }
}

pub(crate) fn read<T: Message + Binary>(message: Bytes) -> Result<T, Failure> {
    T::decode(message).map_err(|error| Failure::invalid(error.to_string()))
}
