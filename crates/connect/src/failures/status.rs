//! `google.rpc.Status` in binary form, in which gRPC carries the details of a failure:
//! `{1: code, 2: message, 3: repeated google.protobuf.Any {1: type URL, 2: value}}`.

use pinion_status::{Detail, Failure};

/// The prefix of a type name in a `google.protobuf.Any`.
const TYPE_URL: &str = "type.googleapis.com/";

/// Writes a failure with its details.
pub(super) fn write(failure: &Failure) -> Vec<u8> {
    let mut out = vec![0x08, failure.code.number()];
    field(&mut out, 2, failure.message.as_bytes());
    for detail in &failure.details {
        let mut any = Vec::new();
        field(
            &mut any,
            1,
            format!("{TYPE_URL}{}", detail.type_name).as_bytes(),
        );
        field(&mut any, 2, &detail.value);
        field(&mut out, 3, &any);
    }
    out
}

/// Reads the details of a status. Bytes that are not a status end the list.
pub(super) fn read(bytes: &[u8]) -> Vec<Detail> {
    let mut details = Vec::new();
    for (number, any) in fields(bytes) {
        if number != 3 {
            continue;
        }
        let (mut type_name, mut value) = (String::new(), Vec::new());
        for (number, bytes) in fields(any) {
            match number {
                1 => {
                    let url = String::from_utf8_lossy(bytes);
                    type_name = url.rsplit('/').next().unwrap_or_default().to_owned();
                }
                2 => value = bytes.to_vec(),
                _ => {}
            }
        }
        details.push(Detail { type_name, value });
    }
    details
}

/// Appends a length-delimited field.
fn field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(0x80 | (length & 0x7f) as u8);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

/// Iterates over the length-delimited fields of a message, up to the first malformed one.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        loop {
            let key = varint(&mut bytes)?;
            let length = match key & 7 {
                0 => {
                    varint(&mut bytes)?;
                    continue;
                }
                1 => 8,
                2 => usize::try_from(varint(&mut bytes)?).ok()?,
                5 => 4,
                _ => return None,
            };
            let value = bytes.split_off(..length)?;
            if key & 7 == 2 {
                return Some((key >> 3, value));
            }
        }
    })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use pinion_status::Code;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_status_is_written_as_protobuf_has_it() {
        let failure = Failure::new(Code::NotFound, "no").with_detail("a.B", *b"xyz");
        let any = b"\x0a\x17type.googleapis.com/a.B\x12\x03xyz";
        assert_eq!(
            write(&failure),
            [b"\x08\x05\x12\x02no\x1a\x1e", &any[..]].concat()
        );
    }

    proptest! {
        #[test]
        fn details_come_back(details in prop::collection::vec(("[a-z.]{0,9}", prop::collection::vec(any::<u8>(), 0..400)), 0..4)) {
            let failure = details.into_iter().fold(
                Failure::new(Code::Internal, "m".repeat(300)),
                |failure, (name, value)| failure.with_detail(name, value),
            );
            prop_assert_eq!(read(&write(&failure)), failure.details);
        }

        #[test]
        fn arbitrary_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            read(&bytes);
        }
    }
}
