//! `doctor`: checks the set-up and reports what to do about each problem.

use std::fmt::Write;
use std::process::ExitCode;

use pinion_agent_mcp::McpConfig;
use pinion_config::{
    Dirs, ExtensionFlags, PromptTexts, ResourceFlags, Resources, Settings, Trust, TrustFlag,
    find_extensions, load_context_files,
};
use pinion_llm::{Registry, RegistryOptions};
use pinion_sandbox::{Mode, SandboxSettings};

use super::out;
use crate::approvals;
use crate::cli::ApprovalFlags;
use crate::engine;
use crate::failure::Failure;
use crate::sandbox;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion", &tables::commands::DOCTOR, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [] = line.exactly()?;
    let dirs = Dirs::from_env()?;
    let mut report = String::new();
    let mut problems = 0;
    let mut line = |word: &str, text: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(report, "{word:8} {text}");
    };
    line("version", env!("CARGO_PKG_VERSION"));
    line("files", &dirs.agent_dir.display().to_string());
    let (trust, mut notices) = Trust::decide(&dirs, TrustFlag::Unset);
    line(
        "project",
        &format!(
            "{} ({})",
            dirs.cwd.display(),
            format!("{trust:?}").to_lowercase()
        ),
    );
    let (settings, found) = Settings::load(&dirs, trust);
    notices.extend(found);
    let choice = match engine::dialect(None, &dirs, &settings) {
        Ok(choice) => {
            line(
                "dialect",
                &format!("{} ({})", choice.dialect.name(), choice.reason),
            );
            None
        }
        Err(failure) => Some(failure.to_string()),
    };
    let (_, found) = PromptTexts::load(&dirs, None, &[], trust);
    notices.extend(found);
    let (_, found) = load_context_files(&dirs, trust);
    notices.extend(found);
    let (_, found) = Resources::load(&dirs, &settings, &ResourceFlags::default(), trust);
    notices.extend(found);
    let extensions = find_extensions(&dirs, &settings, &ExtensionFlags::default(), trust);
    notices.extend(extensions.notices);
    if !extensions.entries.is_empty() {
        let count = extensions.entries.len();
        line(
            "ext",
            &format!("{count} found; see `pinion extensions list`"),
        );
    }
    let servers = McpConfig::load(&dirs, trust);
    if !servers.servers.is_empty() {
        let count = servers.servers.len();
        line("mcp", &format!("{count} configured; see `pinion mcp list`"));
    }
    if let Some(file) = &servers.untrusted {
        line("mcp", &engine::untrusted_notice(file));
    }
    let (registry, found) = Registry::load(&dirs.agent_dir, RegistryOptions::default());
    let available = registry.available();
    let mut providers: Vec<&str> = available
        .iter()
        .map(|model| model.provider.as_str())
        .collect();
    providers.dedup();
    if providers.is_empty() {
        line(
            "models",
            "none configured. Set a key such as ANTHROPIC_API_KEY, or use --model offline/demo.",
        );
    } else {
        line(
            "models",
            &format!("{} from {}", available.len(), providers.join(", ")),
        );
    }
    match pinion_sandbox::check_system() {
        Ok(version) => line(
            "sandbox",
            &format!("works here: Landlock {version}. Level L"),
        ),
        Err(missing) => line("sandbox", &missing.to_string()),
    }
    let sandbox = sandbox::settings(SandboxSettings::default(), Mode::Workspace, &dirs)
        .err()
        .map(|failure| failure.to_string());
    let approvals = match approvals::policy(&ApprovalFlags::default(), &settings, &dirs) {
        Ok(None) => None,
        Ok(Some(policy)) => {
            let (allow, deny) = (policy.allow.len(), policy.deny.len());
            let mode = policy.mode.name();
            line(
                "approve",
                &format!("{mode}; rules: {allow} allow, {deny} deny"),
            );
            None
        }
        Err(failure) => Some(failure.to_string()),
    };
    for notice in notices
        .iter()
        .map(ToString::to_string)
        .chain(found.iter().map(ToString::to_string))
        .chain(servers.problems.iter().map(ToString::to_string))
        .chain(choice)
        .chain(approvals)
        .chain(sandbox)
    {
        problems += 1;
        line("problem", &notice);
    }
    if problems == 0 {
        line("ok", "nothing wrong was found");
    }
    out(&report)?;
    Ok(if problems == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}
