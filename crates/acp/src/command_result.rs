//! The result of `bash` as text: its output, what it adds for the model, and the exit code.

/// The parts of a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandResult<'a> {
    /// The output without the notes.
    pub output: &'a str,
    /// The notes about missing output, a time limit or an abort; without the exit code.
    pub notes: String,
    /// `None` if the command did not exit by itself.
    pub exit_code: Option<i32>,
}

/// The words before an exit code.
const EXITED: &str = "Command exited with code ";
/// The beginnings of notes about other ends.
const ENDS: [&str; 2] = ["Command timed out after ", "Command aborted"];
/// The beginning of a note about missing output.
const SHOWING: &str = "[Showing ";

impl<'a> CommandResult<'a> {
    /// Reads the text of a result.
    pub fn read(text: &'a str, is_error: bool) -> Self {
        let mut exit_code = (!is_error).then_some(0);
        let mut rest = text;
        let mut notes = Vec::new();
        let (before, last) = last_line(rest);
        if is_error && let Some(code) = last.strip_prefix(EXITED) {
            exit_code = code.parse().ok();
            rest = before;
        } else if is_error && ENDS.iter().any(|end| last.starts_with(end)) {
            notes.push(last);
            rest = before;
        }
        let (before, last) = last_line(rest.trim_end_matches('\n'));
        if last.starts_with(SHOWING) && last.ends_with(']') {
            notes.insert(0, last);
            rest = before;
        }
        Self {
            output: if rest.trim_end() == "(no output)" {
                ""
            } else {
                rest.trim_end_matches('\n')
            },
            notes: notes.join("\n"),
            exit_code,
        }
    }
}

fn last_line(text: &str) -> (&str, &str) {
    match text.rfind('\n') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => ("", text),
    }
}

/// Returns a result with one blank line before its last note.
pub(crate) fn tidy(text: &str) -> String {
    let (before, last) = last_line(text);
    if last.starts_with(EXITED) || ENDS.iter().any(|end| last.starts_with(end)) {
        let before = before.trim_end_matches('\n');
        if !before.is_empty() {
            return format!("{before}\n\n{last}");
        }
    }
    text.to_owned()
}

/// Returns lines as a terminal needs them.
pub(crate) fn for_terminal(text: &str) -> String {
    let mut lines = text.trim_end_matches('\n').replace('\n', "\r\n");
    lines.push_str("\r\n");
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_taken_apart() {
        for (text, is_error, output, notes, exit_code) in [
            ("a\n", false, "a", "", Some(0)),
            ("(no output)", false, "", "", Some(0)),
            ("a\n\n\nCommand exited with code 3", true, "a", "", Some(3)),
            (
                "(no output)\n\nCommand exited with code 1",
                true,
                "",
                "",
                Some(1),
            ),
            ("Command exited with code 1", true, "", "", Some(1)),
            (
                "a\n\nCommand timed out after 2 seconds",
                true,
                "a",
                "Command timed out after 2 seconds",
                None,
            ),
            ("Command aborted", true, "", "Command aborted", None),
            (
                "z\n\n[Showing lines 2-9 of 9. Full output: /tmp/x]\n\nCommand exited with code 2",
                true,
                "z",
                "[Showing lines 2-9 of 9. Full output: /tmp/x]",
                Some(2),
            ),
            ("Operation aborted", true, "Operation aborted", "", None),
            (
                "Command exited with code 5\n",
                false,
                "Command exited with code 5",
                "",
                Some(0),
            ),
        ] {
            let expected = CommandResult {
                output,
                notes: notes.to_owned(),
                exit_code,
            };
            assert_eq!(CommandResult::read(text, is_error), expected, "{text:?}");
        }
        assert_eq!(
            tidy("a\n\n\nCommand exited with code 3"),
            "a\n\nCommand exited with code 3"
        );
        assert_eq!(for_terminal("a\nb"), "a\r\nb\r\n");
    }
}
