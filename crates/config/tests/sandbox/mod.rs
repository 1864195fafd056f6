//! A home, a working directory and an agent directory that vanish after the test.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a sandbox that cannot be built fails the test; no test uses all of it"
)]

use std::fs;
use std::path::{Path, PathBuf};

use pinion_config::{Dirs, Notice, ProjectTrust, ResourceFlags, Resources, Settings};
use tempfile::TempDir;

pub struct Sandbox {
    pub root: TempDir,
    pub dirs: Dirs,
}

impl Sandbox {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        // The real path, because links in the temporary directory's own path are not the subject.
        let base = fs::canonicalize(root.path()).unwrap();
        let home = base.join("home");
        let cwd = base.join("parent").join("work");
        let dirs = Dirs::new(cwd, |name| (name == "HOME").then(|| home.clone().into()));
        fs::create_dir_all(&dirs.agent_dir).unwrap();
        fs::create_dir_all(&dirs.cwd).unwrap();
        Self { root, dirs }
    }

    /// Writes a file below the agent directory.
    pub fn agent(&self, name: &str, text: &str) -> PathBuf {
        write(&self.dirs.agent_dir.join(name), text)
    }

    /// Writes a file below the working directory.
    pub fn project(&self, name: &str, text: &str) -> PathBuf {
        write(&self.dirs.cwd.join(name), text)
    }

    /// Writes a file below the home directory.
    pub fn home(&self, name: &str, text: &str) -> PathBuf {
        write(&self.dirs.home.join(name), text)
    }

    pub fn resources(&self, trust: ProjectTrust) -> (Resources, Vec<Notice>) {
        self.resources_with(&ResourceFlags::default(), trust)
    }

    pub fn resources_with(
        &self,
        flags: &ResourceFlags,
        trust: ProjectTrust,
    ) -> (Resources, Vec<Notice>) {
        let (settings, notices) = Settings::load(&self.dirs, trust);
        let ignored = |notice: &&Notice| notice.code != "untrusted_settings";
        assert_eq!(notices.iter().find(ignored), None);
        Resources::load(&self.dirs, &settings, flags, trust)
    }
}

fn write(path: &Path, text: &str) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    path.to_owned()
}

pub fn names(resources: &Resources) -> Vec<String> {
    resources
        .commands()
        .into_iter()
        .map(|command| command.name)
        .collect()
}

pub fn codes(notices: &[Notice]) -> Vec<&str> {
    notices.iter().map(|notice| notice.code).collect()
}
