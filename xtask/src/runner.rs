//! Runs tests where cargo-nextest is not installed. Like nextest it starts one process per test, because some tests
//! kill processes or change state of the whole process. Filters are parts of test names.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::shell::{self, Outcome};
use crate::tiers::Ready;

/// A test that takes longer is killed and counts as failed.
const TEST_TIMEOUT: Duration = Duration::from_secs(600);

/// Test targets whose tests check the order of events and mostly wait: they run first, beside each other.
const CASES: [&str; 3] = ["golden", "golden_modern", "transcripts"];
const CASES_AT_A_TIME: usize = 4;

struct Binary {
    package: String,
    target: String,
    path: PathBuf,
    directory: PathBuf,
}

struct Test<'a> {
    binary: &'a Binary,
    name: String,
}

/// Builds all tests and runs those that `filters` name, or all.
pub fn run(filters: &[&str], ready: &Ready) -> Outcome {
    let binaries = build()?;
    let mut tests = Vec::new();
    let mut skipped = 0;
    for binary in &binaries {
        for name in list(binary)? {
            let wanted = filters.is_empty() || filters.iter().any(|f| name.contains(f));
            if wanted && !ready.leaves_out(&binary.package, &binary.target, &name) {
                tests.push(Test { binary, name });
            } else {
                skipped += 1;
            }
        }
    }
    let is_alone = |test: &Test<'_>| test.binary.target.starts_with("interop");
    let is_case = |test: &Test<'_>| CASES.contains(&test.binary.target.as_str());
    let (alone, tests): (Vec<Test<'_>>, Vec<Test<'_>>) = tests.into_iter().partition(is_alone);
    let (cases, others): (Vec<Test<'_>>, Vec<Test<'_>>) = tests.into_iter().partition(is_case);
    let at_a_time = thread::available_parallelism().map_or(2, usize::from);
    let failed = run_all(&cases, CASES_AT_A_TIME, ready)
        + run_all(&others, at_a_time, ready)
        + run_all(&alone, 1, ready);
    let passed = cases.len() + others.len() + alone.len() - failed;
    let word = if failed == 0 { "ok" } else { "FAILED" };
    eprintln!("\ntest result: {word}. {passed} passed; {failed} failed; {skipped} skipped");
    if failed == 0 {
        Ok(())
    } else {
        Err(format!("{failed} tests failed"))
    }
}

fn build() -> Result<Vec<Binary>, String> {
    let line = [
        "cargo",
        "test",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--no-run",
    ];
    eprintln!("\n> {}", line.join(" "));
    let output = shell::command(&line)
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo could not be run: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let artifacts = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(artifacts.filter_map(|artifact| binary(&artifact)).collect())
}

fn binary(artifact: &Value) -> Option<Binary> {
    if artifact["profile"]["test"] != true {
        return None;
    }
    let manifest = PathBuf::from(artifact["manifest_path"].as_str()?);
    Some(Binary {
        package: package_name(artifact["package_id"].as_str()?)?.to_owned(),
        target: artifact["target"]["name"].as_str()?.to_owned(),
        path: artifact["executable"].as_str()?.into(),
        directory: manifest.parent()?.to_owned(),
    })
}

/// Returns the name in `path+file:///some/where#name@1.0.0`, or in `path+file:///some/name#1.0.0`, where the directory
/// has the same name.
fn package_name(id: &str) -> Option<&str> {
    let (place, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => place.rsplit('/').next(),
    }
}

fn list(binary: &Binary) -> Result<Vec<String>, String> {
    let output = Command::new(&binary.path)
        .args(["--list", "--format", "terse"])
        .current_dir(&binary.directory)
        .output()
        .map_err(|error| format!("{}: {error}", binary.path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}

/// Runs tests in parallel and returns the number of failed ones.
fn run_all(tests: &[Test<'_>], at_a_time: usize, ready: &Ready) -> usize {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    let screen = Mutex::new(());
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = run_one(test, ready);
                    let _one_at_a_time = screen.lock().unwrap_or_else(PoisonError::into_inner);
                    let name = format!("{}::{}", test.binary.target, test.name);
                    match report {
                        Ok(()) => eprintln!("test {name} ... ok"),
                        Err(output) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            eprintln!("test {name} ... FAILED\n{output}");
                        }
                    }
                }
            });
        }
    });
    failed.into_inner()
}

fn run_one(test: &Test<'_>, ready: &Ready) -> Result<(), String> {
    let mut command = Command::new(&test.binary.path);
    command
        .args(["--exact", &test.name, "--include-ignored"])
        .current_dir(&test.binary.directory)
        .env("CARGO_MANIFEST_DIR", &test.binary.directory)
        .envs(ready.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let readers = [
        child.stdout.take().map(|pipe| collect(Box::new(pipe))),
        child.stderr.take().map(|pipe| collect(Box::new(pipe))),
    ];
    let end = Instant::now() + TEST_TIMEOUT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    if status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let texts = readers
        .into_iter()
        .flatten()
        .filter_map(|reader| reader.join().ok());
    let how = status.map_or_else(|| "it took too long".into(), |status| status.to_string());
    Err(format!("{}({how})", texts.collect::<String>()))
}

fn collect(mut pipe: Box<dyn Read + Send>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::package_name;

    #[test]
    fn packages_are_named_with_and_without_their_directory() {
        let ids = [
            "path+file:///a/crates/hub#pinion-hub@0.1.0",
            "path+file:///a/crates/pinion#0.1.0",
        ];
        assert_eq!(ids.map(package_name), [Some("pinion-hub"), Some("pinion")]);
        assert_eq!(package_name("pinion"), None);
    }
}
