//! Fleets: the speed of reading a child, the memory of hundreds of children in one process and their fairness, and that
//! neither many children nor an endless line makes memory grow.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Bench, thousands};
use crate::home::Home;
use crate::process::{Followed, Process};
use crate::samples::{Samples, size, time, times};
use crate::table::Row;
use crate::{Fallible, plain, talk};

const GIGABYTE: usize = 1 << 30;
/// Children in one process, and the number whose memory is subtracted.
const TASKS: usize = 500;
const BASELINE_TASKS: usize = 20;
const CHILDREN: usize = 1000;
const LINES: usize = 1000;
const PARALLEL: usize = 64;

pub fn run(bench: &mut Bench) -> Fallible<()> {
    one_child(bench)?;
    tasks(bench)?;
    many(bench)?;
    endless(bench)
}

/// A fleet that has ended successfully.
struct Ran {
    /// Its measurements, without its children's processes.
    seen: Followed,
    report: Value,
    directory: PathBuf,
    /// Holds the directory.
    _home: Home,
}

fn fleet(bench: &Bench, plan: &Value) -> Fallible<Ran> {
    let home = bench.home()?;
    // JSON is valid YAML.
    fs::write(home.work().join("plan.yaml"), plan.to_string())?;
    let directory = home.root().join("run");
    let mut command = Command::new(bench.agents.pinion.program()?);
    command
        .args(["fleet", "run", "plan.yaml", "--output", "none", "--quiet"])
        .arg("--run-dir")
        .arg(&directory);
    home.apply_to(&mut command);
    let seen = Process::start(&mut command)?.follow()?;
    if seen.ending != "ended with 0" {
        return Err(format!("the fleet {}", seen.ending).into());
    }
    let report = serde_json::from_slice(&fs::read(directory.join("report.json"))?)?;
    Ok(Ran {
        seen,
        report,
        directory,
        _home: home,
    })
}

impl Ran {
    fn printed(&self, name: &str) -> u64 {
        let child = &self.report["children"][0]["attempts"][0]["printed"];
        child[name].as_u64().unwrap_or_default()
    }

    fn log(&self, child: &str) -> PathBuf {
        self.directory.join(format!("children/{child}.jsonl"))
    }

    /// Returns the durations of the children, in seconds.
    fn durations(&self) -> Samples {
        let children = self.report["children"].as_array();
        let attempts = children.into_iter().flatten();
        attempts
            .filter_map(|child| child["attempts"][0]["durationMs"].as_f64())
            .map(|milliseconds| milliseconds / 1e3)
            .collect()
    }
}

/// Describes a child that is a mode of this program.
fn program(name: &str, agent: &str, mode: &str, argument: &str) -> Fallible<Value> {
    let ourselves = std::env::current_exe()?;
    Ok(
        json!({"name": name, "agent": agent, "prompt": "go", "timeout": "10m",
        "command": [ourselves, mode, argument]}),
    )
}

fn one_child(bench: &mut Bench) -> Fallible<()> {
    let (lines, bytes) = talk::talked(GIGABYTE);
    let child = program("one", "pinion", plain::TALK, &GIGABYTE.to_string())?;
    let plan = json!({"children": [child]});
    let [mut ours, mut worked, mut plainly, mut peak] = [const { Samples::new() }; 4];
    for _ in 0..bench.rounds.ours.min(3) {
        plainly.add(bytes as f64 / read_plainly(bench, lines)?.as_secs_f64());
        let ran = fleet(bench, &plan)?;
        let seen = (ran.printed("lines"), ran.printed("bytes"));
        let kept = fs::metadata(ran.log("one"))?.len();
        if seen != (lines, bytes) || kept != bytes || ran.printed("noise") > 0 {
            return Err(
                format!("{lines} lines of {bytes} bytes came as {seen:?}, {kept} kept").into(),
            );
        }
        ours.add(bytes as f64 / ran.seen.wall.as_secs_f64());
        worked.add(bytes as f64 / ran.seen.processor.as_secs_f64());
        peak.add(ran.seen.peak as f64);
    }
    let share = ours.median() / plainly.median() * 100.0;
    bench.table.add(Row {
        what: format!(
            "fleet: 1 GiB of one child's lines ({} bytes each), read, parsed and stored",
            bytes / lines
        ),
        pinion: format!("{} a second of processor time", size(worked.median())),
        ratio: format!(
            "{} a second of wall time, {share:.0} % of a program that only reads and stores lines ({}); peak memory {}",
            size(ours.median()),
            size(plainly.median()),
            size(peak.largest())
        ),
        target: "> 300 MB".into(),
        met: Some(worked.median() > 300e6),
        ..Row::default()
    });
    Ok(())
}

/// Reads the same child line by line into a file, without parsing.
fn read_plainly(bench: &Bench, expected: u64) -> Fallible<Duration> {
    let home = bench.home()?;
    let begin = Instant::now();
    let mut child = plain::command(plain::TALK, &GIGABYTE.to_string())?
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().ok_or("no standard output")?;
    let mut reader = BufReader::with_capacity(128 * 1024, stdout);
    let mut log = BufWriter::with_capacity(128 * 1024, File::create(home.root().join("log"))?);
    let (mut line, mut lines) = (Vec::new(), 0);
    while reader.read_until(b'\n', &mut line)? > 0 {
        log.write_all(&line)?;
        line.clear();
        lines += 1;
    }
    log.flush()?;
    child.wait()?;
    if lines == expected {
        Ok(begin.elapsed())
    } else {
        Err(format!("{lines} lines were read of {expected}").into())
    }
}

