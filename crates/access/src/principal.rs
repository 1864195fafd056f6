//! Callers and their permissions.

use std::fmt;
use std::sync::Arc;

use pinion_status::{Code, Failure};

use crate::{Method, Permission, Scope, TokenId, permissions};

/// The identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// May do everything.
    Super,
    /// A user of the hub.
    Hub {
        /// The user's scope.
        scope: Scope,
        /// The user may install, remove and bind clips of the scope.
        manage: bool,
        /// The token of the call.
        id: TokenId,
    },
    /// A clip.
    Clip {
        alias: Arc<str>,
        /// The owner of the clip.
        owner: Option<Scope>,
    },
    /// A monitor: it may read the hub's metrics, and nothing else.
    Metrics,
    /// A caller without a token, on a hub where such callers may list and call ([`Mode::Manage`](crate::Mode::Manage)).
    Guest,
    /// A caller without a token and without permissions.
    Anonymous,
}

/// The properties of a clip that permissions depend on.
#[derive(Debug, Clone, Copy)]
pub struct ClipView<'a> {
    pub alias: &'a str,
    /// The owner; `None` for clips installed without a scope.
    pub owner: Option<&'a Scope>,
    /// The owner shares the clip with all users of the hub.
    pub shared: bool,
}

impl Principal {
    /// Returns the permission of this caller for `method`.
    pub fn right(&self, method: Method) -> Permission {
        let row = permissions::of(method);
        match self {
            Self::Super => Permission::Free,
            Self::Hub { .. } => row.hub,
            Self::Clip { .. } => row.clip,
            Self::Guest => row.guest,
            Self::Metrics | Self::Anonymous => row.anonymous,
        }
    }

    /// Checks whether this caller may call `method` at all. [`Principal::find`] and similar methods check the clip.
    ///
    /// [`Method::Data`] is permitted to every caller that may read; check again with [`Method::of_operation`].
    pub fn may(&self, method: Method) -> Result<(), Failure> {
        let right = match method {
            Method::Data => self.right(Method::DataRead),
            method => self.right(method),
        };
        let managed = matches!(right, Permission::Manage | Permission::OwnScopeManage);
        match right {
            Permission::Never => Err(self.refused(method)),
            _ if managed && !self.manages() => Err(self.refused(needs_manage(method))),
            _ => Ok(()),
        }
    }

    /// Reports whether this caller may learn that a clip exists.
    pub fn sees(&self, owner: Option<&Scope>, alias: &str, shared: bool) -> bool {
        let open = shared || owner.is_none();
        match self {
            Self::Super => true,
            Self::Hub { scope, .. } => open || owner == Some(scope),
            Self::Clip {
                alias: own,
                owner: of,
            } => open || **own == *alias || owner == of.as_ref(),
            Self::Guest => open,
            Self::Metrics | Self::Anonymous => false,
        }
    }

    /// Reports whether this caller may learn of a provider, from the scope of the provider's token.
    pub fn sees_provider(&self, scope: Option<&Scope>) -> bool {
        match (self.right(Method::ListProviders), self) {
            (Permission::Free, _) => true,
            (Permission::OwnScope, Self::Hub { scope: own, .. }) => scope == Some(own),
            (Permission::Visible, _) => scope.is_none(),
            _ => false,
        }
    }

