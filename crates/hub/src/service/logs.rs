//! `GetLogs`: what a clip, or the hub itself, has said; and, if wanted, what it says from now on.

use std::sync::Arc;

use jiff::Timestamp;
use pinion_access::{Caller, Method};
use pinion_clip::logs::{ClipLog, Followed, Level, LogEntry};
use pinion_connect::Call;
use pinion_proto::hub::{self as wire, GetLogsRequest};
use pinion_status::{Code, Failure};

use super::catalogue::named;
use crate::Hub;
use crate::convert::{log_entry, rank};

const DEFAULT_TAIL: i32 = 50;
const LONGEST_TAIL: i32 = 10_000;

impl Hub {
    pub(super) async fn get_logs(&self, caller: &Caller, mut call: Call) -> Result<(), Failure> {
        let request: GetLogsRequest = call.requests.message().await?;
        let (name, log) = self.log_of(caller, &request)?;
        let tail = match request.tail {
            ..=0 => DEFAULT_TAIL,
            tail => tail.min(LONGEST_TAIL),
        };
        let tail = usize::try_from(tail).unwrap_or_default();
        let least = match request.min_level.trim() {
            "" => Level::Debug,
            level => Level::parse(level),
        };
        let wanted = |entry: &LogEntry| {
            rank(entry.level) >= rank(least) && entry.time.as_millisecond() >= request.since_unix_ms
        };
        if !request.follow {
            for entry in log.tail(tail).iter().filter(|entry| wanted(entry)) {
                call.answers.send(&log_entry(&name, entry)).await?;
            }
            return Ok(());
        }
        let mut follower = log.follow(tail);
        while let Some(followed) = follower.next().await {
            match followed {
                Followed::Line(entry) if wanted(&entry) => {
                    call.answers.send(&log_entry(&name, &entry)).await?;
                }
                Followed::Line(_) => {}
                Followed::Missed(count) => call.answers.send(&missed(&name, count)).await?,
            }
        }
        Ok(())
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
            let message = format!("clip \"{}\" keeps no log", route.alias);
            Failure::new(Code::Unimplemented, message)
        })?;
        Ok((route.alias.clone(), log))
    }
}

fn missed(name: &str, count: u64) -> wire::LogEntry {
    wire::LogEntry {
        timestamp_unix_ms: Timestamp::now().as_millisecond(),
        clip_name: name.to_owned().into(),
        level: "warn".into(),
        message: format!("{count} lines came faster than they were read and are left out").into(),
        origin: "system".into(),
    }
}
