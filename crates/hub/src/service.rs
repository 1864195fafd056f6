//! The hub's methods as they are called over the wire.

mod bindings;
mod calls;
mod catalogue;
mod data;
mod logs;
mod manage;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, Request, Response, header};
use pinion_access::{Caller, Lease, Method, Origin, Principal, Via, bearer};
use pinion_connect::{
    Body, IncomingBody, IncomingCall, MethodKind, Peer, Service, error_body, is_own_origin,
};
use pinion_status::{Code, Failure};

use crate::Hub;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The paths under which the service answers.
pub const PREFIXES: [&str; 2] = ["/pinix.v2.HubService/", "/pinix.hub.v1.HubService/"];

/// Connect's form of a failure, and in its member `error` the older one of Pinix, with a code in upper case:
/// `{"code":"not_found","message":"…","error":{"code":"NOT_FOUND","message":"…"}}`.
fn with_older_form(failure: &Failure) -> Vec<u8> {
    // Pinix has no words for a caller who did not say who it is, nor for failures of an unknown kind.
    let code = match failure.code {
        Code::Unauthenticated => Code::PermissionDenied,
        Code::Unknown => Code::Internal,
        other => other,
    };
    let older = serde_json::json!({ "code": code.upper(), "message": failure.message });
    let mut body = error_body(failure);
    body.pop();
    body.extend_from_slice(format!(",\"error\":{older}}}").as_bytes());
    body
}

impl Service for Hub {
    fn method(&self, name: &str) -> Option<MethodKind> {
        Some(match Method::from_name(name)? {
            Method::Invoke => MethodKind::Either,
            Method::InvokeStream => MethodKind::BidiOrSingle,
            Method::ProviderStream | Method::RuntimeStream => MethodKind::Bidi,
            Method::GetLogs => MethodKind::ServerStream,
            _ => MethodKind::Unary,
        })
    }

    fn error_body(&self, failure: &Failure) -> Vec<u8> {
        with_older_form(failure)
    }

    async fn serve(self: Arc<Self>, mut call: IncomingCall) -> Result<(), Failure> {
        let method = Method::from_name(call.context.method())
            .ok_or_else(|| Failure::new(Code::Unimplemented, "there is no such method"))?;
        let context = &call.context;
        let admitted = self.admit(&context.headers, context.authority(), &context.peer);
        let caller = match admitted.await {
            // Whoever asks what this is may have a token that is good elsewhere.
            Err(failure) if method == Method::HubInfo => nobody(failure)?,
            caller => match caller.and_then(|caller| caller.may(method).map(|()| caller)) {
                Err(failure) => return Err(refused(failure, method, &mut call).await),
                Ok(caller) => caller,
            },
        };
        match method {
            Method::Invoke if call.context.unary => self.invoke_once(&caller, call).await,
            Method::Invoke => {
                let lease = self.gate().watch(&caller);
                until_revoked(lease, self.invoke_parts(&caller, call)).await
            }
            Method::InvokeStream => {
                let lease = self.gate().watch(&caller);
                until_revoked(lease, self.invoke_fed(&caller, call)).await
            }
            Method::ProviderStream => self.provider_stream(caller, call).await,
            Method::RuntimeStream => self.runtime_stream(caller, call).await,
            Method::GetLogs => {
                let lease = self.gate().watch(&caller);
                until_revoked(lease, self.get_logs(&caller, call)).await
            }
            _ => Box::pin(self.unary(method, &caller, &mut call)).await,
        }
    }

    async fn plain(self: Arc<Self>, request: Request<IncomingBody>, peer: Peer) -> Response<Body> {
        Box::pin(crate::pages::answer(&self, request, &peer)).await
    }
}

impl Hub {
    async fn unary(
        &self,
        method: Method,
        caller: &Caller,
        call: &mut IncomingCall,
    ) -> Result<(), Failure> {
        macro_rules! answer {
            ($handler:ident) => {{
                let request = call.requests.message().await?;
                let response = self.$handler(caller, request).await?;
                call.answers.send(&response).await
            }};
        }
        match method {
            Method::HubInfo => answer!(hub_info),
            Method::ListClips => answer!(list_clips),
            Method::ListProviders => answer!(list_providers),
            Method::GetClipManifest | Method::GetManifest => answer!(get_manifest),
            Method::GetClipWeb => answer!(get_clip_web),
            Method::DataRead | Method::DataWrite | Method::Data => {
                let request = call.requests.message().await?;
                let response = self.data(caller, method, request).await?;
                call.answers.send(&response).await
            }
            Method::AddClip => answer!(add_clip),
            Method::RemoveClip => answer!(remove_clip),
            Method::GetBindings => answer!(get_bindings),
            Method::SetBinding => answer!(set_binding),
            Method::RemoveBinding => answer!(remove_binding),
            _ => Err(Failure::new(
                Code::Internal,
                format!("{method} is a stream"),
            )),
        }
    }

    /// Who sends these headers; `own` is the name and port under which they came.
    pub(crate) async fn admit(
        &self,
        headers: &HeaderMap,
        own: Option<&str>,
        peer: &Peer,
    ) -> Result<Caller, Failure> {
        let authorization = text_of(headers, header::AUTHORIZATION);
        self.recognise(authorization.and_then(bearer)).await?;
        let cookie = text_of(headers, header::COOKIE);
        let visitor = self.visitor(headers, own, peer);
        let caller = self.gate().admit(authorization, cookie, visitor)?;
        if caller.principal != Principal::Anonymous {
            peer.mark_authenticated();
        }
        Ok(caller)
    }

    /// Where these headers come from, as far as rights depend on it.
    pub(crate) fn visitor(
        &self,
        headers: &HeaderMap,
        own: Option<&str>,
        peer: &Peer,
    ) -> pinion_access::Peer {
        // Unless all origins are let in, pages of others were turned away on the way here.
        let is_served = |origin: &str| {
            let is_own = own.is_some_and(|own| is_own_origin(origin, own, peer.secure));
            !self.settings().any_origin || is_own
        };
        let origin = text_of(headers, header::ORIGIN);
        let site = text_of(headers, SEC_FETCH_SITE);
        pinion_access::Peer {
            loopback: peer.address.ip().is_loopback(),
            origin: Origin::of(origin, site, is_served),
        }
    }
}

pub(crate) fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Why a call is not made. What is wrong with a call itself is said first, where that is one message.
async fn refused(failure: Failure, method: Method, call: &mut IncomingCall) -> Failure {
    match method {
        Method::Invoke if call.context.unary => calls::mistake(call).await.unwrap_or(failure),
        _ => failure,
    }
}

/// Who shows a token that is not known here, where none is needed.
fn nobody(failure: Failure) -> Result<Caller, Failure> {
    match failure.code {
        Code::Unauthenticated => Ok(Caller {
            principal: Principal::Anonymous,
            token: None,
            via: Via::Nothing,
        }),
        _ => Err(failure),
    }
}

/// Ends `work` when the token is gone with which it was begun.
async fn until_revoked(
    lease: Lease,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    tokio::select! {
        biased;
        end = work => end,
        failure = lease.ended() => Err(failure),
    }
}

/// That a request leaves out what it must say.
fn required(what: &str) -> Failure {
    Failure::invalid(format!("{what} is required"))
}
