//! The table of permissions.

use crate::Method;

/// The clips that a permission covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Always permitted.
    Free,
    /// Permitted for visible clips.
    Visible,
    /// Permitted for any clip, visible or not, because the caller must have its address.
    Known,
    /// Permitted for clips of the token's scope.
    OwnScope,
    /// Permitted for the calling clip itself.
    OwnClip,
    /// Permitted with a token that may manage.
    Manage,
    /// Permitted for clips of the token's scope, with a token that may manage.
    OwnScopeManage,
    /// Never permitted.
    Never,
}

/// The permissions of one method for each kind of caller. Super tokens are not in it, because they may do everything.
pub(crate) struct Row {
    pub(crate) hub: Permission,
    pub(crate) clip: Permission,
    /// For callers without a token on a hub in [`Mode::Manage`](crate::Mode::Manage).
    pub(crate) guest: Permission,
    pub(crate) anonymous: Permission,
}

const fn row(hub: Permission, clip: Permission, guest: Permission, anonymous: Permission) -> Row {
    Row {
        hub,
        clip,
        guest,
        anonymous,
    }
}

/// Returns the permissions of a method.
#[rustfmt::skip]
pub(crate) const fn of(method: Method) -> Row {
    use Permission::{Free, Known, Manage, Never, OwnClip, OwnScope, OwnScopeManage, Visible};
    match method {
        //                                                     hub             clip     guest    anonymous
        Method::HubInfo                                 => row(Free,           Free,    Free,    Free),
        Method::ListClips
        | Method::GetClipManifest | Method::GetManifest => row(Visible,        Visible, Visible, Never),
        Method::ListProviders                           => row(OwnScope,       Never,   Visible, Never),
        Method::GetClipWeb                              => row(Visible,        OwnClip, Visible, Never),
        Method::Invoke | Method::InvokeStream           => row(Visible,        Visible, Visible, Never),
        Method::DataRead                                => row(OwnScope,       Known,   Visible, Never),
        Method::DataWrite                               => row(OwnScope,       OwnClip, Never,   Never),
        Method::Data                                    => row(OwnScope,       OwnClip, Never,   Never),
        Method::GetLogs                                 => row(OwnScope,       OwnClip, Visible, Never),
        Method::AddClip | Method::RemoveClip            => row(OwnScopeManage, Never,   Never,   Never),
        Method::GetBindings                             => row(OwnScope,       OwnClip, Never,   Never),
        Method::SetBinding | Method::RemoveBinding      => row(OwnScopeManage, Never,   Never,   Never),
        Method::ProviderStream                          => row(Free,           Never,   Free,    Never),
        Method::RuntimeStream                           => row(Manage,         Never,   Free,    Never),
    }
}
