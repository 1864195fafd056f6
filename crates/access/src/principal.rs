//! Who asks, and what that lets them do.

use std::fmt;
use std::sync::Arc;

use pinion_status::{Code, Failure};

use crate::{Method, Right, Scope, TokenId, rights};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// May do everything.
    Super,
    /// A user of the hub.
    Hub {
        /// Who it is.
        scope: Scope,
        /// Whether it may install, remove and bind what it owns.
        manage: bool,
        /// The token it came with.
        id: TokenId,
    },
    /// A clip.
    Clip {
        /// Its alias.
        alias: Arc<str>,
        /// Who owns it.
        owner: Option<Scope>,
    },
    /// Nobody in particular, on a hub that lets everybody list and call ([`Mode::Manage`](crate::Mode::Manage)).
    Guest,
    /// Nobody.
    Anonymous,
}

/// A clip as far as rights depend on it.
#[derive(Debug, Clone, Copy)]
pub struct ClipView<'a> {
    /// Its alias.
    pub alias: &'a str,
    /// Who owns it; clips installed without a scope belong to nobody.
    pub owner: Option<&'a Scope>,
    /// Whether its owner shares it with everybody on the hub.
    pub shared: bool,
}

impl Principal {
    /// How far this caller may go with `method`.
    pub fn right(&self, method: Method) -> Right {
        let row = rights::of(method);
        match self {
            Self::Super => Right::Free,
            Self::Hub { .. } => row.hub,
            Self::Clip { .. } => row.clip,
            Self::Guest => row.guest,
            Self::Anonymous => row.anonymous,
        }
    }

    /// Whether this caller may call `method` at all. On what, is for [`Principal::find`] and its like to say.
    ///
    /// [`Method::Data`] is allowed to whoever may read; ask again with [`Method::of_operation`].
    pub fn may(&self, method: Method) -> Result<(), Failure> {
        let right = match method {
            Method::Data => self.right(Method::DataRead),
            method => self.right(method),
        };
        let managed = matches!(right, Right::Manage | Right::OwnScopeManage);
        match right {
            Right::Never => Err(self.refused(method)),
            _ if managed && !self.manages() => Err(self.refused(needs_manage(method))),
            _ => Ok(()),
        }
    }

    /// Whether this caller may know that a clip exists.
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
            Self::Anonymous => false,
        }
    }

    /// Whether this caller may know of a provider, by the scope of the token that it came with.
    pub fn sees_provider(&self, scope: Option<&Scope>) -> bool {
        match (self.right(Method::ListProviders), self) {
            (Right::Free, _) => true,
            (Right::OwnScope, Self::Hub { scope: own, .. }) => scope == Some(own),
            (Right::Visible, _) => scope.is_none(),
            _ => false,
        }
    }

    /// The clip that `method` is to be done with, if there is one and this caller may: the one way to look a clip up.
    ///
    /// `found` is what goes by `alias`, and `view` how rights see it. A clip outside the caller's sight fails as one that is not there.
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

    /// Whether a clip may be put in the place of `alias`, where there may be one already.
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

    /// Whether this caller may read what the hub itself logs.
    pub fn may_read_system_log(&self) -> Result<(), Failure> {
        match self {
            Self::Super => Ok(()),
            _ => Err(self.refused("GetLogs of the system")),
        }
    }

    /// The scope that what this caller installs or offers belongs to.
    pub fn scope(&self) -> Option<&Scope> {
        match self {
            Self::Hub { scope, .. } => Some(scope),
            Self::Clip { owner, .. } => owner.as_ref(),
            Self::Super | Self::Guest | Self::Anonymous => None,
        }
    }

    fn allow(&self, method: Method, alias: &str, clip: ClipView<'_>) -> Result<(), Failure> {
        if self.reaches(method, clip) {
            Ok(())
        } else if self.sees(clip.owner, clip.alias, clip.shared) {
            let what = format!("{method} of clip '{alias}'");
            let managed = matches!(self.right(method), Right::Manage | Right::OwnScopeManage);
            Err(match managed && !self.manages() {
                true => self.refused(needs_manage(what)),
                false => self.refused(what),
            })
        } else {
            Err(Failure::no_clip(alias))
        }
    }

    fn reaches(&self, method: Method, clip: ClipView<'_>) -> bool {
        let owns = || matches!(self, Self::Hub { scope, .. } if clip.owner == Some(scope));
        match self.right(method) {
            Right::Free | Right::Known => true,
            Right::Visible => self.sees(clip.owner, clip.alias, clip.shared),
            Right::OwnScope => owns(),
            Right::OwnClip => matches!(self, Self::Clip { alias, .. } if **alias == *clip.alias),
            Right::Manage => self.manages(),
            Right::OwnScopeManage => self.manages() && owns(),
            Right::Never => false,
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

/// As logs name callers: `super`, `@me`, `clip:todo`, `anonymous`.
impl fmt::Display for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Super => formatter.write_str("super"),
            Self::Hub { scope, .. } => write!(formatter, "{scope}"),
            Self::Clip { alias, .. } => write!(formatter, "clip:{alias}"),
            Self::Guest | Self::Anonymous => formatter.write_str("anonymous"),
        }
    }
}

/// The error for a call that requires the right to manage; it names the flag that creates such a token.
fn needs_manage(what: impl fmt::Display) -> String {
    format!("{what}: it was made without --manage")
}

/// That this needs a token, and there was none.
pub(crate) fn token_required() -> Failure {
    Failure::new(Code::Unauthenticated, "token required")
}
