//! What happens in a run, numbered, on disk before anybody hears of it.
//!
//! `events.jsonl` has one [`Record`] per line. What a run is and was follows from it alone; see `state.rs`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentKind, BreakerState, ChildFailure, ClockReadings, Counts, Isolation, Micros, Reason, Tokens,
};

/// One line of the journal.
///
/// ```json
/// {"seq":7,"time":"2026-11-16T10:42:20.123Z","type":"child_step","child":"security","attempt":1,"step":1,…}
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Counts from 1, without gaps.
    pub seq: u64,
    /// When, in UTC.
    pub time: String,
    /// What.
    #[serde(flatten)]
    pub event: FleetEvent,
}

/// How an attempt or a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was asked.
    Finished,
    /// It did not.
    Failed,
    /// The run ended first.
    Stopped,
}

/// A child as a run begins with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// What it is.
    pub agent: AgentKind,
    /// Where it runs.
    pub isolation: Isolation,
    /// The tier of its models.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tier: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum FleetEvent {
    /// A run begins.
    RunStarted {
        /// Its id.
        run: String,
        /// The plan's name.
        plan: String,
        /// The children, the judge last.
        children: Vec<Planned>,
        /// Money for everything.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        budget_micros: Option<Micros>,
    },
    /// A run goes on with what was not finished.
    RunResumed {
        /// The children that run again.
        children: Vec<String>,
    },
    /// An attempt begins.
    ChildStarted {
        /// Which child.
        child: String,
        /// Counts from 1 over the life of the run.
        attempt: u32,
        /// On which model; missing where the agent chooses.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// Whether it tries a model after its cooldown.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        probe: bool,
    },
    /// A tool is used.
    ChildTool {
        /// Which child.
        child: String,
        /// Which attempt.
        attempt: u32,
        /// The tool.
        tool: String,
    },
    /// A request to a model is over.
    ChildStep {
        /// Which child.
        child: String,
        /// Which attempt.
        attempt: u32,
        /// Counts from 1 in the attempt.
        step: u32,
        /// Why the answer ended.
        reason: Reason,
        /// What this request took.
        tokens: Tokens,
        /// What this request cost.
        cost_micros: Micros,
        /// Whether anybody knows the cost.
        priced: Priced,
        /// What the child has cost so far, this request and all attempts before included.
        child_total_micros: Micros,
        /// What the run has cost so far.
        run_total_micros: Micros,
    },
    /// Nothing came for a while.
    ChildQuiet {
        /// Which child.
        child: String,
        /// Which attempt.
        attempt: u32,
        /// For how long.
        seconds: u64,
    },
    /// An attempt is over.
    AttemptEnded {
        /// Which child.
        child: String,
        /// Which attempt.
        attempt: u32,
        /// How it ended.
        outcome: Outcome,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        failure: Option<ChildFailure>,
        /// Whether it may have changed something outside.
        changed: bool,
        /// What it printed.
        printed: Counts,
        /// When it was last heard of.
        clocks: ClockReadings,
        /// How long it took.
        duration_ms: u64,
        /// The file with what it printed, in the run's directory.
        log: String,
        /// What the child calls its session.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        session: Option<String>,
    },
    /// A child is over, for this time.
    ChildEnded {
        /// Which child.
        child: String,
        /// How.
        outcome: Outcome,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        failure: Option<ChildFailure>,
        /// Its answer.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        result: Option<String>,
        /// Its answer as JSON, where the plan asks for that.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        output: Option<Value>,
    },
    /// A model is left alone, tried, or trusted again.
    Breaker {
        /// The model.
        model: String,
        /// What its breaker is now.
        state: BreakerState,
    },
    /// Something is not as it should be, and the run goes on all the same.
    Warning {
        /// What it is.
        message: String,
    },
    /// The run is over.
    RunEnded {
        /// How.
        status: crate::RunStatus,
        /// The exit code.
        exit_code: u8,
    },
}

/// Whether anybody knows what a step cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priced {
    /// The child said so.
    Reported,
    /// The prices of the model are known.
    Estimated,
    /// Nobody; it is counted as nothing.
    Unknown,
}

/// Appends to a journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    next: u64,
}

impl Journal {
    /// Opens a journal, takes a torn end away, and gives what is in it.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<Record>)> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let good = match pinion_jsonl::tail::inspect(&bytes) {
            pinion_jsonl::tail::Tail::Whole => bytes.len(),
            pinion_jsonl::tail::Tail::Unterminated => {
                file.write_all(b"\n")?;
                bytes.len()
            }
            pinion_jsonl::tail::Tail::Torn { at } => {
                file.set_len(at as u64)?;
                at
            }
        };
        file.seek(io::SeekFrom::End(0))?;
        let records = parse(&bytes[..good]);
        let next = records.last().map_or(1, |record: &Record| record.seq + 1);
        Ok((Self { file, next }, records))
    }

    /// What is in a journal, without touching it.
    pub fn read(path: &Path) -> io::Result<Vec<Record>> {
        Ok(parse(&std::fs::read(path)?))
    }

    /// Writes one event down and gives its record and line (without LF).
    pub fn append(&mut self, event: FleetEvent) -> io::Result<(Record, Vec<u8>)> {
        let record = Record {
            seq: self.next,
            time: format!("{:.3}", Timestamp::now()),
            event,
        };
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        line.pop();
        self.next += 1;
        Ok((record, line))
    }

    /// Waits until everything is on the disk itself.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The records in these bytes; a line nobody understands is passed over.
fn parse(bytes: &[u8]) -> Vec<Record> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(index: usize) -> FleetEvent {
        FleetEvent::ChildTool {
            child: format!("c{index}"),
            attempt: 1,
            tool: "bash".into(),
        }
    }

    #[test]
    fn a_cut_anywhere_costs_the_last_record_only_and_numbers_go_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let (mut journal, _) = Journal::open(&path).unwrap();
        for index in 0..3 {
            journal.append(event(index)).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, records) = Journal::open(&path).unwrap();
            let complete = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            let unterminated = whole.get(cut) == Some(&b'\n');
            assert_eq!(
                records.len(),
                complete + usize::from(unterminated),
                "cut at {cut}"
            );
            journal.append(event(9)).unwrap();
            let again = Journal::read(&path).unwrap();
            let numbers: Vec<u64> = again.iter().map(|record| record.seq).collect();
            let expected: Vec<u64> = (1..=records.len() as u64 + 1).collect();
            assert_eq!(numbers, expected, "cut at {cut}");
        }
    }
}
