//! Metrics of the process, under the names that every client library of Prometheus uses.

use std::fs;

use super::{Kind, Page};

/// Ticks per second in `/proc`, on every architecture of Linux that pinion runs on.
const TICKS: f64 = 100.0;

pub(super) fn write(page: &mut Page) {
    let mut gauge = |name, help, value: Option<f64>| {
        if let Some(value) = value {
            page.family(name, help, Kind::Gauge);
            page.sample(&[], value);
        }
    };
    gauge(
        "process_start_time_seconds",
        "Start of the process since the Unix epoch, in seconds.",
        start_time(),
    );
    gauge(
        "process_resident_memory_bytes",
        "Resident memory, in bytes.",
        resident_memory(),
    );
    gauge(
        "process_open_fds",
        "Open file descriptors.",
        fs::read_dir("/proc/self/fd")
            .ok()
            .map(|open| open.count() as f64),
    );
    if let Some(seconds) = cpu_time() {
        page.family(
            "process_cpu_seconds_total",
            "User and system time of the processor, in seconds.",
            Kind::Counter,
        );
        page.sample(&[], seconds);
    }
}

/// Returns a field of `/proc/self/stat` by its number in the manual. The second one may contain spaces.
fn stat(number: usize) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(number - 3)?.parse().ok()
}

fn cpu_time() -> Option<f64> {
    Some((stat(14)? + stat(15)?) / TICKS)
}

fn start_time() -> Option<f64> {
    let stat_of_system = fs::read_to_string("/proc/stat").ok()?;
    let boot = stat_of_system
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?;
    let boot: f64 = boot.trim().parse().ok()?;
    Some(boot + stat(22)? / TICKS)
}

fn resident_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_memory_and_a_start() {
        assert!(resident_memory().unwrap() > 100_000.0);
        assert!(start_time().unwrap() > 1_600_000_000.0);
        assert!(cpu_time().unwrap() >= 0.0);
        let mut page = Page::default();
        write(&mut page);
        assert!(page.into_text().contains("process_open_fds "));
    }
}
