//! The npm packages: one with the binary of a platform, and `pinion`, which depends on it. Neither runs a script when it
//! is installed.

use std::path::Path;

use serde_json::{Value, json};

use super::{Release, copy, fresh, packaging, write};
use crate::shell::{Outcome, command, root, run_command};

pub(super) fn make(release: &Release) -> Outcome {
    let processor = match release.machine.as_str() {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => return Err(format!("no name of npm is known for {other}")),
    };
    let platform = format!("@pinion/linux-{processor}");
    let common = json!({
        "version": release.version,
        "license": "Apache-2.0 OR MIT",
        "repository": "github:pinion/pinion",
    });
    let binary = release.directory.join("work/npm-platform");
    fresh(&binary)?;
    copy(&release.binary, &binary.join("bin/pinion"), 0o755)?;
    let own = json!({
        "name": platform,
        "description": format!("The pinion binary for Linux on {processor}"),
        "os": ["linux"], "cpu": [processor], "libc": ["glibc"],
        "files": ["bin/pinion"],
        "preferUnplugged": true,
    });
    describe(&binary, own, &common)?;
    let main = release.directory.join("work/npm");
    fresh(&main)?;
    for file in ["pinion.js", "index.js", "index.d.ts"] {
        copy(&packaging(&format!("npm/{file}")), &main.join(file), 0o644)?;
    }
    copy(&root().join("README.md"), &main.join("README.md"), 0o644)?;
    let own = json!({
        "name": "pinion",
        "description": "Runs coding agents for other programs",
        "bin": {"pinion": "pinion.js"},
        "main": "index.js",
        "types": "index.d.ts",
        "files": ["pinion.js", "index.js", "index.d.ts"],
        "engines": {"node": ">=18"},
        "optionalDependencies": {platform: release.version},
    });
    describe(&main, own, &common)?;
    for directory in [&binary, &main] {
        let target = release.directory.to_string_lossy();
        let line = ["npm", "pack", "--silent", "--pack-destination", &target];
        let mut pack = command(&line);
        run_command(pack.current_dir(directory), &line.join(" "))?;
    }
    Ok(())
}

fn describe(directory: &Path, mut own: Value, common: &Value) -> Outcome {
    for (name, value) in common.as_object().into_iter().flatten() {
        own[name] = value.clone();
    }
    let text = format!("{own:#}\n");
    write(&directory.join("package.json"), text.as_bytes(), 0o644)
}
