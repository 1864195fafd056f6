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

/// So many damaged lines are named.
const MOST_TOLD: usize = 10;

/// Appends to a journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    next: u64,
}

/// What is in a journal.
#[derive(Debug, Default)]
pub struct Contents {
    /// Every record that can be read.
    pub records: Vec<Record>,
    /// What cannot be, in words.
    pub damage: Vec<String>,
}

/// The largest journal that is read, in bytes.
const LIMIT: u64 = 1 << 30;

impl Journal {
    /// Opens a journal, lays a torn end aside, and gives what is in it.
    pub fn open(path: &Path) -> io::Result<(Self, Contents)> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let mut file = pinion_files::open_with(&mut options, path)?;
        let mut bytes = Vec::new();
        (&file).take(LIMIT + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LIMIT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut torn = None;
        let good = match pinion_jsonl::tail::inspect(&bytes) {
            pinion_jsonl::tail::Tail::Whole => bytes.len(),
            pinion_jsonl::tail::Tail::Unterminated => {
                file.write_all(b"\n")?;
                bytes.len()
            }
            pinion_jsonl::tail::Tail::Torn { at } => {
                torn = Some(lay_aside(path, &bytes[at..])?);
                file.set_len(at as u64)?;
                at
            }
        };
        file.seek(io::SeekFrom::End(0))?;
        let mut contents = parse(&bytes[..good]);
        contents.damage.extend(torn);
        let last = contents.records.last();
        let next = last.map_or(1, |record: &Record| record.seq + 1);
        Ok((Self { file, next }, contents))
    }

    /// What is in a journal, without touching it. A last line without end may still be written.
    pub fn read(path: &Path) -> io::Result<Contents> {
        let bytes = pinion_files::read(path, LIMIT)?;
        let whole = match pinion_jsonl::tail::inspect(&bytes) {
            pinion_jsonl::tail::Tail::Torn { at } if bytes.last() != Some(&b'\n') => at,
            _ => bytes.len(),
        };
        Ok(parse(&bytes[..whole]))
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

/// Keeps a torn end beside its journal; says so.
fn lay_aside(path: &Path, torn: &[u8]) -> io::Result<String> {
    let mut name = path.as_os_str().to_owned();
    name.push(".torn");
    let mut options = OpenOptions::new();
    let name = Path::new(&name);
    let mut beside = pinion_files::open_with(options.append(true).create(true), name)?;
    beside.write_all(torn)?;
    if torn.last() != Some(&b'\n') {
        beside.write_all(b"\n")?;
    }
    Ok(format!(
        "the last line of the journal was torn; its {} bytes are in {}.torn",
        torn.len(),
        file_name(path)
    ))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The records in these bytes, and the lines that are none.
fn parse(bytes: &[u8]) -> Contents {
    let mut contents = Contents::default();
    let mut bad = Vec::new();
    let lines = bytes.split(|byte| *byte == b'\n');
    for (index, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(record) => contents.records.push(record),
            Err(_) => bad.push(index + 1),
        }
    }
    // Each in words of its own, so that one that was told is not told again when others follow.
    contents
        .damage
        .extend(bad.iter().take(MOST_TOLD).map(|line| {
            format!("line {line} of the journal cannot be read; what it said is missing here")
        }));
    if let Some(more) = bad.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        contents
            .damage
            .push(format!("{more} more lines of the journal cannot be read"));
    }
    contents
}

#[cfg(test)]
mod tests;
