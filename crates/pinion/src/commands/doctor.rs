//! `doctor`: checks the set-up and reports what to do about each problem.

use std::process::ExitCode;

use pinion_agent_mcp::McpConfig;
use pinion_config::{
    Dirs, ExtensionFlags, PromptTexts, ResourceFlags, Resources, Settings, Trust, TrustFlag,
    find_extensions, load_context_files,
};
use pinion_doctor::Report;
use pinion_hub::{HubProcess, ProcessRole};
use pinion_llm::{Registry, RegistryOptions};
use pinion_sandbox::{Mode, SandboxSettings};

use super::out;
use crate::approvals;
use crate::cli::ApprovalFlags;
use crate::engine;
use crate::failure::Failure;
use crate::hub::root_dir_named;
use crate::sandbox;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion", &tables::commands::DOCTOR, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [] = line.exactly()?;
    let dirs = Dirs::from_env()?;
    let mut report = Report::default();
    let version = env!("CARGO_PKG_VERSION");
    report.fine("version", version);
    let registry = check_set_up(&mut report, &dirs);
    check_surroundings(&mut report, &dirs)?;
    if line.has("--online") {
        let runtime = pinion_process::runtime::build()?;
        runtime.block_on(pinion_doctor::check_keys_online(&mut report, &registry));
        // Commands that print a key may have left processes.
        pinion_process::kill_all();
    }
    out(&if line.has("--json") {
        report.json(version)
    } else {
        report.text()
    })?;
    Ok(if report.problems() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Checks the files of agents: settings, trust, resources, extensions, MCP servers, models and approvals.
fn check_set_up(report: &mut Report, dirs: &Dirs) -> Registry {
    report.fine("files", dirs.agent_dir.display().to_string());
    let (trust, mut notices) = Trust::decide(dirs, TrustFlag::Unset);
    let word = format!("{trust:?}").to_lowercase();
    report.fine("project", format!("{} ({word})", dirs.cwd.display()));
    let (settings, found) = Settings::load(dirs, trust);
    notices.extend(found);
    let choice = match engine::dialect(None, dirs, &settings) {
        Ok(choice) => {
            let name = choice.dialect.name();
            report.fine("dialect", format!("{name} ({})", choice.reason));
            None
        }
        Err(failure) => Some(failure.to_string()),
    };
    let (_, found) = PromptTexts::load(dirs, None, &[], trust);
    notices.extend(found);
    let (_, found) = load_context_files(dirs, trust);
    notices.extend(found);
    let (_, found) = Resources::load(dirs, &settings, &ResourceFlags::default(), trust);
    notices.extend(found);
    let extensions = find_extensions(dirs, &settings, &ExtensionFlags::default(), trust);
    notices.extend(extensions.notices);
    if !extensions.entries.is_empty() {
        let count = extensions.entries.len();
        report.fine(
            "ext",
            format!("{count} found; see `pinion extensions list`"),
        );
    }
    let servers = McpConfig::load(dirs, trust);
    if !servers.servers.is_empty() {
        let count = servers.servers.len();
        report.fine("mcp", format!("{count} configured; see `pinion mcp list`"));
    }
    if let Some(file) = &servers.untrusted {
        report.fine("mcp", engine::untrusted_notice(file));
    }
    let (registry, found) = Registry::load(&dirs.agent_dir, RegistryOptions::default());
    let available = registry.available();
    let mut providers: Vec<&str> = available
        .iter()
        .map(|model| model.provider.as_str())
        .collect();
    providers.dedup();
    report.fine(
        "models",
        if providers.is_empty() {
            "none configured. Set a key such as ANTHROPIC_API_KEY, or use --model offline/demo."
                .to_owned()
        } else {
            format!("{} from {}", available.len(), providers.join(", "))
        },
    );
    report.fine(
        "sandbox",
        match pinion_sandbox::check_system() {
            Ok(version) => format!("works here: Landlock {version}. Level L"),
            Err(missing) => missing.to_string(),
        },
    );
    let sandbox = sandbox::settings(SandboxSettings::default(), Mode::Workspace, dirs)
        .err()
        .map(|failure| failure.to_string());
    let approvals = match approvals::policy(&ApprovalFlags::default(), &settings, dirs) {
        Ok(None) => None,
        Ok(Some(policy)) => {
            let (allow, deny) = (policy.allow.len(), policy.deny.len());
            let mode = policy.mode.name();
            report.fine(
                "approve",
                format!("{mode}; rules: {allow} allow, {deny} deny"),
            );
            None
        }
        Err(failure) => Some(failure.to_string()),
    };
    pinion_doctor::check_shell(report, settings.shell_path());
    let notices = notices
        .iter()
        .map(ToString::to_string)
        .chain(found.iter().map(ToString::to_string))
        .chain(servers.problems.iter().map(ToString::to_string))
        .chain(choice)
        .chain(approvals)
        .chain(sandbox);
    for notice in notices {
        report.problem("set-up", notice);
    }
    pinion_doctor::check_models(report, &registry);
    registry
}

/// Checks directories, the hub and its clips, the receiver of traces and the kernel.
fn check_surroundings(report: &mut Report, dirs: &Dirs) -> Result<(), Failure> {
    let root = root_dir_named(None)?;
    for (directory, purpose) in [
        (&dirs.agent_dir, "settings, keys and sessions"),
        (&root, "the hub"),
        (&std::env::temp_dir(), "temporary files"),
    ] {
        pinion_doctor::check_directory(report, directory, purpose);
    }
    match HubProcess::at(&pinion_hub::pid_file(&root)) {
        Some(HubProcess {
            role: ProcessRole::Hub,
            url,
            pid,
            ..
        }) => report.fine("hub", format!("{url}, process {pid}")),
        Some(HubProcess { url, pid, .. }) => {
            report.fine("hub", format!("process {pid} offers clips to {url}"));
        }
        None => report.fine("hub", "not running; start one with `pinion hub serve`"),
    }
    pinion_doctor::check_clips(report, &root);
    match pinion_telemetry::Settings::read(|name| std::env::var(name).ok()) {
        Ok(None) => {}
        Ok(Some(settings)) => report.fine("traces", format!("sent to {}", settings.endpoint)),
        Err(error) => report.problem("traces", format!("no traces are sent: {error}.")),
    }
    pinion_doctor::check_kernel(report);
    Ok(())
}
