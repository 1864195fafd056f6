//! Fonts, as far as text needs them: the characters of their codes and their widths.

use std::collections::HashMap;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, GBK, SHIFT_JIS, UTF_16BE};

use super::budget::Exhausted;
use super::cmap::{CMap, number};
use super::file::File;
use super::glyphs::{Encoding, by_name};
use super::syntax::{Dictionary, Object};

/// The width of a character, in thousandths of the font size, if the font does not state it.
const USUAL_WIDTH: f64 = 500.0;

/// The most widths stored for one font.
const MAX_WIDTHS: usize = 1 << 16;

/// One code of a shown string.
#[derive(Debug, PartialEq)]
pub(super) struct Glyph<'f> {
    /// The text of the code, if it is known.
    pub(super) text: Option<&'f str>,
    /// The distance it moves the pen, in parts of the font size.
    pub(super) width: f64,
    /// Word spacing applies to it.
    pub(super) is_space: bool,
}

#[derive(Debug)]
enum Codes {
    /// One byte each.
    Simple(Vec<Option<Box<str>>>),
    /// Two bytes each, or the length that the Unicode table states.
    Composite,
    /// The bytes are text in a known encoding.
    Text(&'static encoding_rs::Encoding),
}

#[derive(Debug)]
pub(super) struct Font {
    codes: Codes,
    to_unicode: CMap,
    widths: HashMap<u32, f64>,
    default_width: f64,
    /// The factor from the font's units to its size.
    scale: f64,
}

impl Font {
    /// Reads a font's dictionary.
    pub(super) fn new(file: &File<'_>, font: &Dictionary) -> Result<Self, Exhausted> {
        let to_unicode = match font
            .get(b"ToUnicode".as_slice())
            .and_then(Object::reference)
        {
            Some(number) => match file.stream(number)? {
                Some((_, table)) => CMap::parse(&table, &file.budget)?,
                None => CMap::default(),
            },
            None => CMap::default(),
        };
        let kind = file.get(font, "Subtype")?;
        if kind.name() == Some(b"Type0") {
            return Self::composite(file, font, to_unicode);
        }
        let first = file.get(font, "FirstChar")?.index().unwrap_or(0).min(255) as u32;
        let stated = file.get(font, "Widths")?.array().unwrap_or_default();
        let mut widths = HashMap::new();
        for (code, width) in (first..).zip(stated.iter().take(256)) {
            if let Some(width) = file.resolve(width)?.number() {
                widths.insert(code, width);
            }
        }
        let matrix = file.get(font, "FontMatrix")?.array().unwrap_or_default();
        let scale = matrix
            .first()
            .and_then(Object::number)
            .filter(|_| kind.name() == Some(b"Type3"));
        Ok(Self {
            codes: Codes::Simple(simple_codes(file, font)?),
            to_unicode,
            widths,
            default_width: USUAL_WIDTH,
            scale: scale.unwrap_or(0.001),
        })
    }

    fn composite(file: &File<'_>, font: &Dictionary, to_unicode: CMap) -> Result<Self, Exhausted> {
        let encoding = file.get(font, "Encoding")?;
        let codes = match encoding.name().and_then(text_encoding) {
            Some(encoding) => Codes::Text(encoding),
            None => Codes::Composite,
        };
        let descendants = file
            .get(font, "DescendantFonts")?
            .array()
            .unwrap_or_default();
        let descendant = match descendants.first() {
            Some(descendant) => file.resolve(descendant)?.dictionary().unwrap_or_default(),
            None => Dictionary::new(),
        };
        Ok(Self {
            codes,
            to_unicode,
            widths: composite_widths(file, &descendant)?,
            default_width: file.get(&descendant, "DW")?.number().unwrap_or(1000.0),
            scale: 0.001,
        })
    }

