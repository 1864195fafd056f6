//! `ops.text`: conversions between text and bytes.

use rquickjs::prelude::Func;
use rquickjs::{Ctx, Object, Result, TypedArray};

use super::{bytes_of, group};
use crate::script::Host;

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, _host: &Host) -> Result<()> {
    let text = group(ctx, ops, "text")?;
    text.set("encode", Func::from(encode))?;
    text.set("decode", Func::from(decode))?;
    Ok(())
}

fn encode<'js>(ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u8>> {
    TypedArray::new_copy(ctx, text.into_bytes())
}

/// Returns the text of `bytes`; null if `fatal` is set and they are not valid.
fn decode<'js>(
    ctx: Ctx<'js>,
    encoding: String,
    bytes: TypedArray<'js, u8>,
    fatal: bool,
) -> Result<Option<String>> {
    let bytes = bytes_of(&ctx, &bytes)?;
    Ok(match encoding.as_str() {
        "utf-16le" => {
            let (units, rest) = bytes.as_chunks::<2>();
            let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
            let whole = String::from_utf16(&units).ok().filter(|_| rest.is_empty());
            whole.or_else(|| {
                (!fatal).then(|| {
                    let mut text = String::from_utf16_lossy(&units);
                    if !rest.is_empty() {
                        text.push(char::REPLACEMENT_CHARACTER);
                    }
                    text
                })
            })
        }
        "windows-1252" => Some(bytes.iter().map(|byte| latin(*byte)).collect()),
        _ => match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(_) if fatal => None,
            Err(error) => Some(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        },
    })
}

/// Decodes a byte of windows-1252, which the web calls latin1: it has printable characters where the standard has
/// control characters.
fn latin(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}
