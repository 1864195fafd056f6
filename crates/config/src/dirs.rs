//! The directories of a run: the user's agent directory, the working directory and its `.pi`.
//!
//! Only computes names; nothing is created and nothing is checked.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::{Settings, paths};

/// The directories of one run. All of them are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// The user's directory: `PI_CODING_AGENT_DIR`, else `~/.pi/agent`.
    pub agent_dir: PathBuf,
    /// The working directory: tools, context files and sessions belong to it.
    pub cwd: PathBuf,
    /// `<cwd>/.pi`.
    pub project_dir: PathBuf,
    pub home: PathBuf,
    /// `PI_CODING_AGENT_SESSION_DIR`, as it was given.
    pub session_dir_variable: Option<String>,
}

impl Dirs {
    /// The directories of this process.
    pub fn from_env() -> io::Result<Self> {
        let cwd = env::current_dir().map_err(|error| {
            let message = match error.kind() {
                io::ErrorKind::NotFound => {
                    "the current directory does not exist any more; change to another one".into()
                }
                _ => format!("the current directory cannot be used: {error}"),
            };
            io::Error::new(error.kind(), message)
        })?;
        Ok(Self::new(cwd, |name| env::var_os(name)))
    }

    /// The directories for a working directory and a set of environment variables.
    pub fn new(cwd: PathBuf, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = set("HOME")
            .map(PathBuf::from)
            .or_else(env::home_dir)
            .unwrap_or("/".into());
        let agent_dir = match set("PI_CODING_AGENT_DIR") {
            Some(value) => match value.to_str() {
                Some(text) => paths::resolve(text, &cwd, &home),
                None => cwd.join(value),
            },
            None => home.join(".pi").join("agent"),
        };
        let session_dir_variable =
            set("PI_CODING_AGENT_SESSION_DIR").and_then(|value| value.into_string().ok());
        Self {
            agent_dir,
            project_dir: cwd.join(".pi"),
            cwd,
            home,
            session_dir_variable,
        }
    }

    /// The same user's directories for another working directory.
    pub fn at(&self, cwd: PathBuf) -> Self {
        Self {
            project_dir: cwd.join(".pi"),
            cwd,
            ..self.clone()
        }
    }

    /// The requested session directory: the flag, else the environment, else the setting. `None`
    /// means the default below the agent directory.
    pub fn session_dir(&self, flag: Option<&str>, settings: &Settings) -> Option<PathBuf> {
        let text = flag
            .or(self.session_dir_variable.as_deref())
            .or(settings.session_dir())?;
        Some(self.resolve(text))
    }

    /// Resolves a path that the user wrote: `~` is the home directory, the rest is relative to the
    /// working directory.
    pub fn resolve(&self, text: &str) -> PathBuf {
        paths::resolve(text, &self.cwd, &self.home)
    }

    /// The user's settings file, the only one that pinion writes without an explicit command.
    pub fn global_settings(&self) -> PathBuf {
        self.agent_dir.join("settings.json")
    }

    pub fn project_settings(&self) -> PathBuf {
        self.project_dir.join("settings.json")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn dirs(variables: &[(&str, &str)]) -> Dirs {
        Dirs::new("/proj".into(), |name| {
            let all = [("HOME", "/home/u")];
            let found = variables.iter().chain(&all).find(|(key, _)| *key == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_agent_directory_follows_the_environment() {
        for (value, expected) in [
            ("", "/home/u/.pi/agent"),
            ("~", "/home/u"),
            ("~/agents/a", "/home/u/agents/a"),
            ("/srv/agent", "/srv/agent"),
            ("rel", "/proj/rel"),
        ] {
            assert_eq!(
                dirs(&[("PI_CODING_AGENT_DIR", value)]).agent_dir,
                Path::new(expected)
            );
        }
        assert_eq!(dirs(&[]).project_dir, Path::new("/proj/.pi"));
    }

    #[test]
    fn session_directory_flag_beats_environment_beats_setting() {
        let settings = Settings::from_values(json!({"sessionDir": "~/s"}), json!({}));
        let plain = dirs(&[]);
        let with_variable = dirs(&[("PI_CODING_AGENT_SESSION_DIR", "env")]);
        assert_eq!(plain.session_dir(None, &Settings::default()), None);
        assert_eq!(plain.session_dir(None, &settings), Some("/home/u/s".into()));
        assert_eq!(
            with_variable.session_dir(None, &settings),
            Some("/proj/env".into())
        );
        assert_eq!(
            with_variable.session_dir(Some("/flag"), &settings),
            Some("/flag".into())
        );
    }
}
