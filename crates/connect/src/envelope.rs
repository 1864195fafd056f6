//! Envelopes: the frames that carry the messages of a stream.
//!
//! `flags: u8 | length: u32, big-endian | payload`. Flag 1 marks a compressed payload. Flag 2 (Connect) or 128
//! (gRPC-Web) marks the end of the stream, which is not a message.

use std::io::{Read, Write};

use bytes::{Buf, Bytes};
use pinion_status::{Code, Failure};

pub(crate) const COMPRESSED: u8 = 1;
pub(crate) const END: u8 = 2;
pub(crate) const TRAILERS: u8 = 128;
pub(crate) const HEAD_LENGTH: usize = 5;

/// The most memory to reserve for a message before its bytes have arrived, in bytes.
const INITIAL_CAPACITY: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) flags: u8,
    pub(crate) payload: Bytes,
}

/// Splits bytes that arrive in chunks of any size into envelopes. A payload inside one chunk is not copied.
#[derive(Debug)]
pub(crate) struct Deframer {
    /// Bytes received and not yet parsed.
    pending: Bytes,
    head: [u8; HEAD_LENGTH],
    head_filled: usize,
    /// A payload spread over several chunks.
    partial: Option<Partial>,
    limit: usize,
}

#[derive(Debug)]
struct Partial {
    flags: u8,
    gathered: Vec<u8>,
    length: usize,
}

impl Deframer {
    /// Creates a parser that rejects payloads longer than `limit` before it reserves memory for them.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            pending: Bytes::new(),
            head: [0; HEAD_LENGTH],
            head_filled: 0,
            partial: None,
            limit,
        }
    }

    /// Lowers the limit on the length of the payloads that follow.
    pub(crate) fn lower_limit(&mut self, most: usize) {
        self.limit = self.limit.min(most);
    }

    /// Takes the next chunk. The one before must have been consumed.
    pub(crate) fn feed(&mut self, piece: Bytes) {
        debug_assert!(self.pending.is_empty());
        self.pending = piece;
    }

    /// Reports whether the bytes so far end between two envelopes.
    pub(crate) fn is_between(&self) -> bool {
        self.pending.is_empty() && self.head_filled == 0 && self.partial.is_none()
    }

    /// Returns the next envelope, or `None` if more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Envelope>, Failure> {
        if let Some(partial) = &mut self.partial {
            let missing = partial.length - partial.gathered.len();
            let piece = self.pending.split_to(missing.min(self.pending.len()));
            partial.take(&piece);
            return Ok(self.finished());
        }
        if !self.read_head() {
            return Ok(None);
        }
        let [flags, length @ ..] = self.head;
        self.head_filled = 0;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > self.limit {
            self.pending = Bytes::new();
            return Err(too_large(length, self.limit));
        }
        if self.pending.len() >= length {
            let payload = self.pending.split_to(length);
            return Ok(Some(Envelope { flags, payload }));
        }
        let mut partial = Partial {
            flags,
            gathered: Vec::with_capacity(length.min(INITIAL_CAPACITY.max(self.pending.len()))),
            length,
        };
        partial.take(&std::mem::take(&mut self.pending));
        self.partial = Some(partial);
        Ok(None)
    }

    /// Fills the head from the pending bytes and reports whether it is complete.
    fn read_head(&mut self) -> bool {
        let taken = (HEAD_LENGTH - self.head_filled).min(self.pending.len());
        let target = &mut self.head[self.head_filled..self.head_filled + taken];
        self.pending.copy_to_slice(target);
        self.head_filled += taken;
        self.head_filled == HEAD_LENGTH
    }

    fn finished(&mut self) -> Option<Envelope> {
        let whole = |partial: &mut Partial| partial.gathered.len() == partial.length;
        let partial = self.partial.take_if(whole)?;
        Some(Envelope {
            flags: partial.flags,
            payload: partial.gathered.into(),
        })
    }
}

impl Partial {
    /// Appends bytes. The buffer grows with the received bytes, never beyond the announced length.
    fn take(&mut self, piece: &[u8]) {
        let needed = self.gathered.len() + piece.len();
        if needed > self.gathered.capacity() {
            let room = (needed * 2).min(self.length);
            self.gathered.reserve_exact(room - self.gathered.len());
        }
        self.gathered.extend_from_slice(piece);
    }
}

/// Returns the head of an envelope with a payload of this length.
pub(crate) fn head(flags: u8, length: usize) -> Result<[u8; HEAD_LENGTH], Failure> {
    let Ok(length) = u32::try_from(length) else {
        let message = format!("a message of {length} bytes is too long for an envelope");
        return Err(Failure::new(Code::ResourceExhausted, message));
    };
    let [a, b, c, d] = length.to_be_bytes();
    Ok([flags, a, b, c, d])
}

