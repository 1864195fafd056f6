//! Collects the denials of one call.

use crate::{Denial, Level, Mode, Record, SandboxReport};

/// The most different denials of one call.
const MAX_RECORDS: usize = 64;

/// The denials of one call; equal ones are counted.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    records: Vec<Record>,
    more: u64,
}

impl Ledger {
    /// Adds a denial.
    pub fn add(&mut self, denial: Denial, program: Option<String>) {
        if let Some(known) = self.records.iter_mut().find(|known| known.denial == denial) {
            known.count += 1;
        } else if self.records.len() < MAX_RECORDS {
            let ask = denial.ask();
            self.records.push(Record {
                denial,
                count: 1,
                program,
                ask,
            });
        } else {
            self.more += 1;
        }
    }

    /// Returns the report; `None` if nothing was denied.
    pub fn report(self, mode: Mode, level: Level) -> Option<SandboxReport> {
        (!self.records.is_empty()).then_some(SandboxReport {
            mode,
            level,
            denied: self.records,
            more: self.more,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_denials_are_counted_and_many_are_left_out() {
        let mut ledger = Ledger::default();
        assert!(
            ledger
                .clone()
                .report(Mode::Workspace, Level::Landlock)
                .is_none()
        );
        for number in 0..70 {
            let path = format!("/etc/{number}");
            ledger.add(Denial::Write { path: path.clone() }, Some("sh".into()));
            ledger.add(Denial::Write { path }, None);
        }
        let report = ledger.report(Mode::Workspace, Level::Landlock).unwrap();
        assert_eq!(report.denied.len(), MAX_RECORDS);
        assert_eq!((report.denied[0].count, report.more), (2, 12));
        assert_eq!(report.denied[0].ask.as_deref(), Some("write:/etc/0"));
    }
}
