//! `pinix start` and `pinixd`: start a hub, in the background or the foreground.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::seat::{Holder, Role, pid_file};
use crate::hub::{self, place};
use crate::verb::{Line, Verb};
use pinion_cli::tables;

/// The time limit for the start of a hub.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// Flags that a process in the background receives as variables.
const SECRETS: [(&str, &str); 2] = [
    ("--super-token", "PINION_SUPER_TOKEN"),
    ("--hub-token", pinion_access::client::DAEMON_VARIABLE),
];

const VERB: Verb = Verb::new("pinix", &tables::pinix::START, start);

const FOREGROUND: Verb = Verb::new("", &tables::pinix::PINIXD, serve);

pub(super) fn help() -> Result<ExitCode, Failure> {
    FOREGROUND.run(&["--help".to_owned()])
}

/// Runs a hub in the foreground.
pub(super) fn foreground(arguments: &[String]) -> Result<ExitCode, Failure> {
    FOREGROUND.run(arguments)
}

/// Starts a hub in the background, or in the foreground with `--foreground`.
pub(super) fn run(arguments: &[String]) -> Result<ExitCode, Failure> {
    VERB.run(arguments)
}

/// Translates the command line to the one of `pinion hub`.
fn ours(line: &Line) -> Result<Vec<String>, Failure> {
    line.exactly::<0>()?;
    if line.has("--hub") && line.has("--hub-only") {
        return Err(Failure::failed(
            "Error: --hub and --hub-only exclude each other.",
        ));
    }
    if let Some(url) = line.value("--hub") {
        let mut words = vec![
            "join".to_owned(),
            url.to_owned(),
            "--accept-installs".to_owned(),
        ];
        let no_use = [
            "--super-token",
            "--bind",
            "--auth",
            "--jwt-issuer",
            "--jwt-audience",
            "--jwt-manage",
        ];
        if let Some(flag) = no_use.into_iter().find(|flag| line.has(flag)) {
            return Err(Failure::failed(format!(
                "Error: with --hub there is no hub here that {flag} could be for."
            )));
        }
        let same = ["--hub-token", "--port", "--pid", "--bun", "--log-level"];
        words.extend(given(line, &same));
        words.extend(rooted(line)?);
        return Ok(words);
    }
    let mut words = vec!["serve".to_owned()];
    let same = [
        "--super-token",
        "--bun",
        "--port",
        "--pid",
        "--log-level",
        "--bind",
        "--auth",
        "--jwt-issuer",
        "--jwt-audience",
    ];
    words.extend(given(line, &same));
    let bare = ["--hub-only", "--jwt-manage"];
    words.extend(
        bare.iter()
            .filter(|flag| line.has(flag))
            .map(ToString::to_string),
    );
    words.extend(rooted(line)?);
    Ok(words)
}

/// Returns those of these flags that were given, with their values.
fn given(line: &Line, flags: &[&str]) -> Vec<String> {
    let given = flags
        .iter()
        .filter_map(|flag| Some((flag, line.value(flag)?)));
    given
        .map(|(flag, value)| format!("{flag}={value}"))
        .collect()
}

fn rooted(line: &Line) -> Result<Option<String>, Failure> {
    match line.has("--root") || line.has("--config") {
        true => Ok(Some(format!("--root={}", root(line)?.display()))),
        false => Ok(None),
    }
}

fn root(line: &Line) -> Result<PathBuf, Failure> {
    match line.value("--config") {
        Some(config) if !line.has("--root") => {
            let config = std::path::absolute(config)?;
            Ok(config.parent().unwrap_or(Path::new("/")).to_owned())
        }
        _ => place::root(line),
    }
}

fn serve(line: &Line) -> Result<ExitCode, Failure> {
    hub::run(&ours(line)?)
}

fn start(line: &Line) -> Result<ExitCode, Failure> {
    if line.has("--foreground") {
        return serve(line);
    }
    // Every user can read the command line of a process, but not its environment.
    let mut words = ours(line)?;
    words.retain(|word| {
        let flag = word.split_once('=').map_or("", |(flag, _)| flag);
        SECRETS.iter().all(|(secret, _)| *secret != flag)
    });
    let secrets = SECRETS
        .iter()
        .filter_map(|(flag, variable)| Some((variable, line.value(flag)?)));
    let root = root(line)?;
    let pid = line
        .value("--pid")
        .map_or_else(|| pid_file(&root), PathBuf::from);
    if let Some(Holder { role, url, pid, .. }) = Holder::anyone_at(&pid) {
        return Err(Failure::failed(match role {
            Role::Hub => format!("Error: a hub is running already: {url}, process {pid}."),
            Role::Runtime => {
                format!("Error: the clips here are offered to {url} already, by process {pid}.")
            }
        }));
    }
    let (said, path) = place_for_words(&root)?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("hub")
        .args(words)
        .envs(secrets)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .process_group(0)
        .spawn()?;
    let start = Instant::now();
    loop {
        let holder = Holder::anyone_at(&pid).filter(|holder| holder.pid == child.id());
        if let Some(Holder { role, pid, url, .. }) = holder {
            eprint!("{}", words_in(&path));
            return out(&match role {
                Role::Hub => format!("The hub has started: {url}, process {pid}.\n"),
                Role::Runtime => {
                    format!("The runtime has started: it joins {url}, process {pid}.\n")
                }
            });
        }
        if child.try_wait()?.is_some() {
            return Err(Failure::failed(words_in(&path).trim_end().to_owned()));
        }
        if start.elapsed() > PATIENCE {
            // A hub that did not start in time must not stay behind.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::failed(format!(
                "Error: the hub did not begin within {} s. What it said is in {}.",
                PATIENCE.as_secs(),
                path.display()
            )));
        }
        std::thread::sleep(LOOK);
    }
}

/// Creates the file for the output of a hub in the background.
fn place_for_words(root: &Path) -> Result<(File, PathBuf), Failure> {
    let logs = root.join("logs");
    std::fs::create_dir_all(&logs)?;
    let path = logs.join("pinixd.err");
    let file = pinion_files::create_or_empty(&path, 0o666)
        .map_err(|error| Failure::failed(format!("Error: {}: {error}", path.display())))?;
    Ok((file, path))
}

fn words_in(path: &Path) -> String {
    pinion_files::read_text(path, 16 << 20).unwrap_or_default()
}
