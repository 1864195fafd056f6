//! Describes errors in JSON with the messages of JavaScript's parser, which clients of pi expect.

/// The form of the position in a message, which changed between releases of JavaScript's engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorPosition {
    /// The position from the start of the text.
    Offset,
    /// The position from the start of the text, then line and column.
    LineAndColumn,
}

/// Returns the message of JavaScript's parser for `text`; `None` if it is valid JSON.
pub fn javascript_error(text: &str, position: ErrorPosition) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut parser = Parser {
        text: &characters,
        at: 0,
        position,
    };
    match parser.document() {
        Err(fault) => Some(parser.words(fault)),
        Ok(()) => None,
    }
}

enum Fault {
    /// The text ends too early.
    End,
    /// The character at this position is not valid there.
    Token,
    /// More text follows the value.
    After,
    /// The sentence describes an error at this position.
    At(&'static str),
}

struct Parser<'a> {
    text: &'a [char],
    at: usize,
    position: ErrorPosition,
}

type Parsed = Result<(), Fault>;

impl Parser<'_> {
    fn words(&self, fault: Fault) -> String {
        match fault {
            Fault::End => "Unexpected end of JSON input".to_owned(),
            Fault::Token => {
                let token = self.text.get(self.at).copied().unwrap_or(' ');
                format!(
                    "Unexpected token '{token}', {} is not valid JSON",
                    self.excerpt()
                )
            }
            Fault::At(sentence) => format!("{sentence} in JSON at {}", self.place()),
            Fault::After => {
                let place = self.place();
                format!("Unexpected non-whitespace character after JSON at {place}")
            }
        }
    }

    fn place(&self) -> String {
        let at = self.at;
        if self.position == ErrorPosition::Offset {
            return format!("position {at}");
        }
        let before = &self.text[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&c| c == '\n').count();
        let start = before.iter().rposition(|&c| c == '\n');
        let column = before.len() - start.map_or(0, |newline| newline + 1) + 1;
        format!("position {at} (line {line} column {column})")
    }

    /// Returns the text, or the part around the error if the text is long.
    fn excerpt(&self) -> String {
        const AROUND: usize = 10;
        const WHOLE: usize = 20;
        if self.text.len() <= WHOLE {
            return format!("\"{}\"", self.text.iter().collect::<String>());
        }
        let from = self.at.saturating_sub(AROUND);
        let to = (self.at + AROUND).min(self.text.len());
        let before = if from > 0 { "..." } else { "" };
        let after = if to < self.text.len() { "..." } else { "" };
        let part: String = self.text[from..to].iter().collect();
        format!("{before}\"{part}\"{after}")
    }

    fn document(&mut self) -> Parsed {
        self.value(0)?;
        self.blank();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Fault::After),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Parsed {
        if depth > 512 {
            return Err(Fault::At("Too many nested values"));
        }
        self.blank();
        match self.peek() {
            None => Err(Fault::End),
            Some('{') => self.object(depth),
            Some('[') => self.array(depth),
            Some('"') => self.string(),
            Some('t') => self.word("true"),
            Some('f') => self.word("false"),
            Some('n') => self.word("null"),
            Some('-' | '0'..='9') => self.number(),
            Some(_) => Err(Fault::Token),
        }
    }

    fn word(&mut self, word: &str) -> Parsed {
        for expected in word.chars() {
            match self.peek() {
                Some(found) if found == expected => self.at += 1,
                Some(_) => return Err(Fault::Token),
                None => return Err(Fault::End),
            }
        }
        Ok(())
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some('0'..='9')) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Parsed {
        if self.peek() == Some('-') {
            self.at += 1;
            if !matches!(self.peek(), Some('0'..='9')) {
                return Err(Fault::At("No number after minus sign"));
            }
        }
        self.digits();
        if self.peek() == Some('.') {
            self.at += 1;
            if !self.digits() {
                return Err(Fault::At("Unterminated fractional number"));
            }
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            if !self.digits() {
                return Err(Fault::At("Exponent part is missing a number"));
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Parsed {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(Fault::At("Unterminated string")),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(character) if character < ' ' => {
                    return Err(Fault::At("Bad control character in string literal"));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Parsed {
        match self.peek() {
            None => Err(Fault::At("Unterminated string")),
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                self.at += 1;
                Ok(())
            }
            Some('u') => {
                self.at += 1;
                for _ in 0..4 {
                    match self.peek() {
                        Some(digit) if digit.is_ascii_hexdigit() => self.at += 1,
                        _ => return Err(Fault::At("Bad Unicode escape")),
                    }
                }
                Ok(())
            }
            Some(_) => Err(Fault::At("Bad escaped character")),
        }
    }

    fn object(&mut self, depth: usize) -> Parsed {
        self.at += 1;
        self.blank();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(());
        }
        let mut sentence = "Expected property name or '}'";
        loop {
            self.blank();
            if self.peek() != Some('"') {
                return Err(Fault::At(sentence));
            }
            self.string()?;
            self.blank();
            if self.peek() != Some(':') {
                return Err(Fault::At("Expected ':' after property name"));
            }
            self.at += 1;
            self.value(depth + 1)?;
            self.blank();
            match self.peek() {
                Some(',') => self.at += 1,
                Some('}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(Fault::At("Expected ',' or '}' after property value")),
            }
            sentence = "Expected double-quoted property name";
        }
    }

    fn array(&mut self, depth: usize) -> Parsed {
        self.at += 1;
        self.blank();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.blank();
            match self.peek() {
                Some(',') => self.at += 1,
                Some(']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(Fault::At("Expected ',' or ']' after array element")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_those_of_pi() {
        for (line, words) in [
            ("", "Unexpected end of JSON input"),
            ("   ", "Unexpected end of JSON input"),
            (
                "this is not json",
                "Unexpected token 'h', \"this is not json\" is not valid JSON",
            ),
            (
                "{\"type\":\"get_state\"",
                "Expected ',' or '}' after property value in JSON at position 19",
            ),
            (
                "{a:1}",
                "Expected property name or '}' in JSON at position 1",
            ),
            (
                "{\"a\":1,}",
                "Expected double-quoted property name in JSON at position 7",
            ),
            (
                "[1 2]",
                "Expected ',' or ']' after array element in JSON at position 3",
            ),
            (
                "{} x",
                "Unexpected non-whitespace character after JSON at position 3",
            ),
            ("\"a", "Unterminated string in JSON at position 2"),
        ] {
            let described = javascript_error(line, ErrorPosition::Offset);
            assert_eq!(described.as_deref(), Some(words));
        }
    }

    #[test]
    fn later_messages_have_line_and_column_and_quote_a_part_of_longer_texts() {
        for (line, words) in [
            (
                "{\"command\":\"echo cu",
                "Unterminated string in JSON at position 19 (line 1 column 20)",
            ),
            (
                "{\n\"a\":1",
                "Expected ',' or '}' after property value in JSON at position 7 (line 2 column 6)",
            ),
            (
                "{\"a\":x               ",
                "Unexpected token 'x', \"{\"a\":x         \"... is not valid JSON",
            ),
        ] {
            let described = javascript_error(line, ErrorPosition::LineAndColumn);
            assert_eq!(described.as_deref(), Some(words));
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>()) {
            let _ = javascript_error(&text, ErrorPosition::LineAndColumn);
        }
    }
}
