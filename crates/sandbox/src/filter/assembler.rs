//! Instructions of the kernel's packet filter, in blocks that jump only forwards.

use libc::sock_filter;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ABOVE: u16 = 0x25;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// The call continues.
pub(super) const ALLOW: u32 = 0x7fff_0000;
/// The process is killed.
pub(super) const KILL: u32 = 0x8000_0000;
/// The call waits for the warden.
pub(super) const NOTIFY: u32 = 0x7fc0_0000;

/// The call fails with this error.
pub(super) const fn errno(error: i32) -> u32 {
    0x0005_0000 | error as u32
}

/// Returns the offset of the low half of an argument. Arguments of 32 bits are compared as 32 bits: the kernel ignores the
/// other half, which the caller chooses.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

/// A run of instructions. Every path through a finished one ends with an answer.
#[derive(Debug, Default)]
pub(super) struct Block(Vec<sock_filter>);

impl Block {
    fn push(&mut self, code: u16, k: u32, jt: u8, jf: u8) {
        self.0.push(sock_filter { code, jt, jf, k });
    }

    /// Loads the word at `offset` of the call's description.
    pub fn load(&mut self, offset: u32) {
        self.push(LOAD, offset, 0, 0);
    }

    /// Loads the low half of an argument.
    pub fn load_argument(&mut self, index: u32) {
        self.load(argument(index));
    }

    /// Clears all but these bits of the loaded word.
    pub fn keep(&mut self, bits: u32) {
        self.push(AND, bits, 0, 0);
    }

    /// Ends with an answer.
    pub fn answer(&mut self, answer: u32) {
        self.push(RETURN, answer, 0, 0);
    }

    pub fn if_equal(&mut self, value: u32, then: impl FnOnce(&mut Self)) {
        self.branch(JUMP_EQUAL, value, then);
    }

    pub fn if_any_bit(&mut self, bits: u32, then: impl FnOnce(&mut Self)) {
        self.branch(JUMP_ANY_BIT, bits, then);
    }

    pub fn if_above(&mut self, value: u32, then: impl FnOnce(&mut Self)) {
        self.branch(JUMP_ABOVE, value, then);
    }

    pub fn if_at_least(&mut self, value: u32, then: impl FnOnce(&mut Self)) {
        self.branch(JUMP_AT_LEAST, value, then);
    }

    pub fn unless_equal(&mut self, value: u32, then: impl FnOnce(&mut Self)) {
        let inner = Self::of(then);
        // To the jump over the inner block, or into it.
        self.push(JUMP_EQUAL, value, 0, 1);
        self.push(JUMP, inner.0.len() as u32, 0, 0);
        self.0.extend(inner.0);
    }

    /// Runs `then` if the comparison holds. The long jump over it has no limit of distance.
    fn branch(&mut self, code: u16, value: u32, then: impl FnOnce(&mut Self)) {
        let inner = Self::of(then);
        self.push(code, value, 1, 0);
        self.push(JUMP, inner.0.len() as u32, 0, 0);
        self.0.extend(inner.0);
    }

    fn of(write: impl FnOnce(&mut Self)) -> Self {
        let mut block = Self::default();
        write(&mut block);
        block
    }

    pub fn finish(self) -> Vec<sock_filter> {
        self.0
    }
}
