//! The table of results: one row per promise, with the target beside the measured value.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The measured quantity.
    pub what: String,
    /// The value of pinion.
    pub pinion: String,
    /// The value of the reference agent.
    pub pi: String,
    /// pinion's value against the reference, or against the limit of the machine.
    pub ratio: String,
    /// The promised value.
    pub target: String,
    /// The promise was met; `None` without a promise, or without a comparison.
    pub met: Option<bool>,
}

#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a row and prints it.
    pub fn add(&mut self, row: Row) {
        let met = verdict(row.met);
        let Row {
            what,
            pinion,
            pi,
            ratio,
            target,
            ..
        } = &row;
        eprintln!("  {what}: pinion {pinion}, pi {pi}, {ratio} (target {target}: {met})");
        self.rows.push(row);
    }

    /// Returns the promises that were not met.
    pub fn missed(&self) -> Vec<&str> {
        let missed = self.rows.iter().filter(|row| row.met == Some(false));
        missed.map(|row| row.what.as_str()).collect()
    }

    /// Returns the table as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| measured | pinion | pi | pinion against it | target | met |\n|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let Row {
                what,
                pinion,
                pi,
                ratio,
                target,
                met,
            } = row;
            let cells = [what, pinion, pi, ratio, target, &verdict(*met).to_owned()];
            let cells = cells.map(|cell| {
                if cell.is_empty() {
                    "–"
                } else {
                    cell.as_str()
                }
            });
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }
}

fn verdict(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "–",
    }
}

/// Describes the machine without naming it.
pub fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    let kernel: Vec<&str> = kernel.trim().split(['.', '-']).take(2).collect();
    let memory = read("/proc/meminfo");
    let memory = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse::<f64>().ok());
    let gigabytes = memory.unwrap_or(0.0) / 1e6;
    let processor = std::env::consts::ARCH;
    format!(
        "{cores} cores ({processor}), {gigabytes:.0} GB of memory, Linux {}",
        kernel.join(".")
    )
}

/// Returns the load average of the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string(Path::new("/proc/loadavg")).unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(f64::NAN)
}
