//! Characters by glyph name, and by code in the shared font encodings.

use encoding_rs::{MACINTOSH, WINDOWS_1252};
use unicode_normalization::UnicodeNormalization;

/// Names that do not follow from a rule.
const NAMES: &str = "\
space 0020 exclam 0021 quotedbl 0022 numbersign 0023 dollar 0024 percent 0025 ampersand 0026 \
quotesingle 0027 parenleft 0028 parenright 0029 asterisk 002A plus 002B comma 002C hyphen 002D \
period 002E slash 002F zero 0030 one 0031 two 0032 three 0033 four 0034 five 0035 six 0036 \
seven 0037 eight 0038 nine 0039 colon 003A semicolon 003B less 003C equal 003D greater 003E \
question 003F at 0040 bracketleft 005B backslash 005C bracketright 005D asciicircum 005E \
underscore 005F grave 0060 braceleft 007B bar 007C braceright 007D asciitilde 007E \
exclamdown 00A1 cent 00A2 sterling 00A3 currency 00A4 yen 00A5 brokenbar 00A6 section 00A7 \
dieresis 00A8 copyright 00A9 ordfeminine 00AA guillemotleft 00AB logicalnot 00AC sfthyphen 00AD \
registered 00AE macron 00AF degree 00B0 plusminus 00B1 twosuperior 00B2 threesuperior 00B3 \
acute 00B4 mu 00B5 paragraph 00B6 periodcentered 00B7 middot 00B7 cedilla 00B8 onesuperior 00B9 \
ordmasculine 00BA guillemotright 00BB onequarter 00BC onehalf 00BD threequarters 00BE \
questiondown 00BF AE 00C6 Eth 00D0 multiply 00D7 Oslash 00D8 Thorn 00DE germandbls 00DF ae 00E6 \
eth 00F0 divide 00F7 oslash 00F8 thorn 00FE Dcroat 0110 dcroat 0111 dotlessi 0131 Lslash 0141 \
lslash 0142 OE 0152 oe 0153 florin 0192 circumflex 02C6 caron 02C7 breve 02D8 dotaccent 02D9 \
ring 02DA ogonek 02DB tilde 02DC hungarumlaut 02DD endash 2013 emdash 2014 quoteleft 2018 \
quoteright 2019 quotesinglbase 201A quotedblleft 201C quotedblright 201D quotedblbase 201E \
dagger 2020 daggerdbl 2021 bullet 2022 ellipsis 2026 perthousand 2030 guilsinglleft 2039 \
guilsinglright 203A fraction 2044 Euro 20AC trademark 2122 minus 2212 nbspace 00A0 \
Alpha 0391 Beta 0392 Gamma 0393 Delta 0394 Epsilon 0395 Zeta 0396 Eta 0397 Theta 0398 Iota 0399 \
Kappa 039A Lambda 039B Mu 039C Nu 039D Xi 039E Omicron 039F Pi 03A0 Rho 03A1 Sigma 03A3 Tau 03A4 \
Upsilon 03A5 Phi 03A6 Chi 03A7 Psi 03A8 Omega 03A9 alpha 03B1 beta 03B2 gamma 03B3 delta 03B4 \
epsilon 03B5 epsilon1 03F5 zeta 03B6 eta 03B7 theta 03B8 iota 03B9 kappa 03BA lambda 03BB nu 03BD \
xi 03BE omicron 03BF pi 03C0 rho 03C1 sigma1 03C2 sigma 03C3 tau 03C4 upsilon 03C5 phi 03C6 \
phi1 03D5 chi 03C7 psi 03C8 omega 03C9 arrowleft 2190 arrowup 2191 arrowright 2192 arrowdown 2193 \
arrowboth 2194 arrowdblright 21D2 arrowdblleft 21D0 universal 2200 partialdiff 2202 existential 2203 \
emptyset 2205 nabla 2207 gradient 2207 element 2208 notelement 2209 product 220F summation 2211 \
asteriskmath 2217 radical 221A proportional 221D infinity 221E logicaland 2227 logicalor 2228 \
intersection 2229 union 222A integral 222B similar 223C approxequal 2248 notequal 2260 \
equivalence 2261 lessequal 2264 greaterequal 2265 propersubset 2282 reflexsubset 2286 \
circleplus 2295 circlemultiply 2297 perpendicular 22A5 lozenge 25CA square 25A1 checkmark 2713 \
bardbl 2016 angbracketleft 27E8 angbracketright 27E9 visiblespace 0020 prime 2032 openbullet 25E6 \
ff 0066+0066 fi 0066+0069 fl 0066+006C ffi 0066+0066+0069 ffl 0066+0066+006C IJ 0132 ij 0133";

/// Accent names and their combining marks.
const ACCENTS: &[(&str, char)] = &[
    ("acute", '\u{301}'),
    ("breve", '\u{306}'),
    ("caron", '\u{30c}'),
    ("cedilla", '\u{327}'),
    ("circumflex", '\u{302}'),
    ("commaaccent", '\u{326}'),
    ("dieresis", '\u{308}'),
    ("dotaccent", '\u{307}'),
    ("grave", '\u{300}'),
    ("hungarumlaut", '\u{30b}'),
    ("macron", '\u{304}'),
    ("ogonek", '\u{328}'),
    ("ring", '\u{30a}'),
    ("tilde", '\u{303}'),
];

