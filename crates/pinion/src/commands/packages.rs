//! `install`, `remove`, `update`, `list`: manage packages of extensions, skills and prompt templates.

mod archive;
mod install;
mod program;
mod stage;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use pinion_config::{
    Dirs, Package, PackageContents, PackageSource, ProjectTrust, Scope, Settings, Trust, TrustFlag,
    list_packages, remove_package,
};
use serde_json::json;

use self::install::{Installed, Network, failed, install};
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
    let source = source.map_err(|failure| prompt(line, 1, failure))?;
    update(&Dirs::from_env()?, source, &Arguments::of(line))
});

pub(super) const LIST: Verb = Verb::new("pinion", &tables::packages::LIST, |line| {
    let [] = words(line)?;
    list(&Dirs::from_env()?, &Arguments::of(line))
});

/// Returns the words of a command; the error suggests `-p`, because the user may have meant them as a prompt.
fn words<const COUNT: usize>(line: &Line) -> Result<[&str; COUNT], Failure> {
    line.exactly()
        .map_err(|failure| prompt(line, COUNT, failure))
}

fn prompt(line: &Line, most: usize, failure: Failure) -> Failure {
    if line.words.len() <= most {
        return failure;
    }
    let said = format!("{} {}", line.name(), line.words.join(" "));
    failure.reworded(|words| format!("{words} To send it as a prompt, run pinion -p {said:?}."))
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
        match self.local {
            true => Scope::Project,
            false => Scope::User,
        }
    }

    fn network(&self) -> Network {
        let variable = std::env::var("PI_OFFLINE").unwrap_or_default();
        match self.offline || matches!(variable.as_str(), "1" | "true" | "yes") {
            true => Network::Off,
            false => Network::Allowed,
        }
    }
}

fn parse(dirs: &Dirs, text: &str) -> Result<PackageSource, Failure> {
    PackageSource::parse(text, &dirs.cwd, &dirs.home)
        .map_err(|error| Failure::failed(format!("Error: {text} is no package: {error}.")))
}

fn install_one(dirs: &Dirs, text: &str, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let source = parse(dirs, text)?;
    let scope = arguments.scope();
    let installed = install(dirs, scope, &source, arguments.network())?;
    if scope == Scope::Project {
        let (trust, _) = Trust::decide(dirs, TrustFlag::Unset);
        if trust == ProjectTrust::Untrusted {
            eprintln!(
                "Note: this project is not trusted, so its packages are not used yet; run `pinion trust` here."
            );
        }
    }
    out(&format!("Installed {}", describe(&installed)))
}

/// Returns one line about a package: its source, version, contents and directory.
fn describe(installed: &Installed) -> String {
    let name = installed.source.text();
    let version = installed.version.as_deref();
    let version = version.filter(|version| !name.ends_with(&format!("@{version}")));
    let version = version.map_or_else(String::new, |version| format!(" {version}"));
    format!(
        "{name}{version}: {}\n  {}\n",
        count(&installed.contents),
        installed.root.display()
    )
}

