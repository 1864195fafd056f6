//! Forwarding new log lines of the offered clips to the other hub.
//!
//! Answers have precedence: a line is dropped while less than half of the queue is free, and the next line that is sent
//! is preceded by the number of dropped lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pinion_clip::logs::{ClipLog, Followed, Level};
use pinion_proto::hub::ProviderLog;
use pinion_proto::hub::provider_message::Payload as ToHub;
use tokio::task::AbortHandle;

use super::link::Outgoing;
use crate::convert::text;
use crate::queue::Queue;

/// The tasks that read the logs. They end when this is dropped.
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

    /// Reads these logs, by the aliases of their clips, and stops reading all others.
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
    let mut dropped = 0;
    while let Some(followed) = follower.next().await {
        let entry = match followed {
            Followed::Line(entry) => entry,
            Followed::Missed(count) => {
                dropped += count;
                continue;
            }
        };
        if !queue.has_room_to_spare() {
            dropped += 1;
            continue;
        }
        if dropped > 0 {
            let message = format!(
                "{dropped} lines were dropped because they arrived faster than they could be sent"
            );
            let now = Timestamp::now().as_millisecond();
            queue.push(line(&alias, Level::Warn, &message, now));
            dropped = 0;
        }
        let time = entry.time.as_millisecond();
        let message_line = line(&alias, entry.level, &entry.message, time);
        // There was room just now, but another sender may have used it.
        if queue.offer(message_line, entry.message.len()).is_err() {
            dropped += 1;
        }
    }
}

fn line(alias: &str, level: Level, message: &str, time: i64) -> Outgoing {
    Outgoing::from(ToHub::Log(ProviderLog {
        alias: text(alias),
        level: level.name().into(),
        message: text(message),
        timestamp_unix_ms: time,
    }))
}
