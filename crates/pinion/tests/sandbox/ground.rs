//! The files of one test: a workspace with a repository, a home directory with a secret, and a place outside.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The ordinary user of tests that run as root.
const ORDINARY: u32 = 65_534;

/// The user that pinion runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    Present,
    Ordinary,
}

impl User {
    /// The present user, and an ordinary one if the present one is root.
    pub fn all() -> Vec<Self> {
        if nix::unistd::geteuid().is_root() {
            vec![Self::Present, Self::Ordinary]
        } else {
            vec![Self::Present]
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Ordinary => "ordinary",
        }
    }
}

pub struct Ground {
    user: User,
    top: TempDir,
}

impl Ground {
    pub fn new(user: User) -> Self {
        let top = tempfile::Builder::new()
            .prefix("sandbox-ground-")
            .tempdir()
            .unwrap();
        let ground = Self { user, top };
        for directory in [
            "home/.ssh",
            "outside/dir",
            "work/.git/hooks",
            "work/.git/info",
            "work/.git/objects",
        ] {
            fs::create_dir_all(ground.path(directory)).unwrap();
        }
        for (file, text) in [
            ("home/.ssh/id_test", "the secret"),
            ("outside/file", "as it was"),
            ("work/.git/HEAD", "ref: refs/heads/main\n"),
            ("work/.git/config", "[core]\n"),
            ("work/file", "of the workspace"),
        ] {
            fs::write(ground.path(file), text).unwrap();
        }
        ground.hand_over();
        ground
    }

    fn hand_over(&self) {
        let mut directories = vec![self.top.path().to_owned()];
        while let Some(path) = directories.pop() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            if self.user == User::Ordinary {
                chown(&path, Some(ORDINARY), Some(ORDINARY)).unwrap();
            }
            if path.is_dir() {
                let entries = fs::read_dir(&path).unwrap();
                directories.extend(entries.map(|entry| entry.unwrap().path()));
            }
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// The command `pinion sandbox FLAGS -- WORDS` in the workspace.
    pub fn command(&self, flags: &[&str], words: &[&str]) -> Command {
        let mut command = self.program();
        command.arg("sandbox").args(flags).arg("--").args(words);
        command
    }

    /// The program in the workspace, with the home directory of the test.
    pub fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinion"));
        command
            .current_dir(self.path("work"))
            .env("HOME", self.path("home"))
            .env_remove("PINION_SANDBOX")
            .env_remove("PI_CODING_AGENT_DIR")
            .stdin(Stdio::null());
        if self.user == User::Ordinary {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        command
    }

    pub fn run(&self, flags: &[&str], words: &[&str]) -> Output {
        self.command(flags, words).output().unwrap()
    }

    /// Runs a probe and fails if it got what it must not get.
    pub fn refuses(
        &self,
        probe: &str,
        flags: &[&str],
        without: Option<&str>,
    ) -> Result<(), String> {
        let test = std::env::current_exe().unwrap();
        let words = [
            test.to_str().unwrap(),
            "__probe",
            probe,
            self.top.path().to_str().unwrap(),
        ];
        let mut command = self.command(flags, &words);
        if let Some(mutation) = without {
            command.env("PINION_SANDBOX_WITHOUT", mutation);
        }
        let output = command.output().unwrap();
        if output.status.code() == Some(0) {
            return self.is_untouched();
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Err(format!(
            "{probe}: {}\n{}{}",
            output.status,
            text(&output.stdout),
            text(&output.stderr)
        ))
    }

    /// Checks from outside that nothing was written where nothing may be written.
    fn is_untouched(&self) -> Result<(), String> {
        let same = |name: &str, text: &str| {
            let found = fs::read_to_string(self.path(name)).unwrap_or_default();
            (found == text)
                .then_some(())
                .ok_or_else(|| format!("{name} was changed: {found:?}"))
        };
        same("outside/file", "as it was")?;
        same("home/.ssh/id_test", "the secret")?;
        same("work/.git/config", "[core]\n")?;
        let empty = |name: &str| {
            let count = fs::read_dir(self.path(name)).map_or(1, |entries| entries.count());
            (count == 0)
                .then_some(())
                .ok_or_else(|| format!("{name} has {count} entries"))
        };
        empty("outside/dir")?;
        empty("work/.git/hooks")?;
        for name in [".pi", ".vscode", ".envrc", ".mcp.json"] {
            if self.path("work").join(name).symlink_metadata().is_ok() {
                return Err(format!("{name} was made"));
            }
        }
        Ok(())
    }

    /// Runs a command with `--report` and returns its exit code and the report.
    pub fn report(&self, flags: &[&str], words: &[&str]) -> (Option<i32>, Value) {
        let file = self.path("report.json");
        let name = file.to_str().unwrap();
        let flags = [flags, &["--report", name]].concat();
        let output = self.run(&flags, words);
        let text = fs::read_to_string(Path::new(name)).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
        });
        (output.status.code(), serde_json::from_str(&text).unwrap())
    }
}
