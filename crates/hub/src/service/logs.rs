//! `GetLogs`: the stored lines of a clip's log, or of the hub's own, and on request the lines that follow.

use std::sync::Arc;

use jiff::Timestamp;
use pinion_access::{Caller, Method};
use pinion_clip::logs::{ClipLog, Followed, Level, LogEntry};
use pinion_connect::IncomingCall;
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
        let (name, log) = self.log_of(caller, &request)?;
        let tail = match request.tail {
            ..=0 => DEFAULT_TAIL,
            tail => tail.min(MAX_TAIL),
        };
        let tail = usize::try_from(tail).unwrap_or_default();
        let lowest_level = lowest_level_of(&request)?;
        let since = request.since_unix_ms;
        let wanted = move |entry: &LogEntry| {
            entry.level >= lowest_level && entry.time.as_millisecond() >= since
        };
        // The log may have to be read from files, which blocks.
        let recalling = tokio::task::spawn_blocking(move || log.recall(tail, wanted));
        let recalled = recalling.await;
        let (past, mut follower) =
            recalled.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        for entry in &past {
            call.answers.send(&log_entry(&name, entry)).await?;
        }
        drop(past);
        if !request.follow {
            return Ok(());
        }
        while let Some(followed) = follower.next().await {
            match followed {
                Followed::Line(entry) if wanted(&entry) => {
                    call.answers.send(&log_entry(&name, &entry)).await?;
                }
                Followed::Line(_) => {}
                Followed::Missed(count) => call.answers.send(&missed(&name, count)).await?,
            }
        }
        match self.log_of(caller, &request) {
            // The provider was lost, and more lines may follow when it reconnects.
            Err(failure) if failure.code == Code::Unavailable => Err(failure),
            _ => Ok(()),
        }
    }

    fn log_of(
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
