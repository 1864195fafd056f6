//! Splitting of a byte stream into lines: at LF alone, at any chunking, up to a limit.

/// The default limit of a line: 64 MiB.
pub const DEFAULT_LINE_LIMIT: usize = 64 * 1024 * 1024;

/// One line, without its LF and without one CR before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputLine {
    /// The bytes of the line; not necessarily UTF-8.
    Complete(Vec<u8>),
    /// The line passed the limit. Its bytes were dropped; the next line is not affected.
    TooLong {
        /// The length of the whole line in bytes.
        length: usize,
    },
}

/// Collects bytes until a line is complete.
#[derive(Debug)]
pub struct Splitter {
    /// The unfinished line so far; empty once it has passed the limit.
    pending: Vec<u8>,
    /// Length of the unfinished line, counting dropped bytes.
    length: usize,
    limit: usize,
}

impl Splitter {
    /// Creates a splitter that accepts lines of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            pending: Vec::new(),
            length: 0,
            limit,
        }
    }

    /// Adds bytes and passes every line they complete to `each`.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(InputLine)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.take(&bytes[..end]);
            each(self.complete());
            bytes = &bytes[end + 1..];
        }
        self.take(bytes);
    }

    /// Returns the last line if the input ended without LF.
    pub fn finish(&mut self) -> Option<InputLine> {
        (self.length > 0).then(|| self.complete())
    }

    /// Reports whether the unfinished line has already passed the limit.
    pub fn is_too_long(&self) -> bool {
        self.length > self.limit + 1
    }

    fn take(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        // One more byte is allowed, because a CR before the LF is dropped and does not count.
        if self.is_too_long() {
            self.pending = Vec::new();
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    fn complete(&mut self) -> InputLine {
        let length = std::mem::take(&mut self.length);
        let mut line = std::mem::take(&mut self.pending);
        if line.len() == length && line.last() == Some(&b'\r') {
            line.pop();
        }
        if length > self.limit + 1 || line.len() > self.limit {
            return InputLine::TooLong { length };
        }
        InputLine::Complete(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<InputLine> {
        let mut splitter = Splitter::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk, |line| lines.push(line));
        }
        lines.extend(splitter.finish());
        lines
    }

    fn complete(text: &str) -> InputLine {
        InputLine::Complete(text.as_bytes().to_vec())
    }

    #[test]
    fn splits_on_lf_only_and_drops_one_cr() {
        let text = "a\r\n\u{2028}b\u{2029}\r\r\nc\rd\n\nlast";
        assert_eq!(
            split(100, &[text.as_bytes()]),
            [
                complete("a"),
                complete("\u{2028}b\u{2029}\r"),
                complete("c\rd"),
                complete(""),
                complete("last")
            ]
        );
    }

    #[test]
    fn a_line_over_the_limit_costs_only_itself() {
        let lines = split(4, &[b"abcd\nabcde\nabcd\r\nok\n"]);
        assert_eq!(
            lines,
            [
                complete("abcd"),
                InputLine::TooLong { length: 5 },
                complete("abcd"),
                complete("ok")
            ]
        );
    }

    #[test]
    fn an_endless_line_holds_no_memory() {
        let mut splitter = Splitter::new(1024);
        for _ in 0..1000 {
            splitter.feed(&[b'x'; 4096], |_| panic!("no line yet"));
        }
        assert!(splitter.pending.capacity() <= 8192);
        assert_eq!(
            splitter.finish(),
            Some(InputLine::TooLong { length: 4_096_000 })
        );
    }

    proptest! {
        #[test]
        fn chunking_makes_no_difference(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..20),
            limit in 1usize..40,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(0);
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(limit, &chunks), split(limit, &[&bytes]));
        }

        #[test]
        fn nothing_is_lost_below_the_limit(lines in proptest::collection::vec("[^\r\n]{0,30}", 0..20)) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let expected: Vec<InputLine> = lines.iter().map(|line| complete(line)).collect();
            prop_assert_eq!(split(1000, &[text.as_bytes()]), expected);
        }
    }
}
