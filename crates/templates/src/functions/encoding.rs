//! JSON, YAML, base 64 and 32, checksums.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinion_text::hex;
use sha2::Digest;

use super::{Arguments, Function, Outcome, Scope, check_items, exactly, text_value};
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    exactly("toJson", 1, |_, args| {
        text_value(escaped(&args.get(0).to_json().to_string()))
    }),
    exactly("mustToJson", 1, |_, args| {
        text_value(escaped(&args.get(0).to_json().to_string()))
    }),
    exactly("toRawJson", 1, |_, args| {
        text_value(args.get(0).to_json().to_string())
    }),
    exactly("mustToRawJson", 1, |_, args| {
        text_value(args.get(0).to_json().to_string())
    }),
    exactly("toPrettyJson", 1, pretty),
    exactly("mustToPrettyJson", 1, pretty),
    exactly("fromJson", 1, |_, args| {
        let text = args.text(0)?;
        check_items(values_in(text))?;
        Ok(serde_json::from_str(text).map_or(Value::Nil, |json| Value::from_json(&json)))
    }),
    exactly("mustFromJson", 1, |_, args| {
        let text = args.text(0)?;
        check_items(values_in(text))?;
        match serde_json::from_str(text) {
            Ok(json) => Ok(Value::from_json(&json)),
            Err(error) => Err(format!(
                "the text is not JSON from line {}, column {} on",
                error.line(),
                error.column()
            )),
        }
    }),
    exactly("toYaml", 1, |scope, args| {
        yaml(scope, &args.get(0).to_json()).and_then(text_value)
    }),
    exactly("b64enc", 1, |_, args| {
        text_value(STANDARD.encode(args.text(0)?))
    }),
    exactly("b64dec", 1, |_, args| {
        match STANDARD.decode(args.text(0)?) {
            Ok(bytes) => text_value(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => text_value(format!("illegal base64 data: {error}")),
        }
    }),
    exactly("b32enc", 1, |_, args| {
        text_value(base32(args.text(0)?.as_bytes()))
    }),
    exactly("b32dec", 1, |_, args| match from_base32(args.text(0)?) {
        Some(bytes) => text_value(String::from_utf8_lossy(&bytes).into_owned()),
        None => text_value("illegal base32 data"),
    }),
    exactly("sha1sum", 1, |_, args| {
        text_value(hex::encode(&sha1(args.text(0)?.as_bytes())))
    }),
    exactly("sha256sum", 1, |_, args| {
        text_value(hex::encode(&sha2::Sha256::digest(args.text(0)?)))
    }),
    exactly("sha512sum", 1, |_, args| {
        text_value(hex::encode(&sha2::Sha512::digest(args.text(0)?)))
    }),
    exactly("adler32sum", 1, |_, args| {
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in args.text(0)?.bytes() {
            a = (a + u32::from(byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        text_value((b << 16 | a).to_string())
    }),
];

/// Escapes JSON as Go does: safe inside HTML.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", character as u32));
            }
            other => out.push(other),
        }
    }
    out
}

/// Returns an upper bound of the values in a JSON text, from its separators and opening brackets
/// outside strings.
fn values_in(json: &str) -> usize {
    let (mut count, mut in_text, mut is_escaped) = (1, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b',' | b':' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// A writer that fails once its text is too large: indentation can make a text much larger than its
/// value.
struct BoundedText {
    text: String,
    limit: usize,
}

impl BoundedText {
    fn new(scope: &Scope<'_>) -> Self {
        Self {
            text: String::new(),
            limit: scope.context.limits.output,
        }
    }

    fn too_large(&self) -> String {
        format!("the result would be larger than {} bytes", self.limit)
    }
}

impl std::fmt::Write for BoundedText {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        if self.text.len().saturating_add(part.len()) > self.limit {
            return Err(std::fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

fn pretty(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let mut out = BoundedText::new(scope);
    // `#` selects the form with a line for each value.
    match write!(out, "{:#}", args.get(0).to_json()) {
        Ok(()) => text_value(escaped(&out.text)),
        Err(_) => Err(out.too_large()),
    }
}

/// Prints YAML with four blanks for each level.
fn yaml(scope: &Scope<'_>, json: &serde_json::Value) -> Result<String, String> {
    let options = serde_saphyr::ser_options! {
        indent_step: 4,
        compact_list_indent: false,
        prefer_block_scalars: true,
        folded_wrap_chars: 1_000_000,
    };
    let mut out = BoundedText::new(scope);
    serde_saphyr::to_fmt_writer_with_options(&mut out, json, options)
        .map_err(|_| out.too_large())?;
    let mut text = out.text;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(5) {
        let mut bits = 0_u64;
        for index in 0..5 {
            bits = bits << 8 | u64::from(group.get(index).copied().unwrap_or(0));
        }
        let letters = (group.len() * 8).div_ceil(5);
        for index in 0..8 {
            if index < letters {
                out.push(char::from(BASE32[(bits >> (35 - 5 * index) & 31) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(8) {
        return None;
    }
    let mut out = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = BASE32.iter().position(|known| *known == letter)?;
        bits = bits << 5 | u32::try_from(value).ok()?;
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
        bits &= (1 << count) - 1;
    }
    Some(out)
}

/// Computes SHA-1, here only a checksum; no dependency of the program provides it.
fn sha1(message: &[u8]) -> Vec<u8> {
    let mut state: [u32; 5] = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 80];
        for (index, bytes) in block.chunks_exact(4).enumerate() {
            words[index] = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for index in 16..80 {
            words[index] =
                (words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16])
                    .rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (round, word) in words.iter().enumerate() {
            let (mixed, constant) = match round / 20 {
                0 => (b & c | !b & d, 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let next = a
                .rotate_left(5)
                .wrapping_add(mixed)
                .wrapping_add(e)
                .wrapping_add(constant)
                .wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (slot, value) in state.iter_mut().zip([a, b, c, d, e]) {
            *slot = slot.wrapping_add(value);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}
