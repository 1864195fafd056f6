//! Event streams of AWS: binary frames with headers and checksums, from bytes that may be cut anywhere.
//!
//! A push parser: bytes in, messages out, no I/O. A frame is: total length, length of the headers, CRC-32 of these eight
//! bytes, headers, payload, CRC-32 of everything before it. Numbers are big endian.

/// A longer frame ends the stream. The service sends at most 16 MiB and 128 KiB of headers.
const MAX_FRAME_BYTES: usize = 24 << 20;
/// The lengths and their checksum.
const PRELUDE_BYTES: usize = 12;
/// A frame without headers and payload.
const MIN_FRAME_BYTES: usize = 16;

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeaderValue {
    Bool(bool),
    Integer(i64),
    Bytes(Vec<u8>),
    Text(String),
    /// Milliseconds since 1970.
    Timestamp(i64),
    Uuid([u8; 16]),
}

/// One message of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamMessage<'a> {
    pub(crate) headers: Vec<(String, HeaderValue)>,
    pub(crate) payload: &'a [u8],
}

impl StreamMessage<'_> {
    /// The text of a header, or an empty text.
    pub(crate) fn text(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        match found {
            Some((_, HeaderValue::Text(text))) => text,
            _ => "",
        }
    }
}

/// The stream cannot be read any further. The text is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrokenStream(pub(crate) &'static str);

const CHECKSUM: BrokenStream =
    BrokenStream("The event stream is damaged: the checksum of a frame is wrong.");
const MALFORMED: BrokenStream =
    BrokenStream("The event stream is damaged: a frame cannot be read.");
const TOO_LONG: BrokenStream =
    BrokenStream("The server sent an event stream frame larger than 24 MiB.");
const TRUNCATED: BrokenStream =
    BrokenStream("Truncated event stream: the connection ended inside a frame.");

/// Takes bytes in any pieces and returns messages.
#[derive(Debug, Default)]
pub(crate) struct EventStreamParser {
    buffer: Vec<u8>,
    broken: Option<BrokenStream>,
}

