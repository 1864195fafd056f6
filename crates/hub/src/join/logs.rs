//! What our clips say from now on, passed to the hub they are offered to.
//!
//! Answers go first: a line for which there is no room to spare is left out, and the next one that goes is preceded by how many were.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pinion_clip::logs::{ClipLog, Followed, Level};
use pinion_proto::hub::ProviderLog;
use pinion_proto::hub::provider_message::Payload as Said;
use tokio::task::AbortHandle;

use super::link::Outgoing;
use crate::convert::text;
use crate::queue::Queue;

/// Those who read along. They end with it.
#[derive(Debug)]
pub(super) struct Readers {
    queue: Arc<Queue<Outgoing>>,
    readers: BTreeMap<String, Reader>,
}

#[derive(Debug)]
struct Reader {
    log: Arc<ClipLog>,
    task: AbortHandle,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Readers {
    pub(super) fn new(queue: Arc<Queue<Outgoing>>) -> Self {
        Self {
            queue,
            readers: BTreeMap::new(),
        }
    }

    /// Reads these logs, each under the alias of its clip, and no others.
    pub(super) fn follow(&mut self, logs: BTreeMap<&str, Arc<ClipLog>>) {
        self.readers.retain(|alias, reader| {
            let log = logs.get(alias.as_str());
            log.is_some_and(|log| Arc::ptr_eq(log, &reader.log))
        });
        for (alias, log) in logs {
            let queue = &self.queue;
            self.readers.entry(alias.to_owned()).or_insert_with(|| {
                let reading = read(alias.to_owned(), log.clone(), queue.clone());
                let task = tokio::spawn(reading).abort_handle();
                Reader { log, task }
            });
        }
    }
}

async fn read(alias: String, log: Arc<ClipLog>, queue: Arc<Queue<Outgoing>>) {
    let mut follower = log.follow(0);
    let mut left_out = 0;
    while let Some(followed) = follower.next().await {
        let entry = match followed {
            Followed::Line(entry) => entry,
            Followed::Missed(count) => {
                left_out += count;
                continue;
            }
        };
        if !queue.has_room_to_spare() {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            let message = format!("{left_out} lines came faster than they were passed on");
            let now = Timestamp::now().as_millisecond();
            queue.push(line(&alias, Level::Warn, &message, now));
            left_out = 0;
        }
        let time = entry.time.as_millisecond();
        let said = line(&alias, entry.level, &entry.message, time);
        // There was room just now; who was faster has the better right to it.
        if queue.offer(said, entry.message.len()).is_err() {
            left_out += 1;
        }
    }
}

fn line(alias: &str, level: Level, message: &str, time: i64) -> Outgoing {
    Outgoing::from(Said::Log(ProviderLog {
        alias: text(alias),
        level: level.name().into(),
        message: text(message),
        timestamp_unix_ms: time,
    }))
}
