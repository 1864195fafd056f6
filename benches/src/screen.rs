//! A model of a terminal's screen: the few control sequences that a chat draws with, without colours and styles.
//!
//! Every character takes one column, which is true of all texts in the benchmarks.

/// The columns of every screen here.
pub const COLUMNS: u16 = 80;
/// The rows of every screen here.
pub const ROWS: u16 = 24;

/// Output between these two appears at once.
const FRAME_BEGIN: &[u8] = b"?2026h";
const FRAME_END: &[u8] = b"?2026l";
const BACKGROUND: &[u8] = b"]11;?";

#[derive(Debug)]
pub struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// The start of a sequence whose rest has not arrived yet.
    pending: Vec<u8>,
    /// The screen is between two frames.
    pub is_complete: bool,
    /// The number of queries for the colour of its background.
    pub background_asked: usize,
}

/// The next item in the output of a program.
enum Piece<'a> {
    Text(char),
    /// A control sequence without its introducer.
    Sequence(&'a [u8]),
    /// A control character or another byte.
    Other(u8),
}

impl Screen {
    pub fn new() -> Self {
        Self {
            rows: vec![vec![' '; usize::from(COLUMNS)]; usize::from(ROWS)],
            row: 0,
            column: 0,
            pending: Vec::new(),
            is_complete: false,
            background_asked: 0,
        }
    }

    /// Applies the output of a program; calls `frame` whenever a frame is complete.
    pub fn write(&mut self, bytes: &[u8], mut frame: impl FnMut(&Self)) {
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while let Some((piece, length)) = next_piece(rest) {
            match piece {
                Piece::Text(char) => self.put(char),
                Piece::Sequence(FRAME_BEGIN) => self.is_complete = false,
                Piece::Sequence(FRAME_END) => {
                    self.is_complete = true;
                    frame(self);
                }
                Piece::Sequence(sequence) => self.obey(sequence),
                Piece::Other(b'\r') => self.column = 0,
                Piece::Other(b'\n') => self.row = (self.row + 1).min(self.rows.len() - 1),
                Piece::Other(_) => {}
            }
            rest = &rest[length..];
        }
        self.pending = rest.to_vec();
    }

    /// Returns all rows, from the top.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = String> {
        self.rows
            .iter()
            .map(|row| row.iter().collect::<String>().trim_end().to_owned())
    }

    /// Reports whether a row contains these words.
    pub fn shows(&self, words: &str) -> bool {
        self.lines().any(|line| line.contains(words))
    }

    /// Returns the number of the input row, which is the last one that begins with a prompt, and its text.
    pub fn editor(&self) -> Option<(usize, String)> {
        let row = self
            .rows
            .iter()
            .rposition(|row| row.starts_with(&['>', ' ']))?;
        let text: String = self.rows[row][2..].iter().collect();
        Some((row, text.trim_end().to_owned()))
    }

    fn put(&mut self, char: char) {
        if let Some(cell) = self.rows[self.row].get_mut(self.column) {
            *cell = char;
            self.column += 1;
        }
    }

    fn obey(&mut self, sequence: &[u8]) {
        if sequence.starts_with(BACKGROUND) {
            self.background_asked += 1;
            return;
        }
        let Some((end, parameters)) = sequence.split_last() else {
            return;
        };
        match end {
            b'H' => {
                let parameters = String::from_utf8_lossy(parameters);
                let mut numbers = parameters.split(';').map(|text| text.parse().unwrap_or(1));
                let mut next = |most: usize| numbers.next().unwrap_or(1).clamp(1, most) - 1;
                self.row = next(self.rows.len());
                self.column = next(usize::from(COLUMNS));
            }
            b'J' => self.rows.iter_mut().for_each(|row| row.fill(' ')),
            _ => {}
        }
    }
}

fn next_piece(bytes: &[u8]) -> Option<(Piece<'_>, usize)> {
    match *bytes.first()? {
        0x1b => match *bytes.get(1)? {
            b'[' => {
                let parameters = &bytes[2..];
                let end = parameters
                    .iter()
                    .position(|byte| (0x40..=0x7e).contains(byte))?;
                Some((Piece::Sequence(&parameters[..=end]), 2 + end + 1))
            }
            b']' => {
                let end = bytes
                    .iter()
                    .skip(1)
                    .position(|byte| matches!(byte, 7 | 0x1b))?
                    + 1;
                let length = match bytes[end] {
                    7 => end + 1,
                    _ => end + 2,
                };
                (length <= bytes.len()).then(|| (Piece::Sequence(&bytes[1..end]), length))
            }
            other => Some((Piece::Other(other), 2)),
        },
        control if control < 0x20 => Some((Piece::Other(control), 1)),
        first => {
            let length = match first {
                0xf0.. => 4,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            let text = std::str::from_utf8(bytes.get(..length)?).ok();
            let piece = text.and_then(|text| text.chars().next());
            Some((piece.map_or(Piece::Other(first), Piece::Text), length))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: &str = "\x1b[?1049h\x1b[2J\x1b[?2026h\x1b[1;1H\x1b[38;5;4m─ one\x1b[22;1H> ab\x1b[?25h\x1b[?2026l\x1b]11;?\x1b\\";

    #[test]
    fn what_is_drawn_is_seen_however_it_is_cut() {
        for size in 1..DRAWN.len() {
            let mut screen = Screen::new();
            let mut frames = 0;
            for part in DRAWN.as_bytes().chunks(size) {
                screen.write(part, |screen| {
                    frames += 1;
                    assert!(screen.shows("─ one"));
                    assert_eq!(screen.editor(), Some((21, "ab".to_owned())));
                });
            }
            assert_eq!((frames, screen.background_asked), (1, 1), "parts of {size}");
        }
    }

    #[test]
    fn what_is_drawn_over_is_gone() {
        let mut screen = Screen::new();
        screen.write(b"one two\x1b[1;5Hsix\x1b[2;1Hend", |_| {});
        let lines: Vec<String> = screen.lines().take(2).collect();
        assert_eq!(lines, ["one six", "end"]);
        screen.write(b"\x1b[2J", |_| {});
        assert!(!screen.shows("one"));
    }
}
