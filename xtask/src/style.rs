//! `cargo xtask style`: checks the wording rules of STYLE.md that a program can check.
//!
//! Three things are counted: doc comments that open with a question word, phrases that STYLE.md replaces, and matches
//! on a boolean. Tests are checked for pauses ([`waits`]). Phrases are searched for in comments and pages; those that are wrong everywhere are also searched for
//! in identifiers and string literals. Tests are exempt from the search for phrases, because they quote other programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::pages;
use crate::shell::{self, Outcome};
use crate::waits;

/// First words that turn a doc comment into a riddle.
const OPENERS: [&str; 10] = [
    "What", "Who", "Whose", "That", "Whether", "How", "Where", "When", "Which", "Why",
];

/// The share of doc comments, in percent, that may open with one of [`OPENERS`].
const OPENERS_LIMIT: f64 = 5.0;

/// Phrases that appear nowhere: not in comments, pages, names or messages.
const NOWHERE: [&str; 6] = [
    "who takes part",
    "is told",
    "are told",
    "nobody",
    "somebody",
    "whoever",
];

/// Phrases that appear in no comment and no page. Messages may quote them from a protocol.
const NOT_IN_PROSE: [&str; 18] = [
    "tells",
    "says",
    "keeps",
    "goes on",
    "go on",
    "is let go",
    "taken for",
    "costs one",
    "costs a",
    "costs nothing",
    "is good",
    "for ever",
    "likewise",
    "knows no",
    "we",
    "us",
    "our",
    "ours",
];

/// Checks the whole project, or only the parts whose paths start with one of `parts`.
pub fn run(parts: &[&str]) -> Outcome {
    let root = shell::root();
    let mut report = Report::default();
    for path in files(&root) {
        let name = path
            .strip_prefix(&root)
            .unwrap_or(&path)
            .display()
            .to_string();
        let wanted = parts.iter().any(|part| name.starts_with(part));
        if !parts.is_empty() && !wanted {
            continue;
        }
        let text =
            fs::read_to_string(&path).map_err(|error| format!("cannot read {name}: {error}"))?;
        report.add(&name, &text);
    }
    if parts.is_empty() {
        report.faults.extend(pages::faults(&root));
    }
    report.print();
    report.verdict(OPENERS_LIMIT)
}

