//! The table of results: one row per promise, with what was promised beside what was seen.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// One row.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// Our value.
    pub pinion: String,
    /// The reference agent's value.
    pub pi: String,
    /// Our value against the reference, or against what the machine allows.
    pub ratio: String,
    /// What was promised.
    pub target: String,
    /// Whether it was kept; none if nothing was promised, or it could not be judged.
    pub met: Option<bool>,
}

/// The rows of a run.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a row and shows it.
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

    /// Promises that were not kept.
    pub fn missed(&self) -> Vec<&str> {
        let missed = self.rows.iter().filter(|row| row.met == Some(false));
        missed.map(|row| row.what.as_str()).collect()
    }

    /// The table as text.
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

/// The machine, in words that fit any other of its kind.
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

/// How many programs wanted a core in the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string(Path::new("/proc/loadavg")).unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(f64::NAN)
}
