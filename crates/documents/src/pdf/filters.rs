//! Decompression of streams within the budget.

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};
use weezl::{BitOrder, LzwStatus, decode::Decoder};

use super::budget::{Budget, Exhausted};
use super::syntax::{hex, is_space};

/// The longest chain of filters.
pub(super) const MAX_FILTERS: usize = 6;

/// The steps for starting a decoder: its tables are larger than most streams of an attacker who
/// uses many.
const SETUP_COST: usize = 4096;

/// The settings of a filter that matter for text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameters {
    pub(super) predictor: usize,
    pub(super) columns: usize,
    pub(super) colors: usize,
    pub(super) bits: usize,
    pub(super) early_change: bool,
}

/// Undoes one filter; `None` for an image filter or an unknown one. Damaged data is used up to the
/// damage, because half a page is better than none.
pub(super) fn undo(
    filter: &[u8],
    parameters: &Parameters,
    data: &[u8],
    budget: &Budget,
) -> Result<Option<Vec<u8>>, Exhausted> {
    budget.spend(SETUP_COST)?;
    let unpacked = match filter {
        b"FlateDecode" | b"Fl" => predicted(inflate(data, budget)?, parameters),
        b"LZWDecode" | b"LZW" => predicted(lzw(data, parameters, budget)?, parameters),
        b"ASCIIHexDecode" | b"AHx" => ascii_hex(data),
        b"ASCII85Decode" | b"A85" => ascii_85(data, budget)?,
        b"RunLengthDecode" | b"RL" => run_length(data, budget)?,
        _ => return Ok(None),
    };
    budget.spend(unpacked.len())?;
    Ok(Some(unpacked))
}

fn inflate(data: &[u8], budget: &Budget) -> Result<Vec<u8>, Exhausted> {
    let wrapped = read(ZlibDecoder::new(data), budget)?;
    if wrapped.is_empty() {
        read(DeflateDecoder::new(data), budget)
    } else {
        Ok(wrapped)
    }
}

fn read(decoder: impl Read, budget: &Budget) -> Result<Vec<u8>, Exhausted> {
    let mut unpacked = Vec::new();
    // An error means damage; the data before it is in `unpacked`.
    let _ = decoder
        .take(budget.stream as u64 + 1)
        .read_to_end(&mut unpacked);
    within(unpacked, budget)
}

fn within(unpacked: Vec<u8>, budget: &Budget) -> Result<Vec<u8>, Exhausted> {
    if unpacked.len() > budget.stream {
        Err(Exhausted)
    } else {
        Ok(unpacked)
    }
}

fn lzw(data: &[u8], parameters: &Parameters, budget: &Budget) -> Result<Vec<u8>, Exhausted> {
    let mut decoder = if parameters.early_change {
        Decoder::with_tiff_size_switch(BitOrder::Msb, 8)
    } else {
        Decoder::new(BitOrder::Msb, 8)
    };
    let mut unpacked = Vec::new();
    let mut piece = vec![0; 32 << 10];
    let mut rest = data;
    loop {
        let step = decoder.decode_bytes(rest, &mut piece);
        rest = &rest[step.consumed_in..];
        unpacked.extend_from_slice(&piece[..step.consumed_out]);
        if unpacked.len() > budget.stream {
            return Err(Exhausted);
        }
        if !matches!(step.status, Ok(LzwStatus::Ok)) {
            return Ok(unpacked);
        }
    }
}

fn ascii_hex(data: &[u8]) -> Vec<u8> {
    let end = memchr::memchr(b'>', data).unwrap_or(data.len());
    let digits: Vec<u8> = data[..end].iter().filter_map(|byte| hex(*byte)).collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0))
        .collect()
}

fn ascii_85(data: &[u8], budget: &Budget) -> Result<Vec<u8>, Exhausted> {
    let mut unpacked = Vec::new();
    let mut group = Vec::with_capacity(5);
    for &byte in data.strip_prefix(b"<~").unwrap_or(data) {
        match byte {
            b'z' if group.is_empty() => unpacked.extend([0; 4]),
            b'!'..=b'u' => group.push(byte - b'!'),
            _ if is_space(byte) => {}
            _ => break,
        }
        if group.len() == 5 {
            ascii_85_group(&mut group, &mut unpacked);
        }
    }
    if group.len() > 1 {
        ascii_85_group(&mut group, &mut unpacked);
    }
    within(unpacked, budget)
}

