//! Makes policies of settings.

use std::path::{Component, Path, PathBuf};

use crate::git::Repository;
use crate::places::{
    HIDDEN, HIDDEN_AT_HOME, HIDDEN_OF_AGENT, PRESETS, PROTECTED, PROTECTED_AT_HOME, SHOWN_AT_HOME,
    SYSTEM,
};
use crate::{
    Escalation, Limits, Loopback, Mode, Network, NetworkMode, Policy, Protection, Reading,
    SandboxSettings,
};

/// The places of the machine and of pinion that a policy refers to.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The user's home directory.
    pub home: PathBuf,
    /// The start directory: the workspace. It never comes from the model.
    pub start: PathBuf,
    /// The directory of pinion's settings.
    pub agent: PathBuf,
    /// The directory of a hub's files.
    pub hub: Option<PathBuf>,
    /// The running binary.
    pub program: PathBuf,
    /// The directories of `PATH`.
    pub path: Vec<PathBuf>,
    /// A directory of mode 700 for this run.
    pub temporary: PathBuf,
}

impl SandboxSettings {
    /// Makes the policy of these settings; `None` if the mode is off.
    ///
    /// # Errors
    ///
    /// Fails for a path that is not one place. The text is for the user.
    pub fn policy(&self, around: &Surroundings) -> Result<Option<Policy>, String> {
        let mode = self.mode.unwrap_or_default();
        if mode == Mode::Off {
            return Ok(None);
        }
        let around = Surroundings {
            home: canonical(&around.home),
            start: canonical(&around.start),
            ..around.clone()
        };
        let places = |texts: &[String], name: &str| places(texts, name, &around);
        let mut network = Network {
            mode: self.network.unwrap_or_default(),
            sockets: places(&self.sockets, "network.sockets")?,
            loopback: self.loopback.clone().unwrap_or_default(),
            ..Network::default()
        };
        let repository = Repository::of(&around.start);
        let mut writable = Vec::new();
        let mut home = None;
        if mode != Mode::ReadOnly && !self.writes_nothing {
            writable.push(around.start.clone());
            writable.extend(repository.writable.clone());
            writable.extend(places(&self.write, "write")?);
        } else {
            network.mode = NetworkMode::None;
            network.loopback = Loopback::None;
        }
        if mode == Mode::Strict {
            home = Some(around.temporary.join("home"));
        }
        let mut protected = protected_places(&writable, &around);
        protected.extend(repository.protected);
        protected.extend(places(&self.protect, "protect")?);
        let mut hidden = hidden_places(&around);
        let shown = shown_places(&self.show, &mut hidden, &around)?;
        hidden.extend(places(&self.hide, "hide")?);
        let reading = match mode {
            Mode::Strict => {
                let mut listed: Vec<PathBuf> = SYSTEM
                    .iter()
                    .map(|&place| canonical(Path::new(place)))
                    .collect();
                listed.extend(around.path.iter().map(|place| canonical(place)));
                listed.push(canonical(&around.program));
                listed.extend(places(&self.read, "read")?);
                Reading::Only(sorted(listed))
            }
            _ => Reading::AllButHidden,
        };
        Ok(Some(Policy {
            mode,
            writable: sorted(writable),
            reading,
            hidden: sorted(both_ends(hidden)),
            shown: sorted(shown),
            protected: sorted(both_ends(protected)),
            protection: Protection::Broker,
            temporary: Some(canonical(&around.temporary)),
            home: home.map(|home| canonical(&home)),
            network,
            limits: Limits {
                file_mb: self.file_mb,
                cpu_seconds: self.cpu_seconds,
                ..Limits::default()
            },
            environment: self.env.clone(),
            escalation: Escalation::Refuse,
            allow: self.allow.clone(),
            require_namespaces: false,
        }))
    }
}

fn sorted(mut places: Vec<PathBuf>) -> Vec<PathBuf> {
    places.sort();
    places.dedup();
    places
}

