//! The work that one PDF may cause. A few bytes can request endless work: streams that inflate a
//! thousandfold, forms that draw each other, a million headers before one long string. All of it is
//! charged here, in steps and not in seconds, so that the same file always has the same result.

use std::cell::Cell;

/// The number of steps allowed for each byte of the unpacking limit.
const STEPS_PER_BYTE: u64 = 8;

/// The file exceeds its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

/// The remaining budget.
#[derive(Debug)]
pub(super) struct Budget {
    steps: Cell<u64>,
    held: Cell<usize>,
    /// The most bytes that one stream may unpack to.
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

    /// Charges work: about one step for a byte read, more for values built from it.
    pub(super) fn spend(&self, steps: usize) -> Result<(), Exhausted> {
        let left = self.steps.get().checked_sub(steps as u64);
        self.steps.set(left.unwrap_or(0));
        left.map(drop).ok_or(Exhausted)
    }

    /// Charges memory that is held while other streams are unpacked.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), Exhausted> {
        let left = self.held.get().checked_sub(bytes).ok_or(Exhausted)?;
        self.held.set(left);
        Ok(())
    }

    /// Returns memory to the budget.
    pub(super) fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_add(bytes));
    }
}
