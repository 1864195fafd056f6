//! Packages for people and programs to read.

use std::fmt::Write;
use std::path::PathBuf;

use pinion_config::{Package, PackageContents};
use pinion_text::amount;
use serde_json::json;

use crate::{Installed, Updated};

impl Installed {
    /// Returns lines about the package: its source, version, contents and directory.
    pub fn report(&self) -> String {
        let name = self.source.text();
        let version = self.version.as_deref();
        let version = version.filter(|version| !name.ends_with(&format!("@{version}")));
        let version = version.map_or_else(String::new, |version| format!(" {version}"));
        format!(
            "Installed {name}{version}: {}\n  {}\n",
            counts(&self.contents),
            self.root.display()
        )
    }
}

impl Updated {
    /// Returns lines about the update of the package with this source; empty if nothing was to be done.
    pub fn report(&self, source: &str) -> String {
        match self {
            Self::InPlace => String::new(),
            Self::Pinned => format!("Kept {source}: its version is pinned\n"),
            Self::Fetched { before, installed } => match (before, &installed.version) {
                (Some(before), Some(after)) if before == after => {
                    format!("Fetched {source} {after} again\n")
                }
                (Some(before), Some(after)) => format!("Updated {source} {before} → {after}\n"),
                _ => installed.report(),
            },
        }
    }
}

fn counts(contents: &PackageContents) -> String {
    let parts: Vec<String> = [
        (contents.extensions.len(), "extension"),
        (contents.skills.len(), "skill"),
        (contents.prompts.len(), "prompt template"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| amount::count(count, word))
    .collect();
    if parts.is_empty() {
        "nothing is used of it".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Returns lines about a package of the settings.
pub fn package_row(package: &Package) -> String {
    let source = package.source.text();
    let scope = package.scope.as_str();
    let Some(root) = &package.root else {
        return format!("{scope:8} {source}  not installed\n");
    };
    let mut text = format!("{scope:8} {source}");
    if let Some(version) = package.version() {
        // Writing to a String cannot fail.
        let _ = write!(text, "  {version}");
    }
    text.push_str("  ");
    text.push_str(&counts(&PackageContents::of_package(package)));
    if package.is_filtered() {
        text.push_str(" (filtered)");
    }
    let _ = writeln!(text, "\n         {}", root.display());
    text
}

/// Returns a package of the settings as one line of JSON.
pub fn package_line(package: &Package) -> String {
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