fn task_plan(count: usize, script: &Value) -> Value {
    let child =
        |number| json!({"name": format!("c{number}"), "prompt": format!("offline: {script}")});
    json!({
        "defaults": {"isolation": "task", "model": "offline/demo"},
        "parallel": count,
        "children": (0..count).map(child).collect::<Vec<_>>(),
    })
}

fn tasks(bench: &mut Bench) -> Fallible<()> {
    // Long enough that all of them run at the same time.
    let paced = json!({"deltas": 400, "size": 12, "paceMs": 10});
    let busy = json!({"deltas": 2000, "size": 12});
    let [mut each, mut slowest, mut median, mut eager] = [const { Samples::new() }; 4];
    for _ in 0..bench.rounds.ours.min(3) {
        let few = fleet(bench, &task_plan(BASELINE_TASKS, &paced))?;
        let all = fleet(bench, &task_plan(TASKS, &paced))?;
        let grown = all.seen.peak.saturating_sub(few.seen.peak) as f64;
        each.add(grown / (TASKS - BASELINE_TASKS) as f64);
        let durations = all.durations();
        slowest.add(durations.largest());
        median.add(durations.median());
        let durations = fleet(bench, &task_plan(TASKS, &busy))?.durations();
        eager.add(durations.largest() / durations.median());
    }
    bench.table.add(Row {
        what: format!("fleet, {TASKS} children in one process: memory of each at the peak (RSS)"),
        pinion: format!("{:.0} kB", each.median() / 1e3),
        target: "< 500 KB".into(),
        met: Some(each.median() < 500e3),
        ..Row::default()
    });
    let ratio = slowest.median() / median.median();
    bench.table.add(Row {
        what: format!("fleet, {TASKS} children in one process: the slowest against the median"),
        pinion: times(ratio),
        ratio: format!(
            "{} against {}; as fast as they can {}",
            time(slowest.median()),
            time(median.median()),
            times(eager.median())
        ),
        target: "< 3×".into(),
        met: Some(ratio < 3.0 && eager.median() < 3.0),
        ..Row::default()
    });
    Ok(())
}

fn many(bench: &mut Bench) -> Fallible<()> {
    let plan = |count: usize| -> Fallible<Value> {
        let names = (0..count).map(|number| format!("c{number}"));
        let children = names
            .map(|name| program(&name, "jsonl", plain::COUNT, &LINES.to_string()))
            .collect::<Fallible<Vec<_>>>()?;
        Ok(json!({"parallel": PARALLEL, "children": children}))
    };
    let [mut wall, mut peak, mut fewer] = [const { Samples::new() }; 3];
    for _ in 0..bench.rounds.ours.min(3) {
        fewer.add(fleet(bench, &plan(CHILDREN / 10)?)?.seen.peak as f64);
        let ran = fleet(bench, &plan(CHILDREN)?)?;
        for number in 0..CHILDREN {
            let name = format!("c{number}");
            if fs::read(ran.log(&name))? != talk::counted(&name, LINES) {
                return Err(format!("the log of {name} is not what it printed").into());
            }
        }
        wall.add_time(ran.seen.wall);
        peak.add(ran.seen.peak as f64);
    }
    bench.table.add(Row {
        what: format!(
            "fleet, {} processes of {} lines, {PARALLEL} at a time: every log byte for byte; peak memory (RSS)",
            thousands(CHILDREN),
            thousands(LINES)
        ),
        pinion: size(peak.median()),
        ratio: format!(
            "{}; a tenth of the children {}",
            time(wall.median()),
            size(fewer.median())
        ),
        target: "complete, < 64 MB".into(),
        met: Some(peak.median() < 64e6),
        ..Row::default()
    });
    Ok(())
}

/// A gigabyte without the end of a line: noise, and text that could still become an answer.
fn endless(bench: &mut Bench) -> Fallible<()> {
    let mut peaks = Vec::new();
    let message = format!(r#"{GIGABYTE}:{{"type":"message_end","message":""#);
    for argument in [GIGABYTE.to_string(), message] {
        let mut child = program("one", "pinion", plain::FLOOD, &argument)?;
        child["retries"] = 0.into();
        // The child never reports the end of its run, which is not a failure here.
        child["agent"] = "jsonl".into();
        child["events"] = json!({"done": [], "text": ["message_end"]});
        let ran = fleet(bench, &json!({"children": [child]}))?;
        if (ran.printed("cut"), ran.printed("lines")) != (1, 1) {
            return Err("a line of 1 GiB was not cut".into());
        }
        peaks.push((ran.seen.peak as f64, ran.seen.wall));
    }
    let [(noise, wall), (held, _)] = peaks[..] else {
        return Err("no figures".into());
    };
    bench.table.add(Row {
        what: "fleet: a child that prints 1 GiB without a line's end; peak memory (RSS)".into(),
        pinion: size(noise),
        ratio: format!(
            "{}; where it could be an answer until the limit of 64 MiB {}",
            time(wall.as_secs_f64()),
            size(held)
        ),
        target: "< 40 MB".into(),
        met: Some(noise < 40e6),
        ..Row::default()
    });
    Ok(())
}
