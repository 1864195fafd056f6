//! One way to sign in and to renew a login.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use pinion_message::{Model, Secret};

use crate::{Login, LoginConversation};

/// A sign-in or a renewal that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The user cancelled.
    #[error("Login cancelled")]
    Cancelled,
    /// The reason, for people. It contains no secret.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for LoginError {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl From<&str> for LoginError {
    fn from(reason: &str) -> Self {
        Self::Failed(reason.to_owned())
    }
}

/// The facts that a sign-in may need.
#[derive(Clone)]
pub struct SignIn<'a> {
    /// Talks to the user.
    pub conversation: &'a dyn LoginConversation,
    /// A stable identity of this installation: a UUID in lower case.
    pub device_id: &'a str,
    /// The login that is replaced, if there is one.
    pub previous: Option<&'a Login>,
}

impl std::fmt::Debug for SignIn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn").finish_non_exhaustive()
    }
}

/// The data that a login adds to requests.
#[derive(Debug, Clone, Default)]
pub struct RequestAccess {
    /// The key.
    pub api_key: Option<Secret>,
    /// Headers, which override others of the same name.
    pub headers: BTreeMap<String, Secret>,
    /// The address that replaces that of the model.
    pub base_url: Option<String>,
}

impl RequestAccess {
    /// The key alone.
    pub fn key(key: &str) -> Self {
        Self {
            api_key: Some(Secret::from(key)),
            ..Self::default()
        }
    }
}

/// One way to sign in and to renew a login. Its methods neither read nor write files.
pub trait LoginProvider: Send + Sync {
    /// The name for people.
    fn name(&self) -> String;

    /// Reports whether [`LoginProvider::sign_in`] works. Otherwise only stored logins are renewed.
    fn can_sign_in(&self) -> bool {
        true
    }

    /// Signs the user in.
    fn sign_in<'a>(&'a self, sign_in: SignIn<'a>) -> BoxFuture<'a, Result<Login, LoginError>>;

    /// Renews a login. The token request is sent once; the caller stores the result before it uses it.
    fn renew<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Login, LoginError>>;

    /// Returns what requests to `model` send.
    fn access<'a>(
        &'a self,
        login: &'a Login,
        _model: Option<&'a Model>,
    ) -> BoxFuture<'a, Result<RequestAccess, LoginError>> {
        let access = RequestAccess::key(login.access());
        Box::pin(std::future::ready(Ok(access)))
    }

    /// Changes the models of the provider for a login, in the form of `models.json`; `None` leaves them as they are.
    fn models(
        &self,
        _login: &Login,
        _models: Vec<serde_json::Value>,
    ) -> BoxFuture<'static, Option<Vec<serde_json::Value>>> {
        Box::pin(std::future::ready(None))
    }
}
