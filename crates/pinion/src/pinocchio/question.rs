//! The question whether to continue in the chat, asked on the terminal even if standard input and output are
//! redirected.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;

use tokio::runtime::Runtime;

use crate::signals::Ending;

const QUESTION: &str = "continue in chat? [y/n] ";

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    GoOn,
    End,
    /// A signal arrived instead; holds the exit code.
    Signal(u8),
}

/// Asks the user; returns `End` if pinion has no terminal in the foreground.
pub(super) fn ask(runtime: &Runtime, ending: &mut Ending) -> Wish {
    let Ok(Some(terminal)) = own_terminal() else {
        return Wish::End;
    };
    let asking = move || match put(&mut BufReader::new(&terminal), &mut &terminal) {
        Ok(wish) => wish,
        Err(_) => Wish::End,
    };
    runtime.block_on(async {
        tokio::select! {
            wish = tokio::task::spawn_blocking(asking) => wish.unwrap_or(Wish::End),
            code = ending.signalled() => Wish::Signal(code),
        }
    })
}

/// Returns the terminal if pinion's process group is in its foreground: a background process that reads from it would
/// be stopped.
fn own_terminal() -> io::Result<Option<File>> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    // SAFETY: both calls only query pinion's own process and an open descriptor.
    let is_ours = unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) == libc::getpgrp() };
    Ok(is_ours.then_some(terminal))
}

/// Asks until there is a valid answer. An empty line means yes; the end of input means no.
fn put(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<Wish> {
    loop {
        output.write_all(QUESTION.as_bytes())?;
        output.flush()?;
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            output.write_all(b"\n")?;
            return Ok(Wish::End);
        }
        match String::from_utf8_lossy(&line)
            .trim()
            .to_lowercase()
            .as_str()
        {
            "" | "y" | "yes" => return Ok(Wish::GoOn),
            "n" | "no" => return Ok(Wish::End),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(typed: &str) -> (Wish, usize) {
        let mut output = Vec::new();
        let wish = put(&mut typed.as_bytes(), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        (wish, output.matches(QUESTION).count())
    }

    #[test]
    fn nothing_means_yes_and_other_words_are_asked_again() {
        for (typed, wish, times) in [
            ("\n", Wish::GoOn, 1),
            ("y\n", Wish::GoOn, 1),
            (" Yes \n", Wish::GoOn, 1),
            ("n\n", Wish::End, 1),
            ("NO\n", Wish::End, 1),
            ("", Wish::End, 1),
            ("what?\n\u{e9}\nn\n", Wish::End, 3),
            ("perhaps", Wish::End, 2),
        ] {
            assert_eq!(asked(typed), (wish, times), "{typed:?}");
        }
    }
}
