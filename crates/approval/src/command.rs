//! Patterns of commands, and the check whether a shell command fits them.

use pinion_text::fits_wildcard;

use crate::shell::Script;
use crate::simple_command::{Redirection, SimpleCommand, Word};

/// The certainty that something fits a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    No,
    /// The text of the command is not enough to decide.
    Maybe,
    Yes,
}

/// A pattern of one simple command: words in which `*` stands for any text. At the end, `*` also stands for any further
/// words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    words: Vec<String>,
    rest: Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// No further words.
    None,
    /// Any further words.
    Any,
    /// The last word may be longer, and any further words may follow.
    Glued,
}

/// Commands that run the command in their arguments.
const WRAPPERS: &[&str] = &[
    "sudo", "doas", "env", "nohup", "time", "nice", "ionice", "timeout", "setsid", "stdbuf",
    "command", "builtin", "exec", "xargs", "find", "watch", "strace", "chroot", "busybox",
    "parallel", "flock", "script", "unshare", "nsenter", "runuser", "su", "ssh", "if", "then",
];
/// Commands that take a script in their arguments.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "eval", "source", ".", "trap", "alias",
];
/// Built-in commands that may evaluate the subscript of an array in an argument.
const EVALUATING: &[&str] = &[
    "printf",
    "test",
    "[",
    "let",
    "read",
    "unset",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "mapfile",
    "readarray",
    "wait",
    "getopts",
];

impl CommandPattern {
    /// Parses a pattern; the error is a message about the mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        const SPECIAL: &str = ";&|<>()$`'\"\\#\n\r";
        if let Some(found) = text.chars().find(|c| SPECIAL.contains(*c)) {
            return Err(format!(
                "a rule is one plain command, so it cannot contain {found:?}; write words as they are without quotes"
            ));
        }
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let first = words.first().map_or("", String::as_str);
        if first.contains('=') {
            return Err(
                "a rule starts with a command, not with a variable; remove the assignment".into(),
            );
        }
        let rest = match words.last_mut() {
            Some(last) if last.as_str() == "*" => {
                words.pop();
                Rest::Any
            }
            Some(last) if last.ends_with('*') => {
                last.pop();
                Rest::Glued
            }
            _ => Rest::None,
        };
        Ok(Self { words, rest })
    }

    /// Checks the words of a command.
    pub fn fit(&self, words: &[Word]) -> Fit {
        for (at, pattern) in self.words.iter().enumerate() {
            let Some(word) = words.get(at) else {
                return Fit::No;
            };
            let glued = self.rest == Rest::Glued && at + 1 == self.words.len();
            let fits = if glued {
                begins_with(pattern, &word.text)
            } else {
                !word.open && fits_wildcard(pattern, &word.text)
            };
            if !fits {
                return if word.open { Fit::Maybe } else { Fit::No };
            }
        }
        let further = words.get(self.words.len()..).unwrap_or_default();
        match self.rest {
            Rest::Any | Rest::Glued => Fit::Yes,
            Rest::None if further.is_empty() => Fit::Yes,
            // Open words may expand to nothing.
            Rest::None if further.iter().all(|word| word.open) => Fit::Maybe,
            Rest::None => Fit::No,
        }
    }
}

/// Reports whether every command in `script` certainly fits one of the patterns.
pub(crate) fn all_fit<'a>(
    script: &Script,
    patterns: impl Iterator<Item = &'a CommandPattern> + Clone,
) -> bool {
    let fits = |command: &SimpleCommand| {
        !command.assigns
            && command.redirection != Redirection::ToFile
            && !evaluates(command)
            && patterns
                .clone()
                .any(|pattern| pattern.fit(&command.words) == Fit::Yes)
    };
    !script.opaque && !script.commands.is_empty() && script.commands.iter().all(fits)
}

/// Checks whether any command in `script` fits the pattern, including commands that another command runs.
pub(crate) fn any_fits(script: &Script, pattern: &CommandPattern) -> Fit {
    let commands = script.commands.iter();
    let best = commands.map(|command| fits_anywhere(&command.words, pattern));
    let best = best.max().unwrap_or(Fit::No);
    if script.opaque {
        best.max(Fit::Maybe)
    } else {
        best
    }
}

fn fits_anywhere(words: &[Word], pattern: &CommandPattern) -> Fit {
    let Some(first) = words.first() else {
        return Fit::No;
    };
    let name = base_name(&first.text);
    let mut best = fits_by_name(words, pattern);
    if WRAPPERS.contains(&name) {
        for from in 1..words.len() {
            best = best.max(fits_by_name(&words[from..], pattern));
        }
    }
    if INTERPRETERS.contains(&name) && words.len() > 1 {
        best = best.max(Fit::Maybe);
    }
    best
}

/// Checks the words as written, and with the base name of the program: `/bin/rm` is `rm`.
fn fits_by_name(words: &[Word], pattern: &CommandPattern) -> Fit {
    let as_written = pattern.fit(words);
    match words.split_first() {
        Some((first, rest)) if first.text.contains('/') && !first.open => {
            let mut named = vec![Word::literal(base_name(&first.text))];
            named.extend_from_slice(rest);
            as_written.max(pattern.fit(&named))
        }
        _ => as_written,
    }
}

fn base_name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// Reports whether a built-in command may evaluate one of its arguments.
fn evaluates(command: &SimpleCommand) -> bool {
    let name = command.words.first().map_or("", |word| word.text.as_str());
    let suspicious = |word: &Word| word.text.contains('[') && word.text.contains(['$', '`']);
    EVALUATING.contains(&name) && command.words.iter().any(suspicious)
}

/// Reports whether a prefix of `text` matches `pattern`.
fn begins_with(pattern: &str, text: &str) -> bool {
    fits_wildcard(&format!("{pattern}*"), text)
}

#[cfg(test)]
mod tests;