/// Returns the places that entries of the settings stand for.
fn places(texts: &[String], name: &str, around: &Surroundings) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for text in texts {
        match PRESETS.iter().find(|(preset, _)| preset == text) {
            Some((_, members)) if name == "write" => {
                for member in *members {
                    found.push(place(member, name, around)?);
                }
            }
            _ => found.push(place(text, name, around)?),
        }
    }
    Ok(found)
}

fn place(text: &str, name: &str, around: &Surroundings) -> Result<PathBuf, String> {
    let wrong = |problem: &str| Err(format!("\"{text}\" in sandbox.{name} {problem}"));
    if text.is_empty() || text.contains('\0') {
        return wrong("is not a path");
    }
    if text.contains(['*', '?', '[']) {
        return wrong("is a pattern; name one file or directory, which stands for all below it");
    }
    if text.starts_with('@') {
        return wrong(
            "is not a preset; the presets of write are @cargo, @npm, @pip, @go and @maven",
        );
    }
    let path = match text.strip_prefix('~') {
        Some("") => around.home.clone(),
        Some(rest) if rest.starts_with('/') => around.home.join(rest.trim_start_matches('/')),
        Some(_) => return wrong("names another user's home; write the whole path"),
        None => around.start.join(text),
    };
    if path.components().any(|part| part == Component::ParentDir) {
        return wrong("contains \"..\"; write the path without it");
    }
    Ok(canonical(&path))
}

/// Returns a path without links. Components that do not exist are added as they are.
fn canonical(path: &Path) -> PathBuf {
    for (depth, ancestor) in path.ancestors().enumerate() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest: Vec<Component<'_>> = path.components().collect();
            let rest = rest.iter().skip(rest.len().saturating_sub(depth));
            return rest.fold(real, |path, part| path.join(part));
        }
    }
    path.to_owned()
}

/// Adds to each place the one that it leads to if it is a link: both must be hidden or protected.
fn both_ends(places: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut all = Vec::with_capacity(places.len());
    for place in places {
        let parent = place.parent().map(canonical);
        if let (Some(parent), Some(name)) = (parent, place.file_name()) {
            all.push(parent.join(name));
        }
        all.push(canonical(&place));
    }
    all
}

fn hidden_places(around: &Surroundings) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = HIDDEN.iter().map(PathBuf::from).collect();
    hidden.extend(HIDDEN_AT_HOME.iter().map(|name| around.home.join(name)));
    hidden.extend(HIDDEN_OF_AGENT.iter().map(|name| around.agent.join(name)));
    hidden.extend(around.hub.clone());
    hidden
}

/// Returns the places that may be read although they are hidden, and takes whole entries out of the hidden ones.
fn shown_places(
    texts: &[String],
    hidden: &mut Vec<PathBuf>,
    around: &Surroundings,
) -> Result<Vec<PathBuf>, String> {
    let mut shown: Vec<PathBuf> = SHOWN_AT_HOME
        .iter()
        .map(|name| canonical(&around.home.join(name)))
        .collect();
    for text in texts {
        let place = place(text, "show", around)?;
        hidden.retain(|hidden| canonical(hidden) != place);
        shown.push(place);
    }
    Ok(shown)
}

