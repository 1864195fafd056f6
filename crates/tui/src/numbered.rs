//! Picks a session by its number, for terminals without a screen.

use std::io::{self, Write};

use crate::text::{one_line, truncate};
use pinion_session::SessionInfo;

/// Number of sessions shown, the most recently used first.
const MOST: usize = 20;
/// Columns for the name or the first message of a session.
const COLUMNS: usize = 70;

/// Asks which session to continue. Returns `None` if the list is empty or the user picks none.
pub fn pick_by_number<'a>(
    sessions: &'a [SessionInfo],
    output: &mut impl Write,
    mut line: impl FnMut() -> Option<String>,
) -> io::Result<Option<&'a SessionInfo>> {
    let shown = &sessions[..sessions.len().min(MOST)];
    if shown.is_empty() {
        writeln!(output, "There are no sessions of this directory.")?;
        return Ok(None);
    }
    for (number, session) in (1..).zip(shown) {
        let about = session.name.as_ref().unwrap_or(&session.first_message);
        let about = truncate(&one_line(about), COLUMNS);
        let messages = session.message_count;
        writeln!(output, "{number:>3}. {about} ({messages} messages)")?;
    }
    if sessions.len() > shown.len() {
        let rest = sessions.len() - shown.len();
        writeln!(output, "{rest} more: `pinion sessions list`")?;
    }
    loop {
        write!(output, "Which one? A number; an empty line picks none: ")?;
        output.flush()?;
        let Some(typed) = line().filter(|line| !line.trim().is_empty()) else {
            return Ok(None);
        };
        let number = typed.trim().parse::<usize>().ok();
        match number.and_then(|number| shown.get(number.checked_sub(1)?)) {
            Some(session) => return Ok(Some(session)),
            None => writeln!(output, "Answer with a number from 1 to {}.", shown.len())?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u32, name: Option<&str>) -> SessionInfo {
        SessionInfo {
            path: format!("/sessions/{number}.jsonl").into(),
            id: number.to_string(),
            cwd: String::new(),
            name: name.map(str::to_owned),
            parent_session_path: None,
            created: 0,
            modified: 0,
            message_count: 4,
            first_message: "first \u{1b}[2J\nwords".to_owned(),
        }
    }

    /// Returns the id of the session picked with these lines, and the printed text.
    fn picked(sessions: &[SessionInfo], typed: &[&str]) -> (Option<String>, String) {
        let mut output = Vec::new();
        let mut typed = typed.iter().map(|&line| line.to_owned());
        let picked = pick_by_number(sessions, &mut output, || typed.next()).unwrap();
        let printed = String::from_utf8(output).unwrap();
        (picked.map(|session| session.id.clone()), printed)
    }

    #[test]
    fn a_session_is_picked_by_its_number() {
        let sessions = [session(7, Some("parser")), session(8, None)];
        let (id, printed) = picked(&sessions, &["nine", "0", "2"]);
        assert_eq!(id.as_deref(), Some("8"));
        assert!(printed.contains("1. parser (4 messages)"), "{printed}");
        assert!(!printed.contains('\u{1b}'), "{printed:?}");
        assert_eq!(printed.matches("from 1 to 2").count(), 2, "{printed}");
        for nothing in [&[][..], &[""]] {
            assert_eq!(picked(&sessions, nothing).0, None);
        }
        assert!(picked(&[], &["1"]).1.contains("no sessions"));
    }
}
