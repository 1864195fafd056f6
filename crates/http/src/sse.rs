//! Server-sent events from bytes that may be cut anywhere: inside a character, between CR and LF,
//! after a byte-order mark. A push parser: bytes in, frames out, no I/O. A frame has the fields
//! `event` and `data`; `id` and `retry` belong to the stream and define from where and when it can
//! be resumed. Lines that are not fields are stored, because some servers send a bare JSON error in
//! the middle of a stream.

use std::time::Duration;

use memchr::{memchr, memchr2};

/// A longer frame ends the stream. Real frames are far smaller.
const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;
/// Text outside any field is needed only for error messages.
const MAX_STRAY_BYTES: usize = 64 * 1024;
/// A longer `id` is ignored: it has to fit into a request header.
const MAX_ID_BYTES: usize = 4 * 1024;

/// One dispatched event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The `event` field, or empty.
    pub event: &'a str,
    /// The `data` lines joined by line feeds.
    pub data: &'a str,
    /// Lines that are not SSE fields, joined by line feeds.
    pub stray: &'a str,
    /// The frame has at least one `data` line.
    pub has_data: bool,
}

/// A frame exceeded its size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTooLong;

/// Takes bytes in any pieces and returns frames.
#[derive(Debug, Default)]
pub struct SseParser {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    event: String,
    data: String,
    stray: String,
    has_data: bool,
    /// The last line ended in CR; a LF that follows belongs to it.
    after_cr: bool,
    /// The first line, which may begin with a byte-order mark, is over.
    begun: bool,
    /// The `id` of the frame that is being read.
    id: Option<String>,
    last_event_id: Option<String>,
    retry: Option<Duration>,
}

