//! Runs the measurements and writes the page of results.
//!
//! `PINION` and `MOCK_MODEL` name the binaries of this project, `PI` the script of the reference agent if there is one,
//! `CLEAN_BUILD_SECONDS` the time of a release build from nothing, if it was measured.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::Fallible;
use crate::agent::{Agent, Agents};
use crate::measure::{ALL, Bench, Rounds};
use crate::model::Model;
use crate::samples::{size, time};
use crate::table::{Row, Table, load, machine};

const USAGE: &str = "usage: pinion-bench [--quick] [--write FILE] [NAME…]";

/// The load above which other programs use the machine too much for valid results.
const IDLE_LOAD: f64 = 0.5;

/// Runs the measurements that the arguments name, or all of them.
pub fn run(arguments: &[String]) -> Fallible<()> {
    let mut rounds = Rounds {
        ours: 5,
        reference: 3,
        give_up: Duration::from_secs(60),
    };
    let mut page = None;
    let mut names = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => {
                rounds = Rounds {
                    ours: 1,
                    reference: 1,
                    give_up: Duration::from_secs(20),
                };
            }
            "--write" => page = Some(PathBuf::from(arguments.next().ok_or(USAGE)?)),
            name if ALL.iter().any(|(known, _)| *known == name) => names.push(name),
            _ => {
                let known: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
                return Err(format!("{USAGE}\nnames: {}", known.join(", ")).into());
            }
        }
    }
    let begin = Instant::now();
    let before = load();
    let (mut bench, who) = prepare(rounds)?;
    eprintln!("{} — {who} — load {before:.1}", machine());
    for (name, measure) in ALL {
        if !names.is_empty() && !names.contains(name) {
            continue;
        }
        eprintln!("{name} (after {} s)", begin.elapsed().as_secs());
        if let Err(error) = measure(&mut bench) {
            let pinion = error.to_string();
            bench.table.add(Row {
                what: (*name).into(),
                pinion,
                met: Some(false),
                ..Row::default()
            });
        }
    }
    build_facts(&mut bench.table)?;
    let missed = bench.table.missed().join("; ");
    let text = write_page(&bench.table, &who, rounds, before, begin.elapsed());
    match page {
        Some(path) => fs::write(path, text)?,
        None => eprint!("\n{text}"),
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("not kept: {missed}").into())
    }
}

fn prepare(rounds: Rounds) -> Fallible<(Bench, String)> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from);
    let pinion = variable("PINION").ok_or("PINION must name the pinion binary")?;
    let model = variable("MOCK_MODEL").ok_or("MOCK_MODEL must name the model server")?;
    let pi = variable("PI");
    let latest = variable("PI_LATEST_NODE").zip(variable("PI_LATEST"));
    let version = |command: &mut Command| {
        // Some programs print their version on standard error.
        let output = command.arg("--version").output().ok();
        output
            .map(|output| [output.stdout, output.stderr].concat())
            .map(|bytes| {
                let text = String::from_utf8_lossy(&bytes);
                text.trim().lines().next().unwrap_or_default().to_owned()
            })
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| "unknown".to_owned())
    };
    let who = match &pi {
        Some(script) => format!(
            "pi {} on node {}",
            version(Command::new("node").arg(script)),
            version(&mut Command::new("node"))
        ),
        None => "without pi, which could not be installed".to_owned(),
    };
    let agents = Agents {
        pinion: Agent::new("pinion", vec![pinion]),
        pi: pi.map(|script| Agent::new("pi", vec!["node".into(), script])),
        latest: latest.map(|(node, script)| {
            let version = version(Command::new(&node).arg(&script));
            (version, Agent::new("the newest pi", vec![node, script]))
        }),
    };
    let model = Model::start(&model)?;
    Ok((
        Bench {
            agents,
            model,
            table: Table::default(),
            rounds,
        },
        who,
    ))
}

fn build_facts(table: &mut Table) -> Fallible<()> {
    let binary = env::var_os("PINION").unwrap_or_default();
    let bytes = fs::metadata(binary)?.len() as f64;
    table.add(Row {
        what: "the binary".into(),
        pinion: size(bytes),
        target: "< 20 MB".into(),
        met: Some(bytes < 20e6),
        ..Row::default()
    });
    let seconds = env::var("CLEAN_BUILD_SECONDS")
        .ok()
        .and_then(|text| text.parse::<f64>().ok());
    if let Some(seconds) = seconds {
        let what = "release build from nothing".into();
        table.add(Row {
            what,
            pinion: time(seconds),
            ..Row::default()
        });
    }
    Ok(())
}

fn write_page(table: &Table, who: &str, rounds: Rounds, before: f64, took: Duration) -> String {
    let Rounds {
        ours, reference, ..
    } = rounds;
    let quiet = if before < IDLE_LOAD {
        ""
    } else {
        " **The machine was not idle: take ratios with care and times not at all.**"
    };
    format!(
        "# Results of `cargo xtask bench`\n\n\
         Written by `cargo xtask bench`; `README.md` describes the measurements. {machine}; {who}. Load \
         before the run {before:.1}.{quiet} Medians of {ours} interleaved runs ({reference} of pi, and \
         where one takes long); {took} s in all. Ratios are within this run.\n\n{table}",
        machine = machine(),
        took = took.as_secs(),
        table = table.markdown(),
    )
}
