//! The table of rights.

use crate::Method;

/// How far a right goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Always.
    Free,
    /// For what is visible.
    Visible,
    /// For any clip, seen or not: whoever knows where to look may.
    Known,
    /// For what belongs to the scope of the token.
    OwnScope,
    /// For the clip itself.
    OwnClip,
    /// With a token that may manage.
    Manage,
    /// With a token that may manage, for what belongs to its scope.
    OwnScopeManage,
    /// Not at all.
    Never,
}

/// The rights of one kind of method, for each kind of caller but the one who may do everything.
pub(crate) struct Row {
    pub(crate) hub: Right,
    pub(crate) clip: Right,
    /// Without a token, where the hub lets such callers do what needs no trust.
    pub(crate) guest: Right,
    pub(crate) anonymous: Right,
}

const fn row(hub: Right, clip: Right, guest: Right, anonymous: Right) -> Row {
    Row {
        hub,
        clip,
        guest,
        anonymous,
    }
}

/// Who may do this.
#[rustfmt::skip]
pub(crate) const fn of(method: Method) -> Row {
    use Right::{Free, Known, Manage, Never, OwnClip, OwnScope, OwnScopeManage, Visible};
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
