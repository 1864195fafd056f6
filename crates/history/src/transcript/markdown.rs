//! A transcript in Markdown.

use std::fmt::Write;

use super::{Entry, Part, Transcript};

pub(super) fn page(transcript: &Transcript) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "# {}\n", inline(&transcript.title));
    for (name, value) in &transcript.facts {
        let _ = writeln!(out, "- {name}: {}", code_span(value));
    }
    for entry in &transcript.entries {
        section(&mut out, entry);
    }
    out
}

fn section(out: &mut String, entry: &Entry) {
    let _ = writeln!(out, "\n## {}", inline(&entry.heading()));
    for part in &entry.parts {
        match part {
            Part::Text(text) => {
                let _ = writeln!(out, "\n{}", text.trim_end());
            }
            Part::Code(code) => {
                let fence = "`".repeat(longest_run(code).max(2) + 1);
                let language = if code.starts_with(['{', '[']) {
                    "json"
                } else {
                    ""
                };
                let _ = writeln!(out, "\n{fence}{language}\n{}\n{fence}", code.trim_end());
            }
        }
    }
}

/// Returns the length of the longest run of backticks; a fence must be longer.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|character| character != '`');
    runs.map(str::len).max().unwrap_or(0)
}

fn code_span(text: &str) -> String {
    let fence = "`".repeat(longest_run(text) + 1);
    let pad = if text.contains('`') { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", one_line(text))
}

/// Escapes text for one line of Markdown.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for character in one_line(text).chars() {
        if "\\`*_[]<>#|".contains(character) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::Author;
    use super::*;

    #[test]
    fn code_stays_within_its_fence_and_words_stay_words() {
        let transcript = Transcript {
            title: "a *b*\n# c".to_owned(),
            facts: vec![("session", "x`y".to_owned())],
            entries: vec![Entry {
                author: Author::ToolResult,
                label: "read_file".to_owned(),
                note: "failed".to_owned(),
                parts: vec![
                    Part::Code("```\ncode\n````\n".to_owned()),
                    Part::Code("{}".to_owned()),
                    Part::Text("as *it* is\n".to_owned()),
                ],
            }],
        };
        assert_eq!(
            transcript.markdown(),
            "# a \\*b\\* \\# c\n\n- session: `` x`y ``\n\n## Result read\\_file (failed)\n\n`````\n```\ncode\n````\n`````\n\n```json\n{}\n```\n\nas *it* is\n"
        );
    }
}
