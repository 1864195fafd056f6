//! Kills at random moments: of the fleet, of its children. Nothing that was reported is lost, nothing is done twice,
//! nothing is left behind.
//!
//! Each round has a seed, which a failure prints; `PINION_TEST_SEED=n` runs that one alone. `PINION_TEST_ROUNDS=n` sets
//! the number of rounds.

use std::collections::HashMap;
use std::fs;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::stage::{Ran, Stage, events, is_alive, script, wait_until};
use crate::support::{Random, script as offline};

/// Number of rounds that run at the same time.
const TABLES: u64 = 4;

/// Returns the seeds to run: the one of the environment, or new ones.
fn seeds(usual: u64) -> Vec<u64> {
    let named = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    if let Some(seed) = named("PINION_TEST_SEED") {
        return vec![seed];
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let first = u64::from(now.unwrap().subsec_nanos()) + 1;
    (first..first + named("PINION_TEST_ROUNDS").unwrap_or(usual)).collect()
}

/// Returns a plan of three processes, two tasks and a judge.
fn plan() -> String {
    let body = r#"echo $$ >> pids; sleep 0.0$((RANDOM % 9)); echo "$PINION_FLEET_CHILD" >> done; echo '{"type":"step","cost":0.01}'; echo '{"type":"text","text":"ok"}'; echo '{"type":"done"}'"#;
    let task = |name: &str| {
        let prompt = offline(
            &json!({"text": "a few words in a few pieces, please", "chunk": 4, "paceMs": 8}),
        );
        let child =
            json!({"name": name, "prompt": prompt, "isolation": "task", "model": "offline/demo"});
        format!("  - {child}\n")
    };
    let judge = json!({"prompt": "judge", "agent": "jsonl", "command": ["bash", "-c", body]});
    format!(
        "parallel: 2\nchildren:\n{}{}{}{}{}judge: {judge}\n",
        script("c0", body),
        task("c1"),
        script("c2", body),
        task("c3"),
        script("c4", body)
    )
}

const CHILDREN: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "judge"];

/// Kills a fleet after `delay` and returns the whole lines that it printed.
fn kill_after(fleet: Child, delay: Duration) -> Vec<Value> {
    // The moment of the kill is random.
    thread::sleep(delay);
    let _ = kill(Pid::from_raw(fleet.id() as i32), Signal::SIGKILL);
    let output = fleet.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The state of a round when it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Before there was anything to resume.
    Before,
    Within,
    /// After its end.
    After,
}

/// Runs one round: a run is killed up to three times, then left alone.
fn play(seed: u64, length: Duration) -> Moment {
    let mut random = Random::new(seed);
    let mut delay = || Duration::from_micros(random.below(length.as_micros() as u64 * 11 / 10));
    let stage = Stage::offline();
    let directory = stage.run_dir().display().to_string();
    let mut told = kill_after(stage.start(&plan(), &["--output", "jsonl"]), delay());
    let kept = events(&stage.run_dir());
    if kept.is_empty() {
        assert!(
            told.is_empty(),
            "seed {seed}: {told:?} was told and is lost"
        );
        return Moment::Before;
    }
    let moment = match kept.iter().any(|event| event["type"] == "run_ended") {
        true => Moment::After,
        false => Moment::Within,
    };
    for _ in 0..seed % 3 {
        let mut command = stage.command(&["fleet", "resume", &directory, "--output", "jsonl"]);
        let mut fleet = command.spawn().unwrap();
        drop(fleet.stdin.take());
        told.extend(kill_after(fleet, delay()));
    }
    let ran = stage.verb(&["resume", &directory]);
    assert_eq!(ran.code, Some(0), "seed {seed}: {}", ran.stderr);
    check(&stage, &ran, &told, seed);
    moment
}

