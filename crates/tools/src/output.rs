//! The output of a command: its end in memory, and all of it in a file once it is long.
//!
//! Memory is bounded for any output, and each byte is processed once. `truncate.rs` cuts the output
//! to the limits of a model on demand.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinion_message::{Mask, MaskStream};

use crate::decode::Decoder;
use crate::sanitise::Sanitiser;
use crate::shell::Follower;
use crate::truncate::{self, MAX_BYTES, MAX_LINES, Totals, Truncation};

/// Bytes of the end to which the window is cut back …
const WINDOW_BYTES: usize = MAX_BYTES + 1024;
/// … when it has grown to this much, so that each byte is moved at most once.
const MAX_WINDOW_BYTES: usize = 4 * MAX_BYTES;

/// Collects a command's output.
#[derive(Debug)]
pub(crate) struct Output {
    decoder: Decoder,
    sanitiser: Option<Sanitiser>,
    /// The end of the text.
    window: String,
    totals: Totals,
    last_line_bytes: u64,
    log: Log,
    scratch: String,
    follower: Option<MaskedFollower>,
}

/// A follower that receives the output without known keys.
#[derive(Debug)]
struct MaskedFollower {
    follower: Arc<dyn Follower>,
    mask: MaskStream,
}

impl MaskedFollower {
    fn tell(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.follower.printed(&String::from_utf8_lossy(bytes));
        }
    }
}

/// The place of the whole output.
#[derive(Debug)]
enum Log {
    /// In memory, while it is short.
    Held(Vec<u8>),
    Open(File, PathBuf),
    /// The file could not be created or written.
    Failed,
}

impl Output {
    /// For output as it is.
    pub fn raw() -> Self {
        Self {
            decoder: Decoder::default(),
            sanitiser: None,
            window: String::new(),
            totals: Totals { lines: 1, bytes: 0 },
            last_line_bytes: 0,
            log: Log::Held(Vec::new()),
            scratch: String::new(),
            follower: None,
        }
    }

    /// For output without escape sequences and control characters.
    pub fn sanitised() -> Self {
        Self {
            sanitiser: Some(Sanitiser::default()),
            ..Self::raw()
        }
    }

