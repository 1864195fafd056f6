//! Starts the program of a clip: its command line, its directory and its environment.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pinion_process::{Confinement, Environment, Launch, Pipes, Reason, Running};
pub use pinion_sandbox::is_secret;

use crate::clip::{ClipConfig, Issued, Token};
use crate::package::Runtime;
use crate::shared::SharedClip;
use crate::{ClipError, Code};

/// Paths of the programs that run and fetch clips. A missing one is searched for on the PATH.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    pub bun: Option<PathBuf>,
    pub node: Option<PathBuf>,
    pub python: Option<PathBuf>,
    /// Fetches packages from npm.
    pub npm: Option<PathBuf>,
    /// Fetches repositories.
    pub git: Option<PathBuf>,
}

/// A started program, the hub's ends of its pipes, and the token issued for it.
pub(super) struct Started {
    pub(super) running: Running,
    pub(super) pipes: Pipes,
    pub(super) token: Option<Issued>,
}

pub(super) async fn start(shared: &SharedClip) -> Result<Started, ClipError> {
    let config = &shared.config;
    let command_line = command_line(config)?;
    let program = PathBuf::from(&command_line[0]);
    std::fs::create_dir_all(&config.data_directory)
        .map_err(|error| ClipError::io(config.data_directory.display(), &error))?;
    let token = config.tokens.as_ref().map(|tokens| tokens.issue());
    let token = token.transpose()?;
    if let Some(Issued { token, .. }) = &token {
        shared.log.mask(token.reveal());
    }
    let started = spawn(config, command_line, token).await;
    started.map_err(|error| {
        ClipError::new(
            Code::Unavailable,
            format!(
                "clip \"{}\" cannot be started: {}: {error}",
                config.alias,
                program.display()
            ),
        )
    })
}

async fn spawn(
    config: &ClipConfig,
    command_line: Vec<OsString>,
    token: Option<Issued>,
) -> io::Result<Started> {
    let launch = Launch {
        words: command_line,
        directory: config.package.directory.clone(),
        variables: variables(
            config,
            token.as_ref().map(|issued| &issued.token),
            std::env::vars_os(),
        ),
        base: Environment::Empty,
        confinement: Confinement::Unconfined(Reason::Installed),
        stdin: None,
        stdout: None,
        stderr: None,
    };
    let (running, pipes) = pinion_process::launch_piped(launch).await?;
    Ok(Started {
        running,
        pipes,
        token,
    })
}

/// Returns the reason why a clip could not be started, as far as it is known without starting it.
pub fn check_program(config: &ClipConfig) -> Result<(), ClipError> {
    command_line(config).map(drop)
}

/// Returns the program and its arguments.
fn command_line(config: &ClipConfig) -> Result<Vec<OsString>, ClipError> {
    if config.package.is_edge {
        let message = format!(
            "clip \"{}\" is an edge clip: it runs elsewhere, and its provider is not connected",
            config.alias
        );
        return Err(ClipError::new(Code::Unavailable, message));
    }
    let entry = config.package.entry()?;
    let entry = std::path::absolute(&entry).unwrap_or(entry);
    let programs = &config.programs;
    let mut command_line: Vec<OsString> = match config.package.runtime {
        Runtime::Bun => match bun(programs) {
            Some(bun) => vec![bun.into(), "run".into()],
            None => match program(programs.node.as_deref(), &["node"]) {
                Some(node) => vec![node.into()],
                None => return Err(missing(config, "bun (or node)")),
            },
        },
        Runtime::Node => match program(programs.node.as_deref(), &["node"]) {
            Some(node) => vec![node.into()],
            None => return Err(missing(config, "node")),
        },
        Runtime::Python => match program(programs.python.as_deref(), &["python3", "python"]) {
            Some(python) => vec![python.into()],
            None => return Err(missing(config, "python3")),
        },
        Runtime::Exec if !is_executable(&entry) => {
            let message = format!(
                "{} is not executable; run chmod +x on it, or name another runtime in clip.json",
                entry.display()
            );
            return Err(ClipError::new(Code::FailedPrecondition, message));
        }
        Runtime::Exec => Vec::new(),
    };
    command_line.push(entry.into());
    command_line.push("--ipc".into());
    Ok(command_line)
}

