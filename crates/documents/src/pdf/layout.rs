//! Lines and paragraphs, from pieces of text and their positions on the page.

/// A point on a page.
pub(super) type Point = (f64, f64);

/// A move along the line of more than this many font sizes is a space.
const SPACE: f64 = 0.17;
/// A longer move is the next column of a table.
const COLUMN: f64 = 2.5;
/// A move back by more than this begins a new line, even at the same height.
const BACKWARD: f64 = 1.0;
/// A move across the line of more than this is a new line; less is a raised or lowered character.
const LINE: f64 = 0.5;
/// A move across the line of more than this is a new paragraph.
const PARAGRAPH: f64 = 1.75;

/// A piece of text at one position.
#[derive(Debug)]
pub(super) struct Piece<'t> {
    pub(super) text: &'t str,
    pub(super) start: Point,
    pub(super) end: Point,
    /// The font size on the page.
    pub(super) size: f64,
}

/// The text of a page, in the order in which it is drawn.
#[derive(Debug, Default)]
pub(super) struct Layout {
    text: String,
    /// The end, direction and size of the last piece.
    last: Option<(Point, Point, f64)>,
}

impl Layout {
    pub(super) fn add(&mut self, piece: &Piece<'_>) {
        let run = (piece.end.0 - piece.start.0, piece.end.1 - piece.start.1);
        let length = run.0.hypot(run.1);
        let direction = if length > 1e-6 {
            (run.0 / length, run.1 / length)
        } else {
            (1.0, 0.0)
        };
        if let Some((end, before, size)) = self.last {
            let moved = (piece.start.0 - end.0, piece.start.1 - end.1);
            let size = size.max(piece.size).max(1e-6);
            let along = (moved.0 * before.0 + moved.1 * before.1) / size;
            let across = (moved.1 * before.0 - moved.0 * before.1).abs() / size;
            self.separate(along, across);
        }
        for character in piece.text.chars() {
            self.push(character);
        }
        self.last = Some((piece.end, direction, piece.size));
    }

    fn separate(&mut self, along: f64, across: f64) {
        if across > PARAGRAPH {
            self.line("\n\n");
        } else if across > LINE || along < -BACKWARD {
            self.line("\n");
        } else if along > COLUMN {
            self.line("\t");
        } else if along > SPACE && !self.text.ends_with([' ', '\t', '\n']) {
            self.text.push(' ');
        }
    }

    fn line(&mut self, separator: &str) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
        if !self.text.is_empty() {
            self.text.push_str(separator);
        }
    }

    fn push(&mut self, character: char) {
        let spelled = match character {
            '\u{fb00}' => "ff",
            '\u{fb01}' => "fi",
            '\u{fb02}' => "fl",
            '\u{fb03}' => "ffi",
            '\u{fb04}' => "ffl",
            '\u{fb05}' | '\u{fb06}' => "st",
            '\u{a0}' => " ",
            '\u{ad}' => "-",
            other => {
                self.text.push(other);
                return;
            }
        };
        self.text.push_str(spelled);
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }
}
