//! Prints events as lines in the dialect of the client.

use pinion_agent::Event;
use pinion_jsonl::{Project, Records};

use crate::classic::{Additions, Classic};
use crate::dialect::Dialect;
use crate::early::Early;
use crate::modern::Modern;
use crate::outgoing::Out;

/// Prints events in one dialect.
#[derive(Debug)]
pub struct Projection(Form);

#[derive(Debug)]
enum Form {
    Early(Early),
    Classic(Classic),
    Modern(Modern),
}

impl Projection {
    /// Creates a projection into `dialect`. `additions` affect the classic dialect only.
    pub fn new(dialect: Dialect, additions: Additions) -> Self {
        Self(match dialect {
            Dialect::Early => Form::Early(Early::default()),
            Dialect::Classic => Form::Classic(Classic::new(additions)),
            Dialect::Modern => Form::Modern(Modern::default()),
        })
    }

    fn event(&mut self, event: &Event, records: &mut Records) {
        match &mut self.0 {
            Form::Early(early) => early.event(event, records),
            Form::Classic(classic) => classic.event(event, records),
            Form::Modern(modern) => modern.event(event, records),
        }
    }

    fn delta(&mut self, index: usize, delta: &str, records: &mut Records) {
        match &mut self.0 {
            Form::Early(early) => early.delta(index, delta, records),
            Form::Classic(classic) => classic.delta(index, delta, records),
            Form::Modern(modern) => modern.delta(index, delta, records),
        }
    }
}

impl Project for Projection {
    type Item = Out;

    fn project(&mut self, item: Out, records: &mut Records) {
        match item {
            Out::Record(line) => records.push(&[&line]),
            Out::Delta { index, text, .. } => self.delta(index, text.as_str(), records),
            Out::Event { event, .. } => self.event(&event, records),
            Out::Printed { by, text } => {
                if let Form::Modern(modern) = &mut self.0 {
                    modern.printed(&by, &text, records);
                }
            }
        }
    }
}
