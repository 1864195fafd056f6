//! `sandbox`: runs one command in a sandbox. Policies from flags, the environment and settings.

use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pinion_cli::tables;
use pinion_config::{Dirs, ProjectTrust, Settings};
use pinion_process::signals::ShutdownSignals;
use pinion_process::{Confinement, Environment, Exit, Launch, Reason, Running};
use pinion_sandbox::{
    ConfineError, Level, Mode, Policy, SandboxReport, SandboxSettings, Surroundings, network_mode,
};
use pinion_text::nearest;
use tempfile::TempDir;

use crate::cli::Flags;
use crate::failure::Failure;
use crate::verb::{Line, Verb};

pub(crate) const VERB: Verb = Verb::new("pinion", &tables::sandbox::SANDBOX, run);

/// Exit code of a command that cannot be started, as in shells.
const NOT_STARTED: u8 = 127;

/// A policy, and the directory that lives as long as its processes.
pub(crate) struct Sandbox {
    pub confinement: Confinement,
    _temporary: Option<TempDir>,
}

impl Sandbox {
    /// Makes the sandbox of the settings; `settings.mode` must be set.
    pub fn new(settings: &SandboxSettings, dirs: &Dirs) -> Result<Self, Failure> {
        if settings.mode.unwrap_or_default() == Mode::Off {
            return Ok(Self {
                confinement: Confinement::Unconfined(Reason::ModeOff),
                _temporary: None,
            });
        }
        let temporary = tempfile::Builder::new()
            .prefix("pinion-sandbox-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        if settings.mode == Some(Mode::Strict) {
            std::fs::create_dir(temporary.path().join("home"))?;
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let around = Surroundings {
            home: dirs.home.clone(),
            start: dirs.cwd.clone(),
            agent: dirs.agent_dir.clone(),
            hub: Some(hub_directory(dirs)),
            program: std::env::current_exe()?,
            path: std::env::split_paths(&path).collect(),
            temporary: temporary.path().to_owned(),
        };
        let policy = settings.policy(&around).map_err(Failure::usage)?;
        Ok(Self {
            confinement: match policy {
                Some(policy) => Confinement::Confined(Arc::new(policy)),
                None => Confinement::Unconfined(Reason::ModeOff),
            },
            _temporary: Some(temporary),
        })
    }

    fn policy(&self) -> Option<&Policy> {
        match &self.confinement {
            Confinement::Confined(policy) => Some(policy),
            Confinement::Unconfined(_) => None,
        }
    }
}

fn hub_directory(dirs: &Dirs) -> std::path::PathBuf {
    match std::env::var_os("PINION_HUB_DIR") {
        Some(directory) if !directory.is_empty() => dirs.cwd.join(directory),
        _ => dirs.home.join(".pinion/hub"),
    }
}

/// Returns the settings that flags, the environment, the user's file and the project's file make together.
///
/// A mistake of the user is an error: a rule that is ignored would protect nothing. A project only narrows, trusted or not.
pub(crate) fn settings(
    flags: SandboxSettings,
    otherwise: Mode,
    dirs: &Dirs,
) -> Result<SandboxSettings, Failure> {
    let (files, _) = Settings::load(dirs, ProjectTrust::Trusted);
    let mut settings = match files.get_global("sandbox") {
        None => SandboxSettings::default(),
        Some(value) => SandboxSettings::read(value).map_err(|problem| {
            let file = dirs.global_settings();
            Failure::usage(format!("{}: {problem}.", file.display()))
        })?,
    };
    let variable = std::env::var("PINION_SANDBOX").ok();
    let variable = variable.filter(|text| !text.is_empty());
    let of_environment = variable.map(|text| mode("PINION_SANDBOX", &text));
    let of_environment = of_environment.transpose()?;
    settings.mode = flags.mode.or(of_environment).or(settings.mode);
    settings.mode.get_or_insert(otherwise);
    settings.network = flags.network.or(settings.network);
    settings.write.extend(flags.write);
    settings.read.extend(flags.read);
    settings.hide.extend(flags.hide);
    settings.sockets.extend(flags.sockets);
    if let Some(value) = files.get_project("sandbox") {
        let file = dirs.project_settings();
        settings.narrow(value, |problem| {
            eprintln!("Warning: {}: {problem}", file.display());
        });
    }
    Ok(settings)
}

fn mode(name: &str, text: &str) -> Result<Mode, Failure> {
    Mode::named(text).ok_or_else(|| {
        let failure = Failure::usage(format!("unknown value \"{text}\" for {name}."));
        failure.hint(match nearest(text, Mode::NAMES) {
            Some(nearest) => format!("Did you mean {nearest}?"),
            None => "Use off, read-only, workspace or strict.".to_owned(),
        })
    })
}

/// The flags of the sandbox that take a value.
const FLAGS: [&str; 6] = [
    "--sandbox",
    "--sandbox-write",
    "--sandbox-read",
    "--sandbox-hide",
    "--sandbox-socket",
    "--sandbox-network",
];

/// Sets the value of a flag of the sandbox.
pub(crate) fn set_flag(
    settings: &mut SandboxSettings,
    flag: &str,
    text: &str,
) -> Result<(), Failure> {
    match flag {
        "--sandbox" => settings.mode = Some(mode(flag, text)?),
        "--sandbox-write" => settings.write.push(text.to_owned()),
        "--sandbox-read" => settings.read.push(text.to_owned()),
        "--sandbox-hide" => settings.hide.push(text.to_owned()),
        "--sandbox-socket" => settings.sockets.push(text.to_owned()),
        _ => {
            let wrong = |problem| Failure::usage(format!("{flag}: {problem}."));
            settings.network = Some(network_mode(text).map_err(wrong)?);
        }
    }
    Ok(())
}

fn flags(line: &Line) -> Result<SandboxSettings, Failure> {
    let mut settings = SandboxSettings::default();
    for flag in FLAGS {
        for text in line.values(flag) {
            set_flag(&mut settings, flag, text)?;
        }
    }
    Ok(settings)
}

/// The tools of a session that run in a sandbox.
pub(crate) const CONFINED_TOOLS: &[&str] = &["bash"];

/// Makes the sandbox of a session's commands; `None` if it is off. Everything that would run beside it with your rights is
/// refused.
pub(crate) fn of_session(
    flags: &Flags,
    dirs: &Dirs,
    has_extensions: bool,
) -> Result<Option<Sandbox>, Failure> {
    let settings = settings(flags.sandbox.clone(), Mode::Off, dirs)?;
    if settings.mode == Some(Mode::Off) {
        let chosen = SandboxSettings {
            mode: None,
            ..flags.sandbox.clone()
        };
        if flags.sandbox.mode.is_none() && chosen != SandboxSettings::default() {
            return Err(Failure::usage("the flags --sandbox-… need --sandbox MODE."));
        }
        return Ok(None);
    }
    pinion_sandbox::check_system().map_err(Failure::usage)?;
    let refused = |what: &str, instead: &str| {
        let failure = Failure::usage(format!("{what} cannot be confined in this version."));
        failure.hint(format!("{instead}, or use --sandbox off."))
    };
    if has_extensions {
        return Err(refused("extensions", "Use --no-extensions"));
    }
    let names = flags.tools.iter().flatten();
    let mut others = names.filter(|name| {
        let name = name.strip_prefix('+').unwrap_or(name);
        pinion_tools::all_names().contains(&name) && !CONFINED_TOOLS.contains(&name)
    });
    if let Some(name) = others.next() {
        return Err(refused(&format!("the tool \"{name}\""), "Use --tools bash"));
    }
    Sandbox::new(&settings, dirs).map(Some)
}

/// Fails if the user asked for a sandbox that this kind of run does not have.
pub(crate) fn refuse_unconfined(dirs: &Dirs) -> Result<(), Failure> {
    let settings = settings(SandboxSettings::default(), Mode::Off, dirs)?;
    match settings.mode {
        None | Some(Mode::Off) => Ok(()),
        Some(_) => Err(Failure::usage(
            "commands of this program cannot be confined in this version.",
        )
        .hint("Set PINION_SANDBOX=off, or remove sandbox.mode from your settings.")),
    }
}

fn run(line: &Line) -> Result<ExitCode, Failure> {
    if line.words.is_empty() {
        return Err(line.misfit());
    }
    let dirs = Dirs::from_env()?;
    let sandbox = Sandbox::new(&settings(flags(line)?, Mode::Workspace, &dirs)?, &dirs)?;
    let stdio = |descriptor: &dyn AsFd| -> io::Result<Option<OwnedFd>> {
        Ok(Some(descriptor.as_fd().try_clone_to_owned()?))
    };
    let launch = Launch {
        words: line.words.iter().map(Into::into).collect(),
        directory: dirs.cwd.clone(),
        variables: Vec::new(),
        base: Environment::Inherited,
        confinement: sandbox.confinement.clone(),
        stdin: stdio(&io::stdin())?,
        stdout: stdio(&io::stdout())?,
        stderr: stdio(&io::stderr())?,
    };
    let runtime = pinion_process::runtime::build()?;
    let mut signals = ShutdownSignals::listen_to_all(&runtime)?;
    let ended = runtime.block_on(async {
        let mut running = match pinion_process::launch(launch).await {
            Ok(running) => running,
            Err(error) => return not_started(&error, &line.words[0]).map(Err),
        };
        let exit = tokio::select! {
            exit = running.wait() => exit,
            number = signals.received() => Exit::Signal(i32::from(number) - 128),
        };
        Ok(Ok((exit, report(&running, &sandbox))))
    });
    // Nothing that the command left behind survives it.
    pinion_process::kill_all();
    let (exit, report) = match ended? {
        Ok(ended) => ended,
        Err(code) => return Ok(code),
    };
    if let Some(report) = &report {
        if !report.denied.is_empty() {
            eprintln!("{}", report.sentence());
        }
        if let Some(file) = line.value("--report") {
            write_report(Path::new(file), report)?;
        }
    }
    Ok(match exit {
        Exit::Code(code) => ExitCode::from(code as u8),
        Exit::Signal(signal) => ExitCode::from(128_u8.wrapping_add(signal as u8)),
        Exit::Unknown => return Err(Failure::failed(pinion_process::KILLED)),
    })
}

/// Reports why the command does not run. The failure is that of the sandbox, the exit code that of the command.
fn not_started(error: &io::Error, program: &str) -> Result<ExitCode, Failure> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    if let Some(ConfineError(reason)) = inner {
        return Err(Failure::usage(reason));
    }
    let failure = Failure::failed(format!("\"{program}\" could not be started"));
    failure.caused_by(io::Error::from(error.kind())).report();
    Ok(ExitCode::from(NOT_STARTED))
}

/// Returns the denials so far, also if there are none. `None` without a sandbox.
fn report(running: &Running, sandbox: &Sandbox) -> Option<SandboxReport> {
    let mode = sandbox.policy()?.mode;
    Some(running.sandbox_report().unwrap_or(SandboxReport {
        mode,
        level: Level::Landlock,
        denied: Vec::new(),
        more: 0,
    }))
}

fn write_report(file: &Path, report: &SandboxReport) -> Result<(), Failure> {
    let text = serde_json::to_string(report).map_err(io::Error::other)?;
    std::fs::write(file, text + "\n").map_err(|error| {
        Failure::failed(format!("\"{}\" cannot be written", file.display())).caused_by(error)
    })
}