    /// Returns the clip for `method`, if it exists and this caller may use it. Every lookup of a clip uses this method.
    ///
    /// `found` is the clip with this `alias`, and `view` returns its properties. A clip that the caller may not see
    /// fails like one that does not exist.
    pub fn find<T>(
        &self,
        method: Method,
        alias: &str,
        found: Option<T>,
        view: impl for<'a> FnOnce(&'a T) -> ClipView<'a>,
    ) -> Result<T, Failure> {
        self.may(method)?;
        let clip = found.ok_or_else(|| Failure::no_clip(alias))?;
        self.allow(method, alias, view(&clip))?;
        Ok(clip)
    }

    /// Checks whether this caller may install a clip as `alias`, where `present` may be installed already.
    pub fn may_install(&self, alias: &str, present: Option<ClipView<'_>>) -> Result<(), Failure> {
        self.may(Method::AddClip)?;
        match present {
            Some(clip) if !self.reaches(Method::AddClip, clip) => Err(Failure::new(
                Code::AlreadyExists,
                format!("clip \"{alias}\" already exists"),
            )),
            _ => Ok(()),
        }
    }

    /// Checks whether this caller may read the hub's own log.
    pub fn may_read_system_log(&self) -> Result<(), Failure> {
        match self {
            Self::Super => Ok(()),
            _ => Err(self.refused("GetLogs of the system")),
        }
    }

    /// Checks whether this caller may read the hub's metrics, which name clips of every scope.
    pub fn may_read_metrics(&self) -> Result<(), Failure> {
        match self {
            Self::Super | Self::Metrics => Ok(()),
            _ => Err(self.refused("reading metrics; it takes a metrics token or a super token")),
        }
    }

    /// Returns the scope that owns the clips this caller installs or offers.
    pub fn scope(&self) -> Option<&Scope> {
        match self {
            Self::Hub { scope, .. } => Some(scope),
            Self::Clip { owner, .. } => owner.as_ref(),
            Self::Super | Self::Metrics | Self::Guest | Self::Anonymous => None,
        }
    }

    fn allow(&self, method: Method, alias: &str, clip: ClipView<'_>) -> Result<(), Failure> {
        if self.reaches(method, clip) {
            Ok(())
        } else if self.sees(clip.owner, clip.alias, clip.shared) {
            let what = format!("{method} of clip '{alias}'");
            let managed = matches!(
                self.right(method),
                Permission::Manage | Permission::OwnScopeManage
            );
            Err(if managed && !self.manages() {
                self.refused(needs_manage(what))
            } else {
                self.refused(what)
            })
        } else {
            Err(Failure::no_clip(alias))
        }
    }

    fn reaches(&self, method: Method, clip: ClipView<'_>) -> bool {
        let owns = || matches!(self, Self::Hub { scope, .. } if clip.owner == Some(scope));
        match self.right(method) {
            Permission::Free | Permission::Known => true,
            Permission::Visible => self.sees(clip.owner, clip.alias, clip.shared),
            Permission::OwnScope => owns(),
            Permission::OwnClip => {
                matches!(self, Self::Clip { alias, .. } if **alias == *clip.alias)
            }
            Permission::Manage => self.manages(),
            Permission::OwnScopeManage => self.manages() && owns(),
            Permission::Never => false,
        }
    }

    fn manages(&self) -> bool {
        matches!(self, Self::Super | Self::Hub { manage: true, .. })
    }

    fn refused(&self, what: impl fmt::Display) -> Failure {
        match self {
            Self::Guest | Self::Anonymous => token_required(),
            _ => Failure::new(
                Code::PermissionDenied,
                format!("token does not allow {what}"),
            ),
        }
    }
}

/// Writes the name of the caller for logs: `super`, `@me`, `clip:todo`, `anonymous`.
impl fmt::Display for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Super => formatter.write_str("super"),
            Self::Hub { scope, .. } => write!(formatter, "{scope}"),
            Self::Clip { alias, .. } => write!(formatter, "clip:{alias}"),
            Self::Metrics => formatter.write_str("metrics"),
            Self::Guest | Self::Anonymous => formatter.write_str("anonymous"),
        }
    }
}

/// The error for a call that requires the right to manage; it names the flag that creates such a token.
fn needs_manage(what: impl fmt::Display) -> String {
    format!("{what}: it was created without --manage")
}

/// The failure of a call without the token it requires.
pub(crate) fn token_required() -> Failure {
    Failure::new(Code::Unauthenticated, "token required")
}
