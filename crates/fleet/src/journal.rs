//! The journal of a run: its numbered events, written to disk before observers receive them.
//!
//! `events.jsonl` has one [`Record`] per line. The state of a run is computed from it alone; see `state.rs`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentKind, BreakerState, ChildFailure, ClockReadings, Counts, FinishReason, Isolation, Micros,
    Tokens,
};

/// One line of the journal.
///
/// ```json
/// {"seq":7,"time":"2026-11-16T10:42:20.123Z","type":"child_step","child":"security","attempt":1,"step":1,…}
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The number of the record, from 1 without gaps.
    pub seq: u64,
    /// The time in UTC.
    pub time: String,
    #[serde(flatten)]
    pub event: FleetEvent,
}

/// The result of an attempt or of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It completed its work.
    Finished,
    /// It failed.
    Failed,
    /// The run ended first.
    Stopped,
}

/// A child as the plan describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Planned")]
pub struct PlannedChild {
    pub name: String,
    /// The program that the child runs.
    pub agent: AgentKind,
    pub isolation: Isolation,
    /// The tier of its models.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tier: Option<String>,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum FleetEvent {
    /// The run started.
    RunStarted {
        /// The run's id.
        run: String,
        /// The plan's name.
        plan: String,
        /// The children, the judge last.
        children: Vec<PlannedChild>,
        /// The budget of the whole run, in millionths of a dollar.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        budget_micros: Option<Micros>,
    },
    /// A later process continued the run with the children that had not finished.
    RunResumed {
        /// The children that run again.
        children: Vec<String>,
    },
    /// An attempt started.
    ChildStarted {
        /// The child's name.
        child: String,
        /// The number of the attempt, from 1; a resumed run continues the numbers.
        attempt: u32,
        /// The model; absent if the agent chooses.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// The attempt is the probe of a model after its cooldown.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        probe: bool,
    },
    /// A child used a tool.
    ChildTool {
        /// The child's name.
        child: String,
        /// The number of the attempt.
        attempt: u32,
        /// The tool's name.
        tool: String,
    },
    /// A request to a model ended.
    ChildStep {
        /// The child's name.
        child: String,
        /// The number of the attempt.
        attempt: u32,
        /// The number of the step within the attempt, from 1.
        step: u32,
        reason: FinishReason,
        /// The tokens of this request.
        tokens: Tokens,
        /// The cost of this request, in millionths of a dollar.
        cost_micros: Micros,
        priced: Priced,
        /// The cost of the child so far, including this request and all earlier attempts.
        child_total_micros: Micros,
        /// The cost of the run so far.
        run_total_micros: Micros,
    },
    /// A child printed nothing for a while.
    ChildQuiet {
        /// The child's name.
        child: String,
        /// The number of the attempt.
        attempt: u32,
        /// The time without output.
        seconds: u64,
    },
    /// An attempt ended.
    AttemptEnded {
        /// The child's name.
        child: String,
        /// The number of the attempt.
        attempt: u32,
        outcome: Outcome,
        /// The cause, unless the attempt finished.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        failure: Option<ChildFailure>,
        /// The child may have changed files or other state outside of itself.
        changed: bool,
        /// Counts of the printed lines.
        printed: Counts,
        /// The times of the last output, event and progress.
        clocks: ClockReadings,
        /// The duration of the attempt.
        duration_ms: u64,
        /// The log of the output, relative to the run's directory.
        log: String,
        /// The child's own name for its session.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        session: Option<String>,
    },
    /// A child ended; it runs again only if the run is resumed.
    ChildEnded {
        /// The child's name.
        child: String,
        outcome: Outcome,
        /// The cause, unless the child finished.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        failure: Option<ChildFailure>,
        /// The child's answer.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        result: Option<String>,
        /// The child's answer as JSON, if the plan requires JSON.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        output: Option<Value>,
    },
    /// The breaker of a model changed its state.
    Breaker {
        model: String,
        /// The new state.
        state: BreakerState,
    },
    /// The run continues in spite of a problem.
    Warning {
        /// A description of the problem for people.
        message: String,
    },
    /// The run ended.
    RunEnded {
        status: crate::RunStatus,
        exit_code: u8,
    },
}

/// The source of the cost of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priced {
    /// The child reported it.
    Reported,
    /// The fleet computed it from the known prices of the model.
    Estimated,
    /// The cost is unknown and counted as zero.
    Unknown,
}

/// The number of damaged lines that get a warning of their own.
const MAX_DAMAGE_WARNINGS: usize = 10;

/// Appends to a journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    next: u64,
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub struct JournalContents {
    /// The valid records.
    pub records: Vec<Record>,
    /// Messages about the lines that are not valid.
    pub damage: Vec<String>,
}

/// The largest journal that is read, in bytes.
const JOURNAL_LIMIT: u64 = 1 << 30;

impl Journal {
    /// Opens a journal for appending and returns its contents. A torn last line is moved to a file beside it.
    pub fn open(path: &Path) -> io::Result<(Self, JournalContents)> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let mut file = pinion_files::open_with(&mut options, path)?;
        let mut bytes = Vec::new();
        (&file).take(JOURNAL_LIMIT + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > JOURNAL_LIMIT {
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
                torn = Some(save_torn_end(path, &bytes[at..])?);
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

    /// Reads a journal without changing it. A last line without a newline is ignored: its writer may not be done.
    pub fn read(path: &Path) -> io::Result<JournalContents> {
        let bytes = pinion_files::read(path, JOURNAL_LIMIT)?;
        let whole = match pinion_jsonl::tail::inspect(&bytes) {
            pinion_jsonl::tail::Tail::Torn { at } if bytes.last() != Some(&b'\n') => at,
            _ => bytes.len(),
        };
        Ok(parse(&bytes[..whole]))
    }

    /// Writes one event and returns its record and its line, without the newline.
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

    /// Waits until all records are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Stores a torn last line in a file beside the journal, and returns a message about it.
fn save_torn_end(path: &Path, torn: &[u8]) -> io::Result<String> {
    let name = pinion_files::beside(path, ".torn");
    let mut options = OpenOptions::new();
    let mut beside = pinion_files::open_with(options.append(true).create(true), &name)?;
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

/// Parses all lines, and describes those that are not valid records.
fn parse(bytes: &[u8]) -> JournalContents {
    let mut contents = JournalContents::default();
    let mut bad = Vec::new();
    let lines = bytes.split(|byte| *byte == b'\n');
    for (index, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(record) => contents.records.push(record),
            Err(_) => bad.push(index + 1),
        }
    }
    // One message per line: a warning that is already in the journal is not repeated when further lines are damaged.
    contents
        .damage
        .extend(bad.iter().take(MAX_DAMAGE_WARNINGS).map(|line| {
            format!("line {line} of the journal cannot be read; its event is missing here")
        }));
    if let Some(more) = bad
        .len()
        .checked_sub(MAX_DAMAGE_WARNINGS)
        .filter(|more| *more > 0)
    {
        contents
            .damage
            .push(format!("{more} more lines of the journal cannot be read"));
    }
    contents
}

#[cfg(test)]
mod tests;