fn count(contents: &PackageContents) -> String {
    let parts: Vec<String> = [
        (contents.extensions.len(), "extension"),
        (contents.skills.len(), "skill"),
        (contents.prompts.len(), "prompt template"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
    .collect();
    match parts.is_empty() {
        true => "nothing is used of it".to_owned(),
        false => parts.join(", "),
    }
}

fn remove(dirs: &Dirs, text: &str, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let source = parse(dirs, text)?;
    let scope = arguments.scope();
    let Some(written) = remove_package(dirs, scope, &source).map_err(failed)? else {
        let (other, flag) = match scope {
            Scope::Project => (Scope::User, "without --local"),
            Scope::User | Scope::Temporary => (Scope::Project, "with --local"),
        };
        let elsewhere = all(dirs, ProjectTrust::Trusted).into_iter().any(|package| {
            package.scope == other && package.source.identity() == source.identity()
        });
        let hint = match elsewhere {
            true => format!("It is in the other settings: run the command {flag}."),
            false => "`pinion list` shows the packages there are.".to_owned(),
        };
        return Err(Failure::failed(format!(
            "Error: {text} is not in the {} settings. {hint}",
            scope.as_str()
        )));
    };
    if let Some(place) = source
        .install_directory(dirs, scope)
        .filter(|place| place.is_dir())
    {
        fs::remove_dir_all(&place).map_err(|error| {
            let place = place.display();
            Failure::failed(format!(
                "Error: {written} is no longer used, but {place} could not be removed: {error}."
            ))
        })?;
        let base = match scope {
            Scope::Project => &dirs.project_dir,
            Scope::User | Scope::Temporary => &dirs.agent_dir,
        };
        stage::remove_empty_parents(&place, base);
    }
    out(&format!("Removed {written}\n"))
}

fn update(dirs: &Dirs, text: Option<&str>, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let wanted = text.map(|text| parse(dirs, text)).transpose()?;
    let (trust, _) = Trust::decide(dirs, TrustFlag::Unset);
    let mut packages = all(dirs, trust);
    if let (Some(wanted), Some(text)) = (wanted, text) {
        packages.retain(|package| package.source.identity() == wanted.identity());
        if packages.is_empty() {
            return Err(Failure::failed(format!(
                "Error: {text} is not installed. `pinion list` shows the packages there are; `pinion install {text}` adds it."
            )));
        }
    }
    let mut said = String::new();
    let mut failures = 0;
    for package in packages {
        match update_one(dirs, &package, arguments.network()) {
            Ok(line) => said.push_str(&line),
            Err(failure) => {
                failures += 1;
                failure.report();
            }
        }
    }
    if said.is_empty() && failures == 0 {
        eprintln!("There is nothing to update.");
    }
    out(&said)?;
    Ok(ExitCode::from(u8::from(failures > 0)))
}

fn update_one(dirs: &Dirs, package: &Package, network: Network) -> Result<String, Failure> {
    let source = &package.source;
    let place = source.install_directory(dirs, package.scope);
    if place.is_none() {
        return Ok(String::new());
    }
    if source.is_pinned() && package.root.is_some() {
        return Ok(format!("Kept {}: its version is pinned\n", source.text()));
    }
    let before = package.version();
    let installed = install(dirs, package.scope, source, network)?;
    Ok(match (before, &installed.version) {
        (Some(before), Some(after)) if before == *after => {
            format!("Fetched {} {after} again\n", source.text())
        }
        (Some(before), Some(after)) => format!("Updated {} {before} → {after}\n", source.text()),
        _ => format!("Installed {}", describe(&installed)),
    })
}

fn list(dirs: &Dirs, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (trust, _) = Trust::decide(dirs, TrustFlag::Unset);
    let packages = all(dirs, trust);
    if packages.is_empty() && !arguments.json {
        eprintln!("No packages. `pinion install SOURCE` adds one; see `pinion install --help`.");
    }
    let mut text = String::new();
    for package in &packages {
        match arguments.json {
            true => text.push_str(&json_line(package)),
            false => text.push_str(&table_lines(package)),
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

fn table_lines(package: &Package) -> String {
    let source = package.source.text();
    let scope = package.scope.as_str();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = match &package.root {
        Some(root) => writeln!(
            text,
            "{scope:8} {source}{}  {}{}\n         {}",
            package
                .version()
                .map_or_else(String::new, |version| format!("  {version}")),
            count(&PackageContents::of_package(package)),
            if package.is_filtered() {
                " (filtered)"
            } else {
                ""
            },
            root.display()
        ),
        None => writeln!(text, "{scope:8} {source}  not installed"),
    };
    text
}

fn json_line(package: &Package) -> String {
    let contents = PackageContents::of_package(package);
    let texts = |paths: &[PathBuf]| -> Vec<String> {
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    };
    let line = pinion_jsonl::json::to_string(&json!({
        "source": package.source.text(),
        "scope": package.scope.as_str(),
        "path": package.root.as_ref().map(|root| root.display().to_string()),
        "installed": package.root.is_some(),
        "version": package.version(),
        "filtered": package.is_filtered(),
        "pinned": package.source.is_pinned(),
        "extensions": texts(&contents.extensions),
        "skills": texts(&contents.skills),
        "prompts": texts(&contents.prompts),
    }));
    line + "\n"
}