    /// Calls `take` for each glyph of a shown string.
    pub(super) fn glyphs(
        &self,
        string: &[u8],
        mut take: impl FnMut(Glyph<'_>) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        match &self.codes {
            Codes::Simple(texts) => {
                for &byte in string {
                    let code = u32::from(byte);
                    let own = || texts.get(usize::from(byte))?.as_deref();
                    take(Glyph {
                        text: self.to_unicode.get(code).or_else(own),
                        width: self.width(code),
                        is_space: byte == b' ',
                    })?;
                }
            }
            Codes::Composite => {
                let length = self.to_unicode.code_length.unwrap_or(2).clamp(1, 4);
                for code in string.chunks(length).filter_map(number) {
                    let text = self.to_unicode.get(code);
                    take(Glyph {
                        text,
                        width: self.width(code),
                        is_space: false,
                    })?;
                }
            }
            Codes::Text(encoding) => {
                let (text, _) = encoding.decode_without_bom_handling(string);
                for character in text.chars() {
                    let mut buffer = [0; 4];
                    let text: &str = character.encode_utf8(&mut buffer);
                    let width = if character.is_ascii() { 0.5 } else { 1.0 };
                    take(Glyph {
                        text: Some(text),
                        width,
                        is_space: false,
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of entries in its tables, which is its memory use.
    pub(super) fn weight(&self) -> usize {
        256 + self.to_unicode.len() + self.widths.len()
    }

    fn width(&self, code: u32) -> f64 {
        self.widths
            .get(&code)
            .copied()
            .unwrap_or(self.default_width)
            * self.scale
    }
}

/// Returns the text encoding of a predefined code table.
fn text_encoding(name: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let name = std::str::from_utf8(name).ok()?;
    if name.contains("UCS2") || name.contains("UTF16") {
        Some(UTF_16BE)
    } else if name.contains("RKSJ") {
        Some(SHIFT_JIS)
    } else if name.starts_with("GB") {
        Some(GBK)
    } else if name.contains("B5") {
        Some(BIG5)
    } else if name.starts_with("KSC") {
        Some(EUC_KR)
    } else if name.starts_with("EUC-") {
        Some(EUC_JP)
    } else {
        None
    }
}

fn simple_codes(file: &File<'_>, font: &Dictionary) -> Result<Vec<Option<Box<str>>>, Exhausted> {
    let encoding = file.get(font, "Encoding")?;
    let (base, differences) = match encoding {
        Object::Name(name) => (Encoding::by_name(&name), Vec::new()),
        Object::Dictionary(dictionary) => {
            let base = file.get(&dictionary, "BaseEncoding")?;
            let differences = file
                .get(&dictionary, "Differences")?
                .array()
                .unwrap_or_default();
            (
                Encoding::by_name(base.name().unwrap_or_default()),
                differences,
            )
        }
        _ => (Encoding::Standard, Vec::new()),
    };
    let mut texts: Vec<Option<Box<str>>> = (0..=255)
        .map(|code| {
            base.character(code)
                .map(|character| character.to_string().into_boxed_str())
        })
        .collect();
    let mut code = 0;
    for difference in differences.iter().take(1024) {
        match file.resolve(difference)? {
            Object::Number(number) => code = Object::Number(number).index().unwrap_or(0),
            Object::Name(name) => {
                file.budget.spend(256)?;
                if let Some(text) = texts.get_mut(code) {
                    let name = std::str::from_utf8(&name).unwrap_or_default();
                    *text = by_name(name).map(String::into_boxed_str);
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    Ok(texts)
}

/// `[first [width …] first last width …]`
fn composite_widths(file: &File<'_>, font: &Dictionary) -> Result<HashMap<u32, f64>, Exhausted> {
    let stated = file.get(font, "W")?.array().unwrap_or_default();
    let mut widths = HashMap::new();
    let mut rest = stated.iter();
    while let (Some(first), Some(second)) = (rest.next(), rest.next()) {
        let Some(first) = first.index().and_then(|first| u32::try_from(first).ok()) else {
            break;
        };
        match file.resolve(second)? {
            Object::Array(list) => {
                for (code, width) in (first..u32::MAX).zip(&list) {
                    file.budget.spend(8)?;
                    if widths.len() < MAX_WIDTHS {
                        widths.insert(code, width.number().unwrap_or(USUAL_WIDTH));
                    }
                }
            }
            last => {
                let last = last
                    .index()
                    .and_then(|last| u32::try_from(last).ok())
                    .unwrap_or(0);
                let width = rest.next().and_then(Object::number).unwrap_or(USUAL_WIDTH);
                for code in first..=last.min(first.saturating_add(MAX_WIDTHS as u32)) {
                    file.budget.spend(8)?;
                    if widths.len() < MAX_WIDTHS {
                        widths.insert(code, width);
                    }
                }
            }
        }
    }
    Ok(widths)
}
