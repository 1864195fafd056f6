//! Every message of the hub, by name.

use bytes::Bytes;
use pinion_proto::{Binary, DecodeError, Strictness};

/// The conversions of the messages of one type.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    /// From binary to JSON.
    pub to_json: fn(Bytes) -> Result<String, DecodeError>,
    /// From JSON to binary.
    pub to_binary: fn(&str, Strictness) -> Result<Bytes, DecodeError>,
    /// From binary to binary.
    pub again: fn(Bytes) -> Result<Bytes, DecodeError>,
    /// From JSON to `Debug`.
    pub shown: fn(&str) -> String,
}

pub fn row<M: Binary>() -> Row {
    Row {
        name: M::FULL_NAME,
        to_json: |bytes| Ok(M::decode(bytes)?.to_json()),
        to_binary: |text, strictness| Ok(binary(&M::decode_json(text.as_bytes(), strictness)?)),
        again: |bytes| Ok(binary(&M::decode(bytes)?)),
        shown: |text| format!("{:?}", M::decode_json(text.as_bytes(), Strictness::Lenient)),
    }
}

/// Returns the binary form after comparing all ways to write it.
fn binary<M: Binary>(message: &M) -> Bytes {
    let bytes = message.to_bytes();
    assert_eq!(bytes.len(), message.encoded_len());
    let mut appended = b"head".to_vec();
    message.encode(&mut appended);
    assert_eq!(appended, [b"head", &bytes[..]].concat());
    assert_eq!(message.to_pieces(b"head".to_vec()).concat(), appended);
    bytes
}

pub fn rows() -> Vec<Row> {
    include!(concat!(env!("OUT_DIR"), "/hub_rows.rs"))
}

/// Returns the row of the message with this name.
pub fn named(name: &str) -> Row {
    let found = rows().into_iter().find(|it| it.name == name);
    found.unwrap_or_else(|| panic!("{name} is not a message of the hub"))
}

/// Decodes hexadecimal digits.
pub fn hex(digits: &str) -> Bytes {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}
