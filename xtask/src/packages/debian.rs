//! The Debian package, with manuals, completions and units. It has no links named `pi` or `pinocchio`, which would hide
//! other programs, and starts no service.

use std::path::Path;

use super::archive::{COMPLETIONS, UNITS};
use super::{Release, Requirements, copy, fresh, packaging, read, write};
use crate::shell::{Outcome, output, run};

const MAINTAINER: &str = "pinion authors <pinion@users.noreply.github.com>";

pub(super) fn make(release: &Release) -> Outcome {
    let architecture = match release.machine.as_str() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => return Err(format!("no Debian architecture is known for {other}")),
    };
    let version = format!("{}-1", release.version);
    let tree = release.directory.join("work/deb");
    fresh(&tree)?;
    copy(&release.binary, &tree.join("usr/bin/pinion"), 0o755)?;
    for page in release.write_manuals(&tree.join("usr/share/man/man1"))? {
        compress(&page)?;
    }
    for ((shell, _), path) in COMPLETIONS.into_iter().zip([
        "usr/share/bash-completion/completions/pinion",
        "usr/share/zsh/vendor-completions/_pinion",
        "usr/share/fish/vendor_completions.d/pinion.fish",
    ]) {
        let text = release.ask(&["completions", shell])?;
        write(&tree.join(path), text.as_bytes(), 0o644)?;
    }
    for unit in UNITS {
        let place = match unit.strip_prefix("user/") {
            Some(unit) => format!("usr/lib/systemd/user/{unit}"),
            None => format!("usr/lib/systemd/system/{unit}"),
        };
        copy(
            &packaging(&format!("systemd/{unit}")),
            &tree.join(place),
            0o644,
        )?;
    }
    let documents = tree.join("usr/share/doc/pinion");
    copy(
        &packaging("debian/copyright"),
        &documents.join("copyright"),
        0o644,
    )?;
    copy(
        &packaging("debian/lintian-overrides"),
        &tree.join("usr/share/lintian/overrides/pinion"),
        0o644,
    )?;
    let changes = documents.join("changelog.Debian");
    write(&changes, changelog(&version)?.as_bytes(), 0o644)?;
    compress(&changes)?;
    write_control(release, &tree, &version, architecture)?;
    let package = format!("pinion_{version}_{architecture}.deb");
    run(&[
        "dpkg-deb",
        "--root-owner-group",
        "-Zxz",
        "--build",
        &tree.to_string_lossy(),
        &release.directory.join(package).to_string_lossy(),
    ])
}

fn write_control(release: &Release, tree: &Path, version: &str, architecture: &str) -> Outcome {
    let Requirements { major, minor } = release.requirements;
    let size = output(&["du", "-ks", &tree.to_string_lossy()]);
    let size = size.unwrap_or_default();
    let size = size.split_whitespace().next().unwrap_or("0").to_owned();
    let control = format!(
        "Package: pinion\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {size}\nDepends: libc6 (>= {major}.{minor}), libgcc-s1\nRecommends: git\n\
         Section: devel\nPriority: optional\nHomepage: https://github.com/pinion/pinion\n\
         Description: runs coding agents for other programs\n \
         A single program that reads commands as lines of JSON, sends requests to\n \
         a model, runs the tools the model calls, and reports every step. It also\n \
         serves a hub for small programs, runs fleets of agents, and has a chat.\n"
    );
    let sums = output(&[
        "sh",
        "-c",
        "cd \"$0\" && find usr -type f -print0 | sort -z | xargs -0 md5sum",
        &tree.to_string_lossy(),
    ]);
    let sums = sums.ok_or("md5sum failed")? + "\n";
    write(&tree.join("DEBIAN/md5sums"), sums.as_bytes(), 0o644)?;
    write(&tree.join("DEBIAN/control"), control.as_bytes(), 0o644)
}

/// Returns the changelog in Debian's form, dated by the newest commit so that equal sources make equal packages.
fn changelog(version: &str) -> Result<String, String> {
    let date = output(&["git", "log", "-1", "--format=%cD"]);
    let date = date
        .filter(|date| !date.is_empty())
        .unwrap_or_else(|| "Sat, 01 Jan 2000 00:00:00 +0000".to_owned());
    read(&crate::shell::root().join("CHANGELOG.md"))?;
    Ok(format!(
        "pinion ({version}) unstable; urgency=medium\n\n  * New release; CHANGELOG.md in the sources lists its changes.\n\n -- {MAINTAINER}  {date}\n"
    ))
}

/// Replaces a file by its compressed form, without its time.
fn compress(path: &Path) -> Outcome {
    run(&["gzip", "-9nf", &path.to_string_lossy()])
}
