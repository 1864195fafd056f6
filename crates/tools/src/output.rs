//! The output of a command: its end in memory, and all of it in a log once it is long.
//!
//! Memory is bounded for any output, and each byte is processed once. `truncate.rs` cuts the output
//! to the limits of a model on demand.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use pinion_message::{Mask, MaskStream};

use crate::ResultForm;
use crate::decode::Decoder;
use crate::log_file::LogFile;
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
    /// Bytes of the line before the last one.
    line_before_bytes: u64,
    form: ResultForm,
    /// The output so far, while it is short.
    held: Option<Vec<u8>>,
    /// The place of the whole output once it is long.
    log: LogFile,
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

/// Lets a command wait until its log and its follower can take more.
#[derive(Debug)]
pub(crate) struct OutputPace {
    log: LogFile,
    follower: Option<Arc<dyn Follower>>,
}

impl Follower for OutputPace {
    /// The output itself passes through [`Output`].
    fn printed(&self, _: &str) {}

    fn has_room(&self) -> bool {
        let follower = self.follower.as_ref();
        self.log.has_room() && follower.is_none_or(|follower| follower.has_room())
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        async {
            self.log.room().await;
            if let Some(follower) = &self.follower {
                follower.room().await;
            }
        }
        .boxed()
    }
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
            line_before_bytes: 0,
            form: ResultForm::Text,
            held: Some(Vec::new()),
            log: LogFile::default(),
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

    /// Sends the output also to `follower` as it arrives.
    pub fn followed_by(self, follower: Arc<dyn Follower>, mask: &Mask) -> Self {
        let mask = mask.stream();
        Self {
            follower: Some(MaskedFollower { follower, mask }),
            ..self
        }
    }

    /// Counts lines as results of this form do.
    pub fn in_form(self, form: ResultForm) -> Self {
        Self { form, ..self }
    }

    /// Returns the pace of the output for [`crate::ShellOptions`].
    pub fn pace(&self) -> OutputPace {
        let follower = self.follower.as_ref();
        OutputPace {
            log: self.log.clone(),
            follower: follower.map(|masked| Arc::clone(&masked.follower)),
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let mut text = std::mem::take(&mut self.scratch);
        self.decoder.push(bytes, &mut text);
        self.take_decoded(&text, Some(bytes));
        text.clear();
        self.scratch = text;
    }

    /// Ends the output. Its log may still be written; see [`Output::log_file`].
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
                self.tell(text);
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
            Some(at) => {
                let before = memchr::memrchr(b'\n', &text.as_bytes()[..at]);
                self.line_before_bytes = match before {
                    Some(start) => (at - start - 1) as u64,
                    None => self.last_line_bytes + at as u64,
                };
                self.last_line_bytes = (text.len() - at - 1) as u64;
            }
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
        let lines = if self.opens_no_line() {
            self.totals.without_last_line().lines
        } else {
            self.totals.lines
        };
        let fits = lines <= MAX_LINES as u64 && self.totals.bytes <= MAX_BYTES as u64;
        match &mut self.held {
            Some(held) => {
                held.extend_from_slice(bytes);
                if !fits {
                    let held = self.held.take().unwrap_or_default();
                    self.log.write(&held);
                }
            }
            None => self.log.write(bytes),
        }
    }

    /// The end of the output, within the limits.
    pub fn tail(&self) -> Truncation {
        if self.form.is_structured() {
            truncate::tail_of_lines(&self.window, self.totals)
        } else {
            truncate::tail(&self.window, self.totals)
        }
    }

    /// Returns as much of the end of the output as is in memory, and whether that is all of it.
    pub fn window(&self) -> (&str, bool) {
        let is_whole = self.window.len() as u64 == self.totals.bytes;
        (&self.window, is_whole)
    }

    /// Reports whether the output ends with a line break that opens no line.
    fn opens_no_line(&self) -> bool {
        self.form.is_structured() && self.last_line_bytes == 0 && self.totals.bytes > 0
    }

    pub fn is_empty(&self) -> bool {
        self.totals.bytes == 0
    }

    /// Bytes of the last line, which may be longer than what is shown of it.
    pub fn last_line_bytes(&self) -> u64 {
        if self.opens_no_line() {
            self.line_before_bytes
        } else {
            self.last_line_bytes
        }
    }

    /// The log of all of the output, which exists if that is longer than what is shown.
    pub fn log_file(&self) -> &LogFile {
        &self.log
    }

    /// The file with all of the output, if that is longer than what is shown.
    pub fn log_path(&self) -> Option<PathBuf> {
        self.log.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn finished(mut output: Output) -> Output {
        output.finish();
        output.log_file().finish(false).await;
        output
    }

    fn logged(output: &Output) -> String {
        let path = output.log_path().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        text
    }

    #[tokio::test]
    async fn short_output_stays_in_memory() {
        let mut output = Output::raw();
        output.push("caf\u{e9}\n".as_bytes().split_at(4).0);
        output.push("caf\u{e9}\n".as_bytes().split_at(4).1);
        let output = finished(output).await;
        assert_eq!(output.tail().content, "café\n");
        assert_eq!((output.tail().truncated, output.log_path()), (false, None));
    }

    #[tokio::test]
    async fn counts_stay_exact_when_only_the_end_is_kept() {
        let mut output = Output::raw();
        let text: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        for piece in text.as_bytes().chunks(7919) {
            output.push(piece);
            output.pace().room().await;
        }
        let output = finished(output).await;
        assert!(output.window.len() <= MAX_WINDOW_BYTES);
        assert_eq!(output.tail(), truncate::tail(&text, Totals::of(&text)));
        assert_eq!(logged(&output), text);
    }

    #[tokio::test]
    async fn one_endless_line_keeps_its_end_and_its_length() {
        let mut output = Output::raw();
        for _ in 0..40 {
            output.push(&[b'y'; 3000]);
            output.pace().room().await;
        }
        let output = finished(output).await;
        let tail = output.tail();
        assert!(tail.last_line_partial);
        assert_eq!(
            (tail.total_lines, tail.total_bytes, tail.output_bytes),
            (1, 120_000, 51_200)
        );
        assert_eq!(output.last_line_bytes(), 120_000);
        assert_eq!(logged(&output).len(), 120_000);
    }

    #[tokio::test]
    async fn a_sanitised_log_is_as_clean_as_the_output() {
        let mut output = Output::sanitised();
        for n in 0..3000 {
            output.push(format!("\u{1b}[3{}mx\u{1b}[0m\r\n", n % 8).as_bytes());
            output.pace().room().await;
        }
        let output = finished(output).await;
        assert_eq!(output.tail().total_bytes, 6000);
        assert_eq!(logged(&output), "x\n".repeat(3000));
    }
}