fn missing(config: &ClipConfig, what: &str) -> ClipError {
    let message = format!(
        "clip \"{}\" needs {what}, which is not on the PATH; install it",
        config.alias
    );
    ClipError::new(Code::FailedPrecondition, message)
}

pub(crate) fn bun(programs: &Programs) -> Option<PathBuf> {
    program(programs.bun.as_deref(), &["bun"]).or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".bun/bin/bun")).filter(|bun| is_executable(bun))
    })
}

pub(crate) fn npm(programs: &Programs) -> Option<PathBuf> {
    program(programs.npm.as_deref(), &["npm"])
}

pub(crate) fn git(programs: &Programs) -> Option<PathBuf> {
    program(programs.git.as_deref(), &["git"])
}

fn program(chosen: Option<&Path>, names: &[&str]) -> Option<PathBuf> {
    if let Some(chosen) = chosen {
        return Some(chosen.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names.iter().find_map(|name| {
        let places = directories.iter().map(|directory| directory.join(name));
        places.into_iter().find(|place| is_executable(place))
    })
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Returns the environment of a clip: the hub's environment without secrets, the configured variables, and the `PINIX_`
/// variables.
fn variables(
    config: &ClipConfig,
    token: Option<&Token>,
    ours: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let passed = |name: &OsStr| {
        name.to_str()
            .is_none_or(|name| !is_secret(name) || config.pass.iter().any(|passed| passed == name))
    };
    let mut variables: Vec<_> = ours.filter(|(name, _)| passed(name)).collect();
    variables.extend(config.variables.iter().cloned());
    let mut set = |name: &str, value: OsString| {
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value));
    };
    let data = std::path::absolute(&config.data_directory);
    let data = data.unwrap_or_else(|_| config.data_directory.clone());
    set("PINIX_URL", config.hub_url.clone().into());
    set("PINIX_DATA_DIR", data.into());
    set("PINIX_CLIP_ALIAS", config.alias.clone().into());
    if let Some(token) = token {
        set("PINIX_TOKEN", token.reveal().into());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_secret_is_passed_on() {
        let place = tempfile::tempdir().unwrap();
        let package = crate::package::Package::read(place.path()).unwrap();
        let mut config = ClipConfig::new("lab", package, place.path());
        config.pass = vec!["GITHUB_TOKEN".into()];
        let ours = [
            ("PATH", "/bin"),
            ("GITHUB_TOKEN", "passed"),
            ("OPENAI_API_KEY", "kept"),
            ("PINIX_TOKEN", "kept"),
            ("PINIX_URL", "kept"),
        ];
        let ours = ours.map(|(name, value)| (name.into(), value.into()));
        let seen = variables(&config, None, ours.into_iter());
        assert!(!seen.iter().any(|(_, value)| value == "kept"), "{seen:?}");
        let names: Vec<_> = seen.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(
            names,
            [
                "PATH",
                "GITHUB_TOKEN",
                "PINIX_URL",
                "PINIX_DATA_DIR",
                "PINIX_CLIP_ALIAS"
            ]
        );
    }

    #[test]
    fn secrets_are_recognised_by_their_names() {
        for secret in [
            "ANTHROPIC_API_KEY",
            "openai_api_key",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "PINIX_TOKEN",
            "PINIX_HUB_TOKEN",
            "PINION_ANYTHING",
            "DB_PASSWORD",
            "SENTRY_DSN",
        ] {
            assert!(is_secret(secret), "{secret}");
        }
        for plain in [
            "PATH",
            "HOME",
            "LANG",
            "TERM",
            "TZ",
            "KEYBOARD",
            "MONKEY",
            "NODE_PATH",
            "XDG_DATA_HOME",
            "TOKENIZERS_PARALLELISM",
        ] {
            assert!(!is_secret(plain), "{plain}");
        }
    }
}
