//! The files in `packaging`: units of systemd, and the dashboard.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(project().join(path)).unwrap()
}

/// Returns the names of pinion's metrics in a text, without the endings of histograms.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let words = text.split(|letter| !is_name(letter));
    let named = words.filter(|word| word.starts_with("pinion_"));
    named
        .map(|word| {
            let end = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| word.strip_suffix(end));
            end.unwrap_or(word).to_owned()
        })
        .collect()
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist_and_are_documented() {
    let dashboard = read("packaging/grafana/pinion-hub.json");
    let parsed: Value = serde_json::from_str(&dashboard).unwrap();
    assert!(parsed["panels"].as_array().unwrap().len() > 10);
    let sources = [
        "crates/telemetry/src/metrics.rs",
        "crates/hub/src/monitoring.rs",
    ];
    let made: BTreeSet<String> = sources
        .iter()
        .flat_map(|file| {
            let text = read(file);
            let quoted = text.split('"').skip(1).step_by(2);
            quoted.flat_map(metrics).collect::<Vec<_>>()
        })
        .filter(|name| !name.contains("pinion_hub_clips_"))
        .collect();
    let documented = metrics(&read("docs/operate.md"));
    for name in metrics(&parsed["panels"].to_string()) {
        assert!(made.contains(&name), "the dashboard asks for {name}");
    }
    assert_eq!(made, documented);
}

#[test]
#[ignore = "needs tmux"]
fn the_picture_is_what_the_program_shows() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let checked = Command::new(cargo)
        .args([
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--",
            "pictures",
            "--check",
        ])
        .arg(env!("CARGO_BIN_EXE_pinion"))
        .current_dir(project())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
}

#[test]
#[ignore = "needs systemd-analyze"]
fn units_are_accepted_by_systemd() {
    for unit in [
        "pinion-hub.service",
        "pinion-fleet@.service",
        "user/pinion-hub.service",
    ] {
        let text = read(&format!("packaging/systemd/{unit}"));
        assert!(text.contains("ExecStart=/usr/bin/pinion "));
        // systemd checks that programs and manuals exist; those of the package are not installed here.
        let text = text.replace("/usr/bin/pinion ", "/bin/true ");
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("Documentation="));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(Path::new(unit).file_name().unwrap());
        fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
        let done = Command::new("systemd-analyze")
            .arg("verify")
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let about_it: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("pinion"))
            .collect();
        assert!(
            done.status.success() && about_it.is_empty(),
            "{unit}: {said}"
        );
    }
}
