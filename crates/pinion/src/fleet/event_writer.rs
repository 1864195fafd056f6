//! `fleet run --output jsonl`: every event as a line of JSON for a program.

use pinion_fleet::{FleetEvent, Observer, Record, RunState};
use pinion_jsonl::Queue;
use pinion_pi::Out;

/// Writes every event as a line on standard output.
#[derive(Debug)]
pub(super) struct EventWriter {
    queue: Queue<Out>,
}

impl EventWriter {
    pub fn new(queue: Queue<Out>) -> Self {
        Self { queue }
    }
}

impl Observer for EventWriter {
    fn notice(&self, record: &Record, line: &[u8], _state: &RunState) {
        let is_progress = matches!(
            record.event,
            FleetEvent::ChildTool { .. } | FleetEvent::ChildQuiet { .. }
        );
        // A reader that is behind can miss progress; the journal has it.
        if is_progress && !self.queue.has_room() {
            return;
        }
        let mut line = line.to_vec();
        line.push(b'\n');
        self.queue.push(Out::Record(line));
    }
}
