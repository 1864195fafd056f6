//! The output of a command as text for a model: its beginning, within the limits of every tool.

use pinion_tools::{MAX_BYTES, MAX_LINES};
use serde_json::Value;

/// The outputs of a call, joined as they arrive. Stores no more than the model receives.
#[derive(Debug, Default)]
pub(super) struct CommandOutput {
    text: String,
    lines: usize,
    /// Bytes of all outputs, including the part that was cut.
    total: usize,
    outputs: usize,
    /// The last output was a text; the next text is appended to it without a line break.
    in_text: bool,
    is_full: bool,
}

impl CommandOutput {
    /// Adds an output. Texts are appended to each other; any other value starts and ends a line.
    pub fn push(&mut self, output: &[u8]) {
        let text = serde_json::from_slice::<String>(output).ok();
        let is_text = text.is_some();
        let apart = self.outputs > 0 && !(is_text && self.in_text);
        if apart && self.total > 0 && !self.text.ends_with('\n') {
            self.add("\n");
        }
        match text {
            Some(text) => self.add(&text),
            None => self.add(&printed(output)),
        }
        self.outputs += 1;
        self.in_text = is_text;
    }

    fn add(&mut self, text: &str) {
        self.total += text.len();
        if self.is_full {
            return;
        }
        for part in text.split_inclusive('\n') {
            let room = MAX_BYTES - self.text.len();
            if part.len() > room || self.lines >= MAX_LINES {
                let kept = if self.lines >= MAX_LINES { 0 } else { room };
                self.text.push_str(&part[..part.floor_char_boundary(kept)]);
                self.is_full = true;
                return;
            }
            self.text.push_str(part);
            self.lines += usize::from(part.ends_with('\n'));
        }
    }

    /// Reports whether further output would be cut.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the text so far.
    pub fn so_far(&self) -> String {
        self.text.clone()
    }

    /// Returns the whole text, with a note if it was cut; `(no output)` if the command sent nothing.
    pub fn whole(self) -> String {
        match (self.is_full, self.outputs) {
            (true, _) => format!(
                "{}\n\n[Output cut: the first {} of {} bytes are shown. Ask for less at a time.]",
                self.text,
                self.text.len(),
                self.total
            ),
            (false, 0) => "(no output)".into(),
            (false, _) => self.text,
        }
    }
}

/// Formats a value: up to 200 bytes on one line, longer ones indented.
fn printed(output: &[u8]) -> String {
    const SHORT: usize = 200;
    let plain = || String::from_utf8_lossy(output).into_owned();
    if output.len() <= SHORT || output.len() > MAX_BYTES {
        return plain();
    }
    match serde_json::from_slice::<Value>(output) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_else(|_| plain()),
        Err(_) => plain(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(outputs: &[&str]) -> String {
        let mut gathered = CommandOutput::default();
        outputs
            .iter()
            .for_each(|output| gathered.push(output.as_bytes()));
        gathered.whole()
    }

    #[test]
    fn texts_are_joined_and_the_rest_stands_apart() {
        assert_eq!(whole(&[]), "(no output)");
        assert_eq!(whole(&["{}"]), "{}");
        assert_eq!(whole(&["\"Hel\"", "\"lo\""]), "Hello");
        assert_eq!(
            whole(&["{\"n\":1}", "{\"n\":2}", "\"a\"", "\"b\""]),
            "{\"n\":1}\n{\"n\":2}\nab"
        );
        assert_eq!(whole(&["9007199254740993"]), "9007199254740993");
    }

    #[test]
    fn long_outputs_keep_their_beginning() {
        let long = format!("\"{}\"", "é".repeat(MAX_BYTES));
        let text = whole(&["\"a\"", &long, "\"never seen\""]);
        assert!(
            text.starts_with("aé") && !text.contains("never"),
            "{}",
            text.len()
        );
        assert!(text.contains(&format!("of {} bytes", 2 * MAX_BYTES + 1 + 10)));
        let lines: Vec<String> = (0..3000).map(|line| format!("\"{line}\\n\"")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = whole(&lines);
        assert!(text.contains("\n1999\n") && !text.contains("\n2000\n"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn no_output_takes_more_than_its_limit(outputs in proptest::collection::vec(".{0,400}", 0..300)) {
            let mut gathered = CommandOutput::default();
            for output in &outputs {
                gathered.push(&serde_json::to_vec(output).unwrap());
                gathered.push(output.as_bytes());
                prop_assert!(gathered.so_far().len() <= MAX_BYTES);
            }
        }
    }
}
