//! Numbers and credit of one direction of a conversation.
//!
//! Credit counts from the beginning of the conversation, so that an announcement that is lost is mended by the next.

use pinion_proto::cluster::Credit;

/// The credit of a conversation at its beginning.
pub const WINDOW: Amount = Amount {
    bytes: 256 * 1024,
    frames: 64,
};
/// The credit of a conversation at its beginning while many others with the same hub are open.
pub const SMALL_WINDOW: Amount = Amount {
    bytes: 16 * 1024,
    frames: 16,
};

/// An amount of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    pub bytes: u64,
    pub frames: u64,
}

impl Amount {
    pub fn credit(self) -> Credit {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Credit {
            bytes: number(self.bytes),
            frames: number(self.frames),
        }
    }

    pub fn of(credit: &Credit) -> Self {
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        Self {
            bytes: number(credit.bytes),
            frames: number(credit.frames),
        }
    }
}

/// The sending direction.
#[derive(Debug, Default)]
pub struct Outflow {
    /// The number of the last frame.
    pub seq: u64,
    granted: Amount,
    sent: Amount,
}

impl Outflow {
    /// Applies an announcement. An older one changes nothing.
    pub fn grant(&mut self, credit: Amount) {
        self.granted.bytes = self.granted.bytes.max(credit.bytes);
        self.granted.frames = self.granted.frames.max(credit.frames);
    }

    /// The bytes that the next part may have; `None` if no part may be sent. A part without content needs a frame only.
    pub fn room(&self) -> Option<usize> {
        if self.sent.frames >= self.granted.frames {
            return None;
        }
        let left = self.granted.bytes.saturating_sub(self.sent.bytes);
        Some(usize::try_from(left).unwrap_or(usize::MAX))
    }

    pub fn sent_part(&mut self, bytes: usize) {
        self.sent.bytes += bytes as u64;
        self.sent.frames += 1;
    }

    pub fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }
}

/// The receiving direction.
#[derive(Debug)]
pub struct Inflow {
    /// The number of the last frame.
    pub seq: u64,
    window: Amount,
    /// What was read, which is what the window moves behind.
    read: Amount,
    received: Amount,
    /// The credit that was announced last.
    announced: Amount,
}

/// The peer broke the rules of a conversation, or a message between was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowError {
    /// A frame is missing.
    Gap,
    /// More was sent than the credit allows.
    Overrun,
}

impl Inflow {
    pub fn new(window: Amount) -> Self {
        Self {
            seq: 0,
            window,
            read: Amount::default(),
            received: Amount::default(),
            announced: window,
        }
    }

    /// The credit that is valid now.
    pub fn credit(&self) -> Amount {
        Amount {
            bytes: self.read.bytes + self.window.bytes,
            frames: self.read.frames + self.window.frames,
        }
    }

    /// Checks the number of a frame; 0 for frames without one.
    pub fn accept(&mut self, seq: u64) -> Result<(), FlowError> {
        if seq == 0 {
            return Ok(());
        }
        if seq != self.seq + 1 {
            return Err(FlowError::Gap);
        }
        self.seq = seq;
        Ok(())
    }

    /// Counts a part that has arrived.
    pub fn received_part(&mut self, bytes: usize) -> Result<(), FlowError> {
        self.received.bytes += bytes as u64;
        self.received.frames += 1;
        let credit = self.credit();
        if self.received.bytes > credit.bytes || self.received.frames > credit.frames {
            return Err(FlowError::Overrun);
        }
        Ok(())
    }

    /// Counts a part that was read. Returns the credit to announce once a quarter of the window was read since the last
    /// announcement.
    pub fn read_part(&mut self, bytes: usize) -> Option<Amount> {
        self.read.bytes += bytes as u64;
        self.read.frames += 1;
        let credit = self.credit();
        let due = credit.bytes - self.announced.bytes >= self.window.bytes / 4
            || credit.frames - self.announced.frames >= self.window.frames / 4;
        due.then(|| {
            self.announced = credit;
            credit
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_missing_frame_is_noticed() {
        let mut flow = Inflow::new(WINDOW);
        assert_eq!(flow.accept(1), Ok(()));
        assert_eq!(flow.accept(0), Ok(()));
        assert_eq!(flow.accept(2), Ok(()));
        assert_eq!(flow.accept(4), Err(FlowError::Gap));
        assert_eq!(flow.accept(2), Err(FlowError::Gap));
    }

    #[test]
    fn more_than_the_credit_is_noticed() {
        let mut flow = Inflow::new(SMALL_WINDOW);
        assert_eq!(flow.received_part(16 * 1024), Ok(()));
        assert_eq!(flow.received_part(1), Err(FlowError::Overrun));
    }

    proptest! {
        /// A sender that obeys announcements, some of which are lost, never overruns and never stalls for good once
        /// everything was read and the credit is repeated.
        #[test]
        fn credit_never_overruns_and_never_dries_up(
            sizes in prop::collection::vec(0..70_000_usize, 1..200),
            lost in prop::collection::vec(any::<bool>(), 200),
        ) {
            let mut sender = Outflow::default();
            let mut receiver = Inflow::new(WINDOW);
            sender.grant(WINDOW);
            let mut waiting: Vec<usize> = Vec::new();
            for (at, size) in sizes.into_iter().enumerate() {
                let mut left = size;
                loop {
                    let Some(room) = sender.room().filter(|room| *room > 0 || left == 0) else {
                        for part in waiting.drain(..) {
                            if let Some(credit) = receiver.read_part(part)
                                && !lost[at]
                            {
                                sender.grant(Amount::of(&credit.credit()));
                            }
                        }
                        // What a ping repeats.
                        sender.grant(receiver.credit());
                        prop_assert!(sender.room().is_some_and(|room| room > 0));
                        continue;
                    };
                    let part = left.min(room);
                    sender.sent_part(part);
                    prop_assert_eq!(receiver.received_part(part), Ok(()));
                    waiting.push(part);
                    left -= part;
                    if left == 0 {
                        break;
                    }
                }
            }
        }
    }
}
