//! Plays recorded cases against any program and prints the differences, for work on one case at a time.
//!
//! `replay CASES [NAME…] -- COMMAND…` plays all cases in the directory CASES, or the named ones;
//! `replay FILE.txt… -- COMMAND…` plays transcripts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinion_testkit::Program;
use pinion_testkit::golden::{Level, Verdict, judge};
use pinion_testkit::transcript::text::check;

const USAGE: &str = "\
usage: replay [--release NAME]… [--package DIR]… [--jobs N] [--brief] CASES [NAME…] -- COMMAND…
       replay FILE.txt… -- COMMAND…";

struct Options {
    releases: Vec<String>,
    packages: Vec<PathBuf>,
    brief: bool,
    jobs: usize,
    places: Vec<String>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let split = args.iter().position(|arg| arg == "--");
    let parsed = split.and_then(|at| Some((parse(&args[..at])?, &args[at + 1..])));
    let Some((options, command)) = parsed.filter(|(o, c)| !o.places.is_empty() && !c.is_empty())
    else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut program = Program::from_command(command);
    program.installed_in.clone_from(&options.packages);
    if options.places[0].ends_with(".txt") {
        return transcripts(&options.places, &program);
    }
    let cases = select(Path::new(&options.places[0]), &options.places[1..]);
    if cases.is_empty() {
        eprintln!("there are no such cases in {}", options.places[0]);
        return ExitCode::from(2);
    }
    let verdicts = play(&cases, &options, &program);
    let total = verdicts.len();
    for level in Level::ALL {
        let agree = verdicts.iter().filter(|v| !v.differs(level)).count();
        show(&format!("{}: {agree}/{total}", level.name()));
    }
    let agree = verdicts.iter().filter(|v| v.agrees()).count();
    show(&format!("all levels: {agree}/{total}"));
    if agree == total {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn transcripts(files: &[String], program: &Program) -> ExitCode {
    let mut failed = 0;
    for file in files {
        match check(Path::new(file), program) {
            Ok(()) => show(&format!("{file}: as written")),
            Err(report) => {
                show(&report);
                failed += 1;
            }
        }
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn parse(args: &[String]) -> Option<Options> {
    let mut options = Options {
        releases: Vec::new(),
        packages: Vec::new(),
        brief: false,
        jobs: 4,
        places: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--release" => options.releases.push(args.next()?.clone()),
            "--package" => options.packages.push(args.next()?.into()),
            "--jobs" => options.jobs = args.next()?.parse().ok()?,
            "--brief" => options.brief = true,
            _ => options.places.push(arg.clone()),
        }
    }
    if options.releases.is_empty() {
        options.releases = vec!["pi-0.52.12".into(), "pi-0.73.1".into()];
    }
    Some(options)
}

fn select(root: &Path, names: &[String]) -> Vec<PathBuf> {
    let wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        names.is_empty() || names.iter().any(|n| *n == name)
    };
    let paths = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut cases: Vec<PathBuf> = paths
        .filter(|p| p.join("setup.json").exists())
        .filter(wanted)
        .collect();
    cases.sort();
    cases
}

fn play(cases: &[PathBuf], options: &Options, program: &Program) -> Vec<Verdict> {
    let releases: Vec<&str> = options.releases.iter().map(String::as_str).collect();
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = judge(case, &releases, program);
                    report(&verdict, options.brief);
                    verdicts
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .push(verdict);
                }
            });
        }
    });
    verdicts
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn report(verdict: &Verdict, brief: bool) {
    let differing: Vec<&str> = verdict
        .differences
        .iter()
        .map(|(level, _)| level.name())
        .collect();
    let word = if verdict.agrees() {
        "same".to_owned()
    } else {
        differing.join(", ")
    };
    show(&format!(
        "{:<26} {:<11} {word}",
        verdict.case, verdict.release
    ));
    if !brief && !verdict.agrees() {
        show(&verdict.to_string());
    }
}

#[allow(clippy::print_stdout, reason = "the report is this program's output")]
fn show(text: &str) {
    println!("{text}");
}