    /// For output without escape sequences and control characters, which is also sent to `follower`
    /// as it arrives.
    pub fn followed(follower: Option<Arc<dyn Follower>>, mask: &Mask) -> Self {
        Self {
            follower: follower.map(|follower| MaskedFollower {
                follower,
                mask: mask.stream(),
            }),
            ..Self::sanitised()
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let mut text = std::mem::take(&mut self.scratch);
        self.decoder.push(bytes, &mut text);
        self.take_decoded(&text, Some(bytes));
        text.clear();
        self.scratch = text;
    }

    /// Ends the output.
    pub fn finish(&mut self) {
        let mut text = String::new();
        self.decoder.finish(&mut text);
        self.take_decoded(&text, None);
        if let Some(mut sanitiser) = self.sanitiser.take() {
            let mut clean = String::new();
            sanitiser.finish(&mut clean);
            self.take(&clean);
            self.log(clean.as_bytes());
            self.tell(&clean);
        }
        if let Some(mut following) = self.follower.take() {
            let held = following.mask.finish();
            following.tell(&held);
        }
    }

    /// Adds decoded text. The log contains raw bytes, or sanitised text if sanitising is on.
    fn take_decoded(&mut self, text: &str, raw: Option<&[u8]>) {
        match &mut self.sanitiser {
            Some(sanitiser) => {
                let mut clean = String::with_capacity(text.len());
                sanitiser.push(text, &mut clean);
                self.take(&clean);
                self.log(clean.as_bytes());
                self.tell(&clean);
            }
            None => {
                self.take(text);
                self.log(raw.unwrap_or_default());
            }
        }
    }

    fn tell(&mut self, text: &str) {
        if let Some(following) = &mut self.follower {
            let shown = following.mask.push(text.as_bytes());
            following.tell(&shown);
        }
    }

    fn take(&mut self, text: &str) {
        self.totals.bytes += text.len() as u64;
        self.totals.lines += truncate::line_count(text.as_bytes()) - 1;
        match memchr::memrchr(b'\n', text.as_bytes()) {
            Some(at) => self.last_line_bytes = (text.len() - at - 1) as u64,
            None => self.last_line_bytes += text.len() as u64,
        }
        self.window.push_str(text);
        if self.window.len() > MAX_WINDOW_BYTES {
            let start = self
                .window
                .floor_char_boundary(self.window.len() - WINDOW_BYTES);
            self.window.drain(..start);
        }
    }

    fn log(&mut self, bytes: &[u8]) {
        let fits = self.totals.lines <= MAX_LINES as u64 && self.totals.bytes <= MAX_BYTES as u64;
        match &mut self.log {
            Log::Held(held) => {
                held.extend_from_slice(bytes);
                if !fits {
                    self.log =
                        open_log(held).map_or(Log::Failed, |(file, path)| Log::Open(file, path));
                }
            }
            Log::Open(file, path) => {
                if file.write_all(bytes).is_err() {
                    // Most likely the disk is full, and an incomplete log is not worth the space.
                    let _ = std::fs::remove_file(path);
                    self.log = Log::Failed;
                }
            }
            Log::Failed => {}
        }
    }

    /// The end of the output, within the limits.
    pub fn tail(&self) -> Truncation {
        truncate::tail(&self.window, self.totals)
    }

    pub fn is_empty(&self) -> bool {
        self.totals.bytes == 0
    }

    /// Bytes of the last line, which may be longer than what is shown of it.
    pub fn last_line_bytes(&self) -> u64 {
        self.last_line_bytes
    }

    /// The file with all of the output, if that is longer than what is shown.
    pub fn log_path(&self) -> Option<&Path> {
        match &self.log {
            Log::Open(_, path) => Some(path),
            _ => None,
        }
    }
}

fn open_log(held: &[u8]) -> std::io::Result<(File, PathBuf)> {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    let path = std::env::temp_dir().join(format!("pi-bash-{:016x}.log", high ^ low));
    // The output of a command may be private.
    let mut file = pinion_files::create_new(&path, 0o600)?;
    file.write_all(held)?;
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(output: &Output) -> String {
        let path = output.log_path().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::remove_file(path).unwrap();
        text
    }

    #[test]
    fn short_output_stays_in_memory() {
        let mut output = Output::raw();
        output.push("caf\u{e9}\n".as_bytes().split_at(4).0);
        output.push("caf\u{e9}\n".as_bytes().split_at(4).1);
        output.finish();
        assert_eq!(output.tail().content, "café\n");
        assert_eq!((output.tail().truncated, output.log_path()), (false, None));
    }

    #[test]
    fn counts_stay_exact_when_only_the_end_is_kept() {
        let mut output = Output::raw();
        let text: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        text.as_bytes()
            .chunks(7919)
            .for_each(|piece| output.push(piece));
        output.finish();
        assert!(output.window.len() <= MAX_WINDOW_BYTES);
        assert_eq!(output.tail(), truncate::tail(&text, Totals::of(&text)));
        assert_eq!(logged(&output), text);
    }

    #[test]
    fn one_endless_line_keeps_its_end_and_its_length() {
        let mut output = Output::raw();
        (0..40).for_each(|_| output.push(&[b'y'; 3000]));
        output.finish();
        let tail = output.tail();
        assert!(tail.last_line_partial);
        assert_eq!(
            (tail.total_lines, tail.total_bytes, tail.output_bytes),
            (1, 120_000, 51_200)
        );
        assert_eq!(output.last_line_bytes(), 120_000);
        assert_eq!(logged(&output).len(), 120_000);
    }

    #[test]
    fn a_sanitised_log_is_as_clean_as_the_output() {
        let mut output = Output::sanitised();
        (0..3000).for_each(|n| output.push(format!("\u{1b}[3{}mx\u{1b}[0m\r\n", n % 8).as_bytes()));
        output.finish();
        assert_eq!(output.tail().total_bytes, 6000);
        assert_eq!(logged(&output), "x\n".repeat(3000));
    }
}
