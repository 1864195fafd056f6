//! What one PDF may cost. Files can ask for endless work in a few bytes: streams that inflate a
//! thousandfold, forms that draw each other, a million headers before one long string. All of it is
//! paid from here, in steps and not in seconds, so that the same file always ends the same way.

use std::cell::Cell;

/// Steps that may be spent for each byte that may be unpacked.
const STEPS_PER_BYTE: u64 = 8;

/// The file asks for more than it may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

/// What is left.
#[derive(Debug)]
pub(super) struct Budget {
    steps: Cell<u64>,
    held: Cell<usize>,
    /// The most bytes one stream may unpack to.
    pub(super) stream: usize,
}

impl Budget {
    pub(super) fn new(unpacked: usize) -> Self {
        let steps = (unpacked as u64).saturating_mul(STEPS_PER_BYTE);
        Self {
            steps: Cell::new(steps),
            held: Cell::new(unpacked),
            stream: unpacked,
        }
    }

    /// Pays for work: about one step for a byte looked at, more for what is made of it.
    pub(super) fn spend(&self, steps: usize) -> Result<(), Exhausted> {
        let left = self.steps.get().checked_sub(steps as u64);
        self.steps.set(left.unwrap_or(0));
        left.map(drop).ok_or(Exhausted)
    }

    /// Pays for memory that is kept while other streams are unpacked.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), Exhausted> {
        let left = self.held.get().checked_sub(bytes).ok_or(Exhausted)?;
        self.held.set(left);
        Ok(())
    }

    /// Gives back what was held.
    pub(super) fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_add(bytes));
    }
}