fn protected_places(writable: &[PathBuf], around: &Surroundings) -> Vec<PathBuf> {
    let mut protected = Vec::new();
    // A file has nothing below it, and a name below it would protect the file itself.
    for place in writable.iter().filter(|place| !place.is_file()) {
        protected.extend(PROTECTED.iter().map(|name| place.join(name)));
        if around.home.starts_with(place) {
            let names = PROTECTED_AT_HOME.iter();
            protected.extend(names.map(|name| around.home.join(name)));
            let path = around.path.iter();
            protected.extend(path.filter(|path| path.starts_with(place)).cloned());
        }
    }
    protected.push(around.agent.clone());
    protected.extend(around.hub.clone());
    protected.push(around.program.clone());
    protected
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn around(top: &Path) -> Surroundings {
        let make = |name: &str| {
            fs::create_dir_all(top.join(name)).unwrap();
            top.join(name)
        };
        Surroundings {
            home: make("home"),
            start: make("home/work"),
            agent: make("home/.pi/agent"),
            hub: None,
            program: top.join("pinion"),
            path: vec![make("home/.local/bin")],
            temporary: make("run"),
        }
    }

    fn settings(mode: Mode) -> SandboxSettings {
        SandboxSettings {
            mode: Some(mode),
            ..SandboxSettings::default()
        }
    }

    #[test]
    fn a_workspace_has_its_lists() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let around = around(&top);
        fs::create_dir_all(around.start.join(".git/hooks")).unwrap();
        fs::create_dir_all(top.join("keys")).unwrap();
        std::os::unix::fs::symlink(top.join("keys"), around.home.join(".aws")).unwrap();
        let mut settings = settings(Mode::Workspace);
        settings.write = vec!["@pip".into(), "~/out".into()];
        settings.show = vec!["~/.netrc".into()];
        settings.hide = vec!["private".into()];
        let policy = settings.policy(&around).unwrap().unwrap();
        let home = &around.home;
        assert_eq!(
            policy.writable,
            [
                home.join(".cache/pip"),
                home.join("out"),
                home.join("work"),
                home.join("work/.git")
            ]
        );
        for hidden in [
            home.join(".ssh"),
            home.join(".aws"),
            top.join("keys"),
            home.join("work/private"),
            home.join(".pi/agent/auth.json"),
        ] {
            assert!(policy.hidden.contains(&hidden), "{}", hidden.display());
        }
        assert!(!policy.hidden.contains(&home.join(".netrc")));
        assert!(policy.shown.contains(&home.join(".ssh/known_hosts")));
        for protected in [
            "work/.git/hooks",
            "work/.git/config",
            "work/.pi",
            "out/.vscode",
        ] {
            let place = home.join(protected);
            assert!(policy.protected.contains(&place), "{protected}");
        }
        assert_eq!(policy.network.mode, NetworkMode::None);
    }

    #[test]
    fn a_writable_home_protects_what_starts_programs() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let mut around = around(&top);
        around.start = around.home.clone();
        let policy = settings(Mode::Workspace).policy(&around).unwrap().unwrap();
        for name in [".bashrc", ".local/bin", ".pi/agent", ".gitconfig"] {
            assert!(policy.protected.contains(&around.home.join(name)), "{name}");
        }
    }

    #[test]
    fn strict_reads_a_list_and_read_only_writes_nothing() {
        let top = tempfile::tempdir().unwrap();
        let around = around(&top.path().canonicalize().unwrap());
        let policy = settings(Mode::Strict).policy(&around).unwrap().unwrap();
        let Reading::Only(listed) = policy.reading else {
            panic!()
        };
        assert!(listed.contains(&PathBuf::from("/usr")) && !listed.contains(&around.home));
        assert_eq!(policy.home, Some(around.temporary.join("home")));
        let policy = settings(Mode::ReadOnly).policy(&around).unwrap().unwrap();
        assert!(policy.writable.is_empty());
        assert_eq!(settings(Mode::Off).policy(&around), Ok(None));
    }

    #[test]
    fn patterns_and_unknown_presets_are_errors() {
        let top = tempfile::tempdir().unwrap();
        let around = around(top.path());
        for (text, problem) in [
            ("~/*.key", "is a pattern"),
            ("@crago", "is not a preset"),
            ("../x", "contains \"..\""),
            ("~other/x", "another user's home"),
            ("", "is not a path"),
        ] {
            let mut settings = settings(Mode::Workspace);
            settings.write = vec![text.into()];
            let error = settings.policy(&around).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