impl SseParser {
    /// A parser at the beginning of a body.
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of the newest complete frame that had one: the position from which the stream can be resumed.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref().filter(|id| !id.is_empty())
    }

    /// The delay before a reconnection that the server asked for.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Parses the next piece of the body and calls `on_frame` for every frame it completes.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut on_frame: impl FnMut(Frame<'_>),
    ) -> Result<(), FrameTooLong> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\r', b'\n', bytes) {
            if self.line.is_empty() {
                self.take_line(&bytes[..end], &mut on_frame)?;
            } else {
                self.line.extend_from_slice(&bytes[..end]);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut on_frame)?;
                // Reuse the allocation for the next cut line.
                self.line = line;
                self.line.clear();
            }
            let ended_in_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if ended_in_cr {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
        }
        if self.line.len() + bytes.len() > MAX_FRAME_BYTES {
            return Err(FrameTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Ends the body: a frame without its final blank line still counts.
    pub fn finish(&mut self, mut on_frame: impl FnMut(Frame<'_>)) -> Result<(), FrameTooLong> {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, &mut on_frame)?;
        }
        // The frame may be torn, so a stream is not resumed after it.
        self.id = None;
        self.dispatch(&mut on_frame);
        Ok(())
    }

    fn take_line(
        &mut self,
        mut line: &[u8],
        on_frame: &mut impl FnMut(Frame<'_>),
    ) -> Result<(), FrameTooLong> {
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(on_frame);
            return Ok(());
        }
        let (name, value) = match memchr(b':', line) {
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match name {
            b"data" => {
                if self.data.len() + value.len() > MAX_FRAME_BYTES {
                    return Err(FrameTooLong);
                }
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                push_text(&mut self.data, value);
            }
            b"event" => {
                self.event.clear();
                push_text(&mut self.event, value);
            }
            b"id" if value.len() <= MAX_ID_BYTES && !value.contains(&0) => {
                let mut id = String::new();
                push_text(&mut id, value);
                self.id = Some(id);
            }
            b"retry" => {
                let millis = std::str::from_utf8(value).ok();
                let millis = millis.and_then(|millis| millis.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            // An empty name is a comment.
            b"" | b"id" => {}
            _ if self.stray.len() < MAX_STRAY_BYTES => {
                if !self.stray.is_empty() {
                    self.stray.push('\n');
                }
                push_text(&mut self.stray, &line[..line.len().min(MAX_STRAY_BYTES)]);
            }
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, on_frame: &mut impl FnMut(Frame<'_>)) {
        if let Some(id) = self.id.take() {
            self.last_event_id = Some(id);
        }
        if self.has_data || !self.event.is_empty() || !self.stray.is_empty() {
            on_frame(Frame {
                event: &self.event,
                data: &self.data,
                stray: &self.stray,
                has_data: self.has_data,
            });
        }
        self.event.clear();
        self.data.clear();
        self.stray.clear();
        self.has_data = false;
    }
}

/// Lines are whole, so only bytes that are not UTF-8 at all are replaced.
fn push_text(target: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => target.push_str(text),
        Err(_) => target.push_str(&String::from_utf8_lossy(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Owned = (String, String, String, bool);

    fn frames<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
        let mut parser = SseParser::new();
        let mut frames = Vec::new();
        let mut keep = |frame: Frame<'_>| {
            let Frame {
                event,
                data,
                stray,
                has_data,
            } = frame;
            frames.push((
                event.to_owned(),
                data.to_owned(),
                stray.to_owned(),
                has_data,
            ));
        };
        for piece in pieces {
            parser.push(piece, &mut keep).unwrap();
        }
        parser.finish(&mut keep).unwrap();
        frames
    }

    fn data(event: &str, data: &str) -> Owned {
        (event.to_owned(), data.to_owned(), String::new(), true)
    }

    #[test]
    fn fields_comments_and_blank_lines() {
        let body = ": hello\n\n\nevent: a\ndata: 1\ndata:2\ndata\nid: 7\nretry: 3\n\ndata:  x\n\n";
        assert_eq!(
            frames([body.as_bytes()]),
            [data("a", "1\n2\n"), data("", " x")]
        );
    }

    #[test]
    fn only_complete_frames_move_the_position_to_resume_from() {
        let mut parser = SseParser::new();
        parser.push(b"retry: 250\nid: 7\ndata:\n", |_| {}).unwrap();
        assert_eq!(parser.last_event_id(), None);
        parser
            .push(b"\nretry: soon\nid: 8\ndata: x", |_| {})
            .unwrap();
        assert_eq!(parser.last_event_id(), Some("7"));
        parser.finish(|_| {}).unwrap();
        assert_eq!(parser.last_event_id(), Some("7"));
        assert_eq!(parser.retry(), Some(Duration::from_millis(250)));
    }

    #[test]
    fn every_kind_of_line_end() {
        for end in ["\n", "\r\n", "\r"] {
            let body = ["event: a", "data: 1", "", "data: 2", "", ""].join(end);
            assert_eq!(
                frames([body.as_bytes()]),
                [data("a", "1"), data("", "2")],
                "{end:?}"
            );
        }
    }

    #[test]
    fn a_cut_between_cr_and_lf_is_one_line_end() {
        let pieces: [&[u8]; 4] = [b"event: a\r", b"\ndata: 1\r", b"", b"\n\r\n"];
        assert_eq!(frames(pieces), [data("a", "1")]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once() {
        assert_eq!(
            frames([&b"\xef\xbb"[..], b"\xbfdata: 1\n\n"]),
            [data("", "1")]
        );
        assert_eq!(
            frames([&b"\xef\xbb\xbf\n"[..], b"data: 1"]),
            [data("", "1")]
        );
    }

    #[test]
    fn the_last_frame_needs_no_blank_line() {
        assert_eq!(frames([&b"event: done"[..]]).len(), 1);
        assert_eq!(frames([&b"data: 1\n"[..]]), [data("", "1")]);
    }

    #[test]
    fn text_outside_of_fields_is_kept() {
        let body = b"data: 1\n\n{\n  \"error\": {}\n}\n\n";
        let stray = "{\n  \"error\": {}\n}".to_owned();
        let expected = [data("", "1"), (String::new(), String::new(), stray, false)];
        assert_eq!(frames([&body[..]]), expected);
    }

    #[test]
    fn a_frame_without_end_is_refused() {
        let mut parser = SseParser::new();
        let megabyte = vec![b'x'; 1024 * 1024];
        let refused = (0..70).any(|_| parser.push(&megabyte, |_| {}).is_err());
        assert!(refused);
    }

    fn body() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            Just(""),
            Just("data: café 😀"),
            Just("data:x"),
            Just("data"),
            Just("event: content_block_delta"),
            Just(": comment"),
            Just("{\"error\":1}"),
            Just("id: 1"),
        ];
        let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
        let start = prop_oneof![Just(""), Just("\u{feff}")];
        (start, proptest::collection::vec((line, end), 0..12)).prop_map(|(start, lines)| {
            let mut body = start.as_bytes().to_vec();
            for (line, end) in lines {
                body.extend_from_slice(line.as_bytes());
                body.extend_from_slice(end.as_bytes());
            }
            body
        })
    }

    proptest! {
        #[test]
        fn cutting_a_body_elsewhere_changes_nothing(
            body in body(),
            cuts in proptest::collection::vec(0usize..400, 0..8),
        ) {
            let whole = frames([&body[..]]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([body.len()]) {
                pieces.push(&body[from..cut]);
                from = cut;
            }
            prop_assert_eq!(&frames(pieces), &whole);
            prop_assert_eq!(&frames(body.chunks(1)), &whole);
        }

        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(frames(body.chunks(1)), frames([&body[..]]));
        }
    }
}
