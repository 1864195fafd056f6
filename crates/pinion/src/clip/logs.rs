//! `clip logs`: the log of a clip or of the hub.

use std::io::IsTerminal;
use std::process::ExitCode;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pinion_proto::Message;
use pinion_proto::hub::{GetLogsRequest, LogEntry};

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller};
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless_line;

const DEFAULT_TAIL: i32 = 50;

pub(super) const VERB: Verb = Verb::new("pinion clip", &tables::clip::LOGS, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let alias = match (line.words.as_slice(), line.has("--system")) {
        ([alias], false) => alias.clone(),
        ([], true) => String::new(),
        _ => return Err(line.wrong("name a clip, or use --system for the hub itself")),
    };
    let tail = line.parsed("--tail", "a number of lines")?;
    // `--tail 0` asks for no past lines, but the hub treats 0 as its own default.
    let since = match tail {
        Some(0) => Timestamp::now().as_millisecond(),
        _ => 0,
    };
    let request = GetLogsRequest {
        clip_name: alias.into(),
        tail: tail.unwrap_or(DEFAULT_TAIL),
        since_unix_ms: since,
        follow: line.has("--follow"),
        min_level: line.value("--level").unwrap_or_default().to_owned().into(),
        system: line.has("--system"),
    };
    let caller = Caller::of(line)?;
    let json = line.has("--json");
    caller::wait(async {
        let mut entries = caller.follow("GetLogs", &request).await?;
        loop {
            let entry: Option<LogEntry> = entries.next().await.map_err(|it| caller.explain(it))?;
            let Some(entry) = entry else {
                return Ok(ExitCode::SUCCESS);
            };
            out(&if json {
                entry.to_json() + "\n"
            } else {
                text(&entry)
            })?;
        }
    })
}

fn text(entry: &LogEntry) -> String {
    let time = Timestamp::from_millisecond(entry.timestamp_unix_ms).unwrap_or_default();
    let time = time.to_zoned(TimeZone::system());
    let time = time.strftime("%Y-%m-%d %H:%M:%S%.3f");
    let message = if std::io::stdout().is_terminal() {
        harmless_line(&entry.message)
    } else {
        entry.message.to_string()
    };
    format!("{time} {:5} {message}\n", entry.level.as_str())
}
