//! `GetLogs`: the stored lines of a clip's log, or of the hub's own, and on request the lines that follow.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use jiff::Timestamp;
use pinion_access::{Caller, Method};
use pinion_clip::CallError;
use pinion_clip::logs::{ClipLog, Followed, Follower, Level, LogEntry};
use pinion_connect::IncomingCall;
use pinion_proto::Binary;
use pinion_proto::hub::{self as wire, GetLogsRequest};
use pinion_status::{Code, Failure};

use super::catalogue::named;
use crate::Hub;
use crate::convert::log_entry;

const DEFAULT_TAIL: i32 = 50;
const MAX_TAIL: i32 = 10_000;

impl Hub {
    pub(super) async fn get_logs(
        &self,
        caller: &Caller,
        mut call: IncomingCall,
    ) -> Result<(), Failure> {
        let request: GetLogsRequest = call.requests.message().await?;
        if !request.system {
            let route = self.find(caller, Method::GetLogs, named(&request.clip_name)?)?;
            if let Some(mut lines) = self.remote_logs(caller, &route, &request) {
                while let Some(line) = lines.next().await {
                    let line = line.map_err(CallError::into_failure)?;
                    call.answers.send(&decoded(line)?).await?;
                }
                return Ok(());
            }
        }
        let (name, log) = self.log_of(caller, &request)?;
        let mut lines = LogLines::open(name, log, &request).await?;
        while let Some(entry) = lines.next().await {
            call.answers.send(&entry).await?;
        }
        if !request.follow {
            return Ok(());
        }
        match self.log_of(caller, &request) {
            // The provider was lost, and more lines may follow when it reconnects.
            Err(failure) if failure.code == Code::Unavailable => Err(failure),
            _ => Ok(()),
        }
    }

    pub(crate) fn log_of(
        &self,
        caller: &Caller,
        request: &GetLogsRequest,
    ) -> Result<(String, Arc<ClipLog>), Failure> {
        if request.system {
            caller.may_read_system_log()?;
            return Ok((String::new(), self.log().clone()));
        }
        let route = self.find(caller, Method::GetLogs, named(&request.clip_name)?)?;
        let log = route.endpoint.log().ok_or_else(|| {
            let message = format!("clip \"{}\" has no log", route.alias);
            Failure::new(Code::Unimplemented, message)
        })?;
        Ok((route.alias.clone(), log))
    }
}

/// The lines of a log that a request asks for.
pub(crate) struct LogLines {
    name: String,
    past: std::vec::IntoIter<LogEntry>,
    /// The lines that follow, if the request asks for them.
    follower: Option<Follower>,
    lowest_level: Level,
    since: i64,
}

impl LogLines {
    /// Reads the stored lines, and follows the log if the request asks for it.
    pub(crate) async fn open(
        name: String,
        log: Arc<ClipLog>,
        request: &GetLogsRequest,
    ) -> Result<Self, Failure> {
        let tail = match request.tail {
            ..=0 => DEFAULT_TAIL,
            tail => tail.min(MAX_TAIL),
        };
        let tail = usize::try_from(tail).unwrap_or_default();
        let lowest_level = lowest_level_of(request)?;
        let since = request.since_unix_ms;
        let wanted = move |entry: &LogEntry| is_wanted(entry, lowest_level, since);
        // The log may have to be read from files, which blocks.
        let recalling = tokio::task::spawn_blocking(move || log.recall(tail, wanted));
        let recalled = recalling.await;
        let (past, follower) =
            recalled.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        Ok(Self {
            name,
            past: past.into_iter(),
            follower: request.follow.then_some(follower),
            lowest_level,
            since,
        })
    }

    /// Returns the next line; `None` at the end of the log.
    pub(crate) async fn next(&mut self) -> Option<wire::LogEntry> {
        if let Some(entry) = self.past.next() {
            return Some(log_entry(&self.name, &entry));
        }
        loop {
            match self.follower.as_mut()?.next().await? {
                Followed::Line(entry) if is_wanted(&entry, self.lowest_level, self.since) => {
                    return Some(log_entry(&self.name, &entry));
                }
                Followed::Line(_) => {}
                Followed::Missed(count) => return Some(missed(&self.name, count)),
            }
        }
    }
}

fn is_wanted(entry: &LogEntry, lowest_level: Level, since: i64) -> bool {
    entry.level >= lowest_level && entry.time.as_millisecond() >= since
}

fn decoded(line: Bytes) -> Result<wire::LogEntry, Failure> {
    wire::LogEntry::decode(line).map_err(|error| Failure::new(Code::Internal, error.to_string()))
}

/// Returns the lowest level that a request asks for.
fn lowest_level_of(request: &GetLogsRequest) -> Result<Level, Failure> {
    match request.min_level.trim() {
        "" => Ok(Level::Debug),
        level => Level::named(level).ok_or_else(|| {
            let message = format!("unknown min_level \"{level}\"; use debug, info, warn or error");
            Failure::invalid(message)
        }),
    }
}

fn missed(name: &str, count: u64) -> wire::LogEntry {
    wire::LogEntry {
        timestamp_unix_ms: Timestamp::now().as_millisecond(),
        clip_name: name.to_owned().into(),
        level: "warn".into(),
        message: format!(
            "{count} lines were dropped because they arrived faster than they were read"
        )
        .into(),
        origin: "system".into(),
    }
}
