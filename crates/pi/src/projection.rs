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
pub struct Projection {
    form: Form,
    /// Events are not printed yet.
    quiet: bool,
}

#[derive(Debug)]
enum Form {
    Early(Early),
    Classic(Classic),
    Modern(Modern),
}

impl Projection {
    /// Creates a projection into `dialect`. `additions` affect the classic dialect only.
    pub fn new(dialect: Dialect, additions: Additions) -> Self {
        Self {
            form: match dialect {
                Dialect::Early => Form::Early(Early::default()),
                Dialect::Classic => Form::Classic(Classic::new(additions)),
                Dialect::Modern => Form::Modern(Modern::default()),
            },
            quiet: false,
        }
    }

    /// Prints no events before [`Out::Begun`] except faults: a client of pi 1.x does not read what extensions do to the
    /// session while it starts.
    pub fn quiet(self) -> Self {
        Self {
            quiet: matches!(self.form, Form::Modern(_)),
            ..self
        }
    }

    fn event(&mut self, event: &Event, records: &mut Records) {
        match &mut self.form {
            Form::Early(early) => early.event(event, records),
            Form::Classic(classic) => classic.event(event, records),
            Form::Modern(modern) => modern.event(event, records),
        }
    }

    fn delta(&mut self, index: usize, delta: &str, records: &mut Records) {
        match &mut self.form {
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
            Out::Begun => self.quiet = false,
            Out::Delta { .. } if self.quiet => {}
            Out::Event { event, .. } if self.quiet && !matches!(event, Event::Fault { .. }) => {}
            Out::Record(line) => records.push(&[&line]),
            Out::Delta { index, text, .. } => self.delta(index, text.as_str(), records),
            Out::Event { event, .. } => self.event(&event, records),
            Out::Printed { by, text } => {
                if let Form::Modern(modern) = &mut self.form {
                    modern.printed(&by, &text, records);
                }
            }
        }
    }
}