fn ascii_85_group(group: &mut Vec<u8>, unpacked: &mut Vec<u8>) {
    let bytes = group.len() - 1;
    group.resize(5, 84);
    let value = group.drain(..).fold(0_u32, |value, digit| {
        value.wrapping_mul(85).wrapping_add(u32::from(digit))
    });
    unpacked.extend_from_slice(&value.to_be_bytes()[..bytes]);
}

fn run_length(data: &[u8], budget: &Budget) -> Result<Vec<u8>, Exhausted> {
    let mut unpacked = Vec::new();
    let mut rest = data;
    while let Some((&length, after)) = rest.split_first() {
        rest = match length {
            0..=127 => {
                let end = (usize::from(length) + 1).min(after.len());
                unpacked.extend_from_slice(&after[..end]);
                &after[end..]
            }
            128 => break,
            129.. => {
                let Some((&byte, after)) = after.split_first() else {
                    break;
                };
                unpacked.resize(unpacked.len() + 257 - usize::from(length), byte);
                after
            }
        };
        if unpacked.len() > budget.stream {
            return Err(Exhausted);
        }
    }
    Ok(unpacked)
}

/// Undoes PNG's row prediction, the only one used for data other than images.
fn predicted(data: Vec<u8>, parameters: &Parameters) -> Vec<u8> {
    if parameters.predictor < 10 {
        return data;
    }
    let bits = parameters.colors.clamp(1, 32) * parameters.bits.clamp(1, 16);
    let pixel = bits.div_ceil(8);
    let width = parameters
        .columns
        .clamp(1, 1 << 20)
        .saturating_mul(bits)
        .div_ceil(8);
    let mut rows = Vec::with_capacity(data.len());
    let mut above = vec![0; width];
    for packed in data.chunks(width + 1) {
        let (kind, packed) = (packed[0], &packed[1..]);
        let mut row = vec![0; width];
        for (at, &byte) in packed.iter().enumerate() {
            let left = if at < pixel { 0 } else { row[at - pixel] };
            let corner = if at < pixel { 0 } else { above[at - pixel] };
            let guess = match kind {
                1 => left,
                2 => above[at],
                3 => ((u16::from(left) + u16::from(above[at])) / 2) as u8,
                4 => paeth(left, above[at], corner),
                _ => 0,
            };
            row[at] = byte.wrapping_add(guess);
        }
        rows.extend_from_slice(&row[..packed.len()]);
        above = row;
    }
    rows
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let guess = i16::from(left) + i16::from(above) - i16::from(corner);
    let distance = |value: u8| (guess - i16::from(value)).abs();
    if distance(left) <= distance(above) && distance(left) <= distance(corner) {
        left
    } else if distance(above) <= distance(corner) {
        above
    } else {
        corner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Parameters = Parameters {
        predictor: 1,
        columns: 1,
        colors: 1,
        bits: 8,
        early_change: true,
    };

    fn undone(filter: &[u8], data: &[u8]) -> Vec<u8> {
        undo(filter, &PLAIN, data, &Budget::new(1 << 20))
            .unwrap()
            .unwrap()
    }

    #[test]
    fn text_filters() {
        assert_eq!(undone(b"AHx", b"48 65 6C6c 6F 7>"), b"Hellop");
        assert_eq!(
            undone(b"A85", b"87cURD]i,\"zEbo7~>"),
            b"Hello Wo\0\0\0\0rld"
        );
        assert_eq!(
            undone(b"RL", &[2, b'a', b'b', b'c', 254, b'x', 128, 1]),
            b"abcxxx"
        );
    }

    #[test]
    fn lzw_switches_early() {
        let text: Vec<u8> = (0..3000_u32)
            .flat_map(|n| n.to_string().into_bytes())
            .collect();
        let mut encoder = weezl::encode::Encoder::with_tiff_size_switch(BitOrder::Msb, 8);
        assert_eq!(undone(b"LZWDecode", &encoder.encode(&text).unwrap()), text);
    }

    #[test]
    fn rows_predicted_by_the_row_above() {
        let parameters = Parameters {
            predictor: 12,
            columns: 3,
            ..PLAIN
        };
        let rows = predicted(vec![2, 1, 2, 3, 2, 1, 1, 1, 1, 5, 1, 1], &parameters);
        assert_eq!(rows, [1, 2, 3, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn what_unpacks_beyond_the_limit_is_refused() {
        let bomb = [129, b'x'].repeat(1000);
        assert_eq!(
            undo(b"RL", &PLAIN, &bomb, &Budget::new(100_000)),
            Err(Exhausted)
        );
        assert_eq!(
            undo(b"DCTDecode", &PLAIN, &bomb, &Budget::new(100_000)),
            Ok(None)
        );
    }
}
