//! The question whether to continue in the chat, asked on the terminal even if standard input and output are
//! redirected.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;

use pinion_process::signals::ShutdownSignals;
use tokio::runtime::Runtime;

const QUESTION: &str = "continue in chat? [y/n] ";

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Yes,
    No,
    /// A signal arrived instead; holds the exit code.
    Signal(u8),
}

/// Asks the user; returns `No` if pinion has no terminal in the foreground.
pub(crate) fn ask(runtime: &Runtime, signals: &mut ShutdownSignals) -> Reply {
    let Ok(Some(terminal)) = own_terminal() else {
        return Reply::No;
    };
    let asking = move || put(&mut BufReader::new(&terminal), &mut &terminal).unwrap_or(Reply::No);
    runtime.block_on(async {
        tokio::select! {
            reply = tokio::task::spawn_blocking(asking) => reply.unwrap_or(Reply::No),
            code = signals.received() => Reply::Signal(code),
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

/// Repeats the question until there is a valid answer. An empty line means yes; the end of input means no.
fn put(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<Reply> {
    loop {
        output.write_all(QUESTION.as_bytes())?;
        output.flush()?;
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            output.write_all(b"\n")?;
            return Ok(Reply::No);
        }
        match String::from_utf8_lossy(&line)
            .trim()
            .to_lowercase()
            .as_str()
        {
            "" | "y" | "yes" => return Ok(Reply::Yes),
            "n" | "no" => return Ok(Reply::No),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(typed: &str) -> (Reply, usize) {
        let mut output = Vec::new();
        let reply = put(&mut typed.as_bytes(), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        (reply, output.matches(QUESTION).count())
    }

    #[test]
    fn nothing_means_yes_and_other_words_are_asked_again() {
        for (typed, reply, times) in [
            ("\n", Reply::Yes, 1),
            ("y\n", Reply::Yes, 1),
            (" Yes \n", Reply::Yes, 1),
            ("n\n", Reply::No, 1),
            ("NO\n", Reply::No, 1),
            ("", Reply::No, 1),
            ("what?\n\u{e9}\nn\n", Reply::No, 3),
            ("perhaps", Reply::No, 2),
        ] {
            assert_eq!(asked(typed), (reply, times), "{typed:?}");
        }
    }
}
