//! The lines that the user of a plain chat types.

use std::io::{self, BufRead};

use tokio::sync::mpsc;

/// Lines that are read ahead of the chat. The rest waits in the terminal or pipe.
const READ_AHEAD: usize = 16;

/// Returns the lines of standard input until its end. A thread reads them.
pub fn typed_lines() -> io::Result<mpsc::Receiver<String>> {
    let (lines, typed) = mpsc::channel(READ_AHEAD);
    let read = move || {
        for line in lossy_lines(io::stdin().lock()) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("typed".to_owned())
        .spawn(read)?;
    Ok(typed)
}

/// Returns the lines of an input until its end. Bytes that are not UTF-8 are replaced; the rest of the line is used.
fn lossy_lines(input: impl BufRead) -> impl Iterator<Item = String> {
    let lines = input.split(b'\n').map_while(Result::ok);
    lines.map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        String::from_utf8_lossy(line).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_no_text_costs_itself_and_nothing_else() {
        let typed: &[u8] = b"first\ncaf\xe9 at four\r\n\nlast";
        let lines: Vec<String> = lossy_lines(typed).collect();
        assert_eq!(lines, ["first", "caf\u{fffd} at four", "", "last"]);
    }
}