/// Adobe's standard encoding from 0xA1 on; blanks are codes without a character.
const STANDARD_HIGH: &str = "¡¢£⁄¥ƒ§¤'“«‹›\u{fb01}\u{fb02} –†‡· ¶•‚„”»…‰ ¿ `´ˆ˜¯˘˙¨ ˚¸ ˝˛ˇ—\
                             \u{20}               Æ ª    ŁØŒº     æ   ı  łøœß";

/// Returns the text of a glyph name.
pub(super) fn by_name(name: &str) -> Option<String> {
    let name = name.split_once('.').map_or(name, |(base, _variant)| base);
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Some(letter.to_string());
    }
    let mut words = NAMES.split(' ');
    while let (Some(known), Some(codes)) = (words.next(), words.next()) {
        if known == name {
            return codes.split('+').map(by_hexadecimal).collect();
        }
    }
    if let Some(digits) = name
        .strip_prefix("uni")
        .filter(|digits| digits.len() % 4 == 0)
    {
        let units: Option<Vec<u16>> = (0..digits.len() / 4)
            .map(|at| u16::from_str_radix(digits.get(at * 4..at * 4 + 4)?, 16).ok())
            .collect();
        if let Some(units) = units {
            return String::from_utf16(&units).ok();
        }
    }
    if let Some(digits) = name
        .strip_prefix('u')
        .filter(|digits| (4..=6).contains(&digits.len()))
        && let Some(character) = by_hexadecimal(digits)
    {
        return Some(character.to_string());
    }
    if let Some(number) = name
        .strip_prefix("afii")
        .and_then(|number| number.parse().ok())
    {
        return cyrillic(number).map(String::from);
    }
    if name.contains('_') {
        return name.split('_').take(8).map(by_part).collect();
    }
    accented(name)
}

/// Returns the text of a part of a ligature's name, which has no parts itself.
fn by_part(name: &str) -> Option<String> {
    if name.is_empty() { None } else { by_name(name) }
}

fn by_hexadecimal(digits: &str) -> Option<char> {
    u32::from_str_radix(digits, 16)
        .ok()
        .and_then(char::from_u32)
}

fn accented(name: &str) -> Option<String> {
    let mut letters = name.chars();
    let letter = letters.next().filter(char::is_ascii_alphabetic)?;
    let (_, mark) = ACCENTS
        .iter()
        .find(|(accent, _)| *accent == letters.as_str())?;
    Some([letter, *mark].into_iter().nfc().collect())
}

/// Returns the character of one of Adobe's numbers for Russian letters.
fn cyrillic(number: u32) -> Option<char> {
    let code = match number {
        10017..=10022 => 0x410 + number - 10017,
        10023 => 0x401,
        10024..=10049 => 0x416 + number - 10024,
        10065..=10070 => 0x430 + number - 10065,
        10071 => 0x451,
        10072..=10097 => 0x436 + number - 10072,
        61352 => 0x2116,
        _ => return None,
    };
    char::from_u32(code)
}

/// A shared encoding of simple fonts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Standard,
    WinAnsi,
    MacRoman,
}

impl Encoding {
    pub(super) fn by_name(name: &[u8]) -> Self {
        match name {
            b"WinAnsiEncoding" => Self::WinAnsi,
            b"MacRomanEncoding" => Self::MacRoman,
            _ => Self::Standard,
        }
    }

    pub(super) fn character(self, code: u8) -> Option<char> {
        let single = [code];
        let character = match self {
            Self::WinAnsi => WINDOWS_1252
                .decode_without_bom_handling(&single)
                .0
                .chars()
                .next(),
            Self::MacRoman => MACINTOSH
                .decode_without_bom_handling(&single)
                .0
                .chars()
                .next(),
            Self::Standard => match code {
                0x27 => Some('’'),
                0x60 => Some('‘'),
                0x20..=0x7e => Some(char::from(code)),
                0xa1.. => {
                    let mut high = STANDARD_HIGH.chars();
                    high.nth(usize::from(code) - 0xa1)
                        .filter(|character| *character != ' ')
                }
                _ => None,
            },
        };
        character.filter(|character| !character.is_control())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_table_and_by_rule() {
        let names = [
            ("A", "A"),
            ("eacute", "é"),
            ("Zcaron", "Ž"),
            ("ffi", "ffi"),
            ("f_f_l", "ffl"),
            ("uni20AC", "€"),
            ("u1F600", "😀"),
            ("afii10017", "А"),
            ("afii10097", "я"),
            ("one.oldstyle", "1"),
            ("germandbls", "ß"),
        ];
        for (name, text) in names {
            assert_eq!(by_name(name).as_deref(), Some(text), "{name}");
        }
        assert_eq!(by_name("g123"), None);
        assert_eq!(by_name(""), None);
    }

    #[test]
    fn shared_encodings() {
        let codes = [0x27, 0xae, 0xb1, 0xd0, 0xe1, 0xfb];
        let standard: String = codes
            .iter()
            .filter_map(|c| Encoding::Standard.character(*c))
            .collect();
        assert_eq!(standard, "’\u{fb01}–—Æß");
        assert_eq!(Encoding::Standard.character(0xd5), None);
        assert_eq!(Encoding::WinAnsi.character(0x80), Some('€'));
        assert_eq!(Encoding::MacRoman.character(0x8a), Some('ä'));
    }
}
