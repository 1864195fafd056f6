//! The Landlock rules of a policy: rights to read. No right to write is ever granted, because the warden performs every
//! write that the policy permits.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::system::{self, Errno, access};
use crate::text::c_text;
use crate::{Policy, Reading};

/// Devices that may be read in every policy.
pub(crate) const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
/// Directories that list devices; what they contain is not readable because of it.
const DEVICE_DIRECTORIES: &[&str] = &["/dev", "/dev/pts"];
/// Places that are granted as a whole, because their entries come and go.
const LIVING: &[&str] = &["/proc", "/sys"];
/// Entries that are never granted below a directory that is walked.
const NEVER: &[&str] = &["/dev"];

/// A rule set, and the directories that it was made from.
#[derive(Debug)]
pub(crate) struct Ruleset {
    pub descriptor: OwnedFd,
    pub rules: usize,
    walked: Vec<(PathBuf, Stamp)>,
}

/// The state of a directory; a new or removed entry changes it.
type Stamp = Option<(u64, u64, i64, i64)>;

fn stamp(directory: &Path) -> Stamp {
    let found = fs::metadata(directory).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
}

impl Ruleset {
    /// Makes the rule set of a policy.
    pub fn make(policy: &Policy) -> Result<Self, Errno> {
        let mut plan = Plan::new(policy);
        plan.build();
        let descriptor = system::create_ruleset()?;
        let mut rules = 0;
        for (place, rights) in &plan.rules {
            rules += usize::from(add(&descriptor, place, *rights)?);
        }
        Ok(Self {
            descriptor,
            rules,
            walked: plan.walked,
        })
    }

    /// Reports whether a directory that was walked has changed.
    pub fn is_stale(&self) -> bool {
        self.walked
            .iter()
            .any(|(directory, then)| stamp(directory) != *then)
    }
}

/// Adds a rule for a place. `false` if it has gone or cannot carry a rule, which grants nothing.
fn add(ruleset: &OwnedFd, place: &Path, rights: u64) -> Result<bool, Errno> {
    let Some(name) = c_text(place.as_os_str().as_bytes()) else {
        return Ok(false);
    };
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let Ok(file) = system::open_at(libc::AT_FDCWD, &name, flags, 0) else {
        return Ok(false);
    };
    let kind = system::facts(&file)?.kind();
    let rights = match kind {
        libc::S_IFDIR => rights,
        libc::S_IFLNK => return Ok(false),
        _ => rights & !access::READ_DIR,
    };
    match system::add_rule(ruleset, &file, rights) {
        Ok(()) => Ok(true),
        // The file system has no rules, such as that of pipes.
        Err(libc::EBADFD | libc::EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}

const READ: u64 = access::EXECUTE | access::READ_FILE | access::READ_DIR;

/// The rules to make.
#[derive(Debug)]
struct Plan<'a> {
    policy: &'a Policy,
    rules: Vec<(PathBuf, u64)>,
    walked: Vec<(PathBuf, Stamp)>,
    seen: BTreeSet<PathBuf>,
}

impl<'a> Plan<'a> {
    fn new(policy: &'a Policy) -> Self {
        Self {
            policy,
            rules: Vec::new(),
            walked: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    fn build(&mut self) {
        let policy = self.policy;
        match &policy.reading {
            Reading::AllButHidden => self.grant(Path::new("/")),
            Reading::Only(places) => {
                places.iter().for_each(|place| self.grant(place));
                policy.writable.iter().for_each(|place| self.grant(place));
            }
        }
        for place in &policy.shown {
            self.rules.push((place.clone(), READ));
        }
        let own = policy.temporary.iter().chain(&policy.home);
        own.for_each(|place| self.grant(place));
        self.rules
            .extend(DEVICES.iter().map(|&device| (device.into(), READ)));
        let listed = DEVICE_DIRECTORIES.iter();
        self.rules
            .extend(listed.map(|&directory| (directory.into(), access::READ_DIR)));
    }

    /// Grants a place, except for what is hidden in it.
    fn grant(&mut self, place: &Path) {
        if !self.seen.insert(place.to_owned()) || self.is_refused(place) {
            return;
        }
        let is_living = LIVING.iter().any(|living| place == Path::new(living));
        if is_living || !self.holds_refused(place) {
            self.rules.push((place.to_owned(), READ));
            return;
        }
        // The stamp is taken first: a later change is found by the next command.
        self.walked.push((place.to_owned(), stamp(place)));
        self.rules.push((place.to_owned(), access::READ_DIR));
        let Ok(entries) = fs::read_dir(place) else {
            return;
        };
        for entry in entries.flatten() {
            self.grant(&entry.path());
        }
    }

    fn refused(&self) -> impl Iterator<Item = &Path> {
        let hidden = self.policy.hidden.iter().map(PathBuf::as_path);
        hidden.chain(NEVER.iter().map(Path::new))
    }

    fn is_refused(&self, place: &Path) -> bool {
        self.refused().any(|hidden| place.starts_with(hidden))
    }

    /// A place that does not exist yet counts: it may be created while the process runs.
    fn holds_refused(&self, place: &Path) -> bool {
        self.refused().any(|hidden| hidden.starts_with(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetworkMode;
    use crate::filter::tests::policy;

    fn granted(policy: &Policy) -> Vec<String> {
        let mut plan = Plan::new(policy);
        plan.build();
        let whole = plan.rules.into_iter().filter(|rule| rule.1 == READ);
        whole.map(|rule| rule.0.display().to_string()).collect()
    }

    #[test]
    fn siblings_of_hidden_places_are_granted_and_the_places_are_not() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for name in [".ssh", "work", "other"] {
            fs::create_dir(home.join(name)).unwrap();
        }
        fs::write(home.join(".ssh/id"), "key").unwrap();
        fs::write(home.join(".ssh/config"), "").unwrap();
        let mut policy = policy(NetworkMode::None);
        policy.hidden = vec![home.join(".ssh"), home.join("other"), home.join("later")];
        policy.shown = vec![home.join(".ssh/config")];
        let granted = granted(&policy);
        let has = |path: &str| granted.contains(&home.join(path).display().to_string());
        assert!(has("work") && has(".ssh/config"));
        assert!(!has(".ssh/id") && !has("other") && !has(".ssh") && !has(""));
        assert!(granted.contains(&"/usr".to_owned()) && granted.contains(&"/proc".to_owned()));
        assert!(!granted.contains(&"/dev".to_owned()) && !granted.contains(&"/".to_owned()));
    }

    #[test]
    fn a_list_of_places_grants_nothing_else() {
        let mut policy = policy(NetworkMode::None);
        policy.reading = Reading::Only(vec!["/usr".into()]);
        policy.writable = vec!["/tmp/work".into()];
        let mut expected = vec!["/usr".to_owned(), "/tmp/work".to_owned()];
        expected.extend(DEVICES.iter().map(|&device| device.to_owned()));
        assert_eq!(granted(&policy), expected);
    }

    #[test]
    fn a_changed_directory_makes_the_set_stale() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let mut policy = policy(NetworkMode::None);
        policy.hidden = vec![home.join("secret")];
        let set = Ruleset::make(&policy).unwrap();
        assert!(!set.is_stale());
        fs::write(home.join("new"), "").unwrap();
        assert!(set.is_stale());
    }
}