impl EventStreamParser {
    /// Reads the next bytes and calls `take` with each complete message.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(StreamMessage<'_>),
    ) -> Result<(), BrokenStream> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        self.buffer.extend_from_slice(bytes);
        let mut start = 0;
        let result = loop {
            let rest = self.buffer.get(start..).unwrap_or_default();
            match frame_length(rest) {
                Ok(Some(length)) if rest.len() >= length => {
                    match parse(rest.get(..length).unwrap_or_default()) {
                        Ok(message) => take(message),
                        Err(broken) => break Err(broken),
                    }
                    start += length;
                }
                Ok(_) => break Ok(()),
                Err(broken) => break Err(broken),
            }
        };
        self.buffer.drain(..start);
        self.broken = result.err();
        result
    }

    /// Fails if the body ended inside a frame.
    pub(crate) fn finish(&self) -> Result<(), BrokenStream> {
        match self.broken {
            Some(broken) => Err(broken),
            None if self.buffer.is_empty() => Ok(()),
            None => Err(TRUNCATED),
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// Returns the length of the frame at the beginning of `bytes`; `None` if its prelude is not complete.
fn frame_length(bytes: &[u8]) -> Result<Option<usize>, BrokenStream> {
    let Some(prelude) = bytes.get(..PRELUDE_BYTES) else {
        return Ok(None);
    };
    let (Some(total), Some(headers), Some(checksum)) =
        (number(prelude, 0), number(prelude, 4), number(prelude, 8))
    else {
        return Err(MALFORMED);
    };
    if crc32fast::hash(&prelude[..8]) != checksum {
        return Err(CHECKSUM);
    }
    let (total, headers) = (total as usize, headers as usize);
    if total > MAX_FRAME_BYTES {
        return Err(TOO_LONG);
    }
    if total < MIN_FRAME_BYTES || headers > total - MIN_FRAME_BYTES {
        return Err(MALFORMED);
    }
    Ok(Some(total))
}

/// Parses a whole frame, whose lengths are checked.
fn parse(frame: &[u8]) -> Result<StreamMessage<'_>, BrokenStream> {
    let body = frame
        .get(..frame.len().saturating_sub(4))
        .ok_or(MALFORMED)?;
    if number(frame, body.len()) != Some(crc32fast::hash(body)) {
        return Err(CHECKSUM);
    }
    let length = number(body, 4).ok_or(MALFORMED)? as usize;
    let end = PRELUDE_BYTES + length;
    let headers = body.get(PRELUDE_BYTES..end).ok_or(MALFORMED)?;
    let payload = body.get(end..).ok_or(MALFORMED)?;
    Ok(StreamMessage {
        headers: parse_headers(headers).ok_or(MALFORMED)?,
        payload,
    })
}

fn parse_headers(mut bytes: &[u8]) -> Option<Vec<(String, HeaderValue)>> {
    let mut headers = Vec::new();
    while !bytes.is_empty() {
        let length = usize::from(take(&mut bytes, 1)?[0]);
        let name = std::str::from_utf8(take(&mut bytes, length)?)
            .ok()?
            .to_owned();
        let kind = take(&mut bytes, 1)?[0];
        headers.push((name, parse_value(kind, &mut bytes)?));
    }
    Some(headers)
}

fn parse_value(kind: u8, bytes: &mut &[u8]) -> Option<HeaderValue> {
    let sized = |bytes: &mut &[u8]| {
        let length = u16::from_be_bytes(take(bytes, 2)?.try_into().ok()?);
        Some(take(bytes, usize::from(length))?.to_vec())
    };
    Some(match kind {
        0 => HeaderValue::Bool(true),
        1 => HeaderValue::Bool(false),
        2 => HeaderValue::Integer(i8::from_be_bytes(take(bytes, 1)?.try_into().ok()?).into()),
        3 => HeaderValue::Integer(i16::from_be_bytes(take(bytes, 2)?.try_into().ok()?).into()),
        4 => HeaderValue::Integer(i32::from_be_bytes(take(bytes, 4)?.try_into().ok()?).into()),
        5 => HeaderValue::Integer(i64::from_be_bytes(take(bytes, 8)?.try_into().ok()?)),
        6 => HeaderValue::Bytes(sized(bytes)?),
        7 => HeaderValue::Text(String::from_utf8(sized(bytes)?).ok()?),
        8 => HeaderValue::Timestamp(i64::from_be_bytes(take(bytes, 8)?.try_into().ok()?)),
        9 => HeaderValue::Uuid(take(bytes, 16)?.try_into().ok()?),
        _ => return None,
    })
}

/// Removes and returns the first `count` bytes.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn write(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut encoded = Vec::new();
        for (name, value) in headers {
            encoded.push(name.len() as u8);
            encoded.extend_from_slice(name.as_bytes());
            encoded.push(7);
            encoded.extend_from_slice(&(value.len() as u16).to_be_bytes());
            encoded.extend_from_slice(value.as_bytes());
        }
        let total = (MIN_FRAME_BYTES + encoded.len() + payload.len()) as u32;
        let mut frame = total.to_be_bytes().to_vec();
        frame.extend_from_slice(&(encoded.len() as u32).to_be_bytes());
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame.extend_from_slice(&encoded);
        frame.extend_from_slice(payload);
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame
    }

    /// The messages as text, and how the stream ended.
    fn read<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<String>, Result<(), BrokenStream>) {
        let mut parser = EventStreamParser::default();
        let mut seen = Vec::new();
        for piece in pieces {
            let pushed = parser.push(piece, |message| seen.push(format!("{message:?}")));
            if pushed.is_err() {
                return (seen, pushed);
            }
        }
        let end = parser.finish();
        (seen, end)
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn the_recorded_frames_are_read() {
        let mut checked = 0;
        for line in include_str!("../tests/vectors/bedrock/frames.jsonl").lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let frame = bytes(case["hex"].as_str().unwrap());
            let mut parser = EventStreamParser::default();
            parser
                .push(&frame, |message| {
                    for (member, header) in [
                        ("eventType", ":event-type"),
                        ("messageType", ":message-type"),
                        ("exceptionType", ":exception-type"),
                        ("errorCode", ":error-code"),
                        ("errorMessage", ":error-message"),
                    ] {
                        if let Some(expected) = case[member].as_str() {
                            assert_eq!(message.text(header), expected, "{case}");
                        }
                    }
                    let payload: Value =
                        serde_json::from_slice(message.payload).unwrap_or_default();
                    assert_eq!(payload, case["payload"], "{case}");
                    if let Some(headers) = case["headers"].as_object() {
                        assert_eq!(message.headers.len(), headers.len());
                        for (name, value) in &message.headers {
                            let expected = &headers[name];
                            let same = match value {
                                HeaderValue::Bool(flag) => expected == flag,
                                HeaderValue::Integer(number) => expected.as_i64() == Some(*number),
                                HeaderValue::Text(text) => expected == text,
                                HeaderValue::Timestamp(time) => {
                                    expected["millis"].as_i64() == Some(*time)
                                }
                                HeaderValue::Bytes(seen) => {
                                    bytes(expected["hex"].as_str().unwrap()) == *seen
                                }
                                HeaderValue::Uuid(seen) => {
                                    let text = expected["uuid"].as_str().or(expected.as_str());
                                    let text =
                                        text.or(expected["hex"].as_str()).unwrap_or_default();
                                    bytes(&text.replace('-', "")) == *seen
                                }
                            };
                            assert!(same, "{name}: {value:?}, expected {expected}");
                        }
                    }
                    checked += 1;
                })
                .unwrap();
            parser.finish().unwrap();
        }
        assert_eq!(checked, 6);
    }

    proptest! {
        #[test]
        fn cuts_make_no_difference(
            payloads in proptest::collection::vec((".{0,20}", any::<Vec<u8>>()), 0..6),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let body: Vec<u8> = payloads.iter().flat_map(|(name, payload)| write(&[("n", name)], payload)).collect();
            let whole = read([body.as_slice()]);
            prop_assert_eq!(whole.0.len(), payloads.len());
            prop_assert!(whole.1.is_ok());
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            at.extend([0, body.len()]);
            at.sort_unstable();
            let pieces = at.windows(2).map(|pair| &body[pair[0]..pair[1]]);
            prop_assert_eq!(&read(pieces), &whole);
            prop_assert_eq!(&read(body.chunks(1)), &whole);
        }

        #[test]
        fn a_changed_byte_never_becomes_a_message(payload in any::<Vec<u8>>(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let mut frame = write(&[(":event-type", "x")], &payload);
            let at = at.index(frame.len());
            frame[at] ^= 1 << bit;
            let (messages, end) = read([frame.as_slice()]);
            prop_assert!(messages.is_empty(), "{messages:?}");
            prop_assert!(end.is_err());
        }

        #[test]
        fn any_bytes_end_in_an_error_or_wait_for_more(bytes in any::<Vec<u8>>()) {
            let (messages, _) = read([bytes.as_slice()]);
            prop_assert!(messages.is_empty());
        }

        #[test]
        fn a_stream_cut_inside_a_frame_is_truncated(payload in any::<Vec<u8>>(), at in any::<prop::sample::Index>()) {
            let frame = write(&[], &payload);
            let cut = 1 + at.index(frame.len() - 1);
            prop_assert_eq!(read([&frame[..cut]]).1, Err(TRUNCATED));
        }
    }

    #[test]
    fn lengths_are_checked_before_anything_is_kept() {
        let lengths = |total: u32, headers: u32| {
            let mut prelude = total.to_be_bytes().to_vec();
            prelude.extend_from_slice(&headers.to_be_bytes());
            let checksum = crc32fast::hash(&prelude);
            prelude.extend_from_slice(&checksum.to_be_bytes());
            read([prelude.as_slice()]).1
        };
        assert_eq!(lengths(u32::MAX, 0), Err(TOO_LONG));
        assert_eq!(lengths(15, 0), Err(MALFORMED));
        assert_eq!(lengths(20, 5), Err(MALFORMED));
        assert_eq!(lengths(20, 4), Err(TRUNCATED));
    }
}
