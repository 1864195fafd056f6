//! The extracted text with its limit.

/// The note at the point where the text was cut.
const NOTE: &str = "\n[The document continues; the rest was left out because of its length.]\n";

/// A text with an upper bound.
#[derive(Debug)]
pub(crate) struct Output {
    text: String,
    limit: usize,
    cut: bool,
}

impl Output {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            limit,
            cut: false,
        }
    }

    /// Appends as much as fits.
    pub(crate) fn push(&mut self, piece: &str) {
        if self.cut {
            return;
        }
        let room = self.limit - self.text.len();
        if piece.len() <= room {
            self.text.push_str(piece);
        } else {
            self.text
                .push_str(&piece[..piece.floor_char_boundary(room)]);
            self.cut = true;
        }
    }

    /// Marks the text as cut for another reason than its length.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// Reports whether no more text is accepted.
    pub(crate) fn is_full(&self) -> bool {
        self.cut
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn ends_with(&self, end: &str) -> bool {
        self.text.ends_with(end)
    }

    /// Removes blanks from the end.
    pub(crate) fn trim_end(&mut self) {
        let kept = self.text.trim_end().len();
        self.text.truncate(kept);
    }

    /// Returns the text, with a note if it was cut, and whether it was.
    pub(crate) fn finish(mut self) -> (String, bool) {
        if self.cut && NOTE.len() <= self.limit {
            let room = self.limit - NOTE.len();
            if self.text.len() > room {
                self.text.truncate(self.text.floor_char_boundary(room));
            }
            if !self.text.trim().is_empty() {
                self.text.push_str(NOTE);
            }
        }
        (self.text, self.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_falls_between_characters_and_is_noted_within_the_limit() {
        let mut output = Output::new(NOTE.len() + 4);
        output.push(&"ä".repeat(100));
        let (text, cut) = output.finish();
        assert!(cut);
        assert_eq!(text, format!("ää{NOTE}"));
    }

    #[test]
    fn a_limit_too_small_for_the_note_still_holds() {
        let mut output = Output::new(3);
        output.push("ääää");
        assert_eq!(output.finish(), ("ä".to_owned(), true));
    }

    #[test]
    fn what_fits_exactly_is_not_cut() {
        let mut output = Output::new(4);
        output.push("ää");
        assert_eq!(output.finish(), ("ää".to_owned(), false));
    }
}
