//! The decision about an operation on a name.
//!
//! Names are those of descriptors, so they are absolute and contain no links.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::mutation::is_disabled;
use crate::text::{folded, is_within, shown};
use crate::{Denial, Policy, Reading};

/// An operation that changes a name or the file behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Writing to a file that exists.
    Write,
    /// Making a file, link or node.
    Create,
    /// Making a directory.
    CreateDirectory,
    /// Removing a file or directory.
    Remove,
    /// Changing mode, owner, times or extended attributes.
    Attributes,
}

/// Decides about operations.
#[derive(Debug)]
pub(crate) struct Judge {
    writable: Vec<Vec<u8>>,
    hidden: Vec<Vec<u8>>,
    shown: Vec<Vec<u8>>,
    /// In folded form.
    protected: Vec<Vec<u8>>,
    /// `None` means all.
    readable: Option<Vec<Vec<u8>>>,
    home: Option<Vec<u8>>,
}

fn bytes<'a>(places: impl IntoIterator<Item = &'a PathBuf>) -> Vec<Vec<u8>> {
    let places = places.into_iter();
    places
        .map(|place| place.as_os_str().as_bytes().to_vec())
        .collect()
}

impl Judge {
    pub fn new(policy: &Policy) -> Self {
        let own = || policy.temporary.iter().chain(&policy.home);
        let writable = bytes(policy.writable.iter().chain(own()));
        let readable = match &policy.reading {
            Reading::AllButHidden => None,
            Reading::Only(places) => {
                let all = places.iter().chain(&policy.writable).chain(own());
                Some(bytes(all))
            }
        };
        let home = std::env::home_dir().map(|home| home.as_os_str().as_bytes().to_vec());
        Self {
            writable,
            hidden: bytes(&policy.hidden),
            shown: bytes(&policy.shown),
            protected: bytes(&policy.protected)
                .iter()
                .map(|place| folded(place))
                .collect(),
            readable,
            home: home.filter(|home| home.len() > 1),
        }
    }

    /// Decides about a change.
    pub fn change(&self, change: Change, name: &[u8]) -> Result<(), Denial> {
        if change == Change::Attributes && is_disabled("attributes") {
            return Ok(());
        }
        let may_write =
            is_disabled("writable") || self.writable.iter().any(|place| is_within(place, name));
        let moves_hidden = matches!(change, Change::Write | Change::Create | Change::Remove)
            && self.hidden.iter().any(|place| is_within(name, place));
        if !may_write || self.is_within_hidden(name) || moves_hidden {
            let path = self.shown(name);
            return Err(match change {
                Change::Write => Denial::Write { path },
                Change::Create | Change::CreateDirectory => Denial::Create { path },
                Change::Remove => Denial::Remove { path },
                Change::Attributes => Denial::Attributes { path },
            });
        }
        if self.is_protected(change, name) {
            return Err(Denial::Protected {
                path: self.shown(name),
                outcome: None,
            });
        }
        Ok(())
    }

    /// Decides about reading a file that the warden opens.
    pub fn read(&self, name: &[u8]) -> Result<(), Denial> {
        let listed = self
            .readable
            .as_ref()
            .is_none_or(|places| places.iter().any(|place| is_within(place, name)));
        if listed && !self.is_hidden(name) {
            return Ok(());
        }
        Err(Denial::Read {
            path: self.shown(name),
        })
    }

    fn is_hidden(&self, name: &[u8]) -> bool {
        let is_shown = self.shown.iter().any(|place| is_within(place, name));
        !is_shown && self.is_within_hidden(name)
    }

    fn is_within_hidden(&self, name: &[u8]) -> bool {
        self.hidden.iter().any(|place| is_within(place, name))
    }

    /// A place that leads to a protected one must stay what it is, or stay away: a link or a file of its name would
    /// replace what is protected. A directory there is harmless.
    fn is_protected(&self, change: Change, name: &[u8]) -> bool {
        if is_disabled("protected") {
            return false;
        }
        let name = folded(name);
        let leads = |place: &Vec<u8>| match change {
            Change::CreateDirectory | Change::Attributes => false,
            Change::Write | Change::Create | Change::Remove => is_within(&name, place),
        };
        self.protected
            .iter()
            .any(|place| is_within(place, &name) || leads(place))
    }

    /// Returns a name as records show it, with `~` for the user's home.
    pub fn shown(&self, name: &[u8]) -> String {
        match &self.home {
            Some(home) if is_within(home, name) => format!("~{}", shown(&name[home.len()..])),
            _ => shown(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetworkMode;
    use crate::filter::tests::policy;

    fn judge() -> Judge {
        let mut policy = policy(NetworkMode::None);
        policy.writable = vec!["/work".into()];
        policy.temporary = Some("/tmp/run".into());
        policy.hidden = vec!["/work/secret".into(), "/root/.ssh".into()];
        policy.protected = vec!["/work/.git/hooks".into(), "/work/.pi".into()];
        Judge::new(&policy)
    }

    #[test]
    fn hidden_beats_protected_and_protected_beats_writable() {
        use Change::{Attributes, Create, CreateDirectory, Remove, Write};
        let judge = judge();
        let protected = |change, name: &str| {
            matches!(
                judge.change(change, name.as_bytes()),
                Err(Denial::Protected { .. })
            )
        };
        for name in ["/work/a", "/work/.git/index", "/tmp/run/x", "/work/.github"] {
            assert_eq!(judge.change(Write, name.as_bytes()), Ok(()), "{name}");
        }
        for name in [
            "/work/.git/hooks/pre-commit",
            "/work/.GIT/Hooks",
            "/work/.pi",
        ] {
            for change in [Write, Create, CreateDirectory, Remove, Attributes] {
                assert!(protected(change, name), "{change:?} {name}");
            }
        }
        for change in [Write, Create, Remove] {
            assert!(protected(change, "/work/.git"), "{change:?}");
            assert!(judge.change(change, b"/work").is_err(), "{change:?}");
        }
        assert_eq!(judge.change(CreateDirectory, b"/work/.git"), Ok(()));
        assert_eq!(judge.change(Attributes, b"/work/.git"), Ok(()));
        for name in ["/work/secret/x", "/workshop", "/etc/hosts", "/"] {
            let denial = judge.change(Write, name.as_bytes()).unwrap_err();
            assert!(matches!(denial, Denial::Write { .. }), "{name}");
        }
        // A directory that holds a hidden place would carry it to a name that is not hidden.
        let mut policy = policy(NetworkMode::None);
        policy.writable = vec!["/work".into()];
        policy.hidden = vec!["/work/a/secret".into()];
        let moving = Judge::new(&policy);
        assert!(moving.change(Remove, b"/work/a").is_err());
        assert_eq!(moving.change(CreateDirectory, b"/work/a"), Ok(()));
        assert_eq!(judge.read(b"/etc/hosts"), Ok(()));
        assert!(judge.read(b"/root/.ssh/id").is_err());
    }
}
