//! The numbers of openings that each hub has sent, so that none is accepted twice.

use std::collections::HashMap;

use crate::names::ProcessId;

/// The numbers that are remembered of each hub.
const REMEMBERED: u64 = 65_536;
const WORDS: usize = (REMEMBERED / 64) as usize;
/// Hubs that are remembered. Every start of a hub is another one.
const MAX_SENDERS: usize = 1_024;

#[derive(Debug, Default)]
pub struct Openings {
    senders: HashMap<ProcessId, Seen>,
    /// Counts openings, to find the sender that was silent for longest.
    clock: u64,
}

#[derive(Debug)]
struct Seen {
    /// The highest number so far.
    highest: u64,
    /// One bit for each of the last numbers, at the number modulo their count.
    bits: Vec<u64>,
    last_used: u64,
}

impl Openings {
    /// Accepts a number once. A number that is too old to be remembered is not accepted.
    pub fn accept(&mut self, from: &ProcessId, number: u64) -> bool {
        self.clock += 1;
        let clock = self.clock;
        if self.senders.len() >= MAX_SENDERS && !self.senders.contains_key(from) {
            let oldest = self.senders.iter().min_by_key(|(_, seen)| seen.last_used);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.senders.remove(&oldest);
            }
        }
        let seen = self.senders.entry(from.clone()).or_insert_with(|| Seen {
            highest: 0,
            bits: vec![0; WORDS],
            last_used: clock,
        });
        seen.last_used = clock;
        seen.accept(number)
    }
}

impl Seen {
    fn accept(&mut self, number: u64) -> bool {
        if number == 0 || number + REMEMBERED <= self.highest {
            return false;
        }
        if number > self.highest {
            if number - self.highest >= REMEMBERED {
                self.bits.fill(0);
            } else {
                for passed in self.highest + 1..=number {
                    let (word, bit) = place(passed);
                    self.bits[word] &= !bit;
                }
            }
            self.highest = number;
        }
        let (word, bit) = place(number);
        let is_new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        is_new
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % REMEMBERED;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn id(number: u64) -> ProcessId {
        ProcessId::parse(&format!("h{number:016x}")).unwrap()
    }

    proptest! {
        #[test]
        fn no_number_is_accepted_twice(
            numbers in prop::collection::vec(prop_oneof![1..200_u64, 65_000..66_500_u64, 131_000..132_000_u64], 1..400)
        ) {
            let mut openings = Openings::default();
            let mut accepted = HashSet::new();
            let mut highest = 0;
            for number in numbers {
                highest = highest.max(number);
                let is_new = openings.accept(&id(1), number);
                if is_new {
                    prop_assert!(accepted.insert(number), "{} twice", number);
                } else {
                    prop_assert!(accepted.contains(&number) || number + REMEMBERED <= highest);
                }
            }
        }
    }

    #[test]
    fn senders_are_told_apart_and_their_memory_is_bounded() {
        let mut openings = Openings::default();
        assert!(openings.accept(&id(1), 1));
        assert!(openings.accept(&id(2), 1));
        assert!(!openings.accept(&id(1), 1));
        for number in 0..2 * MAX_SENDERS as u64 {
            openings.accept(&id(number), 9);
        }
        assert_eq!(openings.senders.len(), MAX_SENDERS);
    }
}
