//! `config`: lists the packages of the settings and which of their resources load.

use std::fmt::Write;
use std::process::ExitCode;

use pinion_cli::tables;
use pinion_config::{Dirs, Scope, Settings, Trust, TrustFlag, list_packages};
use pinion_packages::{package_line, package_row};

use super::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};

pub(super) const VERB: Verb = Verb::new("pinion", &tables::auth::CONFIG, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [] = line.exactly()?;
    let dirs = Dirs::from_env()?;
    let (trust, mut notices) = Trust::decide(&dirs, TrustFlag::Unset);
    let (settings, found) = Settings::load(&dirs, trust);
    notices.extend(found);
    let (mut packages, found) = list_packages(&dirs, &settings);
    notices.extend(found);
    for notice in notices {
        eprintln!("Warning: {notice}");
    }
    let (scope, file) = if line.has("--local") {
        (Scope::Project, dirs.project_settings())
    } else {
        (Scope::User, dirs.global_settings())
    };
    packages.retain(|package| package.scope == scope);
    let mut text = String::new();
    // Writing to a String cannot fail.
    if !line.has("--json") {
        let _ = writeln!(text, "{}", file.display());
    }
    for package in &packages {
        if line.has("--json") {
            text.push_str(&package_line(package));
        } else {
            text.push_str(&package_row(package));
        }
    }
    if packages.is_empty() {
        eprintln!("No packages. `pinion install SOURCE` adds one; see `pinion install --help`.");
    }
    out(&text)
}