/// Compresses a message with gzip.
pub(crate) fn deflate(message: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let packed = packer.write_all(message).and_then(|()| packer.finish());
    packed.map_err(|error| Failure::io("a message could not be compressed", &error))
}

/// Decompresses a gzip stream to at most `limit` bytes.
pub(crate) fn inflate(packed: &[u8], limit: usize) -> Result<Bytes, Failure> {
    let mut unpacked = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let reader = flate2::read::MultiGzDecoder::new(packed);
    if let Err(error) = reader.take(most).read_to_end(&mut unpacked) {
        return Err(Failure::invalid(format!(
            "the message is not gzip: {error}"
        )));
    }
    if unpacked.len() > limit {
        return Err(too_large("more than that", limit));
    }
    Ok(unpacked.into())
}

/// The failure of a message over the limit.
pub(crate) fn too_large(length: impl std::fmt::Display, limit: usize) -> Failure {
    let message = format!("a message may have {limit} bytes, this one has {length}");
    Failure::new(Code::ResourceExhausted, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns all envelopes in these chunks.
    fn read(limit: usize, pieces: &[Bytes]) -> (Result<Vec<Envelope>, Failure>, Deframer) {
        let mut deframer = Deframer::new(limit);
        let mut found = Vec::new();
        for piece in pieces {
            deframer.feed(piece.clone());
            loop {
                match deframer.next() {
                    Ok(Some(envelope)) => found.push(envelope),
                    Ok(None) => break,
                    Err(failure) => return (Err(failure), deframer),
                }
            }
        }
        (Ok(found), deframer)
    }

    proptest! {
        #[test]
        fn envelopes_survive_any_split(
            payloads in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..300)), 0..8),
            cuts in prop::collection::vec(1_usize..40, 0..60),
            lost in 0_usize..4,
        ) {
            let mut wire = Vec::new();
            for (flags, payload) in &payloads {
                wire.extend_from_slice(&head(*flags, payload.len()).unwrap());
                wire.extend_from_slice(payload);
            }
            let kept = wire.len().saturating_sub(lost);
            let mut rest = Bytes::from(wire.clone()).slice(..kept);
            let mut pieces = Vec::new();
            for cut in cuts {
                pieces.push(rest.split_to(cut.min(rest.len())));
            }
            pieces.push(rest);
            let (found, deframer) = read(300, &pieces);
            let found = found.unwrap();
            let whole = kept == wire.len();
            prop_assert_eq!(deframer.is_between() || !whole, true);
            for (envelope, (flags, payload)) in found.iter().zip(&payloads) {
                prop_assert_eq!(envelope.flags, *flags);
                prop_assert_eq!(&envelope.payload[..], &payload[..]);
            }
            if whole {
                prop_assert_eq!(found.len(), payloads.len());
            } else {
                prop_assert!(found.len() < payloads.len());
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic_and_never_allocate_beyond_what_came(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..20),
        ) {
            let pieces: Vec<Bytes> = pieces.into_iter().map(Bytes::from).collect();
            let (_, deframer) = read(usize::MAX, &pieces);
            let room = deframer.partial.map_or(0, |partial| partial.gathered.capacity());
            prop_assert!(room <= INITIAL_CAPACITY * 2);
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_there_is_room_for_it() {
        let (found, deframer) = read(1000, &[Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff, 1])]);
        assert_eq!(found.map_err(|f| f.code), Err(Code::ResourceExhausted));
        assert!(deframer.partial.is_none() && deframer.pending.is_empty());
        let (found, _) = read(5, &[Bytes::from_static(b"\0\0\0\0\x05hello\0\0\0\0\x06")]);
        assert_eq!(found.map_err(|f| f.code), Err(Code::ResourceExhausted));
    }

    #[test]
    fn a_payload_in_one_piece_is_not_copied() {
        let piece = Bytes::from(b"\0\0\0\0\x05hello".to_vec());
        let (found, _) = read(5, std::slice::from_ref(&piece));
        assert_eq!(
            found.unwrap()[0].payload.as_ptr(),
            piece[HEAD_LENGTH..].as_ptr()
        );
    }

    #[test]
    fn gzip_unpacks_up_to_the_limit() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&vec![b'a'; 1 << 20]).unwrap();
        let packed = packer.finish().unwrap();
        assert!(packed.len() < 2000);
        assert_eq!(inflate(&packed, 1 << 20).unwrap().len(), 1 << 20);
        let bomb = inflate(&packed, (1 << 20) - 1).unwrap_err();
        assert_eq!(bomb.code, Code::ResourceExhausted);
        let torn = inflate(&packed[..packed.len() - 9], 1 << 20).unwrap_err();
        assert_eq!(torn.code, Code::InvalidArgument);
        assert_eq!(
            inflate(b"plain", 99).unwrap_err().code,
            Code::InvalidArgument
        );
    }
}
