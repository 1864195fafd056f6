//! The hub's methods over the wire.

mod bindings;
mod calls;
mod catalogue;
mod data;
mod logs;
mod manage;

pub(crate) use self::logs::LogLines;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, Request, Response, header};
use pinion_access::{Caller, Lease, Method, Origin, Principal, Via, bearer};
use pinion_connect::{
    Body, IncomingBody, IncomingCall, MethodKind, Peer, Service, error_body, is_own_origin,
};
use pinion_status::{Code, Failure};

use crate::Hub;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The path prefixes of the service.
pub const PREFIXES: [&str; 2] = ["/pinix.v2.HubService/", "/pinix.hub.v1.HubService/"];

/// Encodes a failure in Connect's form and, in its member `error`, in the older form of Pinix with a code in upper
/// case: `{"code":"not_found","message":"…","error":{"code":"NOT_FOUND","message":"…"}}`.
fn with_older_form(failure: &Failure) -> Vec<u8> {
    // Pinix has no code for a missing token, nor for failures of an unknown kind.
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
            // A caller that asks for the hub's description may have a token of another hub.
            Err(failure) if method == Method::HubInfo => anonymous(failure)?,
            caller => match caller.and_then(|caller| caller.may(method).map(|()| caller)) {
                Err(failure) => return Err(rejection(failure, method, &mut call).await),
                Ok(caller) => caller,
            },
        };
        match method {
            Method::Invoke if call.context.unary => self.invoke_once(&caller, call).await,
            Method::Invoke => {
                let lease = self.gate().watch(&caller);
                until_revoked(lease, self.invoke_streaming(&caller, call)).await
            }
            Method::InvokeStream => {
                let lease = self.gate().watch(&caller);
                until_revoked(lease, self.invoke_with_input(&caller, call)).await
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

    /// Authenticates the sender of these headers; `own` is the host and port that the request was sent to.
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

    /// Determines the origin of these headers, as far as rights depend on it.
    pub(crate) fn visitor(
        &self,
        headers: &HeaderMap,
        own: Option<&str>,
        peer: &Peer,
    ) -> pinion_access::Peer {
        // Unless every origin is allowed, requests of foreign pages were rejected before they arrive here.
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

/// Chooses the failure of a rejected call. An error in the request itself comes first, if the request is a single
/// message.
async fn rejection(failure: Failure, method: Method, call: &mut IncomingCall) -> Failure {
    match method {
        Method::Invoke if call.context.unary => calls::request_error(call).await.unwrap_or(failure),
        _ => failure,
    }
}

/// Treats a caller with an unknown token as anonymous, for methods that require none.
fn anonymous(failure: Failure) -> Result<Caller, Failure> {
    match failure.code {
        Code::Unauthenticated => Ok(Caller {
            principal: Principal::Anonymous,
            token: None,
            via: Via::Nothing,
        }),
        _ => Err(failure),
    }
}

/// Runs `work` until it ends or the caller's token is revoked.
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

/// The failure of a request without a required member.
fn required(what: &str) -> Failure {
    Failure::invalid(format!("{what} is required"))
}