fn check(stage: &Stage, ran: &Ran, told: &[Value], seed: u64) {
    let kept = events(&stage.run_dir());
    for event in told {
        assert!(
            kept.contains(event),
            "seed {seed}: {event} was told and is lost"
        );
    }
    let numbers = kept.iter().map(|event| event["seq"].as_u64().unwrap());
    assert!(numbers.eq(1..=kept.len() as u64), "seed {seed}: {kept:#?}");
    // Every child finishes once, and none starts after that.
    let mut finished: HashMap<&str, usize> = HashMap::new();
    for event in &kept {
        let child = event["child"].as_str().unwrap_or_default();
        if event["type"] == "child_started" {
            assert!(!finished.contains_key(child), "seed {seed}: {child} again");
        }
        if event["type"] == "child_ended" && event["outcome"] == "finished" {
            *finished.entry(child).or_default() += 1;
        }
    }
    for child in CHILDREN {
        assert_eq!(finished.get(child), Some(&1), "seed {seed}: {child}");
    }
    let report = ran.report();
    let children = report["children"].as_array().unwrap().iter();
    let costs = children
        .chain([&report["judge"]])
        .map(|child| child["totalCostMicros"].as_u64().unwrap());
    assert_eq!(report["totalCostMicros"], costs.sum::<u64>(), "seed {seed}");
    let steps = kept.iter().filter(|event| event["type"] == "child_step");
    let steps = steps.map(|step| step["costMicros"].as_u64().unwrap());
    assert_eq!(report["totalCostMicros"], steps.sum::<u64>(), "seed {seed}");
    let pids = fs::read_to_string(stage.sandbox.work().join("pids")).unwrap();
    for pid in pids.lines().map(|pid| pid.parse::<i32>().unwrap()) {
        wait_until("the end of a child", || !is_alive(pid));
    }
}

#[test]
fn d4_l8_a_fleet_that_is_killed_at_any_moment_goes_on() {
    let begin = Instant::now();
    let stage = Stage::offline();
    let ran = stage.run(&plan());
    let length = begin.elapsed();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let seeds = seeds(25);
    let moments: Vec<Moment> = thread::scope(|scope| {
        let tables: Vec<_> = (0..TABLES)
            .map(|table| {
                let seeds = seeds.iter().filter(move |seed| *seed % TABLES == table);
                scope.spawn(move || seeds.map(|seed| play(*seed, length)).collect::<Vec<_>>())
            })
            .collect();
        tables
            .into_iter()
            .flat_map(|table| table.join().unwrap())
            .collect()
    });
    let count = |wanted| moments.iter().filter(|moment| **moment == wanted).count();
    println!(
        "{} rounds: {} before the first event, {} in the middle, {} after the end",
        moments.len(),
        count(Moment::Before),
        count(Moment::Within),
        count(Moment::After)
    );
    assert!(
        seeds.len() < 10 || count(Moment::Within) > seeds.len() / 4,
        "too few were about anything: {moments:?}"
    );
}

/// Returns the first lines that the children below print; they never stop by themselves.
fn ticks(lines: usize) -> String {
    (0..lines)
        .map(|number| format!("{{\"type\":\"tick\",\"number\":{number}}}\n"))
        .collect()
}

#[test]
fn children_that_are_killed_at_any_moment_cost_at_most_a_line() {
    // A line comes in two pieces with a pause between them, so that most kills are in the middle of one.
    let body = r#"echo $$ > "pid-$PINION_FLEET_CHILD"; i=0; while true; do printf '{"type":"tick",'; sleep 0.003; printf '"number":%d}\n' $i; i=$((i + 1)); done"#;
    let seeds = seeds(24);
    let stage = Stage::offline();
    let scripts: String = seeds
        .iter()
        .map(|seed| script(&format!("c{seed}"), body))
        .collect();
    let fleet = stage.start(
        &format!("defaults: {{ retries: 0 }}\nparallel: 8\nchildren:\n{scripts}"),
        &[],
    );
    // In the order in which they begin; those behind them wait for their places.
    for seed in &seeds {
        let file = stage.sandbox.work().join(format!("pid-c{seed}"));
        let pid = || fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok();
        wait_until("a child", || pid().is_some());
        thread::sleep(Duration::from_micros(Random::new(*seed).below(30_000)));
        kill(Pid::from_raw(pid().unwrap()), Signal::SIGKILL).unwrap();
    }
    let ran = stage.wait(fleet);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let expected = ticks(100_000);
    let mut torn = 0;
    for seed in &seeds {
        let name = format!("c{seed}");
        let child = ran.child(&name);
        assert_eq!(child["failure"]["signal"], 9, "{child:#}");
        let log = String::from_utf8(ran.log(&format!("{name}.jsonl"))).unwrap();
        assert!(expected.starts_with(&log), "{name}: {log:?}");
        let printed = &child["attempts"][0]["printed"];
        let is_torn = u64::from(!log.is_empty() && !log.ends_with('\n'));
        assert_eq!(printed["truncated"], is_torn, "{name}: {log:?}");
        assert_eq!(printed["lines"], log.lines().count(), "{name}");
        torn += is_torn;
    }
    assert!(
        seeds.len() < 10 || torn > 0,
        "no kill was in the middle of a line"
    );
}
