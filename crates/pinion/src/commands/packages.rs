//! `install`, `remove`, `update`, `list`: manage packages of extensions, skills and prompt templates.

use std::process::ExitCode;

use pinion_config::{
    Dirs, Package, ProjectTrust, Scope, Settings, Trust, TrustFlag, list_packages,
};
use pinion_packages::{Installer, Network, package_line, package_row, parse_source};

use super::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const INSTALL: Verb = Verb::new("pinion", &tables::packages::INSTALL, |line| {
    if line.words.is_empty() {
        return line.help();
    }
    let [source] = words(line)?;
    install_one(&Dirs::from_env()?, source, &Arguments::of(line))
});

pub(super) const REMOVE: Verb = Verb::new("pinion", &tables::packages::REMOVE, |line| {
    if line.words.is_empty() {
        return line.help();
    }
    let [source] = words(line)?;
    remove(&Dirs::from_env()?, source, &Arguments::of(line))
});

pub(super) const UPDATE: Verb = Verb::new("pinion", &tables::packages::UPDATE, |line| {
    let source = line.at_most_one();
    let source = source.map_err(|failure| suggest_prompt(line, 1, failure))?;
    update(&Dirs::from_env()?, source, &Arguments::of(line))
});

pub(super) const LIST: Verb = Verb::new("pinion", &tables::packages::LIST, |line| {
    let [] = words(line)?;
    list(&Dirs::from_env()?, &Arguments::of(line))
});

/// Returns the words of a command; the error suggests `-p`, because the user may have meant them as a prompt.
fn words<const COUNT: usize>(line: &Line) -> Result<[&str; COUNT], Failure> {
    line.exactly()
        .map_err(|failure| suggest_prompt(line, COUNT, failure))
}

fn suggest_prompt(line: &Line, most: usize, failure: Failure) -> Failure {
    if line.words.len() <= most {
        return failure;
    }
    let said = format!("{} {}", line.name(), line.words.join(" "));
    failure.hint(format!("To send it as a prompt, run pinion -p {said:?}."))
}

struct Arguments {
    local: bool,
    offline: bool,
    json: bool,
}

impl Arguments {
    fn of(line: &Line) -> Self {
        Self {
            local: line.has("--local"),
            offline: line.has("--offline"),
            json: line.has("--json"),
        }
    }

    fn scope(&self) -> Scope {
        if self.local {
            Scope::Project
        } else {
            Scope::User
        }
    }

    fn network(&self) -> Network {
        let variable = std::env::var("PI_OFFLINE").unwrap_or_default();
        if self.offline || matches!(variable.as_str(), "1" | "true" | "yes") {
            Network::Off
        } else {
            Network::Allowed
        }
    }

    fn installer<'a>(&self, dirs: &'a Dirs) -> Installer<'a> {
        Installer {
            dirs,
            network: self.network(),
            warn: |warning| eprintln!("Warning: {warning}"),
        }
    }
}

fn install_one(dirs: &Dirs, text: &str, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let source = parse_source(dirs, text)?;
    let scope = arguments.scope();
    let installed = arguments.installer(dirs).install(scope, &source)?;
    if scope == Scope::Project {
        let (trust, _) = Trust::decide(dirs, TrustFlag::Unset);
        if trust == ProjectTrust::Untrusted {
            eprintln!(
                "Note: this project is not trusted, so its packages are not used yet; run `pinion trust` here."
            );
        }
    }
    out(&installed.report())
}

fn remove(dirs: &Dirs, text: &str, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let source = parse_source(dirs, text)?;
    let scope = arguments.scope();
    let Some(written) = arguments.installer(dirs).remove(scope, &source)? else {
        let (other, flag) = match scope {
            Scope::Project => (Scope::User, "without --local"),
            Scope::User | Scope::Temporary => (Scope::Project, "with --local"),
        };
        let elsewhere = all(dirs, ProjectTrust::Trusted).into_iter().any(|package| {
            package.scope == other && package.source.identity() == source.identity()
        });
        let hint = if elsewhere {
            format!("It is in the other settings: run the command {flag}.")
        } else {
            "`pinion list` shows the packages there are.".to_owned()
        };
        let problem = format!("{text} is not in the {} settings.", scope.as_str());
        return Err(Failure::failed(problem).hint(hint));
    };
    out(&format!("Removed {written}\n"))
}

fn update(dirs: &Dirs, text: Option<&str>, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let wanted = text.map(|text| parse_source(dirs, text)).transpose()?;
    let (trust, _) = Trust::decide(dirs, TrustFlag::Unset);
    let mut packages = all(dirs, trust);
    if let (Some(wanted), Some(text)) = (wanted, text) {
        packages.retain(|package| package.source.identity() == wanted.identity());
        if packages.is_empty() {
            let hint = format!(
                "`pinion list` shows the packages there are; `pinion install {text}` adds it."
            );
            return Err(Failure::failed(format!("{text} is not installed.")).hint(hint));
        }
    }
    let mut report = String::new();
    let mut failures = 0;
    for package in packages {
        match arguments.installer(dirs).update(&package) {
            Ok(updated) => report.push_str(&updated.report(package.source.text())),
            Err(error) => {
                failures += 1;
                Failure::from(error).print();
            }
        }
    }
    if report.is_empty() && failures == 0 {
        eprintln!("There is nothing to update.");
    }
    out(&report)?;
    Ok(ExitCode::from(u8::from(failures > 0)))
}

fn list(dirs: &Dirs, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (trust, _) = Trust::decide(dirs, TrustFlag::Unset);
    let packages = all(dirs, trust);
    if packages.is_empty() && !arguments.json {
        eprintln!("No packages. `pinion install SOURCE` adds one; see `pinion install --help`.");
    }
    let mut text = String::new();
    for package in &packages {
        if arguments.json {
            text.push_str(&package_line(package))
        } else {
            text.push_str(&package_row(package))
        }
    }
    out(&text)
}

/// Returns the packages of both scopes, as far as the project is trusted; prints warnings about them.
fn all(dirs: &Dirs, trust: ProjectTrust) -> Vec<Package> {
    let (settings, mut notices) = Settings::load(dirs, trust);
    let (packages, odd) = list_packages(dirs, &settings);
    notices.extend(odd);
    for notice in notices {
        eprintln!("Warning: {notice}");
    }
    packages
}
