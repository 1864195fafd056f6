//! Conversions between text and bytes for `Buffer`, for the encodings that are slow in a script.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use pinion_text::hex;
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Object, TypedArray};

use super::bytes::{Bytes, with_bytes};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Accepts both alphabets, skips other characters, and ends at the padding.
fn from_base64(text: &str) -> Vec<u8> {
    let mut symbols: Vec<u8> = text
        .bytes()
        .take_while(|&byte| byte != b'=')
        .filter_map(|byte| match byte {
            b'-' => Some(b'+'),
            b'_' => Some(b'/'),
            b'+' | b'/' => Some(byte),
            _ => byte.is_ascii_alphanumeric().then_some(byte),
        })
        .collect();
    // A single symbol at the end does not encode a byte.
    if symbols.len() % 4 == 1 {
        symbols.pop();
    }
    LENIENT.decode(symbols).unwrap_or_default()
}

/// Decodes up to the first pair that is not two digits.
fn from_hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map_while(|pair| hex::byte(pair.try_into().ok()?))
        .collect()
}

fn encode(text: String, encoding: String) -> Bytes {
    Bytes(match encoding.as_str() {
        "hex" => from_hex(&text),
        "base64" | "base64url" => from_base64(&text),
        "latin1" => text.chars().map(|symbol| symbol as u32 as u8).collect(),
        _ => text.into_bytes(),
    })
}

fn decode(bytes: &[u8], encoding: &str) -> String {
    match encoding {
        "hex" => hex::encode(bytes),
        "base64" => STANDARD.encode(bytes),
        "base64url" => URL_SAFE_NO_PAD.encode(bytes),
        "latin1" => bytes.iter().map(|&byte| char::from(byte)).collect(),
        "ascii" => bytes.iter().map(|&byte| char::from(byte & 0x7f)).collect(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>) -> rquickjs::Result<()> {
    let group = super::group(ctx, ops, "buffer")?;
    group.set("encode", Func::from(encode))?;
    group.set(
        "decode",
        Func::from(|bytes: TypedArray<'js, u8>, encoding: String| {
            with_bytes(&bytes, |bytes| decode(bytes, &encoding))
        }),
    )?;
    group.set(
        "isUtf8",
        Func::from(|bytes: TypedArray<'js, u8>| {
            with_bytes(&bytes, |bytes| std::str::from_utf8(bytes).is_ok())
        }),
    )?;
    // Returns -1 if the bytes are not found.
    group.set(
        "find",
        Func::from(
            |bytes: TypedArray<'js, u8>, wanted: TypedArray<'js, u8>, from: usize| {
                with_bytes(&bytes, |bytes| {
                    with_bytes(&wanted, |wanted| find(bytes, wanted, from))
                })
            },
        ),
    )
}

fn find(bytes: &[u8], wanted: &[u8], from: usize) -> i64 {
    let rest = bytes.get(from..).unwrap_or_default();
    if wanted.is_empty() {
        return from.min(bytes.len()) as i64;
    }
    let at = rest
        .windows(wanted.len())
        .position(|window| window == wanted);
    at.map_or(-1, |at| (at + from) as i64)
}
