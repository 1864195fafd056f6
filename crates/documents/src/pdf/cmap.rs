//! A font's table from codes to characters.

use std::collections::HashMap;

use super::budget::{Budget, Exhausted};
use super::syntax::{Lexer, Token};

/// The most codes in one table: as many as two bytes have.
const MAX_CODES: usize = 1 << 16;

/// The longest text of one code, in bytes.
const MAX_TEXT: usize = 64;

#[derive(Debug, Default)]
pub(super) struct CMap {
    texts: HashMap<u32, Box<str>>,
    /// The length of the codes in bytes, if the table states it and it is the same for all.
    pub(super) code_length: Option<usize>,
}

impl CMap {
    /// Parses a table. Unknown parts are ignored.
    pub(super) fn parse(bytes: &[u8], budget: &Budget) -> Result<Self, Exhausted> {
        let mut map = Self::default();
        let mut lexer = Lexer::new(bytes, 0);
        let mut lengths = Vec::new();
        while let Some(token) = lexer.token() {
            budget.spend(8)?;
            match token {
                Token::Keyword(b"begincodespacerange") => {
                    while let (Some(Token::String(low)), Some(Token::String(_))) =
                        (lexer.token(), lexer.token())
                    {
                        budget.spend(8)?;
                        if lengths.len() < 8 {
                            lengths.push(low.len());
                        }
                    }
                }
                Token::Keyword(b"beginbfchar") => {
                    while let Some(Token::String(code)) = lexer.token()
                        && let Some(text) = lexer.token()
                    {
                        budget.spend(16)?;
                        if let (Some(code), Token::String(text)) = (number(&code), text) {
                            map.insert(code, &text, 0);
                        }
                    }
                }
                Token::Keyword(b"beginbfrange") => map.ranges(&mut lexer, budget)?,
                _ => {}
            }
        }
        if let Some(&length) = lengths.first()
            && lengths.iter().all(|other| *other == length)
        {
            map.code_length = Some(length);
        }
        Ok(map)
    }

    fn ranges(&mut self, lexer: &mut Lexer<'_>, budget: &Budget) -> Result<(), Exhausted> {
        while let (Some(Token::String(low)), Some(Token::String(high))) =
            (lexer.token(), lexer.token())
        {
            let (Some(low), Some(high)) = (number(&low), number(&high)) else {
                return Ok(());
            };
            let codes = low..=high.min(low.saturating_add(MAX_CODES as u32));
            match lexer.token() {
                Some(Token::String(text)) => {
                    for (at, code) in (0..).zip(codes) {
                        budget.spend(16)?;
                        self.insert(code, &text, at);
                    }
                }
                Some(Token::ArrayOpen) => {
                    let mut codes = codes;
                    while let Some(Token::String(text)) = lexer.token() {
                        budget.spend(16)?;
                        if let Some(code) = codes.next() {
                            self.insert(code, &text, 0);
                        }
                    }
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Adds the text of a code; `moved` is added to its last unit, for ranges.
    fn insert(&mut self, code: u32, text: &[u8], moved: u32) {
        if self.texts.len() >= MAX_CODES || text.len() > MAX_TEXT {
            return;
        }
        let mut units: Vec<u16> = match text {
            [single] => vec![u16::from(*single)],
            _ => text
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect(),
        };
        if let Some(last) = units.last_mut() {
            *last = last.wrapping_add(moved as u16);
        }
        let text: String = char::decode_utf16(units)
            .flatten()
            .filter(|character| *character == '\t' || !character.is_control())
            .collect();
        self.texts.insert(code, text.into_boxed_str());
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the text of a code.
    pub(super) fn get(&self, code: u32) -> Option<&str> {
        self.texts.get(&code).map(AsRef::as_ref)
    }
}

/// Converts a code to its number; `None` if it is too long.
pub(super) fn number(code: &[u8]) -> Option<u32> {
    (code.len() <= 4).then(|| {
        code.iter()
            .fold(0, |value, byte| value << 8 | u32::from(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_ranges_and_lists_of_characters() {
        let table = b"/CIDInit /ProcSet findresource begin begincmap
            1 begincodespacerange <0000> <FFFF> endcodespacerange
            2 beginbfchar <0003> <0020> <0010> <00660069> endbfchar
            2 beginbfrange <0024> <0026> <0041> <0030> <0031> [<D83DDE00> <00E4>] endbfrange
            endcmap end";
        let map = CMap::parse(table, &Budget::new(1 << 20)).unwrap();
        assert_eq!(map.code_length, Some(2));
        let text: Vec<_> = [3, 0x10, 0x24, 0x25, 0x26, 0x27, 0x30, 0x31]
            .map(|code| map.get(code))
            .into();
        let expected = [
            Some(" "),
            Some("fi"),
            Some("A"),
            Some("B"),
            Some("C"),
            None,
            Some("😀"),
            Some("ä"),
        ];
        assert_eq!(text, expected);
    }

    #[test]
    fn a_table_cannot_name_more_codes_than_there_are() {
        let table = b"beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange".repeat(4);
        let map = CMap::parse(&table, &Budget::new(1 << 22)).unwrap();
        assert!(map.texts.len() <= MAX_CODES);
        assert_eq!(
            CMap::parse(&table, &Budget::new(1 << 10)).err(),
            Some(Exhausted)
        );
    }
}