/// Every Rust file, every page and every page of the portal.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let skipped = name.starts_with('.')
                || [
                    "target",
                    "node_modules",
                    "golden",
                    "vectors",
                    "dist",
                    "schemas",
                ]
                .contains(&name.as_str())
                || name.starts_with("target-");
            if skipped {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if [".rs", ".md"].iter().any(|end| name.ends_with(end)) && name != "STYLE.md" {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[derive(Default)]
struct Report {
    /// Doc comments per part of the project: all, and those that open with a question word.
    comments: BTreeMap<String, (usize, usize)>,
    faults: Vec<String>,
}

impl Report {
    fn add(&mut self, name: &str, text: &str) {
        let rust = name.ends_with(".rs");
        if rust {
            // The tests of that file quote pauses.
            if name != "xtask/src/waits.rs" {
                self.faults.extend(waits::faults(name, text));
            }
            let part: Vec<&str> = name.split('/').take(2).collect();
            let counts = self.comments.entry(part.join("/")).or_default();
            for first in doc_comments(text) {
                counts.0 += 1;
                counts.1 += usize::from(opens_with_question_word(first));
            }
        }
        // The list of phrases is in this file.
        if is_test(name) || name == "xtask/src/style.rs" {
            return;
        }
        for (index, line) in text.lines().enumerate() {
            if rust && line.starts_with("#[cfg(test)]") {
                break;
            }
            let lower = line.to_lowercase();
            let without_code = outside_code_spans(&lower);
            let lower = if rust { &lower } else { &without_code };
            let prose = if rust { comment(lower) } else { lower };
            if let Some(phrase) =
                find_phrase(lower, &NOWHERE).or_else(|| find_phrase(prose, &NOT_IN_PROSE))
            {
                self.faults
                    .push(format!("{name}:{}: \"{phrase}\"", index + 1));
            }
            if rust && line.trim_start().starts_with("true =>") {
                self.faults
                    .push(format!("{name}:{}: match on a boolean", index + 1));
            }
        }
        if name.ends_with("/mod.rs") {
            self.faults
                .push(format!("{name}: a module is `name.rs` beside `name/`"));
        }
    }

    fn print(&self) {
        for fault in &self.faults {
            eprintln!("{fault}");
        }
        eprintln!("\n{:28} comments  question words", "");
        for (part, (all, openers)) in &self.comments {
            eprintln!(
                "{part:28} {all:8}  {openers:5} ({:.1} %)",
                percent(*openers, *all)
            );
        }
    }

    fn verdict(&self, limit: f64) -> Outcome {
        let all: usize = self.comments.values().map(|counts| counts.0).sum();
        let openers: usize = self.comments.values().map(|counts| counts.1).sum();
        let share = percent(openers, all);
        eprintln!("{:28} {all:8}  {openers:5} ({share:.1} %)", "together");
        if !self.faults.is_empty() {
            return Err(format!(
                "{} places do not follow STYLE.md",
                self.faults.len()
            ));
        }
        if share > limit {
            return Err(format!(
                "{share:.1} % of the doc comments open with a question word; the limit is {limit} %"
            ));
        }
        Ok(())
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of lines")]
fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Files of tests, by their place in the tree.
fn is_test(name: &str) -> bool {
    name.contains("/tests/")
        || name.starts_with("tests/")
        || name.ends_with("/tests.rs")
        || name.contains("/testkit/")
}

/// The first line of every doc comment.
fn doc_comments(text: &str) -> Vec<&str> {
    let mut first_lines = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim_start) {
        let words = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        let words = words.filter(|words| !words.starts_with('/'));
        if let Some(words) = words
            .map(str::trim)
            .filter(|words| !inside && !words.is_empty())
        {
            first_lines.push(words);
        }
        inside = words.is_some();
    }
    first_lines
}

fn opens_with_question_word(words: &str) -> bool {
    let first = words.split(|letter: char| !letter.is_alphanumeric()).next();
    first.is_some_and(|first| OPENERS.contains(&first))
}

/// The comment of a line of Rust, without its code. A `//` in a string literal counts as a comment; URLs do not.
fn comment(line: &str) -> &str {
    let mut from = 0;
    while let Some(at) = line[from..].find("//") {
        let at = from + at;
        if !line[..at].ends_with(':') {
            return &line[at..];
        }
        from = at + 2;
    }
    ""
}

/// The text of a page without its code spans, which may quote names of tests and messages of other programs.
fn outside_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

fn find_phrase(text: &str, phrases: &[&'static str]) -> Option<&'static str> {
    phrases
        .iter()
        .copied()
        .find(|phrase| has_phrase(text, phrase))
}

/// Finds `phrase` as whole words. An apostrophe or backtick belongs to a word, so that `us` in code is not found.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let belongs = |letter: char| letter.is_alphanumeric() || "'`’-".contains(letter);
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !before.is_some_and(belongs) && !after.is_some_and(belongs)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_each_doc_comment_counts() {
        let text = "//! Head.\n//! What more.\n\n/// Whether it runs.\n/// Yes.\nfn a() {}\n//// Where\n// How\n";
        let first = doc_comments(text);
        assert_eq!(first, ["Head.", "Whether it runs."]);
        assert!(!opens_with_question_word(first[0]) && opens_with_question_word(first[1]));
        assert!(!opens_with_question_word("Whatever comes"));
    }

    #[test]
    fn phrases_are_whole_words() {
        assert!(has_phrase("then nobody reads", "nobody"));
        assert!(!has_phrase("the bus stops", "us"));
        assert!(!has_phrase("waits `us`", "us"));
        assert!(has_phrase("it goes on.", "goes on"));
    }

    #[test]
    fn urls_are_not_comments() {
        assert_eq!(comment("let a = \"http://x\";"), "");
        assert_eq!(comment("a(); // b"), "// b");
    }

    #[test]
    fn a_boolean_match_and_a_phrase_are_faults_outside_tests() {
        let mut report = Report::default();
        let text = "match a {\n    true => 1,\n}\n// nobody\n";
        report.add("crates/a/src/b.rs", text);
        assert_eq!(report.faults.len(), 2, "{:?}", report.faults);
        report.add("crates/a/tests/b.rs", text);
        assert_eq!(report.faults.len(), 2);
    }
}
